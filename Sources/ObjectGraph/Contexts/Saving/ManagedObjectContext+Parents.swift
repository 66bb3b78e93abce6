import StoreInterface

/// A child's changes on their way up.
struct ChildChanges: Sendable {
    /// Sealed; all of the child's changes as one.
    var layer: Layer
    var changes: ChangeSet
    /// The parent's view revision that the child reads, and how often the parent had been reset then.
    var parentViewRevision: UInt64
    var parentResetGeneration: UInt64
    /// The child, and who it says is the author.
    var origin: SaveOrigin
    /// The child's updates of objects that were gone when it was moved to its parent's state.
    var orphans = UpdatesOfDeletedObjects()
}

/// A child's save through this context that waits for the running one.
struct WaitingPush {
    let push: ChildChanges
    let durability: Durability
    let completion: @Sendable (Result<ParentState, any Error>) -> Void
}

/// Where a child stands after a push.
struct ParentState: Sendable {
    /// The store's state, and the layers of the parent and its ancestors over it, newest first.
    var state: StoreState
    var inherited: [Layer]
    var viewRevision: UInt64
    /// Whether the parent shows just what the child showed: then the child may stand on it without seeing anything change.
    var showsTheSame: Bool
    /// The child's changes that the level above accepted; nil if it accepted all.
    var taken: ChangeSet?

    /// Returns the accepted changes of one push. Several children may have been pushed together.
    func taken(of push: ChildChanges) -> ChangeSet { taken.map { push.changes.limited(to: $0) } ?? push.changes }
}

/// Parents and children. A child is a snapshot in time: it shares its ancestors' sealed layers and never asks them again (S071).
extension ManagedObjectContext {
    /// A child with an executor of its own, which sees this context's present state (S071). O(layers), whatever they hold.
    public func newBackgroundChild(name: String = "child") -> BackgroundContext {
        BackgroundContext(childSetup(name: name))
    }

    /// From now on the child is moved after each save and merge of this context.
    func addFollower(_ child: any ContextExecutor) {
        childObservers.removeAll { $0.host == nil || $0.host === child }
        childObservers.append(WeakContext(host: child))
    }

    func childSetup(name: String, merging: Bool = false) -> ContextConfiguration {
        checkIsolation()
        return ContextConfiguration(
            name: name, coordinator: setup.coordinator, baseState: baseStateForChild(),
            parent: .init(place: place, name: self.name), automaticallyMergesChanges: merging)
    }

    /// What a child made now reads.
    func baseStateForChild() -> BaseState {
        sealTop()
        if setup.coordinator.routing == .ancestors {
            return BaseState(
                state: baseState.state, inherited: [], parentViewRevision: viewRevision, parentResetGeneration: resetGeneration,
                ancestors: AncestorSnapshot(parent: .init(place: place, name: name), schema: model.storeSchema))
        }
        var inherited = baseState.inherited
        if !sealed.isEmpty { inherited.insert(contentsOf: sealed.reversed(), at: 0) }
        return BaseState(
            state: baseState.state, inherited: inherited, parentViewRevision: viewRevision,
            parentResetGeneration: resetGeneration)
    }

    /// Moves a child to its parent's present state and keeps its own changes, by property (S072).
    ///
    /// Throws ``ContextError/notAChild(context:)`` in a root context, ``SaveError/parentGone(context:)`` without a parent.
    nonisolated(nonsending) public func refreshFromParent() async throws {
        checkIsolation()
        guard let link = setup.parent else { throw ContextError.notAChild(context: name) }
        guard let parent = link.host else { throw SaveError.parentGone(context: name) }
        moveToParent(try await parent.run { $0.sealedFoundationForChild() }, changes: nil)
    }

    /// - Parameter changes: nil when what differs from the present base state is not known.
    func moveToParent(_ new: SealedFoundation, changes: ChangeSet?) {
        move(to: new.baseState, changes.map { [$0] })
        notify(changes, refreshed: refreshRegistered(changes))
    }

    func sealedFoundationForChild() -> SealedFoundation { SealedFoundation(baseState: baseStateForChild()) }

    /// After a save or a merge of this context: children that follow it are moved (S072).
    func tellFollowers(_ changes: ChangeSet?) {
        guard !childObservers.isEmpty else { return }
        let new = sealedFoundationForChild()
        for child in childObservers {
            child.host?.enqueue { child in
                if child.automaticallyMergesChanges { child.moveToParent(new, changes: changes) }
            }
        }
    }

    // MARK: The child's side

    func makePush() -> ChildChanges {
        let layer = Layer.folding(Array(sealed.prefix(inFlight)), schema: model.storeSchema)
        layer.seal()
        return ChildChanges(
            layer: layer, changes: layer.changeSet(origin: origin), parentViewRevision: baseState.parentViewRevision,
            parentResetGeneration: baseState.parentResetGeneration, origin: origin, orphans: orphans)
    }

    nonisolated(nonsending) func pushOneLevel(_ push: ChildChanges) async throws -> ParentState {
        guard let parent = setup.parent?.host else { throw SaveError.parentGone(context: name) }
        return try await parent.run { try $0.take(push) }
    }

    nonisolated(nonsending) func pushThrough(_ push: ChildChanges, _ durability: Durability) async throws -> ParentState {
        guard let parent = setup.parent?.host else { throw SaveError.parentGone(context: name) }
        return try await withCheckedThrowingContinuation { continuation in
            parent.enqueue { parent in
                parent.takeThrough(push, durability) { continuation.resume(with: $0) }
            }
        }
    }

    /// After the parent, or the store, has what this child saved.
    func didPush(_ push: ChildChanges, _ place: ParentState) {
        let written = Array(sealed.prefix(inFlight))
        sealed.removeFirst(inFlight)
        inFlight = 0
        var moved = baseState
        if place.showsTheSame {
            moved.state = place.state
            moved.inherited = place.inherited
            moved.parentViewRevision = place.viewRevision
        } else if !push.layer.isEmpty, moved.ancestors == nil {
            moved.inherited.insert(push.layer, at: 0)
            var oldestFirst = Array(moved.inherited.reversed())
            if let tail = Layer.foldableTail(of: oldestFirst) {
                let folded = Layer.folding(Array(oldestFirst[tail]), schema: model.storeSchema)
                folded.seal()
                oldestFirst.replaceSubrange(tail, with: [folded])
                moved.inherited = oldestFirst.reversed()
            }
        }
        setBaseState(moved)
        clean(written)
        // A root's merge policy may have had other ideas.
        if !viewObservers.isEmpty { notify(ChangeSet(), refreshed: [], saved: place.showsTheSame ? push.changes : ChangeSet()) }
        let taken = place.taken(of: push)
        if !taken.isEmpty { post(.didSave, taken) }
        tellFollowers(push.changes)
    }

    // MARK: The parent's side

    /// Takes a child's changes as unsaved changes of this context (S070, S074, S075). O(pages of the push) plus the registered
    /// objects among them (S079).
    func take(_ push: ChildChanges) throws -> ParentState {
        try checkNotReset(push)
        sealTop()
        let showsTheSame = viewRevision == push.parentViewRevision
        let taken = showsTheSame && !hasDeletes && push.orphans.isEmpty ? push : applicable(push)
        let layers = layersAbove(sealed, [taken.layer])
        if setup.coordinator.routing == .ancestors {
            for layer in layers { materialise(layer) }
            processPendingChanges()
            return ParentState(
                state: baseState.state, inherited: [], viewRevision: viewRevision, showsTheSame: false, taken: taken.changes)
        }
        if !taken.layer.isEmpty {
            sealed += layers
            viewRevision += 1
            rebuildView()
            let refreshed = layers.flatMap { showPushed($0) }
            if !showsTheSame { settlePairs(of: layers) }
            foldIfLong()
            let others = layers.dropFirst().map { $0.changeSet(origin: push.origin) }
            notify(ChangeSet.union([taken.changes] + others), refreshed: refreshed)
            if layers.count > 1 { return place(false, taken.changes) }
        }
        return place(showsTheSame, taken.changes)
    }

    /// Takes a child's changes through to the store, with this context's own, in one step.
    ///
    /// Children that ask while a save is under way are taken together with the next: one transaction, one wait for the disk.
    func takeThrough(
        _ push: ChildChanges, _ durability: Durability,
        _ completion: @escaping @Sendable (Result<ParentState, any Error>) -> Void
    ) {
        waitingPushes.append(WaitingPush(push: push, durability: durability, completion: completion))
        guard waitingPushes.count == 1 else { return }
        whenIdle { [self] in
            let group = waitingPushes
            waitingPushes = []
            takeThrough(group)
        }
    }

    /// Sends a group up. When it fails, each goes alone, so that only what fails fails. A save is running; `endSave` follows.
    private func takeThrough(_ group: [WaitingPush]) {
        let durability = group.map(\.durability).contains(.durable) ? .durable : group[0].durability
        do {
            for waiting in group { try checkNotReset(waiting.push) }
            if setup.coordinator.routing == .ancestors {
                let place = try classicalSaveThrough(group.map(\.push), durability)
                for waiting in group { waiting.completion(.success(place)) }
                endSave()
                return
            }
            _ = try prepareSave()
        } catch {
            return refuse(group, error)
        }
        let pushes = group.map { $0.push.parentViewRevision == viewRevision ? $0.push : applicable($0.push) }
        let same = group.count == 1 && viewRevision == pushes[0].parentViewRevision
        if isRoot, !hasChanges, pushes.allSatisfy(\.layer.isEmpty) {
            // With nothing to save, this context stays where it is (S063, S090).
            for waiting in group { waiting.completion(.success(place(same))) }
            return endSave()
        }
        let began = viewRevision
        forwardToParent(pushes, durability) { [self] result in
            do {
                let place = try didForwardToParent(pushes, same && began == viewRevision, result)
                for waiting in group { waiting.completion(.success(place)) }
                endSave()
            } catch {
                refuse(group, error)
            }
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

    /// What the level above answered.
    private enum Answer: Sendable {
        case written(SaveOutcome)
        /// What was handed up, and where this context stands after it.
        case pushed(ChildChanges, ParentState)
    }

    /// Hands own layers and the pushes to the writer or to the parent; `then` runs on this context's executor.
    private func forwardToParent(
        _ pushes: [ChildChanges], _ durability: Durability, _ then: @escaping (Result<Answer, any Error>) -> Void
    ) {
        let host = requiredHost
        // `then` is called once, on this context's executor, where it was made.
        nonisolated(unsafe) let then = then
        if isRoot {
            if setup.coordinator.isClosed { return then(.failure(setup.coordinator.closedError)) }
            let own = Array(sealed.prefix(inFlight))
            var request = saveRequest(own + layersAbove(own, pushes.map(\.layer)), durability)
            if pushes.contains(where: { $0.parentViewRevision != viewRevision || !$0.orphans.isEmpty }) {
                request.mayHaveOrphans = true
            }
            request.origin = pushes[0].origin.orAuthor(transactionAuthor)
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
        parent.enqueue { parent in
            parent.takeThrough(push, durability) { result in
                host.enqueue { _ in then(result.map { .pushed(push, $0) }) }
            }
        }
    }

    /// Own changes in flight and the children's as one. A single child's, when there are no others, travel as they are: nothing is
    /// copied on this executor.
    private func joined(_ pushes: [ChildChanges]) -> ChildChanges {
        if inFlight == 0, pushes.count == 1 {
            var push = pushes[0]
            push.parentViewRevision = baseState.parentViewRevision
            push.parentResetGeneration = baseState.parentResetGeneration
            push.origin = push.origin.orAuthor(transactionAuthor)
            return push
        }
        var push = makePush()
        push.layer = Layer.folding(
            [push.layer] + layersAbove([push.layer], pushes.map(\.layer)), schema: model.storeSchema)
        push.layer.seal()
        push.changes = ChangeSet.union([push.changes] + pushes.map(\.changes))
        push.origin = pushes[0].origin.orAuthor(transactionAuthor)
        return push
    }

    /// After the store has this context's own changes and the children's.
    private func didForwardToParent(_ pushes: [ChildChanges], _ same: Bool, _ result: Result<Answer, any Error>) throws
        -> ParentState
    {
        let changes = ChangeSet.union(pushes.map(\.changes))
        switch try result.get() {
        case .written(let outcome):
            let isAlone = outcome.state.sequence == baseState.state.sequence.next
            didWrite(outcome, adopted: changes)
            return place(same && isAlone, changes.limited(to: outcome.changes))
        case .pushed(let push, let above):
            didPush(push, above)
            notify(changes, refreshed: refreshRegistered(changes))
            return place(same && above.showsTheSame, changes.limited(to: above.taken(of: push)))
        }
    }

    private func place(_ showsTheSame: Bool, _ taken: ChangeSet? = nil) -> ParentState {
        ParentState(
            state: baseState.state, inherited: sealed.reversed() + baseState.inherited, viewRevision: viewRevision,
            showsTheSame: showsTheSame, taken: taken)
    }

    func checkNotReset(_ push: ChildChanges) throws {
        guard push.parentResetGeneration == resetGeneration else { throw SaveError.parentGone(context: push.origin.contextName) }
    }

    /// A child's changes without those of objects that are gone here, or were rolled back: they have nothing to apply to (S056). Objects
    /// that exist again receive only the columns that the child changed.
    func applicable(_ push: ChildChanges) -> ChildChanges {
        var kept: Layer?
        for change in push.changes.entities {
            for key in change.updatedKeys + change.deletedKeys where !trapOnStoreError({ try exists(change.entity, key) }) {
                let layer = kept ?? Layer(copying: push.layer)
                layer.remove(entity: change.entity, key: key)
                layer.forgetLinks(of: change.entity, key, model.storeSchema)
                kept = layer
            }
        }
        // Values that the child did not change must not overwrite newer ones.
        for (place, changed) in push.orphans.changed {
            guard let row = (kept ?? push.layer).row(place.entity, place.key), row.kind == .update else { continue }
            let layer = kept ?? Layer(copying: push.layer)
            let own = row.copy(layer: layer.id)
            row.set.forEach { if !changed.contains($0) { own.clear($0) } }
            layer.put(own, entity: place.entity, key: place.key)
            kept = layer
        }
        guard let kept else { return push }
        kept.seal()
        var rest = push
        rest.layer = kept
        rest.changes = kept.changeSet(origin: push.origin)
        return rest
    }

    /// Children's layers, oldest first, each followed by what its deletions ask of the unsaved changes that the child did not see.
    func layersAbove(_ own: [Layer], _ pushed: [Layer]) -> [Layer] {
        var layers = own
        for layer in pushed {
            let consequences = traits.rules.consequences(of: layer, over: layers, model.storeSchema)
            layers.append(layer)
            if let consequences { layers.append(consequences) }
        }
        return Array(layers.dropFirst(own.count))
    }

    /// Registered objects that a pushed layer changed show its rows and count as changed here. Returns their ids.
    private func showPushed(_ layer: Layer) -> [ObjectID] {
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
    /// With another author where none is named.
    func orAuthor(_ other: String?) -> SaveOrigin {
        var origin = self
        if author.isEmpty { origin.author = other ?? "" }
        return origin
    }
}

/// A base state whose layers are all sealed, on its way to another executor.
struct SealedFoundation: @unchecked Sendable {
    // `@unchecked Sendable` is right because everything in a base state is immutable once its layers are sealed.
    var baseState: ManagedObjectContext.BaseState
}
