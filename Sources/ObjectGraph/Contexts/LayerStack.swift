import StoreInterface
import StoreModel

/// The layers that a context reads: its own unsaved changes over a base state.
///
/// New changes go to ``top``. Before another executor reads the changes, ``seal()`` makes them immutable and starts a new top.
struct LayerStack {
    /// The unsaved changes since the last seal. The only mutable layer.
    var top: Layer {
        didSet { topID = top.id }
    }
    /// The id of ``top``, cached because every write compares it.
    private(set) var topID: UInt64
    /// Layers of unsaved changes, oldest first, which other executors may read.
    private(set) var sealed: [Layer] = []
    /// The number of layers in ``sealed``, from the oldest, that a running save has taken. 0 when no save runs.
    private var inFlight = 0
    /// Whether the context has moved to another state since the running save took its layers.
    private(set) var hasMovedInFlight = false
    /// The state below the context's own layers. After a change of it, call ``didMove()``.
    var baseState: BaseState
    /// All layers and the store's snapshot, newest first.
    private(set) var view: LayeredView
    /// A counter that increases whenever the base or the list of layers changes. Changes in ``top`` do not increase it.
    private(set) var viewRevision: UInt64 = 0
    /// Whether the view has layers besides ``top``.
    private var hasLayersBelow = false
    /// A counter that increases whenever a child created now would see a different state.
    private(set) var revision: UInt64 = 0
    /// The number of resets. A child created before a reset can no longer save to this context.
    private(set) var resetGeneration: UInt64 = 0
    /// The number of layers in ``sealed``, from the oldest, whose changes are recorded for undo or will not be. Unused without a history.
    var undoBoundary = 0
    /// Pages that the context has read from the snapshot.
    var pages = PageCache()
    /// The memory of the key that was looked up last in a collection.
    var keyBuffer: [UInt8] = []
    /// The list of related objects that was read last from the base of ``view``.
    private var lastRelated: (relation: Relation, key: ObjectKey, members: [ObjectKey])?
    private var isFolding = false
    /// Whether the layers in flight are dropped if their save fails, because the context was reset meanwhile.
    private(set) var dropsTaken = false
    /// The layers and the ids of ``belowTop()``; nil until they are requested after a change.
    private var shared: (layers: [Layer], ids: [UInt64])?
    /// The gate of children's saves, which the next change closes; nil if it is closed.
    var gate: DirectSaveGate?
    private let template: LayerTemplate

    /// The state that a context reads below its own changes.
    struct BaseState {
        /// The state of the store. In a child, the state that its root read.
        var state: StoreState
        /// Layers of ancestors, newest first; empty in a root context.
        var inherited: [Layer]
        /// The parent's view revision and reset count for which `inherited` was taken.
        var parentViewRevision: UInt64 = 0
        var parentResetGeneration: UInt64 = 0
        /// The ids of the parent's unsaved layers in `inherited`.
        var parentLayers: [UInt64] = []
        /// The parent's view revision after the last save to it. Earlier states lack that save.
        var earliestParentRevision: UInt64 = 0
        /// The way of requests to the parent and the store; nil if the context reads the state and the layers.
        var route: (any RequestRoute)?
        /// Whether the user pinned the context, or its parent, to this state.
        var isPinned = false

        /// The place of a base state among the states of the store, without its snapshot.
        struct Place {
            var sequence: SaveSequence
            var isPinned: Bool
        }

        var place: Place { Place(sequence: state.sequence, isPinned: isPinned) }

        /// Returns the base with another state of the store, below the same layers.
        func moved(to state: StoreState) -> BaseState {
            var moved = self
            moved.state = state
            moved.isPinned = false
            return moved
        }
    }

    init(_ baseState: BaseState, _ template: LayerTemplate) {
        let top = template.makeLayer()
        view = Self.view(top, [], over: baseState)
        hasLayersBelow = view.layers.count > 1
        topID = top.id
        self.top = top
        self.baseState = baseState
        self.template = template
    }

    // MARK: Reading

    /// Whether there are changes over the base state. If false, reads can go directly to the base state.
    @inline(__always)
    var hasLayers: Bool { hasLayersBelow || top.weight != 0 }

    /// Whether a layer of unsaved changes may contain deletions.
    @inline(__always)
    var hasDeletes: Bool { top.mayDelete || sealed.contains(where: \.mayDelete) }

    /// Returns whether there are unsaved changes (S007). Changes that cancel each other are none.
    // Marked as mutating, like ``pendingKind(_:_:inFlight:)``: a call of a function that is not would copy the whole stack.
    mutating func hasChanges() -> Bool { sealed.isEmpty ? !top.isEmpty : Self.haveChanges(sealed + [top], template) }

    /// Whether newer layers leave nothing of the changes that a running save has taken, and have no others.
    func cancelOut(_ newer: [Layer]) -> Bool { !Self.haveChanges(taken + newer, template) }

    private static func haveChanges(_ layers: [Layer], _ template: LayerTemplate) -> Bool {
        // Changes can cancel each other only if there are deletions.
        if !layers.contains(where: \.mayDelete) { return layers.contains { !$0.isEmpty } }
        return !template.folding(layers).isEmpty
    }

    /// Returns the unsaved changes as one layer.
    func folded() -> Layer { sealed.isEmpty ? top : template.folding(sealed + [top]) }

    /// Returns the kind of an object's unsaved change. Returns nil for an unchanged object, and for one inserted and deleted.
    ///
    /// - Parameter counted: Whether the changes that a running save has taken count.
    mutating func pendingKind(_ entity: EntityIndex, _ key: ObjectKey, inFlight counted: Bool = true) -> RowKind? {
        var newest: RowKind?
        var isInsertedHere = false
        for layer in view.layers.prefix(sealed.count + 1 - (counted ? 0 : inFlight)) {
            guard let row = layer.row(entity, key) else { continue }
            newest = newest ?? row.kind
            // The oldest row decides: an object that was deleted and is back is one that exists below.
            isInsertedHere = row.kind == .insert
        }
        if newest == .delete { return isInsertedHere ? nil : .delete }
        return isInsertedHere ? .insert : newest.map { _ in .update }
    }

    /// Returns the kind of the oldest unsaved row of an object; nil if it has none.
    // Marked as mutating, like ``pendingKind(_:_:inFlight:)``: a call of a function that is not would copy the whole stack.
    mutating func oldestKind(_ entity: EntityIndex, _ key: ObjectKey) -> RowKind? {
        for layer in view.layers.prefix(sealed.count + 1).reversed() {
            if let row = layer.row(entity, key) { return row.kind }
        }
        return nil
    }

    /// Whether the changes that no running save has taken contain a pair.
    func changesPair(_ link: LinkIndex, from source: ObjectKey, to target: ObjectKey) -> Bool {
        if top.links[link].forward[source]?[target] != nil { return true }
        return sealed.dropFirst(inFlight).contains { $0.links[link].forward[source]?[target] != nil }
    }

    // MARK: Changing

    /// Makes the current unsaved changes immutable, so that other executors can read them. Returns whether there were any. O(layers).
    mutating func seal() -> Bool {
        guard !top.isEmpty else { return false }
        top.seal()
        sealed.append(top)
        top = template.makeLayer()
        didChange()
        return true
    }

    /// Makes the sealed layers that no save has taken writable again. Returns whether there were any.
    mutating func unseal() -> Bool {
        let own = sealed.count - inFlight
        guard own > 0 else { return false }
        top = template.folding(notInFlight)
        sealed.removeLast(own)
        didChange()
        return true
    }

    /// Adds sealed layers, the changes of a child, over the unsaved changes. ``top`` must be empty.
    mutating func append(_ layers: [Layer]) {
        sealed += layers
        didChange()
    }

    /// Drops the unsaved changes that no save has taken and returns their layers.
    mutating func dropChanges() -> [Layer] {
        let dropped = notInFlight
        sealed.removeLast(sealed.count - inFlight)
        top = template.makeLayer()
        didChange()
        return dropped
    }

    /// Drops all changes like ``dropChanges()``, and refuses later saves of children that were created before.
    mutating func reset() {
        _ = dropChanges()
        resetGeneration += 1
        dropsTaken = inFlight > 0
    }

    // MARK: Saving

    /// The layers that a running save has taken, oldest first.
    @inline(__always)
    var taken: [Layer] { inFlight == 0 ? [] : Array(sealed.prefix(inFlight)) }

    /// The layers that no running save has taken, oldest first.
    var notInFlight: [Layer] { Array(sealed.dropFirst(inFlight)) + [top] }

    var hasTakenLayers: Bool { inFlight > 0 }

    /// Whether there may be changes that no running save has taken.
    var mayHaveNewerChanges: Bool { sealed.count > inFlight || top.weight != 0 }

    /// Marks all sealed layers as taken by a save.
    mutating func beginSave() {
        inFlight = sealed.count
        hasMovedInFlight = false
    }

    /// Ends a save. The layers that it took and that were not removed are unsaved changes again, unless the context was reset.
    mutating func endSave() {
        endTaking()
        hasMovedInFlight = false
    }

    /// Gives back the layers that the save took, as ``endSave()`` does. Whether the context has moved since is still known.
    mutating func endTaking() {
        if dropsTaken {
            _ = removeTaken()
            dropsTaken = false
        }
        inFlight = 0
    }

    /// Removes the layers that a save has taken and written, and returns them.
    mutating func removeTaken() -> [Layer] {
        let written = taken
        sealed.removeFirst(inFlight)
        undoBoundary = max(0, undoBoundary - inFlight)
        inFlight = 0
        didChange()
        return written
    }

    /// Ends a save that failed, and drops the layers that it took, except for the oldest `kept`. Without a save, drops all sealed layers
    /// but those.
    mutating func dropTaken(above kept: Int) -> [Layer] {
        let end = inFlight > 0 ? inFlight : sealed.count
        inFlight = 0
        guard end > kept else { return [] }
        let dropped = Array(sealed[kept..<end])
        sealed.removeSubrange(kept..<end)
        didChange()
        return dropped
    }

    // MARK: The view

    private mutating func didChange() {
        revision += 1
        rebuildView()
    }

    /// Adapts to a change of ``baseState``.
    ///
    /// - Parameter showsTheSame: Whether the new state contains the same objects, so that the state of children stays valid.
    mutating func didMove(showsTheSame: Bool) {
        pages.removeAll()
        if !showsTheSame {
            revision += 1
            if inFlight > 0 { hasMovedInFlight = true }
        }
        rebuildView()
    }

    /// Returns whether two objects are related in the base of ``view``, without the layers. Reads the list of `key` only if another one was
    /// read last, so that adding many objects to one list is O(log n) per object.
    mutating func isRelatedInBase(_ relation: Relation, to key: ObjectKey, _ member: ObjectKey) throws -> Bool {
        let members: [ObjectKey]
        if let last = lastRelated, last.key == key, last.relation == relation, view.base.isFixed {
            members = last.members
        } else {
            members = try view.base.related(relation, to: key)
            lastRelated = (relation, key, members)
        }
        var (low, high) = (0, members.count)
        while low < high {
            let middle = (low + high) / 2
            if members[middle] < member { low = middle + 1 } else { high = middle }
        }
        return low < members.count && members[low] == member
    }

    private mutating func rebuildView() {
        if let gate {
            gate.close()
            self.gate = nil
        }
        viewRevision += 1
        view = Self.view(top, sealed[...], over: baseState)
        lastRelated = nil
        shared = nil
        hasLayersBelow = view.layers.count > 1
    }

    /// Returns what children read between ``top`` and the store: the layers of this context and its ancestors, newest first; and the ids of the
    /// layers of this context, oldest first. Children share the arrays.
    mutating func belowTop() -> (layers: [Layer], ids: [UInt64]) {
        if let shared { return shared }
        let found = (
            layers: sealed.isEmpty ? baseState.inherited : sealed.reversed() + baseState.inherited, ids: sealed.map(\.id)
        )
        shared = found
        return found
    }

    /// Returns the view of unsaved changes over a base state.
    ///
    /// - Parameter sealed: Layers below `top`, oldest first.
    private static func view(_ top: Layer?, _ sealed: ArraySlice<Layer>, over baseState: BaseState) -> LayeredView {
        let base = baseState.route?.base
        let deferred = base == nil ? baseState.state.deferred : []
        var layers: [Layer] = []
        layers.reserveCapacity(1 + sealed.count + baseState.inherited.count + deferred.count)
        if let top { layers.append(top) }
        for layer in sealed.reversed() { layers.append(layer) }
        if !baseState.inherited.isEmpty { layers.append(contentsOf: baseState.inherited) }
        if !deferred.isEmpty { layers.append(contentsOf: deferred) }
        return LayeredView(base: base ?? baseState.state.base, layers: layers)
    }

    /// The view after ``dropChanges()``.
    var viewWithoutChanges: LayeredView { Self.view(nil, sealed.prefix(inFlight), over: baseState) }

    /// Returns the view after ``append(_:)``.
    func view(appending layers: [Layer]) -> LayeredView { Self.view(top, (sealed + layers)[...], over: baseState) }

    /// Returns the view after a move to another base state, or after the end of a save whose layers the base state contains.
    func view(movedTo next: BaseState, droppingTaken: Bool = false) -> LayeredView {
        var next = next
        next.route = baseState.route
        return Self.view(top, sealed.dropFirst(droppingTaken ? inFlight : 0), over: next)
    }

    // MARK: Folding

    /// Whether there are enough sealed layers to fold. O(layers).
    var mayFold: Bool { Layer.foldableTail(of: sealed) != nil }

    /// Returns sealed layers that are many enough to fold into one, and marks the folding as begun. Returns nil if there is none to do.
    mutating func beginFolding() -> [Layer]? {
        guard !isFolding, let tail = Layer.foldableTail(of: sealed) else { return nil }
        isFolding = true
        return Array(sealed[tail])
    }

    /// Replaces layers by the one they were folded into. Returns false if a save or rollback has removed some of them meanwhile, or if
    /// they may not be replaced now.
    mutating func endFolding(_ layers: [Layer], into folded: Layer, mayReplace: Bool) -> Bool {
        isFolding = false
        guard mayReplace, let start = sealed.firstIndex(where: { $0 === layers[0] }), sealed.count >= start + layers.count,
            zip(sealed[start...], layers).allSatisfy({ $0 === $1 })
        else { return false }
        // Layers are folded only after their changes were recorded, so none of them is above the boundary.
        undoBoundary -= layers.count - (folded.isEmpty ? 0 : 1)
        sealed.replaceSubrange(start..<start + layers.count, with: folded.isEmpty ? [] : [folded])
        rebuildView()
        return true
    }
}
