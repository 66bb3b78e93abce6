import Dispatch
import StoreInterface
import StoreModel

/// A workspace in which a program fetches, changes and saves objects.
///
/// A context keeps its unsaved changes in layers over a snapshot of the store.
///
/// Contexts are not `Sendable`. Use a context and its objects only on the context's executor: on the main actor for
/// `container.mainContext`, or inside `perform` of a ``BackgroundContext``. Reads are synchronous and never wait for a writer.
/// Saves are `async` and do their work on other executors. A root context is attached to a coordinator, a child to its parent.
///
/// Objects do not retain their context. Retain it as long as you use its objects: reading a stored value after the context was released
/// or reset stops the program (S008). Unsaved changes end with the context. Saved objects keep their ids when
/// it is released.
///
/// ```swift
/// let track = try context.existingObject(Track.self, with: id)
/// track.playCount += 1
/// context.insert(Album(title: "Live"))
/// try await context.save()
/// ```
public final class ManagedObjectContext {
    /// The name of the context in messages, notices, the history and the list of live snapshots.
    public var name: String {
        didSet { environment.lease.rename(name) }
    }
    /// The author recorded in the history for this context's saves, or nil for none.
    ///
    /// A child's save through to the store records the child's author. If the child has none, it records the root's.
    public var transactionAuthor: String? {
        didSet { tracker.log.closeGate() }
    }
    /// The resolution of conflicts in a root context's saves with newer versions of the same objects in the store.
    ///
    /// In a child it has no effect, because a child saves to its parent. The main context of the stacks `.masterMainWorker` and `.hybrid`
    /// is a child of a root that programs do not see: setting the policy of the main context also sets it for that root.
    public var mergePolicy: MergePolicy = .error {
        didSet {
            tracker.log.closeGate()
            shareMergePolicy()
        }
    }
    /// A Boolean value that indicates whether the context merges other saves automatically.
    ///
    /// A root context merges saves of other contexts, and a child merges saves of its parent. A root context merges the first save
    /// at once. Saves that follow within one frame at 120 Hz are merged together at the end of the frame.
    ///
    /// The main context of `.hybrid` also sets it for its root, which programs do not see.
    ///
    /// If a root context is set to true later, it merges the saves until then after the running job of its executor. A child merges from
    /// the next save of its parent on.
    public var automaticallyMergesChanges: Bool {
        didSet {
            tracker.log.closeGate()
            shareMerging()
            follow()
            if automaticallyMergesChanges, !oldValue { mergeEarlierSaves() }
            if !automaticallyMergesChanges, oldValue { phase.mergedThrough = layerStack.baseState.state.sequence }
        }
    }
    /// A Boolean value that indicates whether the context also retains clean objects (S006). Setting it to false releases them.
    @exclusivity(unchecked) public var retainsRegisteredObjects = false {
        didSet { didChangeRetention() }
    }
    /// A Boolean value that indicates whether a fault without a record reads as nil and zero values. If false, reading it stops the
    /// program.
    public var shouldDeleteInaccessibleFaults = true

    let environment: ContextEnvironment
    let registry: ObjectRegistry
    @exclusivity(unchecked) var layerStack: LayerStack
    @exclusivity(unchecked) var tracker: ChangeTracker
    var observers = ContextObservers()
    @exclusivity(unchecked) var phase = ContextPhase()

    init(_ new: NewContext, place: ContextAddress) {
        let configuration = new.configuration
        var start = new.baseState
        if configuration.parent == nil {
            if configuration.beginsAtFirstRead {
                start.state = configuration.writer.resting(start.state)
            } else if start.isPinned {
                start.state.takeBase()
            } else {
                start.state = configuration.writer.acquired(start.state)
            }
        }
        if let uses = place.confinement?.uses {
            start.state = start.state.reading(RevocableSnapshot(start.state.base, uses, of: configuration.coordinator.store))
        }
        name = configuration.name
        automaticallyMergesChanges = configuration.automaticallyMergesChanges
        environment = ContextEnvironment(configuration, place: place, state: start.state)
        registry = ObjectRegistry()
        layerStack = LayerStack(start, environment.capabilities.layerTemplate)
        tracker = ChangeTracker(keys: environment.capabilities.noKeys)
        phase.mergedThrough = start.state.sequence
        if start.isPinned { phase.pinnedThrough = configuration.writer.state.sequence }
    }

    deinit {
        // Children retain the place. An open gate there would keep the state, and with it pages of the file.
        place.direct.close()
        observers.finishStreams()
        // Forget all objects first: releasing one object may deallocate other objects that it retains.
        var retained: [ManagedObject] = []
        let released = registry.count > 0 ? ReleasedContext(storeIdentity: storeIdentity) : nil
        registry.forEach { object in
            registry.forget(object)
            object.leave(isInsertionSaved(object) ? released : nil)
            if object.isRetained { retained.append(object) }
        }
        cancelArrivals()
        for object in retained { registry.release(object) }
        giveBackKeys()
        if followsStore { configuration.coordinator.unregister(number) }
        place.confinement?.close()
    }

    /// Returns whether the insertion of a registered object is saved: to the store, or in a child to the parent.
    private func isInsertionSaved(_ object: ManagedObject) -> Bool {
        guard let row = object.row else { return true }
        // An insertion that was deleted again, or undone, is in no layer, and the object keeps its row or that of the deletion.
        guard let kind = layerStack.oldestKind(object.entity, object.key) else { return row.kind == .update }
        return kind != .insert
    }

    /// Returns unused keys, so that other contexts use them. A confined context returns them after each save, rollback and reset, because
    /// closing the container cannot take them from it.
    func giveBackKeys() {
        for (entity, rest) in tracker.takeKeys() { configuration.writer.keys.giveBack(rest, entity) }
    }

    /// The identity of the store that the context's ids belong to.
    public var storeIdentity: StoreIdentity { environment.storeIdentity }
    /// The model of the context's objects.
    public var model: Model { configuration.coordinator.model }
    /// The model with the hidden entity of keyed values, if the store has it.
    package var storedModel: Model { environment.model }
    var configuration: ContextConfiguration { environment.configuration }
    var capabilities: ModelCapabilities { environment.capabilities }
    var number: UInt64 { environment.number }
    var place: ContextAddress { environment.address }

    var contextExecutor: (any ContextExecutor)? { place.contextExecutor }

    /// Registers the context for saves of other contexts if it merges automatically. A confined context looks for them itself.
    func follow() {
        guard automaticallyMergesChanges, place.confinement == nil, let contextExecutor else { return }
        let place = place
        if followsStore {
            configuration.coordinator.register(contextExecutor, at: place, number: number, root: configuration.followedRoot)
        }
        if isRoot { return }
        let revision = layerStack.baseState.parentViewRevision
        if configuration.parent?.place.executor === place.executor {
            configuration.parent?.contextExecutor?.runHere { $0.addChild(contextExecutor, at: place, reading: revision) }
        } else {
            configuration.parent?.contextExecutor?.enqueue { $0.addChild(contextExecutor, at: place, reading: revision) }
        }
    }

    /// Merges the saves that the context was not notified of. A context that reads a given state keeps it until the next save.
    private func mergeEarlierSaves() {
        guard isRoot, !layerStack.baseState.isPinned else { return }
        tracker.forgetUnmerged()
        if place.confinement == nil { contextExecutor?.enqueue { $0.storeDidChange() } }
    }

    var requiredContextExecutor: any ContextExecutor {
        guard let contextExecutor else {
            preconditionFailure("the context \(name) is used after its executor was released")
        }
        return contextExecutor
    }

    var isRoot: Bool { configuration.parent == nil }

    /// Whether the writer tells the context of saves.
    var followsStore: Bool { isRoot || configuration.followedRoot != nil }

    /// The coordinator of a root context; nil in a child.
    public var persistentStoreCoordinator: PersistentStoreCoordinator? { isRoot ? configuration.coordinator : nil }

    /// The snapshot of the store that the context reads below all unsaved changes (S151).
    public var snapshot: Snapshot {
        checkIsolation()
        catchUp()
        let state = layerStack.baseState.state
        return Snapshot(state.reading(state.storeBase), owner: "a snapshot of \(name)", of: configuration.writer)
    }

    /// A Boolean value that indicates whether the context has unsaved inserts, updates or deletes (S007).
    public var hasChanges: Bool {
        admitArrivals()
        return layerStack.hasChanges()
    }

    /// Prepares the context for an operation: checks the executor, merges announced saves and inserts related objects.
    @inline(__always)
    func checkIsolation() {
        checkAccess()
        admitArrivals()
    }

    /// Stops the program if the context is used off its executor. The check always runs in debug builds.
    /// In release builds it runs if the environment contains `STRATA_CONCURRENCY_DEBUG=1` (S171).
    @inline(__always)
    func checkAccess() {
        if ConcurrencyCheck.isOn { ConcurrencyCheck.verify(self) }
        catchUp()
    }

    var hasDeletes: Bool { layerStack.hasDeletes }

    /// Returns the keys that match a lowered query, including unsaved changes.
    package func keys(matching query: StoreQuery) throws -> [ObjectKey] {
        checkIsolation()
        prepareRequest()
        return try using { try layerStack.view.keys(query) }
    }

    // MARK: Layers

    /// Makes the current unsaved changes immutable, so that other executors can read them. O(layers).
    package func sealTop() {
        admitArrivals()
        let revision = layerStack.revision
        guard layerStack.seal() else { return }
        tracker.listEnds.keep(from: revision, in: layerStack.revision)
        foldIfLong()
    }

    /// Replaces the base state. The caller refreshes objects and notifies observers.
    func setBaseState(_ new: LayerStack.BaseState) {
        // On the main thread, user code waits for this call, and freeing thousands of rows takes as long as the rest of it.
        // Pages are freed here, because they keep their snapshot.
        if place.executor == nil { BackgroundDeallocator.release(of: layerStack.baseState.state.deferred) }
        layerStack.baseState = shown(new)
        layerStack.baseState.state = readable(layerStack.baseState.state)
        if !phase.settlesBaseLater { settleBase() }
        environment.lease.move(to: layerStack.baseState.state)
        phase.saveGate.noteMove()
        layerStack.didMove(showsTheSame: false)
    }

    /// Acquires the snapshot if objects, observers or unsaved changes depend on it. Otherwise the context keeps no pages from reuse.
    private func settleBase() {
        if place.executor == nil, place.confinement == nil { place.readsNextState.store(!showsNothing, ordering: .relaxed) }
        guard layerStack.baseState.route?.base == nil, phase.closure == nil else { return }
        if mayRest {
            rest(in: layerStack.baseState.state)
        } else if isRoot || !showsNothing || layerStack.baseState.isPinned {
            layerStack.baseState.state.takeBase()
        }
        // A child that shows nothing may share its parent's snapshot, which is acquired by the first read of either.
    }

    /// Whether the context may release its snapshot after a move, because it shows nothing.
    ///
    /// A child keeps its snapshot, unless it follows its parent or its parent is hidden, and the parent has no unsaved changes.
    var mayRest: Bool {
        let base = layerStack.baseState
        guard showsNothing, !base.isPinned else { return false }
        let follows = automaticallyMergesChanges || configuration.decidesForParent
        return isRoot || follows && base.route == nil && base.inherited.isEmpty
    }

    /// Makes a context that may rest read a state without acquiring its snapshot before the first read.
    func rest(in state: StoreState) {
        if state.pendingSaves > 0 { awaitFlushes() }
        layerStack.baseState.state = readable(configuration.writer.resting(state))
        phase.registrationsAtRest = registry.registrations
    }

    /// Registers this context for flushes. A context that merges is registered already.
    private func awaitFlushes() {
        guard !automaticallyMergesChanges, !phase.awaitsFlushes, place.confinement == nil, let contextExecutor else { return }
        phase.awaitsFlushes = true
        configuration.coordinator.register(contextExecutor, at: place, number: number, root: nil, onlyFlushes: true)
    }

    /// Settles the base state at the end of a save, because its objects are released only after they are clean.
    func settleBaseNow() {
        phase.settlesBaseLater = false
        settleBase()
        environment.lease.move(to: layerStack.baseState.state)
        layerStack.didMove(showsTheSame: true)
    }

    /// Whether no object, observer, unsaved change or check of the next save depends on the base state.
    var showsNothing: Bool {
        registry.count == 0 && observers.views.isEmpty && !hasUnsavedLayers && tracker.checks.watched.isEmpty
    }

    /// Returns the current view with its layers sealed, so that any thread may read it.
    func sealedView() -> LayeredView {
        sealTop()
        return LayeredView(base: layerStack.view.base, layers: Array(layerStack.view.layers.dropFirst()))
    }

    // MARK: Folding

    /// Folds a long list of sealed layers into one layer, off the context's executor, so that reads stay fast.
    func foldIfLong() {
        guard !phase.saveGate.isSaving, let contextExecutor else { return }
        if tracker.undo != nil, layerStack.mayFold {
            closeUndoSegment()
            // Changes that are not recorded yet stay apart from those that are.
            if hasOpenUndoSegment { return }
        }
        guard let layers = layerStack.beginFolding() else { return }
        let schema = storedModel.storeSchema
        DispatchQueue.global().async {
            let folded = Layer.folding(layers, schema: schema)
            folded.seal()
            contextExecutor.enqueue { $0.didFold(layers, into: folded) }
        }
    }

    private func didFold(_ layers: [Layer], into folded: Layer) {
        guard layerStack.endFolding(layers, into: folded, mayReplace: !phase.saveGate.isSaving) else { return }
        reconnectRows(from: folded)
    }

    /// Updates the row of each object whose newest row was in one of the folded layers.
    private func reconnectRows(from folded: Layer) {
        forEachRegistered(in: folded) { object, _ in object.row = newestOwnRow(object.entity, object.key) }
    }

    /// Sets every object with unsaved changes to its newest row. Call this after layers were replaced.
    func reconnectRows() {
        for layer in layerStack.sealed + [layerStack.top] {
            forEachRegistered(in: layer) { object, row in object.row = row }
        }
    }

    /// Calls `body` with each registered object for which the layer has a row. O(pages of the layer + such objects).
    func forEachRegistered(in layer: Layer, _ body: (ManagedObject, Row) -> Void) {
        forEachRegisteredPage(in: layer) { _, registered, page in
            ObjectRegistry.forEach(in: registered, page.touched) { object in
                if let row = page[object.key.slot] { body(object, row) }
            }
        }
    }

    /// Calls `body` with the entity, the registry's page and the layer's page for each page of a layer that has registered objects.
    func forEachRegisteredPage(in layer: Layer, _ body: (EntityIndex, ObjectRegistry.Page, LayerPage) -> Void) {
        for entity in layer.entityIndices {
            guard let changes = layer.entity(entity) else { continue }
            for (number, page) in changes.pages {
                if let registered = registry.page(entity, number) { body(entity, registered, page) }
            }
        }
    }
}

/// A weak reference to a context.
struct WeakContext {
    weak var contextExecutor: (any ContextExecutor)?
    weak var place: ContextAddress?
}
