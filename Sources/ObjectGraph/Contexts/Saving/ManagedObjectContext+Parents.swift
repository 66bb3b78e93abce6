internal import Platform
import StoreInterface
import StoreModel

/// A child's changes on the way to its parent.
struct ChildChanges: Sendable {
    /// All of the child's changes as one sealed layer.
    var layer: Layer
    var changes: ChangeSet
    /// The parent's view revision that the child reads, and the parent's reset count for that revision.
    var parentViewRevision: UInt64
    var parentResetGeneration: UInt64
    /// The store's state that the child reads. It may be newer than the parent's: see ``ContextConfiguration/followedRoot``.
    var state: StoreState
    /// The child's name and author.
    var origin: SaveOrigin
    /// The child's updates of objects that were deleted when the child moved to its parent's state.
    var orphans = UpdatesOfDeletedObjects()
    /// The unchanged objects that the save checks for conflicts.
    var watched: Set<ObjectID> = []
    /// The changed objects that other saves changed while the store was suspended.
    var changedWhileSuspended: [ObjectAddress: ColumnSet] = [:]
    /// Whether a context on the way reads the state after the save at once: see ``ContextAddress/readsNextState``.
    var readsNextState = false
}

/// A child's save through this context that waits for the running save.
struct WaitingPush {
    let push: ChildChanges
    let durability: Durability
    let completion: @Sendable (Result<ParentState, any Error>) -> Void
}

/// The parent's state after a push, from which the child continues.
struct ParentState: Sendable {
    /// The state of the store, and the layers of the parent and its ancestors over it, newest first.
    var state: StoreState
    var inherited: [Layer]
    var viewRevision: UInt64
    /// The ids of the parent's layers among them.
    var parentLayers: [UInt64]
    /// Whether the parent's view equals the child's. Then the child can use it as base state without a visible change.
    var showsTheSame: Bool
    /// The child's changes that the level above accepted; nil if it accepted all.
    var taken: ChangeSet?

    /// Returns the accepted changes of one push. Several children may have been pushed together.
    func taken(of push: ChildChanges) -> ChangeSet { taken.map { push.changes.limited(to: $0) } ?? push.changes }
}

/// Parents and children. A child is a snapshot in time: it shares its ancestors' sealed layers and never reads through its parent
/// (S071).
extension ManagedObjectContext {
    /// Creates a child with its own executor, which reads this context's present state (S071). O(layers), whatever their size.
    public func newBackgroundChild(name: String = "child") -> BackgroundContext {
        BackgroundContext(childSetup(name: name))
    }

    /// Creates a child on the executor of this context, which shows the present state of this context (S081). O(layers).
    ///
    /// In the main context, this creates a child on the main actor, for example for an edit sheet. The objects of the child can be used
    /// together with those of this context. ``save(_:)`` moves its changes to this context. Releasing the child drops them.
    ///
    /// ```swift
    /// let editing = container.mainContext.newChild(name: "edit sheet")
    /// let draft = editing.object(Track.self, with: track.id)
    /// draft.title = "Baguette"
    /// try await editing.save()
    /// ```
    /// - Returns: The child, which the caller retains. Objects do not retain their context.
    public func newChild(name: String = "child") -> ManagedObjectContext {
        ChildExecutor.makeContext(childSetup(name: name), on: place.executor)
    }

    /// Sets the merge policy of the root that saves the main context's changes. Saves that begin afterwards use it, because the root runs
    /// its jobs in their order.
    func shareMergePolicy() {
        guard setup.decidesForParent else { return }
        let policy = mergePolicy
        setup.parent?.host?.enqueue { $0.mergePolicy = policy }
    }

    /// Registers a child, which then moves after each save and merge of this context.
    func addFollower(_ child: any ContextExecutor, at place: ContextAddress) {
        observers.children.removeAll { $0.host == nil || $0.host === child }
        observers.children.append(WeakContext(host: child, place: place))
    }

    func childSetup(name: String, merging: Bool = false) -> ContextConfiguration {
        checkIsolation()
        precondition(
            place.confinement == nil,
            "cannot create a child of the context \(self.name): it has no executor. Create another context of the container")
        return ContextConfiguration(
            name: name, coordinator: setup.coordinator, baseState: baseStateForChild(),
            parent: .init(place: place, name: self.name), automaticallyMergesChanges: merging)
    }

    /// Returns the base state of a child that is created now.
    func baseStateForChild() -> LayerStack.BaseState {
        sealTop()
        if let route = layerStack.baseState.route {
            return LayerStack.BaseState(
                state: layerStack.baseState.state, inherited: [], parentViewRevision: layerStack.revision,
                parentResetGeneration: layerStack.resetGeneration, parentLayers: layerStack.sealed.map(\.id),
                route: route.routeForChild(of: self))
        }
        var inherited = layerStack.baseState.inherited
        if !layerStack.sealed.isEmpty { inherited.insert(contentsOf: layerStack.sealed.reversed(), at: 0) }
        return LayerStack.BaseState(
            state: layerStack.baseState.state, inherited: inherited, parentViewRevision: layerStack.revision,
            parentResetGeneration: layerStack.resetGeneration, parentLayers: layerStack.sealed.map(\.id),
            isPinned: layerStack.baseState.isPinned)
    }

    /// Moves a child to its parent's present state and keeps its own changes, by property (S072).
    ///
    /// - Throws: ``ContextError/notAChild(context:)`` in a root context, ``SaveError/parentGone(context:)`` if the parent was released.
    nonisolated(nonsending) public func refreshFromParent() async throws {
        checkIsolation()
        guard let link = setup.parent else { throw ContextError.notAChild(context: name) }
        guard let parent = link.host else { throw SaveError.parentGone(context: name) }
        let new = try await parent.run(orThrow: SaveError.parentGone(context: name)) { $0.sealedFoundationForChild() }
        moveToParent(new, changes: nil)
    }

    /// Moves to a state of the parent, unless this context has a later one: answers and announcements can arrive in any order.
    ///
    /// - Parameter changes: The saves between the parent's two states; nil if they are unknown.
    func moveToParent(_ new: SealedFoundation, changes: ChangeSet?) {
        let base = layerStack.baseState
        let revision = new.baseState.parentViewRevision
        guard revision >= max(base.parentViewRevision, base.earliestParentRevision) else { return }
        // Unsaved changes of the parent may also have come or gone. With the same revision, the parent has moved to an equal state.
        var target = new.baseState
        target.state = newerState(than: target.state) ?? target.state
        if followsStore, target.state.sequence == base.state.sequence, target.parentLayers == base.parentLayers {
            // This context was ahead of its parent, and shows the state already.
            layerStack.baseState.parentViewRevision = revision
            layerStack.baseState.parentResetGeneration = target.parentResetGeneration
            return
        }
        let counted =
            revision == base.parentViewRevision
            ? ChangeSet() : new.differsOnlyBySaves(from: base) ? changes : nil
        let span = mergeSpan()
        defer { span?.end() }
        let changes = self.changes(counted.map { [$0] }, showing: target.state).map(ChangeSet.union)
        let refreshed = showing(layerStack.view(movedTo: target), changes: changes) {
            move(to: target, changes.map { [$0] })
            return refreshRegistered(changes)
        }
        span?.set(["strata.objects": .int(Int64(refreshed.count))])
        notify(changes, refreshed: refreshed)
        tellFollowers(changes)
    }

    func sealedFoundationForChild() -> SealedFoundation { SealedFoundation(baseState: baseStateForChild()) }

    /// Moves the children that follow this context, after its save or merge (S072).
    ///
    /// - Parameter saved: The layers of this context that the save has written.
    func tellFollowers(_ changes: ChangeSet?, saved: [Layer] = []) {
        guard !observers.children.isEmpty else { return }
        let new = SealedFoundation(baseState: baseStateForChild(), saved: saved.map(\.id))
        let isRead = observers.children.contains { $0.place?.readsNextState.load(ordering: .relaxed) ?? false }
        if isRead { new.baseState.state.takeBase() }
        for child in observers.children {
            child.host?.enqueue { child in
                if child.automaticallyMergesChanges { child.moveToParent(new, changes: changes) }
            }
        }
    }

    // MARK: The child's side

    func makePush() -> ChildChanges {
        let layer = Layer.folding(layerStack.taken, schema: storedModel.storeSchema)
        layer.seal()
        return ChildChanges(
            layer: layer, changes: layer.changeSet(origin: origin), parentViewRevision: layerStack.baseState.parentViewRevision,
            parentResetGeneration: layerStack.baseState.parentResetGeneration, state: stateToReach, origin: origin,
            orphans: tracker.updatesOfDeleted, watched: tracker.watched,
            changedWhileSuspended: tracker.changedWhileSuspended, readsNextState: place.readsNextState.load(ordering: .relaxed))
    }

    /// The state that the parent must reach before it accepts changes of this context. Usually the parent has reached it already.
    private var stateToReach: StoreState {
        let state = layerStack.baseState.state
        // A snapshot acquired at the first read may contain saves of other processes that the parent has not seen.
        return state.pendingSaves == 0 && state.base.generation > state.committed ? setup.writer.newestState() : state
    }

    /// Returns the state that this context reads if it is ahead of a state of its parent: because it follows the store, or because it has
    /// acquired a later snapshot of the same state.
    private func newerState(than parent: StoreState) -> StoreState? {
        let own = layerStack.baseState.state
        if own.sequence == parent.sequence { return own.base.generation > parent.base.generation ? own : nil }
        return setup.followedRoot != nil && own.sequence > parent.sequence ? own : nil
    }

    nonisolated(nonsending) func pushOneLevel(_ push: ChildChanges) async throws -> ParentState {
        guard let parent = setup.parent?.host else { throw SaveError.parentGone(context: name) }
        return try await parent.run(orThrow: SaveError.parentGone(context: name)) { try $0.take(push) }
    }

    nonisolated(nonsending) func pushThrough(_ push: ChildChanges, _ durability: Durability) async throws -> ParentState {
        guard let parent = setup.parent?.host else { throw SaveError.parentGone(context: name) }
        return try await withCompletion { completion in
            let isEnqueued = parent.enqueue { parent in parent.takeThrough(push, durability: durability, completion) }
            if !isEnqueued { completion(.failure(SaveError.parentGone(context: name))) }
        }
    }

    /// Makes the saved changes part of the base state, after the parent or the store has accepted them.
    ///
    /// - Parameter adopted: The changes of children among them, which this context has not shown before.
    func didPush(_ push: ChildChanges, _ place: ParentState, adopted: ChangeSet = ChangeSet()) {
        layerStack.baseState.route?.didSave(layerStack.taken, accepted: place.taken)
        let moved = movedBaseState(push, place)
        let written = showing(layerStack.view(movedTo: moved, droppingTaken: true), changes: nil) {
            let written = layerStack.removeTaken()
            phase.settlesBaseLater = true
            setBaseState(moved)
            dropCompletions()
            if !hasUnsavedLayers { tracker.updatesOfDeleted = UpdatesOfDeletedObjects() }
            clean(written)
            return written
        }
        tracker.watched.subtract(push.watched)
        tracker.changedWhileSuspended = [:]
        // The merge policy of the root may have dropped or changed some values. One notice for all: a live result that moves to the new
        // view must know every difference from the old one.
        if !observers.views.isEmpty || !adopted.isEmpty {
            notify(
                adopted, refreshed: adopted.isEmpty ? [] : refreshRegistered(adopted),
                saved: place.showsTheSame ? push.changes : ChangeSet())
        }
        let taken = place.taken(of: push)
        if !taken.isEmpty { post(.didSave, taken) }
        settleBaseNow()
        tellFollowers(push.changes, saved: written)
    }

    /// Returns the base state of a child after its parent has accepted its changes.
    private func movedBaseState(_ push: ChildChanges, _ place: ParentState) -> LayerStack.BaseState {
        var moved = layerStack.baseState
        let isLater = moved.parentViewRevision > place.viewRevision
        moved.earliestParentRevision = place.viewRevision
        if isLater {
            // The parent's announcement of a later state came first. That state contains the push.
        } else if place.showsTheSame {
            moved.state = newerState(than: place.state) ?? place.state
            moved.inherited = place.inherited
            moved.parentViewRevision = place.viewRevision
            moved.parentLayers = place.parentLayers
        } else if !push.layer.isEmpty, moved.route == nil {
            moved.inherited.insert(push.layer, at: 0)
            moved.parentLayers.append(push.layer.id)
            var oldestFirst = Array(moved.inherited.reversed())
            if let tail = Layer.foldableTail(of: oldestFirst) {
                let folded = Layer.folding(Array(oldestFirst[tail]), schema: storedModel.storeSchema)
                folded.seal()
                oldestFirst.replaceSubrange(tail, with: [folded])
                moved.inherited = oldestFirst.reversed()
            }
        }
        return moved
    }

    // MARK: The parent's side

    /// Adds a child's changes to the unsaved changes of this context (S070, S074, S075).
    ///
    /// O(pages of the push + registered objects among them) (S079).
    func take(_ push: ChildChanges) throws -> ParentState {
        endUndoEvent()
        defer { endUndoEvent() }
        if let route = layerStack.baseState.route { return try route.take(push, in: self) }
        try checkAccepts(push)
        catchUp(with: push)
        var pushed = prepared(push)
        let (refreshed, changes) = changingObserved {
            if !observed.isEmpty {
                willShow(from: layerStack.view, to: layerStack.view(appending: pushed.layers), pushed.changes)
                // Observers may have changed objects.
                if !layerStack.top.isEmpty { pushed = prepared(push) }
            }
            tracker.watched.formUnion(push.watched)
            tracker.changedWhileSuspended.formUnion(push.changedWhileSuspended)
            tracker.updatesOfDeleted.noteRestored(push.orphans.restored)
            guard !pushed.taken.layer.isEmpty else { return ([ObjectID](), ChangeSet()) }
            layerStack.append(pushed.layers)
            tracker.log.noteUnsavedChange()
            let refreshed = pushed.layers.flatMap { showPushed($0) }
            if !pushed.showsTheSame { settlePairs(of: pushed.layers) }
            foldIfLong()
            return (refreshed, pushed.changes)
        }
        if !pushed.taken.layer.isEmpty {
            notify(changes, refreshed: refreshed)
            if pushed.layers.count > 1 { return place(false, pushed.taken.changes) }
        }
        return place(pushed.showsTheSame, pushed.taken.changes)
    }

    /// A child's changes as they will appear in this context.
    private struct PreparedPush {
        var taken: ChildChanges
        /// The child's layer, and the changes that its deletions require.
        var layers: [Layer]
        var changes: ChangeSet
        /// Whether this context has no changes that the child did not see.
        var showsTheSame: Bool
    }

    /// Seals the unsaved changes, and returns the changes to add to them.
    private func prepared(_ push: ChildChanges) -> PreparedPush {
        sealTop()
        let showsTheSame = layerStack.revision == push.parentViewRevision
        let taken = applicable([push])[0]
        let layers = layersAbove(layerStack.sealed, [taken.layer])
        let others = layers.dropFirst().map { $0.changeSet(origin: push.origin) }
        return PreparedPush(
            taken: taken, layers: layers, changes: others.isEmpty ? taken.changes : ChangeSet.union([taken.changes] + others),
            showsTheSame: showsTheSame)
    }

    /// Saves a child's changes to the store, together with this context's own changes, in one step.
    ///
    /// Children that ask during a running save are saved together afterwards: one transaction, one wait for the disk.
    func takeThrough(
        _ push: ChildChanges, durability: Durability,
        _ completion: @escaping @Sendable (Result<ParentState, any Error>) -> Void
    ) {
        guard phase.saveGate.add(WaitingPush(push: push, durability: durability, completion: completion)) else { return }
        whenIdle { [self] in takeThrough(phase.saveGate.takeGroup()) }
    }

    /// Forwards a group of pushes. If the group fails, each push is retried alone, so that only the invalid pushes fail. Call this
    /// during a save; it calls `endSave`.
    private func takeThrough(_ group: [WaitingPush]) {
        let durability = group.map(\.durability).contains(.durable) ? .durable : group[0].durability
        do {
            for (position, waiting) in group.enumerated() {
                try checkAccepts(waiting.push, after: group[..<position].map(\.push.layer))
                catchUp(with: waiting.push)
            }
            if let route = layerStack.baseState.route {
                return route.takeThrough(group.map(\.push), durability: durability, in: self) { [self] in finish(group, $0) }
            }
            _ = try prepareSave()
        } catch {
            return refuse(group, error)
        }
        let pushes = applicable(group.map(\.push))
        let same = group.count == 1 && layerStack.revision == pushes[0].parentViewRevision
        if isRoot, !hasChanges, pushes.allSatisfy(\.layer.isEmpty) {
            // With nothing to save, this context keeps its state (S063, S090).
            for waiting in group { waiting.completion(.success(place(same))) }
            return endSave()
        }
        let began = layerStack.revision
        let passed = passedChanges(layersAbove(layerStack.sealed, pushes.map(\.layer)))
        forwardToParent(pushes, durability: durability) { [self] result in
            let state = Result { try didForwardToParent(pushes, same: same && began == layerStack.revision, result: result) }
            if case .success = state { record(passed) }
            finish(group, state)
        }
    }

    /// Returns the changes of a group of children in the form in which they apply to this context, one after the other. Usually all of
    /// them, without a look at the objects.
    private func applicable(_ group: [ChildChanges]) -> [ChildChanges] {
        var pushes: [ChildChanges] = []
        for push in group {
            let isNewest = push.parentViewRevision == layerStack.revision && !hasDeletes && push.orphans.isEmpty
            let settled = isNewest && pushes.isEmpty ? push : settledKeys(push, after: pushes.map(\.layer).reversed())
            pushes.append(isNewest ? settled : applicable(settled))
        }
        return pushes
    }

    private func finish(_ group: [WaitingPush], _ result: Result<ParentState, any Error>) {
        switch result {
        case .success(let place):
            for waiting in group { waiting.completion(.success(place)) }
            endSave()
        case .failure(let error): refuse(group, error)
        }
    }

    private func refuse(_ group: [WaitingPush], _ error: any Error) {
        if group.count == 1 {
            group[0].completion(.failure(error))
        } else {
            for waiting in group { whenIdle { [self] in takeThrough([waiting]) } }
        }
        endSave()
    }

    /// The result of the level above.
    private enum Answer: Sendable {
        case written(SaveOutcome)
        /// The changes that were forwarded, and the state of this context after that.
        case pushed(ChildChanges, ParentState)
    }

    /// Forwards own layers and the pushes to the writer or to the parent. Calls `then` on this context's executor.
    private func forwardToParent(
        _ pushes: [ChildChanges], durability: Durability, _ then: @escaping (Result<Answer, any Error>) -> Void
    ) {
        let host = requiredHost
        // `then` is called once, on this context's executor, where it was created.
        nonisolated(unsafe) let then = then
        if isRoot {
            if setup.coordinator.isClosed { return then(.failure(setup.coordinator.closedError)) }
            let own = layerStack.taken
            var request = saveRequest(own + layersAbove(own, pushes.map(\.layer)), durability)
            if pushes.contains(where: { $0.parentViewRevision != layerStack.revision || !$0.orphans.isEmpty }) {
                request.mayHaveOrphans = true
            }
            request.origin = pushes[0].origin.orAuthor(transactionAuthor)
            request.watched.formUnion(pushes.flatMap(\.watched))
            for push in pushes {
                request.changedWhileSuspended.formUnion(push.changedWhileSuspended)
                request.restored.formUnion(push.orphans.restored)
                if push.readsNextState { request.readsNextState = true }
            }
            request.trace = trace(of: request)
            setup.writer.submit(request, origin: number) { result in
                host.enqueue { _ in then(result.map { .written($0) }) }
            }
            return
        }
        guard let parent = setup.parent?.host else {
            then(.failure(SaveError.parentGone(context: name)))
            return
        }
        let push = joined(pushes)
        let isEnqueued = parent.enqueue { parent in
            parent.takeThrough(push, durability: durability) { result in
                host.enqueue { _ in then(result.map { .pushed(push, $0) }) }
            }
        }
        if !isEnqueued { then(.failure(SaveError.parentGone(context: name))) }
    }

    /// Returns own changes in flight and the children's changes as one. If there is only one child's push, it is forwarded without
    /// a copy on this executor.
    private func joined(_ pushes: [ChildChanges]) -> ChildChanges {
        if !layerStack.hasTakenLayers, pushes.count == 1 {
            var push = pushes[0]
            push.parentViewRevision = layerStack.baseState.parentViewRevision
            push.parentResetGeneration = layerStack.baseState.parentResetGeneration
            push.state = stateToReach
            push.readsNextState = push.readsNextState || place.readsNextState.load(ordering: .relaxed)
            push.watched.formUnion(tracker.watched)
            push.changedWhileSuspended.formUnion(tracker.changedWhileSuspended)
            push.orphans.noteRestored(tracker.updatesOfDeleted.restored)
            push.origin = push.origin.orAuthor(transactionAuthor)
            return push
        }
        var push = makePush()
        push.layer = Layer.folding(
            [push.layer] + layersAbove([push.layer], pushes.map(\.layer)), schema: storedModel.storeSchema)
        push.layer.seal()
        push.changes = ChangeSet.union([push.changes] + pushes.map(\.changes))
        push.watched.formUnion(pushes.flatMap(\.watched))
        for other in pushes {
            if other.readsNextState { push.readsNextState = true }
            push.changedWhileSuspended.formUnion(other.changedWhileSuspended)
            push.orphans.noteRestored(other.orphans.restored)
        }
        push.origin = pushes[0].origin.orAuthor(transactionAuthor)
        return push
    }

    /// Applies the result after the level above has saved this context's own changes and the children's.
    private func didForwardToParent(_ pushes: [ChildChanges], same: Bool, result: Result<Answer, any Error>) throws
        -> ParentState
    {
        let changes = ChangeSet.union(pushes.map(\.changes))
        switch try result.get() {
        case .written(let outcome):
            // A save that wrote nothing, because the policy dropped everything, has no number.
            let base = layerStack.baseState.state.sequence
            let isAlone = outcome.state.sequence == (outcome.changes.isEmpty ? base : base.next)
            didWrite(outcome, adopted: changes)
            return place(same && isAlone, changes.limited(to: outcome.changes))
        case .pushed(let push, let above):
            didPush(push, above, adopted: changes)
            return place(same && above.showsTheSame, changes.limited(to: above.taken(of: push)))
        }
    }

    private func place(_ showsTheSame: Bool, _ taken: ChangeSet? = nil) -> ParentState {
        ParentState(
            state: layerStack.baseState.state, inherited: layerStack.sealed.reversed() + layerStack.baseState.inherited,
            viewRevision: layerStack.revision, parentLayers: layerStack.sealed.map(\.id),
            showsTheSame: showsTheSame, taken: taken)
    }

    /// Moves to the state that a child has read, if that is newer.
    private func catchUp(with push: ChildChanges) {
        advance(to: push.state)
    }

    /// - Throws: `StoreError` `.closed` if this context is closed: it would drop the changes of objects that it no longer shows.
    ///   ``SaveError/parentGone(context:)`` if it was reset since. The error of ``checkTypes(in:after:)``.
    func checkAccepts(_ push: ChildChanges, after earlier: [Layer] = []) throws {
        try checkOpen()
        guard push.parentResetGeneration == layerStack.resetGeneration else {
            throw SaveError.parentGone(context: push.origin.contextName)
        }
        try checkTypes(in: push, after: earlier)
    }

    /// Returns a child's changes without those of objects that were deleted or rolled back in this context (S056).
    ///
    /// Objects that exist again receive only the columns that the child changed. An insertion of an object that exists here, because both
    /// contexts have undone its deletion, becomes an update.
    func applicable(_ push: ChildChanges) -> ChildChanges {
        var kept: Layer?
        for change in push.changes.entities {
            for key in change.updatedKeys + change.deletedKeys where !trapOnStoreError({ try exists(change.entity, key) }) {
                let layer = kept ?? Layer(copying: push.layer)
                layer.remove(entity: change.entity, key: key)
                layer.forgetLinks(of: change.entity, key, storedModel.storeSchema)
                kept = layer
            }
        }
        // Values that the child did not change must not overwrite newer values.
        for (place, changed) in push.orphans.changed {
            guard let row = (kept ?? push.layer).row(place.entity, place.key), row.kind == .update else { continue }
            let layer = kept ?? Layer(copying: push.layer)
            let own = row.copy(layer: layer.id)
            row.set.forEach { if !changed.contains($0) { own.clear($0) } }
            layer.put(own, entity: place.entity, key: place.key)
            kept = layer
        }
        for place in push.orphans.restored {
            guard let row = (kept ?? push.layer).row(place.entity, place.key), row.kind == .insert,
                trapOnStoreError({ try exists(place.entity, place.key) })
            else { continue }
            let layer = kept ?? Layer(copying: push.layer)
            layer.replace(row, by: .update, entity: place.entity, key: place.key)
            kept = layer
        }
        guard let kept else { return push }
        kept.seal()
        var rest = push
        rest.layer = kept
        rest.changes = kept.changeSet(origin: push.origin)
        return rest
    }

    /// Returns the children's layers, oldest first. Each is followed by the changes that its deletions require in unsaved changes
    /// that the child did not see.
    func layersAbove(_ own: [Layer], _ pushed: [Layer]) -> [Layer] {
        var layers = own
        for layer in pushed {
            let consequences = traits.rules.consequences(of: layer, over: layers, storedModel.storeSchema)
            layers.append(layer)
            if let consequences { layers.append(consequences) }
        }
        return Array(layers.dropFirst(own.count))
    }

    /// Sets registered objects in a pushed layer to their new rows, as changed objects of this context. Returns their ids.
    func showPushed(_ layer: Layer) -> [ObjectID] {
        var refreshed: [ObjectID] = []
        forEachRegistered(in: layer) { object, row in
            object.row = newestOwnRow(object.entity, object.key) ?? row
            object.isDeletedHere = object.row?.kind == .delete
            registry.retain(object)
            refreshed.append(object.objectID)
        }
        return refreshed
    }
}

extension SaveOrigin {
    /// Returns a copy with another author if this origin has none.
    func orAuthor(_ other: String?) -> SaveOrigin {
        var origin = self
        if author.isEmpty { origin.author = other ?? "" }
        return origin
    }
}

/// A base state whose layers are all sealed, to be sent to another executor.
struct SealedFoundation: @unchecked Sendable {
    // `@unchecked Sendable` is safe because everything in a base state is immutable once its layers are sealed.
    var baseState: LayerStack.BaseState
    /// The ids of the layers that the parent has saved since its previous state.
    var saved: [UInt64] = []

    /// Whether all differences from a child's base state are saves. Otherwise the parent has unsaved changes that the child has not seen,
    /// or has dropped some that it has seen.
    func differsOnlyBySaves(from old: LayerStack.BaseState) -> Bool {
        baseState.parentLayers.allSatisfy(old.parentLayers.contains)
            && old.parentLayers.allSatisfy { baseState.parentLayers.contains($0) || saved.contains($0) }
    }
}
