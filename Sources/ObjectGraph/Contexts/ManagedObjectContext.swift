import Dispatch
import StoreInterface

/// A workspace in which a program fetches, changes and saves objects.
///
/// A context keeps its unsaved changes in layers over a snapshot of the store.
///
/// Contexts are not `Sendable`. Use a context and its objects only on the context's executor: on the main actor for
/// `container.mainContext`, or inside `perform` of a ``BackgroundContext``. Reads are synchronous and never wait for a writer.
/// Saves are `async` and do their work on other executors. A root context is attached to a coordinator, a child to its parent.
///
/// ```swift
/// let track = try context.existingObject(Track.self, with: id)
/// track.playCount += 1
/// context.insert(Album(title: "Live"))
/// try await context.save()
/// ```
public final class ManagedObjectContext {
    /// The model of the context's objects.
    public let model: Model
    /// The name of the context in messages, notices, the history and the list of live snapshots.
    public var name: String {
        didSet { pin.rename(name) }
    }
    /// The author recorded in the history for this context's saves, or nil for none.
    ///
    /// A child's save through to the store records the child's author. If the child has none, it records the root's.
    public var transactionAuthor: String?
    /// The resolution of conflicts in a root context's saves with newer versions of the same objects in the store.
    public var mergePolicy: MergePolicy = .error
    /// A Boolean value that indicates whether the context merges other saves automatically.
    ///
    /// A root context merges saves of other contexts, and a child merges saves of its parent. A root context merges the first save
    /// at once. Saves that follow within one frame at 120 Hz are merged together at the end of the frame.
    public var automaticallyMergesChanges: Bool {
        didSet { follow() }
    }
    /// A Boolean value that indicates whether the context also retains clean objects (S006). Setting it to false releases them.
    public var retainsRegisteredObjects = false {
        didSet { didChangeRetention() }
    }
    /// A Boolean value that indicates whether a fault without a record reads as nil and zero values. If false, reading it stops the
    /// program.
    public var shouldDeleteInaccessibleFaults = true

    let setup: ContextConfiguration
    let traits: ModelCapabilities
    /// The number of the context, unique in the process.
    let number: UInt64
    /// The identity of the store that the context's ids belong to.
    public let storeIdentity: StoreIdentity
    let registry: ObjectRegistry
    let place: ContextAddress
    /// The context's lease in the list of contexts and snapshots that keep store snapshots alive.
    let pin: SnapshotLease

    /// The unsaved changes since the last seal. The only mutable layer.
    @exclusivity(unchecked) var top: Layer {
        didSet { topID = top.id }
    }
    /// The id of ``top``, cached because every write compares it.
    @exclusivity(unchecked) var topID: UInt64
    /// Layers of this context's unsaved changes, oldest first. A layer is sealed when other code needs to read it.
    @exclusivity(unchecked) var sealed: [Layer] = []
    /// The state that the context reads below its own layers.
    var baseState: BaseState
    /// The view that the context reads: its own layers and the base state, newest first.
    @exclusivity(unchecked) var view: LayeredView
    /// Whether the view has layers besides ``top``.
    @exclusivity(unchecked) private var hasSealedLayers = false
    /// A counter that increases whenever a child created now would see a different state.
    var viewRevision: UInt64 = 0

    @exclusivity(unchecked) var pages = PageCache()
    @exclusivity(unchecked) var keys: [Range<ObjectKey>]
    /// The number of layers in ``sealed``, from the oldest, that a running save has taken. 0 when no save runs.
    var inFlight = 0
    var saveGate = SaveGate()
    /// The number of resets. A child created before a reset can no longer save to this context.
    var resetGeneration: UInt64 = 0
    @exclusivity(unchecked) var changeLog = ChangeLog()
    var viewObservers: [any ViewObserver] = []
    var noticeObservers: [UInt64: (ContextNotice) -> Void] = [:]
    /// Continuations of the observers that feed a sequence. They are finished when the context is released.
    var noticeStreams: [UInt64: AsyncStream<ContextNotice>.Continuation] = [:]
    var nextObserver: UInt64 = 0
    var isFolding = false
    /// The updated objects that another context has deleted.
    var orphans = UpdatesOfDeletedObjects()
    var watched: Set<ObjectID> = []
    /// The notifier of saves that this context has not merged yet; nil if there are none. The next read merges them first.
    @exclusivity(unchecked) var behind: CoalescedNotifier?
    /// Whether a step of a save or merge is running. Such a step must read the state that it started with.
    @exclusivity(unchecked) var isMoving = false
    /// Whether a save is being applied. See ``settleBaseNow()``.
    var settlesBaseLater = false
    /// The error thrown by requests and saves after the container was closed; nil before.
    var closure: StoreError?
    /// Requests that are being iterated.
    var openSources: [WeakSource] = []
    /// Children that are moved to this context's new state after each save.
    var childObservers: [WeakContext] = []
    /// The state that a context reads below its own changes.
    struct BaseState {
        /// The state of the store. In a child, the state that its root read.
        var state: StoreState
        /// Layers of ancestors, newest first; empty in a root context.
        var inherited: [Layer]
        /// The parent's view revision and reset count for which `inherited` was taken.
        var parentViewRevision: UInt64 = 0
        var parentResetGeneration: UInt64 = 0
        /// The way of requests to the parent and the store; nil if the context reads the state and the layers.
        var route: (any RequestRoute)?
        /// Whether the user pinned the context to this state.
        var isPinned = false
    }

    init(_ setup: ContextConfiguration, place: ContextAddress) {
        guard var start = setup.baseState else { preconditionFailure("a context was set up without a state to read") }
        // Keeping it would prevent reuse of the first state's pages for the lifetime of the context.
        var setup = setup
        setup.baseState = nil
        self.setup = setup
        self.place = place
        model = setup.model
        name = setup.name
        number = ContextConfiguration.nextNumber()
        automaticallyMergesChanges = setup.automaticallyMergesChanges
        let writer = setup.writer
        traits = setup.traits
        storeIdentity = writer.store.identity
        registry = ObjectRegistry(entityCount: model.entities.count)
        let top = Layer(schema: model.storeSchema)
        self.top = top
        topID = top.id
        if setup.parent == nil {
            if setup.beginsAtFirstRead { start.state = writer.resting(start.state) } else { start.state.takeBase() }
        }
        baseState = start
        pin = writer.pins.add(setup.name, start.state, place)
        view = LayeredView(base: start.state.base, layers: [])
        keys = traits.noKeys
        rebuildView()
    }

    deinit {
        for stream in noticeStreams.values { stream.finish() }
        // Forget all objects first: releasing one object may deallocate other objects that it retains.
        var retained: [ManagedObject] = []
        registry.forEach { object in
            registry.forget(object)
            object.context = nil
            object.state = .invalid
            if object.isRetained { retained.append(object) }
        }
        for object in retained { registry.release(object) }
        for (entity, rest) in keys.enumerated() where !rest.isEmpty { setup.writer.keys.giveBack(rest, entity) }
        if isRoot { setup.coordinator.unregister(number) }
    }

    var host: (any ContextExecutor)? { place.host }

    /// Registers the context for saves of other contexts if it merges automatically.
    func follow() {
        guard automaticallyMergesChanges, let host else { return }
        if isRoot {
            setup.coordinator.register(host, number: number)
        } else {
            setup.parent?.host?.enqueue { $0.addFollower(host) }
        }
    }

    var requiredHost: any ContextExecutor {
        guard let host else { preconditionFailure("the context \(name) is used after its host was released") }
        return host
    }

    var isRoot: Bool { setup.parent == nil }

    /// The coordinator of a root context; nil in a child.
    public var persistentStoreCoordinator: PersistentStoreCoordinator? { isRoot ? setup.coordinator : nil }

    /// The snapshot of the store that the context reads below all unsaved changes (S151).
    public var snapshot: Snapshot {
        Snapshot(baseState.state, owner: "a snapshot of \(name)", of: setup.writer)
    }

    /// A Boolean value that indicates whether the context has unsaved inserts, updates or deletes (S007).
    public var hasChanges: Bool {
        if sealed.isEmpty { return !top.isEmpty }
        // Changes can cancel each other only if there are deletions.
        if !hasDeletes { return !top.isEmpty || sealed.contains { !$0.isEmpty } }
        return !Layer.folding(sealed + [top], schema: model.storeSchema).isEmpty
    }

    /// Stops the program if the context is used off its executor. The check always runs in debug builds.
    /// In release builds it runs if the environment contains `STRATA_CONCURRENCY_DEBUG=1` (S171).
    @inline(__always)
    func checkIsolation() {
        if ConcurrencyCheck.isOn { ConcurrencyCheck.verify(self) }
        catchUp()
    }

    var hasDeletes: Bool { top.mayDelete || sealed.contains(where: \.mayDelete) }

    /// Returns the keys that match a lowered query, including unsaved changes.
    package func keys(matching query: StoreQuery) throws -> [ObjectKey] {
        checkIsolation()
        return try view.keys(query)
    }

    // MARK: Layers

    /// Whether there are changes over the base state. If false, reads can go directly to the base state.
    @inline(__always)
    var hasLayers: Bool { hasSealedLayers || top.weight != 0 }

    /// Makes the current unsaved changes immutable, so that other executors can read them. O(layers).
    func sealTop() {
        guard !top.isEmpty else { return }
        top.seal()
        sealed.append(top)
        top = Layer(schema: model.storeSchema)
        viewRevision += 1
        rebuildView()
        foldIfLong()
    }

    /// Rebuilds ``view``. Call this after any change of the layers or of the base state.
    func rebuildView() {
        let state = baseState.state
        defer { hasSealedLayers = view.layers.count > 1 }
        var layers: [Layer] = []
        layers.reserveCapacity(1 + sealed.count + baseState.inherited.count + state.deferred.count)
        layers.append(top)
        layers.append(contentsOf: sealed.reversed())
        layers.append(contentsOf: baseState.inherited)
        if let base = baseState.route?.base {
            view = LayeredView(base: base, layers: layers)
        } else {
            layers.append(contentsOf: state.deferred)
            view = LayeredView(base: state.base, layers: layers)
        }
    }

    /// Replaces the base state. The caller refreshes objects and notifies observers.
    func setBaseState(_ new: BaseState) {
        // On the main thread, user code waits for this call, and freeing thousands of rows takes as long as the rest of it.
        if place.executor == nil { BackgroundDeallocator.release(of: baseState.state.deferred) }
        baseState = shown(new)
        if !settlesBaseLater { settleBase() }
        pin.move(to: baseState.state)
        pages.removeAll()
        viewRevision += 1
        rebuildView()
    }

    /// Acquires the snapshot if objects, observers or unsaved changes depend on it. Otherwise the context keeps no pages from reuse.
    private func settleBase() {
        guard baseState.route?.base == nil, closure == nil else { return }
        if isRoot, showsNothing, !baseState.isPinned {
            baseState.state = setup.writer.resting(baseState.state)
        } else {
            baseState.state.takeBase()
        }
    }

    /// Settles the base state at the end of a save, because its objects are released only after they are clean.
    func settleBaseNow() {
        settlesBaseLater = false
        settleBase()
        pin.move(to: baseState.state)
        pages.removeAll()
        rebuildView()
    }

    /// Whether no object, observer or unsaved change depends on the base state.
    var showsNothing: Bool { registry.count == 0 && viewObservers.isEmpty && !hasUnsavedLayers }

    /// Returns the current view with its layers sealed, so that any thread may read it.
    func sealedView() -> LayeredView {
        sealTop()
        return LayeredView(base: view.base, layers: Array(view.layers.dropFirst()))
    }

    /// Returns this context's own unsaved changes as one layer.
    func foldedChanges() -> Layer {
        sealed.isEmpty ? top : Layer.folding(sealed + [top], schema: model.storeSchema)
    }

    /// Returns the kind of an object's unsaved change in this context. Returns nil for an unchanged object, and for one inserted and
    /// deleted.
    func pendingKind(_ entity: Int, _ key: ObjectKey) -> RowKind? {
        var newest: RowKind?
        var isInsertedHere = false
        for layer in view.layers.prefix(sealed.count + 1) {
            guard let row = layer.row(entity, key) else { continue }
            newest = newest ?? row.kind
            if row.kind == .insert { isInsertedHere = true }
        }
        if newest == .delete { return isInsertedHere ? nil : .delete }
        return isInsertedHere ? .insert : newest
    }

    // MARK: Folding

    /// Folds a long list of sealed layers into one layer, off the context's executor, so that reads stay fast.
    func foldIfLong() {
        guard !isFolding, !saveGate.isSaving, let tail = Layer.foldableTail(of: sealed), let host else { return }
        isFolding = true
        let layers = Array(sealed[tail])
        let schema = model.storeSchema
        DispatchQueue.global().async {
            let folded = Layer.folding(layers, schema: schema)
            folded.seal()
            host.enqueue { $0.didFold(layers, into: folded) }
        }
    }

    private func didFold(_ layers: [Layer], into folded: Layer) {
        isFolding = false
        // A save or a rollback may have removed these layers in the meantime.
        guard !saveGate.isSaving, let start = sealed.firstIndex(where: { $0 === layers[0] }),
            sealed.count >= start + layers.count,
            zip(sealed[start...], layers).allSatisfy({ $0 === $1 })
        else { return }
        sealed.replaceSubrange(start..<start + layers.count, with: folded.isEmpty ? [] : [folded])
        rebuildView()
        reconnectRows(from: folded)
    }

    /// Updates the row of each object whose newest row was in one of the folded layers.
    private func reconnectRows(from folded: Layer) {
        forEachRegistered(in: folded) { object, _ in object.row = newestOwnRow(object.entity, object.key) }
    }

    /// Sets every object with unsaved changes to its newest row. Call this after layers were replaced.
    func reconnectRows() {
        for layer in sealed + [top] {
            forEachRegistered(in: layer) { object, row in object.row = row }
        }
    }

    /// Calls `body` with each registered object for which the layer has a row. O(pages of the layer + such objects).
    func forEachRegistered(in layer: Layer, _ body: (ManagedObject, Row) -> Void) {
        forEachRegisteredPage(in: layer) { _, registered, page in
            ObjectRegistry.forEach(in: registered, page.touched) { object in
                if let row = page[PageAddress.slot(of: object.key)] { body(object, row) }
            }
        }
    }

    /// Calls `body` with the entity, the registry's page and the layer's page for each page of a layer that has registered objects.
    func forEachRegisteredPage(in layer: Layer, _ body: (Int, ObjectRegistry.Page, LayerPage) -> Void) {
        for entity in 0..<layer.entityCount {
            guard let changes = layer.entity(entity) else { continue }
            for (number, page) in changes.pages {
                if let registered = registry.page(entity, number) { body(entity, registered, page) }
            }
        }
    }
}

/// A weak reference to a context.
struct WeakContext {
    weak var host: (any ContextExecutor)?
}
