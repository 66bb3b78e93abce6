import Dispatch
import StoreInterface

/// A place to work with objects: one mutable layer of unsaved changes over sealed ones, over what it was made on.
///
/// Not `Sendable`: a context and its objects are used where they live, the main actor (`container.mainContext`) or inside
/// ``BackgroundContext/perform(_:)``. Reads are synchronous and never wait for a writer; saves are `async`, their work runs
/// elsewhere. A root context is attached to a coordinator, a child to its parent.
public final class ManagedObjectContext {
    public let model: Model
    /// For messages, notices, the history and the list of live snapshots.
    public var name: String {
        didSet { pin.rename(name) }
    }
    /// Who the history names as the author of this context's saves; nil: nobody. A child's save through to the store has the
    /// child's author, or the root's when it has none.
    public var transactionAuthor: String?
    /// What a save of a root context does about objects that the store has in a newer version.
    public var mergePolicy: MergePolicy = .error
    /// Whether the context moves on by itself after other contexts' saves (root) or its parent's (child).
    ///
    /// A root is told of the first save at once, of those that follow within one frame at 120 Hz together at its end.
    public var automaticallyMergesChanges: Bool {
        didSet { follow() }
    }
    /// Hold clean objects strongly too (S006). Turning it off releases the clean ones.
    public var retainsRegisteredObjects = false {
        didSet { didChangeRetention() }
    }
    /// Whether reading a fault whose record is gone gives nil and zero values (true), or stops the program (false).
    public var shouldDeleteInaccessibleFaults = true

    let setup: ContextConfiguration
    let traits: ModelCapabilities
    /// Unique in the process.
    let number: UInt64
    /// Which store the context's ids belong to.
    public let storeIdentity: StoreIdentity
    let registry: ObjectRegistry
    let place: ContextAddress
    /// Names the context among those that keep snapshots alive.
    let pin: SnapshotLease

    /// Unsaved changes, still changing.
    @exclusivity(unchecked) var top: Layer {
        didSet { topID = top.id }
    }
    /// The id of ``top``, beside it because every write asks for it.
    @exclusivity(unchecked) var topID: UInt64
    /// Unsaved changes of this context that were sealed because somebody else looks at them; oldest first.
    @exclusivity(unchecked) var sealed: [Layer] = []
    /// What lies below the context's own layers.
    var baseState: BaseState
    /// All of it, newest first: what the context shows.
    @exclusivity(unchecked) var view: LayeredView
    /// Whether the view has layers besides ``top``.
    @exclusivity(unchecked) private var hasSealedLayers = false
    /// Grows with every change of what a child made now would see.
    var viewRevision: UInt64 = 0

    @exclusivity(unchecked) var pages = PageCache()
    @exclusivity(unchecked) var keys: [Range<ObjectKey>]
    /// How many of ``sealed``, from the oldest, a running save has taken; 0 when none runs.
    var inFlight = 0
    var isSaving = false
    /// Saves that wait for the running one.
    var waitingSaves: [() -> Void] = []
    /// Children's saves through this context that go up together when the running save is over.
    var waitingPushes: [WaitingPush] = []
    /// How often the context was reset: a child made before does not save into it any more.
    var resetGeneration: UInt64 = 0
    @exclusivity(unchecked) var changeLog = ChangeLog()
    var viewObservers: [any ViewObserver] = []
    var noticeObservers: [UInt64: (ContextNotice) -> Void] = [:]
    /// Of the observers that feed a sequence: finished with the context.
    var noticeStreams: [UInt64: AsyncStream<ContextNotice>.Continuation] = [:]
    var nextObserver: UInt64 = 0
    var isFolding = false
    /// The updated objects that another context has deleted.
    var orphans = UpdatesOfDeletedObjects()
    var watched: Set<ObjectID> = []
    /// Told of saves that this context is to merge and has not merged yet, before the turn that reads next.
    @exclusivity(unchecked) var behind: CoalescedNotifier?
    /// A step of a save or a merge runs, which reads the state that it began with.
    @exclusivity(unchecked) var isMoving = false
    /// A save is being taken over: see ``settleBaseNow()``.
    var settlesBaseLater = false
    /// The error thrown by requests and saves after the container was closed; nil before.
    var closure: StoreError?
    /// Requests that are being iterated.
    var openSources: [WeakSource] = []
    /// Children that are moved after each save.
    var childObservers: [WeakContext] = []
    /// What a context reads below its own changes.
    struct BaseState {
        /// The store's state; in a child, the one its root was on.
        var state: StoreState
        /// Layers of ancestors, newest first; empty in a root context.
        var inherited: [Layer]
        /// The parent's view revision that `inherited` shows, and how often it had been reset.
        var parentViewRevision: UInt64 = 0
        var parentResetGeneration: UInt64 = 0
        /// With the routing `ancestors`: reads through the parent.
        var ancestors: AncestorSnapshot?
        /// Whether the user chose the state.
        var isPinned = false
    }

    init(_ setup: ContextConfiguration, place: ContextAddress) {
        guard var start = setup.baseState else { preconditionFailure("a context was set up without a state to read") }
        // Kept, it would keep the pages of the first state from being reused as long as the context lives.
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
        // All are forgotten first: letting go of one object may deallocate others, which it holds.
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

    /// Asks to be told of saves elsewhere, when the context is to move on by itself.
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

    /// The state of the store that the context reads below all unsaved changes (S151).
    public var snapshot: Snapshot {
        Snapshot(baseState.state, owner: "a snapshot of \(name)", of: setup.writer)
    }

    /// Whether the context has unsaved inserts, updates or deletes (S007).
    public var hasChanges: Bool {
        if sealed.isEmpty { return !top.isEmpty }
        // Without deletions nothing can cancel out.
        if !hasDeletes { return !top.isEmpty || sealed.contains { !$0.isEmpty } }
        return !Layer.folding(sealed + [top], schema: model.storeSchema).isEmpty
    }

    /// Stops the program when called off the context's executor: always in debug builds, in release when the environment has
    /// `STRATA_CONCURRENCY_DEBUG=1` (S171).
    @inline(__always)
    func checkIsolation() {
        if ConcurrencyCheck.isOn { ConcurrencyCheck.verify(self) }
        catchUp()
    }

    var hasDeletes: Bool { top.mayDelete || sealed.contains(where: \.mayDelete) }

    /// The keys that a lowered query selects, unsaved changes included.
    package func keys(matching query: StoreQuery) throws -> [ObjectKey] {
        checkIsolation()
        return try view.keys(query)
    }

    // MARK: Layers

    /// false: what lies below answers alone.
    @inline(__always)
    var hasLayers: Bool { hasSealedLayers || top.weight != 0 }

    /// Makes the unsaved changes so far immutable, so that others can look at them. O(layers).
    func sealTop() {
        guard !top.isEmpty else { return }
        top.seal()
        sealed.append(top)
        top = Layer(schema: model.storeSchema)
        viewRevision += 1
        rebuildView()
        foldIfLong()
    }

    /// After any change of the layers or of what lies below.
    func rebuildView() {
        let state = baseState.state
        defer { hasSealedLayers = view.layers.count > 1 }
        var layers: [Layer] = []
        layers.reserveCapacity(1 + sealed.count + baseState.inherited.count + state.deferred.count)
        layers.append(top)
        layers.append(contentsOf: sealed.reversed())
        layers.append(contentsOf: baseState.inherited)
        if let ancestors = baseState.ancestors {
            view = LayeredView(base: ancestors, layers: layers)
        } else {
            layers.append(contentsOf: state.deferred)
            view = LayeredView(base: state.base, layers: layers)
        }
    }

    /// Moves what lies below the context's own layers. The caller refreshes objects and tells observers.
    func setBaseState(_ new: BaseState) {
        // On the main thread somebody waits for it, and freeing thousands of rows takes as long as everything else here.
        if place.executor == nil { BackgroundDeallocator.release(of: baseState.state.deferred) }
        baseState = shown(new)
        if !settlesBaseLater { settleBase() }
        pin.move(to: baseState.state)
        pages.removeAll()
        viewRevision += 1
        rebuildView()
    }

    /// What a context shows must not change under it; one that shows nothing keeps nothing of the file.
    private func settleBase() {
        guard baseState.ancestors == nil, closure == nil else { return }
        if isRoot, showsNothing, !baseState.isPinned {
            baseState.state = setup.writer.resting(baseState.state)
        } else {
            baseState.state.takeBase()
        }
    }

    /// After a save, whose objects are let go of only when they are clean.
    func settleBaseNow() {
        settlesBaseLater = false
        settleBase()
        pin.move(to: baseState.state)
        pages.removeAll()
        rebuildView()
    }

    /// Whether nothing of what lies below has been handed out.
    var showsNothing: Bool { registry.count == 0 && viewObservers.isEmpty && !hasUnsavedLayers }

    /// What the context shows now, sealed: any thread may read it.
    func sealedView() -> LayeredView {
        sealTop()
        return LayeredView(base: view.base, layers: Array(view.layers.dropFirst()))
    }

    /// This context's own unsaved changes as one layer.
    func foldedChanges() -> Layer {
        sealed.isEmpty ? top : Layer.folding(sealed + [top], schema: model.storeSchema)
    }

    /// Whether, and how, an object is changed in this context and not saved; nil also for one that was inserted and deleted.
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

    /// A long list of sealed layers is folded into one off the context's executor; reads stay short.
    func foldIfLong() {
        guard !isFolding, !isSaving, let tail = Layer.foldableTail(of: sealed), let host else { return }
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
        // A save or a rollback may have taken them meanwhile.
        guard !isSaving, let start = sealed.firstIndex(where: { $0 === layers[0] }), sealed.count >= start + layers.count,
            zip(sealed[start...], layers).allSatisfy({ $0 === $1 })
        else { return }
        sealed.replaceSubrange(start..<start + layers.count, with: folded.isEmpty ? [] : [folded])
        rebuildView()
        reconnectRows(from: folded)
    }

    /// Points objects whose newest row was in one of the folded layers at the folded row.
    private func reconnectRows(from folded: Layer) {
        forEachRegistered(in: folded) { object, _ in object.row = newestOwnRow(object.entity, object.key) }
    }

    /// Points every object with unsaved changes at its newest row, after layers were replaced.
    func reconnectRows() {
        for layer in sealed + [top] {
            forEachRegistered(in: layer) { object, row in object.row = row }
        }
    }

    /// Calls `body` with each registered object that a layer has a row for. O(pages of the layer + such objects).
    func forEachRegistered(in layer: Layer, _ body: (ManagedObject, Row) -> Void) {
        forEachRegisteredPage(in: layer) { _, registered, page in
            ObjectRegistry.forEach(in: registered, page.touched) { object in
                if let row = page[PageAddress.slot(of: object.key)] { body(object, row) }
            }
        }
    }

    /// Calls `body` with the entity and both sides of each page of a layer that has registered objects.
    func forEachRegisteredPage(in layer: Layer, _ body: (Int, ObjectRegistry.Page, LayerPage) -> Void) {
        for entity in 0..<layer.entityCount {
            guard let changes = layer.entity(entity) else { continue }
            for (number, page) in changes.pages {
                if let registered = registry.page(entity, number) { body(entity, registered, page) }
            }
        }
    }
}

/// A reference to a context that does not keep it.
struct WeakContext {
    weak var host: (any ContextExecutor)?
}
