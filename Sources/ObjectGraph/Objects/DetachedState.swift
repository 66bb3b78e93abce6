import StoreInterface
import StoreModel
import Synchronization

/// The relationships of an object that is not yet in a context. They refer to objects, because detached objects have no keys.
final class DetachedState {
    let entity: DetachedEntity
    /// To-one relationships by relationship number.
    var toOne: [Int: Partner] = [:]
    var toMany: [Int: [Partner]] = [:]
    /// The detached objects that were related to this object from their side. Some may no longer be related.
    ///
    /// Unmanaged is safe, because ``graph`` retains them.
    fileprivate var referrers: [Unmanaged<ManagedObject>] = []
    /// The detached objects that are or were related to this object, directly or indirectly; nil if there are none.
    fileprivate(set) var graph: DetachedGraph?
    /// The key of the object's provisional id; 0 before its first use. See ``ManagedObject/identifier``.
    private(set) var provisionalKey: ObjectKey = 0
    /// The address of the model's anchor, if the model's initializer has set a relationship.
    var anchorAddress: UnsafeRawPointer?
    /// Unmanaged is safe, because a context clears this reference before it is released.
    fileprivate var ownArrival: Unmanaged<ManagedObjectContext>?

    /// A related object, and its model, which is retained as long as the relationship refers to it.
    struct Partner {
        /// Nil if the program has set a to-one relationship to nil that other detached objects may have set from their side.
        let object: ManagedObject?
        var model: (any PersistentModel)?
        /// Increases with each relation of detached objects in the process. Relations that contradict each other, of whatever objects,
        /// take effect in this order.
        let order: Int

        private static let lastOrder = Atomic(0)

        init(_ object: ManagedObject?) {
            self.object = object
            model = object?.model
            order = Self.lastOrder.wrappingAdd(1, ordering: .relaxed).newValue
        }
    }

    init(entity: DetachedEntity) { self.entity = entity }

    /// The context that inserts the object before its next use, because the object was related to an object of that context.
    var arrival: ManagedObjectContext? { (ownArrival ?? graph?.arrival)?.takeUnretainedValue() }

    func awaitArrival(in context: ManagedObjectContext) {
        ownArrival = .passUnretained(context)
        graph?.arrival = ownArrival
    }

    /// Forgets the context, which is being released.
    func cancelArrival() {
        ownArrival = nil
        graph?.arrival = nil
        graph?.dissolveIfUnused()
    }

    /// Forgets the context and all relations, because the initializer of the object's model has failed.
    ///
    /// The graph keeps the object, to which other members may have references. They do not lead to relations any more.
    func withdraw() {
        // Released in the end, because the release of a model may use the graph.
        let former = (toOne, toMany)
        (toOne, toMany) = ([:], [:])
        ownArrival = nil
        graph?.findArrival()
        withExtendedLifetime(former) {}
    }

    /// Returns the key of the object's provisional id, which no other object of the process has.
    func takeProvisionalKey() -> ObjectKey {
        if provisionalKey == 0 {
            provisionalKey = ObjectKey(rawValue: Self.lastProvisionalKey.wrappingAdd(1, ordering: .relaxed).newValue)
        }
        return provisionalKey
    }

    private static let lastProvisionalKey = Atomic<UInt64>(0)

    var hasRelations: Bool { !toOne.isEmpty || !toMany.isEmpty }

    /// Whether detached objects were related to this object from their side.
    var hasReferrers: Bool { !referrers.isEmpty }

    /// Records that `owner`, the detached object of this state, refers to another detached object.
    func didRelate(_ owner: ManagedObject, to other: ManagedObject) {
        guard owner !== other, let far = other.detachedState else { return }
        far.referrers.append(.passUnretained(owner))
        let arrival = arrival ?? far.arrival
        let joined = DetachedGraph.joining(graph ?? DetachedGraph(owner, self), far.graph ?? DetachedGraph(other, far))
        joined.arrival = arrival.map { .passUnretained($0) }
    }

    /// The detached objects that `owner` is related to: its destinations in the order of the relationships, then the objects that
    /// refer to it.
    func related(to owner: ManagedObject) -> [ManagedObject] {
        let destinations =
            toOne.sorted { $0.key < $1.key }.compactMap(\.value.object)
            + toMany.sorted { $0.key < $1.key }.flatMap { $0.value.compactMap(\.object) }
        let others = referrers.map { $0.takeUnretainedValue() }.filter { $0.detachedState?.refers(to: owner) == true }
        return (destinations + others).filter { $0.state == .detached }
    }

    private func refers(to other: ManagedObject) -> Bool {
        toOne.values.contains { $0.object === other } || toMany.values.contains { $0.contains { $0.object === other } }
    }

    /// Removes the object from its graph after its insertion.
    func leaveGraph(_ owner: ManagedObject) {
        guard let graph else { return }
        self.graph = nil
        graph.arrival = nil
        graph.remove(owner)
    }

    /// Called when the object's model is released. The object no longer retains the models that it refers to.
    func modelWasReleased() {
        // It may have been the address of the released model's anchor.
        anchorAddress = nil
        guard let graph else { return }
        for number in toOne.keys { toOne[number]?.model = nil }
        for (number, partners) in toMany {
            toMany[number] = partners.map { partner in
                var partner = partner
                partner.model = nil
                return partner
            }
        }
        graph.modelWasReleased()
    }

    fileprivate func clear() {
        toOne = [:]
        toMany = [:]
        referrers = []
        graph = nil
    }
}

/// Detached objects that were related to each other. It retains them until the program has released all of their models.
final class DetachedGraph {
    private var members: Set<ManagedObject>
    private var modelCount: Int
    /// See ``DetachedState/arrival``.
    fileprivate(set) var arrival: Unmanaged<ManagedObjectContext>?

    fileprivate init(_ object: ManagedObject, _ state: DetachedState) {
        members = [object]
        modelCount = object.hasModel ? 1 : 0
        state.graph = self
    }

    /// Moves the members of the smaller graph to the larger one, and returns the larger one.
    fileprivate static func joining(_ a: DetachedGraph, _ b: DetachedGraph) -> DetachedGraph {
        guard a !== b else { return a }
        let (large, small) = a.members.count < b.members.count ? (b, a) : (a, b)
        for object in small.members { object.detachedState?.graph = large }
        large.members.formUnion(small.members)
        large.modelCount += small.modelCount
        small.members = []
        return large
    }

    /// Returns the members without `object`, in no order.
    func others(than object: ManagedObject) -> [ManagedObject] { members.filter { $0 !== object } }

    fileprivate func remove(_ object: ManagedObject) {
        members.remove(object)
        if object.hasModel { modelCount -= 1 }
        dissolveIfUnused()
    }

    fileprivate func modelWasReleased() {
        modelCount -= 1
        dissolveIfUnused()
    }

    /// Finds the context again, after a member has forgotten it.
    fileprivate func findArrival() {
        arrival = members.lazy.compactMap { $0.detachedState?.ownArrival }.first
    }

    /// Releases the members if the program has no reference to any of them. A context that awaits them still needs them.
    fileprivate func dissolveIfUnused() {
        guard modelCount == 0, arrival == nil else { return }
        let released = members
        members = []
        for object in released { object.detachedState?.clear() }
    }
}
