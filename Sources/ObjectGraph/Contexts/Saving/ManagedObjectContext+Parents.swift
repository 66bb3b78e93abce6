internal import Platform
import StoreInterface
import StoreModel

/// A child's changes on the way to its parent.
package struct ChildChanges: Sendable {
    /// All of the child's changes as one sealed layer.
    package var layer: Layer
    var changes: ChangeSet
    /// The parent's view revision that the child reads, and the parent's reset count for that revision.
    var parentViewRevision: UInt64
    var parentResetGeneration: UInt64
    /// The store's state that the child reads. It may be newer than the parent's: see ``ContextConfiguration/followedRoot``.
    var state: StoreState
    /// The layers of ancestors that the child reads over that state, newest first.
    var inherited: [Layer] = []
    /// The child's name and author.
    package var metadata: SaveMetadata
    /// The child's updates of objects that were deleted when the child moved to its parent's state.
    var updatesOfDeleted = UpdatesOfDeletedObjects()
    /// Whether the child is a main context whose merge policy its root has. Then the policy decides about those updates.
    var decidesForParent = false
    /// The child's positions in lists.
    var positions = UnsavedPositions()
    /// The checks of the root's save besides those of the versions of the changed objects.
    var checks = ConflictChecks()
    /// Whether a context on the way reads the state after the save at once: see ``ContextAddress/readsNextState``.
    var readsNextState = false

    /// The view over which the child made its changes.
    var shown: LayeredView { LayeredView(base: state.base, layers: inherited + state.deferred) }

    /// Returns the child's changes in the form in which a parent without unsaved changes passes them on.
    ///
    /// - Parameters:
    ///   - base: The state that the parent reads.
    ///   - author: The parent's author, for a child that has none.
    func forwarded(over base: SealedBase, author: String?) -> ChildChanges {
        var push = self
        push.parentViewRevision = base.baseState.parentViewRevision
        push.parentResetGeneration = base.baseState.parentResetGeneration
        push.state = base.baseState.state
        push.inherited = base.baseState.inherited
        push.metadata = push.metadata.orAuthor(author)
        return push
    }

    /// Returns the push with a changed copy of its layer, which is sealed now.
    func replacing(with layer: Layer) -> ChildChanges {
        layer.seal()
        var other = self
        other.layer = layer
        other.changes = layer.changeSet(metadata: metadata)
        return other
    }
}

/// A child's save through this context that waits for the running save. A class, because it is passed on many times.
final class WaitingPush {
    var push: ChildChanges
    let durability: Durability
    let completion: @Sendable (Result<ParentState, any Error>) -> Void

    init(push: ChildChanges, durability: Durability, completion: @escaping @Sendable (Result<ParentState, any Error>) -> Void) {
        self.push = push
        self.durability = durability
        self.completion = completion
    }
}

/// The parent's state after a push, from which the child continues.
package struct ParentState: Sendable {
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
    /// The changes that the writer and the levels above added to the push, such as derived values and the consequences of deletions, and the
    /// unsaved changes there that the save does not contain; nil if there are none.
    var added: ChangeSet?
    /// Whether the merge policy of the root that saved may have dropped changes.
    var mayLackChanges = false

    /// Returns the accepted changes of one push. Several children may have been pushed together.
    func taken(of push: ChildChanges) -> ChangeSet { taken.map { push.changes.limited(to: $0) } ?? push.changes }
}

/// Parents and children. A child is a snapshot in time: it shares its ancestors' sealed layers and never reads through its parent
/// (S071).
extension ManagedObjectContext {
    /// Creates a child with its own executor, which reads this context's present state (S071). O(layers), whatever their size.
    public func newBackgroundChild(name: String = "child") -> BackgroundContext {
        BackgroundContext(.child(of: self, name: name))
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
        ChildExecutor.makeContext(.child(of: self, name: name), on: place.executor)
    }

    /// Sets the merge policy of the root that saves the main context's changes. Saves that begin afterwards use it, because the root runs
    /// its jobs in their order.
    func shareMergePolicy() {
        guard configuration.decidesForParent else { return }
        let policy = mergePolicy
        configuration.parent?.contextExecutor?.enqueue { $0.mergePolicy = policy }
    }

    /// Makes the root of a main context that follows the store merge only if the main context does. Otherwise the root would merge saves that
    /// main has not read, and main's next save would overwrite them without a conflict (S100).
    func shareMerging() {
        guard configuration.followedRoot != nil else { return }
        let isMerging = automaticallyMergesChanges
        configuration.parent?.contextExecutor?.enqueue { $0.automaticallyMergesChanges = isMerging }
    }

    /// Registers a child, which then moves after each save and merge of this context.
    ///
    /// - Parameter revision: The view of this context that the child reads.
    func addChild(_ child: any ContextExecutor, at place: ContextAddress, reading revision: UInt64) {
        if revision != layerStack.revision {
            // A child on this executor may be read before its job.
            if sharesExecutor(with: place) {
                child.runHere { $0.phase.hasMissedParent = true }
            } else {
                child.enqueue { $0.phase.hasMissedParent = true }
            }
        }
        observers.children.removeAll { $0.contextExecutor == nil || $0.contextExecutor === child }
        observers.children.append(WeakContext(contextExecutor: child, place: place))
    }

    /// Returns the base state of a child that is created now.
    func baseStateForChild() -> LayerStack.BaseState {
        sealTop()
        if let route = layerStack.baseState.route {
            return LayerStack.BaseState(
                state: layerStack.baseState.state, inherited: [], parentViewRevision: layerStack.revision,
                parentResetGeneration: layerStack.resetGeneration, parentLayers: layerStack.belowTop().ids,
                route: route.routeForChild(of: self))
        }
        let below = layerStack.belowTop()
        return LayerStack.BaseState(
            state: layerStack.baseState.state, inherited: below.layers, parentViewRevision: layerStack.revision,
            parentResetGeneration: layerStack.resetGeneration, parentLayers: below.ids,
            isPinned: layerStack.baseState.isPinned)
    }

    /// Moves a child to its parent's present state and keeps its own changes, by property (S072).
    ///
    /// - Throws: ``ContextError/notAChild(context:)`` in a root context, ``SaveError/parentGone(context:)`` if the parent was released.
    nonisolated(nonsending) public func refreshFromParent() async throws {
        checkIsolation()
        guard let link = configuration.parent else { throw ContextError.notAChild(context: name) }
        guard let parent = link.contextExecutor else { throw SaveError.parentGone(context: name) }
        let new = try await parent.run(orThrow: SaveError.parentGone(context: name)) { parent in
            // The parent may not have merged a save yet that the program has awaited (S068).
            parent.mergeAnnounced()
            return parent.sealedBaseForChild()
        }
        tracker.forgetUnmerged()
        merging { moveToParent(new, changes: nil) }
        phase.mergedThrough = layerStack.baseState.state.sequence
    }

    /// Moves a child that merges, or whose parent programs do not see, to the parent's state after a save that passed through both: the root
    /// may have merged other values (S110).
    func followParent(after place: ParentState) {
        guard automaticallyMergesChanges || configuration.decidesForParent, !place.showsTheSame, layerStack.baseState.route == nil
        else {
            return
        }
        let (old, base) = (viewBelow(), layerStack.baseState)
        var new = SealedBase(baseState: base)
        new.baseState.state = place.state
        new.baseState.inherited = place.inherited
        new.baseState.parentViewRevision = place.viewRevision
        new.baseState.parentLayers = place.parentLayers
        phase.unmergedSince = (old, base.inherited)
        moveToParent(new, changes: nil)
        phase.unmergedSince = nil
    }

    /// Moves to a state of the parent, unless this context has a later one: answers and announcements can arrive in any order.
    ///
    /// - Parameter changes: The saves between the parent's two states; nil if they are unknown.
    func moveToParent(_ new: SealedBase, changes given: ChangeSet?) {
        let base = layerStack.baseState
        let revision = new.baseState.parentViewRevision
        guard revision >= max(base.parentViewRevision, base.earliestParentRevision) else { return }
        // Unsaved changes of the parent may also have come or gone. With the same revision, the parent has moved to an equal state.
        var target = new.baseState
        target.state = newerState(than: target.state) ?? target.state
        if followsStore, base.state.base.isFixed, target.state.sequence == base.state.sequence,
            target.parentLayers == base.parentLayers
        {
            // This context was ahead of its parent, and shows the state already.
            layerStack.baseState.parentViewRevision = revision
            layerStack.baseState.parentResetGeneration = target.parentResetGeneration
            return
        }
        // From before the context merged automatically, or from a child. A move to an equal state is no merge.
        let isMerge = target.state.sequence != base.state.sequence || target.parentLayers != base.parentLayers
        if automaticallyMergesChanges, isMerge { tracker.forgetUnmerged() }
        // A reset of the parent is not announced.
        let hasMissed = phase.hasMissedParent || target.parentResetGeneration != base.parentResetGeneration
        phase.hasMissedParent = false
        let isKnown = revision != base.parentViewRevision && !hasMissed && new.differsOnlyBySaves(from: base)
        let withdrawn = isKnown ? given.flatMap { new.withdrawn(from: base, without: $0) } : nil
        let known = isKnown ? given.map { changes in withdrawn.map { ChangeSet.union([$0, changes]) } ?? changes } : nil
        let counted = revision == base.parentViewRevision ? ChangeSet() : known
        let span = mergeSpan()
        defer { span?.end() }
        let changes = self.changes(counted.map { [$0] }, showing: target.state).map(ChangeSet.union)
        let settlesLater = phase.settlesBaseLater
        let refreshed: [ObjectID]? = showing(layerStack.view(movedTo: target), changes: changes) {
            if hasLeft(base.place) || hasSaved(since: base) { return nil }
            if withdrawn != nil { phase.settlesBaseLater = true }
            move(to: target, changes.map { [$0] })
            return refreshRegistered(changes)
        }
        guard let refreshed else {
            if hasMissed { phase.hasMissedParent = true }
            return moveAgain(to: new, changes: given)
        }
        span?.set(["strata.objects": .int(Int64(refreshed.count))])
        let shown = withdrawn.flatMap { withdrawn in changes.map { withoutMissing($0, among: withdrawn) } } ?? changes
        if withdrawn != nil, !settlesLater { settleBaseNow() }
        notify(shown, refreshed: refreshed, over: base.inherited)
        notifyChildren(shown)
    }

    /// Whether this context has saved to its parent since it read a base state.
    private func hasSaved(since old: LayerStack.BaseState) -> Bool {
        let base = layerStack.baseState
        return base.parentViewRevision != old.parentViewRevision || base.earliestParentRevision != old.earliestParentRevision
    }

    /// Moves to a state of the parent after observers of that move have refreshed this context, or saved it to its parent.
    private func moveAgain(to new: SealedBase, changes: ChangeSet?) {
        if new.baseState.parentViewRevision >= layerStack.baseState.earliestParentRevision {
            return moveToParent(new, changes: changes)
        }
        // The state lacks the save. Only a parent on this executor can have taken one meanwhile.
        var present: SealedBase?
        configuration.parent?.contextExecutor?.runHere { present = $0.sealedBaseForChild() }
        if let present { moveToParent(present, changes: nil) }
    }

    func sealedBaseForChild() -> SealedBase { SealedBase(baseState: baseStateForChild()) }

    /// Moves the children that follow this context, after its save or merge (S072).
    ///
    /// - Parameter saved: The layers of this context that the save has written.
    func notifyChildren(_ changes: ChangeSet?, saved: [Layer] = []) {
        guard !observers.children.isEmpty else { return }
        let new = baseForChildren(saved)
        for child in observers.children {
            // A child on this executor may be read before its job, by the code that has awaited the save (S068).
            if let place = child.place, sharesExecutor(with: place) {
                child.contextExecutor?.runHere { $0.phase.announced.append((new, changes)) }
                child.contextExecutor?.enqueue { $0.moveToAnnounced() }
            } else {
                child.contextExecutor?.enqueue { $0.announce(new, changes: changes) }
            }
        }
    }

    private func sharesExecutor(with other: ContextAddress) -> Bool {
        place.confinement == nil && other.confinement == nil && other.executor === place.executor
    }

    /// Moves this child to the states of its parent that wait for its next use.
    func moveToAnnounced() {
        let announced = phase.announced
        if !announced.isEmpty { phase.announced = [] }
        for (base, changes) in announced { announce(base, changes: changes) }
    }

    private func announce(_ new: SealedBase, changes: ChangeSet?) {
        if automaticallyMergesChanges {
            moveToParent(new, changes: changes)
        } else {
            phase.hasMissedParent = true
        }
    }

    /// Returns the state to which the children move. If one of them reads it at once, its snapshot is acquired.
    private func baseForChildren(_ saved: [Layer]) -> SealedBase {
        var new = SealedBase(baseState: baseStateForChild(), saved: saved)
        guard observers.children.contains(where: { $0.place?.readsNextState.load(ordering: .relaxed) ?? false }) else {
            return new
        }
        // A snapshot of this context's own state would stay acquired here after the child has released it.
        if mayRest { new.baseState.state = configuration.writer.resting(new.baseState.state) }
        new.baseState.state.takeBase()
        return new
    }

    // MARK: The child's side

    func makePush() -> ChildChanges {
        let taken = layerStack.taken
        let layer = Layer.folding(taken, schema: storedModel.storeSchema)
        if layer.mayRepeatPairs { layer.forgetPairs(linkedPairs(in: Array(layerStack.view.layers.dropFirst(1 + taken.count)))) }
        layer.seal()
        return ChildChanges(
            layer: layer, changes: layer.changeSet(metadata: metadata),
            parentViewRevision: layerStack.baseState.parentViewRevision,
            parentResetGeneration: layerStack.baseState.parentResetGeneration, state: layerStack.baseState.state,
            inherited: layerStack.baseState.inherited, metadata: metadata,
            updatesOfDeleted: tracker.updatesOfDeleted, decidesForParent: configuration.decidesForParent,
            positions: tracker.positions, checks: tracker.takeChecks(),
            readsNextState: place.readsNextState.load(ordering: .relaxed))
    }

    /// Returns the state that this context reads if it is ahead of a state of its parent: because it follows the store, was refreshed, or
    /// has acquired a later snapshot of the same state.
    private func newerState(than parent: StoreState) -> StoreState? {
        let own = layerStack.baseState.state
        if own.sequence == parent.sequence { return own.base.generation > parent.base.generation ? own : nil }
        return configuration.decidesForParent && own.sequence > parent.sequence ? own : nil
    }

    nonisolated(nonsending) func pushOneLevel(_ push: ChildChanges) async throws -> ParentState {
        guard let parent = configuration.parent?.contextExecutor else { throw SaveError.parentGone(context: name) }
        return try await parent.run(orThrow: SaveError.parentGone(context: name)) { try $0.merge(child: push) }
    }

    nonisolated(nonsending) func pushThrough(_ push: ChildChanges, _ durability: Durability) async throws -> ParentState {
        guard let parent = configuration.parent?.contextExecutor else { throw SaveError.parentGone(context: name) }
        return try await withCompletion { completion in
            if passesDirectly(push, past: parent, durability: durability, completion) { return }
            let isEnqueued = parent.enqueue { parent in parent.mergeThrough(child: push, durability: durability, completion) }
            if !isEnqueued { completion(.failure(SaveError.parentGone(context: name))) }
        }
    }

    /// Makes the saved changes part of the base state, after the parent or the store has accepted them.
    ///
    /// - Parameter adopted: The changes of children among them, and their consequences, which this context has not shown before.
    func didPush(_ push: ChildChanges, _ place: ParentState, adopted: ChangeSet = ChangeSet()) {
        layerStack.baseState.route?.didSave(layerStack.taken, accepted: place.taken)
        // The parent's announcement may have come first, and a context that does not merge ignores it.
        let isAnnounced = layerStack.baseState.parentViewRevision >= place.viewRevision
        let follows = !isAnnounced && place.showsTheSame
        let added = follows ? place.added : nil
        let old = layerStack.baseState.place
        var moved = movedBaseState(push, place)
        // The snapshot may have been acquired after another connection's next save, which no context has merged.
        let others = follows && isWatched ? changes([], showing: moved.state) : []
        let written = showing(
            layerStack.view(movedTo: moved, droppingTaken: true), changes: nil, keeping: layerStack.notInFlight
        ) {
            // Observers may have changed objects, or refreshed the context.
            if hasLeft(old) { moved = movedBaseState(push, place) }
            let hasNewer = layerStack.mayHaveNewerChanges || !tracker.checks.watched.isEmpty
            let below = hasNewer && place.showsTheSame ? viewBelow(layerStack.taken.reversed()) : nil
            let written = layerStack.removeTaken()
            phase.settlesBaseLater = true
            setBaseState(moved)
            let isOwn = configuration.decidesForParent && adopted.isEmpty
            let resolved = isOwn ? resolvedByPolicy([push.changes, place.added]) : []
            if let below { noteUnmerged(since: below, in: layerStack.notInFlight, saved: written, by: resolved) }
            settleAfterMergeInFlight()
            if place.taken != nil { dropUpdatesOfDropped(written, place.taken(of: push)) }
            dropCompletions()
            if hasUnsavedLayers { forgetSettledUpdates() } else { tracker.forgetSaved() }
            clean(written)
            return written
        }
        // Objects whose changes the level above has not taken may be gone, or show other values again.
        let taken = place.taken(of: push)
        let lost = taken == push.changes ? nil : withdrawn(written, without: [taken])
        tracker.dropTakenChecks()
        // The merge policy of the root may have dropped or changed some values. One notice for all: a live result that moves to the new
        // view must know every difference from the old one.
        let more = added.and(follows ? lost : nil)
        let visible = others.map {
            $0.isEmpty && more == nil ? adopted : ChangeSet.union($0 + [adopted, more].compactMap(\.self))
        }
        if !observers.views.isEmpty || visible?.isEmpty != true {
            // After a move during the save, the context has shown pairs that the new state may lack.
            let mayLackPairs = isAnnounced || layerStack.hasMovedInFlight
            notify(
                visible, refreshed: visible?.isEmpty == true ? [] : refreshRegistered(visible),
                saved: mayLackPairs ? push.changes : place.showsTheSame ? push.changes.asShown() : ChangeSet())
        }
        if !taken.isEmpty { post(.didSave, taken) }
        settleBaseNow()
        if follows { refreshUnwatched() }
        notifyChildren(
            others.map { others in
                // Over an older state of the parent, this context shows all changes, also those that were not taken.
                let own = isAnnounced || place.showsTheSame ? [taken, lost, added] : [push.changes, added]
                return ChangeSet.union(others + own.compactMap(\.self))
            },
            saved: written)
    }

    /// Returns the base state of a child after its parent has accepted its changes.
    private func movedBaseState(_ push: ChildChanges, _ place: ParentState) -> LayerStack.BaseState {
        var moved = layerStack.baseState
        // The parent may have announced this state or a later one first. It contains the push, and what the writer has added to it.
        let isAnnounced =
            moved.parentViewRevision > place.viewRevision || moved.parentViewRevision == place.viewRevision && !place.showsTheSame
        moved.earliestParentRevision = place.viewRevision
        if isAnnounced {
            // Above the announced state, the pushed layer would hide what the writer has added.
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
}

/// A base state whose layers are all sealed, to be sent to another executor.
struct SealedBase: @unchecked Sendable {
    // `@unchecked Sendable` is safe because everything in a base state is immutable once its layers are sealed.
    var baseState: LayerStack.BaseState
    /// The layers that the parent has saved since its previous state, oldest first.
    var saved: [Layer] = []

    /// Whether all differences from a child's base state are saves. Otherwise the parent has unsaved changes that the child has not seen,
    /// or has dropped some that it has seen.
    func differsOnlyBySaves(from old: LayerStack.BaseState) -> Bool {
        baseState.parentLayers.allSatisfy(old.parentLayers.contains)
            && old.parentLayers.allSatisfy { id in baseState.parentLayers.contains(id) || saved.contains { $0.id == id } }
    }

    /// Returns the unsaved changes that the child has seen and that the save does not contain, or nil if there are none: later changes
    /// have cancelled them, or a delete rule. O(pages of the saved layers that the child has seen).
    ///
    /// - Parameter changes: The changes of the save.
    func withdrawn(from old: LayerStack.BaseState, without changes: ChangeSet) -> ChangeSet? {
        ChangeSet(withdrawing: saved.filter { old.parentLayers.contains($0.id) }, without: [changes])
    }
}
