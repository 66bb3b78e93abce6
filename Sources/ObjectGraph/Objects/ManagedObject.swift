import StoreInterface

/// One record in one context: its identity, its unsaved values, and the way to the values below.
///
/// A typed model (`@Model`) holds one of these; a model known only at run time is used through it, by property name.
/// An object belongs to its context and is used where that context is used, its last release included; it is not `Sendable`. A class
/// on the main actor that holds objects needs an `isolated deinit`, or it may be let go of elsewhere.
///
/// A clean object holds no values: each read goes to the newest layer that has the property, else to the snapshot, and decodes that
/// property only.
///
/// Its fields are read and written without the run-time check of exclusive access: an object is used by one executor, and no
/// access to a field calls out while it lasts.
public final class ManagedObject {
    /// What becomes of an object.
    enum State: UInt8 {
        /// Made, not yet inserted into a context: its row is its own.
        case detached
        /// Registered in ``context``.
        case registered
        /// Its context was reset, rolled back past its insertion, or is gone.
        case invalid
    }

    /// Unmanaged, which is right because a context clears it in each of its objects before it goes.
    @exclusivity(unchecked) private var contextReference: Unmanaged<ManagedObjectContext>?
    /// The typed model around this object, if one is alive.
    ///
    /// `unowned(unsafe)` is right because the model's ``ModelAnchor`` clears it when the model goes.
    @exclusivity(unchecked) unowned(unsafe) var model: (any PersistentModel)?
    /// The newest row of this context's own unsaved layers; nil for a clean object.
    @exclusivity(unchecked) var row: Row?
    @exclusivity(unchecked) var key: ObjectKey = 0
    @exclusivity(unchecked) var entityNumber: Int32 = -1
    @exclusivity(unchecked) var state: State
    /// Whether the context holds the object (and its model) strongly because it has unsaved changes.
    @exclusivity(unchecked) var isRetained = false
    /// Whether what is retained is the model rather than the object.
    @exclusivity(unchecked) var retainsModel = false
    @exclusivity(unchecked) var isDeletedHere = false
    @exclusivity(unchecked) var hasAwoken = false
    /// While `awakeFromFetch` runs: stored properties are not written.
    @exclusivity(unchecked) var isAwaking = false
    /// Only while detached.
    @exclusivity(unchecked) var detachedState: DetachedState?

    /// An object of its own, to be inserted into a context later.
    public init(detached entity: DetachedEntity) {
        state = .detached
        row = Row.make(kind: .insert, layer: 0, columnCount: entity.columnCount)
        detachedState = DetachedState(entity: entity)
    }

    /// A fault in a context.
    init(context: ManagedObjectContext, entity: Int, key: ObjectKey) {
        contextReference = .passUnretained(context)
        self.entityNumber = Int32(entity)
        self.key = key
        state = .registered
    }

    deinit {
        guard state == .registered else { return }
        contextReference?._withUnsafeGuaranteedRef { context in
            // The last reference too goes where the context is used: the registry has no lock.
            context.checkIsolation()
            context.registry.forget(self)
        }
    }

    var entity: Int { Int(entityNumber) }

    var context: ManagedObjectContext? {
        get { contextReference?.takeUnretainedValue() }
        set { contextReference = newValue.map { .passUnretained($0) } }
    }

    /// The context, for an operation that needs one, without counting a reference to it, which would take longer than reading a
    /// property. Right because an object is used where its context is used, and `body` calls no code of the user's, which might
    /// let go of the context.
    ///
    /// Using an object whose context is gone, or was reset, is a programmer error and stops the program with its name.
    @inline(__always)
    func withContext<R>(_ body: (ManagedObjectContext) -> R) -> R {
        guard let contextReference, state == .registered else { stopWithoutContext() }
        return contextReference._withUnsafeGuaranteedRef { context in
            context.checkIsolation()
            return body(context)
        }
    }

    var requiredContext: ManagedObjectContext { withContext { $0 } }

    private func stopWithoutContext() -> Never {
        preconditionFailure(
            "the object \(entityNumber)/\(key) is used after its context was reset or released; "
                + "keep its objectID and ask a living context for it")
    }
}

extension ManagedObject {
    /// The object's id. A programmer error while the object is in no context: it has none yet.
    public var objectID: ObjectID {
        precondition(state != .detached, "an object has an id once it is inserted into a context")
        guard let context else {
            preconditionFailure("the object's context is gone; take its objectID while the context lives")
        }
        return ObjectID(store: context.storeIdentity, entity: entity, key: key)
    }

    /// The context in which the object is registered; nil for one that is not inserted yet, or no longer.
    public var managedObjectContext: ManagedObjectContext? { state == .registered ? context : nil }

    /// Deleted in this context, not yet saved; or its record is gone.
    public var isDeleted: Bool { isDeletedHere }

    /// New in this context, not yet saved.
    public var isInserted: Bool { state == .registered && requiredContext.pendingKind(entity, key) == .insert }

    /// Changed in this context, not yet saved.
    public var isUpdated: Bool { state == .registered && requiredContext.changeKind(entity, key) == .update }

    /// Inserted, updated or deleted in this context and not yet saved.
    public var hasChanges: Bool { state == .registered && requiredContext.changeKind(entity, key) != nil }

    /// Whether the object holds nothing of its own: every read goes below.
    public var isFault: Bool { state == .registered && row == nil }
}

extension ManagedObject: Hashable {
    public static func == (a: ManagedObject, b: ManagedObject) -> Bool { a === b }
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

/// What ties a typed model to its object: tells the object when the model goes.
public struct ModelAnchor: ~Copyable {
    public let object: ManagedObject

    public init(_ object: ManagedObject) { self.object = object }

    deinit { object.model = nil }
}
