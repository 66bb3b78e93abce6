import StoreInterface
import StoreModel
import Tracing

/// Moving a context to another state: merges of other contexts' saves, refresh, rollback and reset.
extension ManagedObjectContext {
    /// Moves a root context to the newest state, which contains the save with these changes (S091).
    ///
    /// Registered updated objects show new values, deleted objects are gone, and inserted objects can be fetched.
    /// Unsaved changes stay, property by property. The newest state may contain more saves than this one.
    /// O(pages in the change set + registered objects in it). A child follows its parent instead: this method does nothing in a child.
    /// See ``refreshFromParent()``.
    public func mergeChanges(from changes: ChangeSet) {
        checkIsolation()
        guard isRoot else { return }
        guard configuration.writer.mayLack(changes.generation, layerStack.baseState.state) else {
            return forgetUnmerged(savedWith: changes)
        }
        forgetUnmerged()
        moving { merging { advance(to: configuration.writer.newestState()) } }
    }

    /// Merges one or more saves of other contexts in one move. Called on the context's executor (S093).
    ///
    /// A context that does not merge stays at its state, but releases the snapshot below deferred saves after they are written.
    func storeDidChange() {
        guard phase.closure == nil, !phase.isSuspended else { return }
        let newest = configuration.writer.state
        // The state that a program has chosen stays until the next save. Deferred saves that are written later are none.
        let base = layerStack.baseState
        if base.isPinned, base.state.sequence < newest.sequence, newest.sequence <= phase.pinnedThrough { return }
        if followsStore, automaticallyMergesChanges {
            if isRoot || layerStack.baseState.route == nil { moving { moveOn(to: newest) } }
        } else if newest.sequence == layerStack.baseState.state.sequence, mayRest {
            moving { renewSnapshot(newest) }
        }
    }

    /// Prepares a confined context for a request: runs the jobs that wait for it, and moves it to the newest state if it has no unsaved
    /// changes, or merges automatically. Other contexts are moved by jobs on their executors.
    @inline(__always)
    func prepareRequest() {
        if let confinement = place.confinement, !phase.isMoving { catchUp(confinement) }
    }

    @inline(never)
    private func catchUp(_ confinement: ConfinedExecutor) {
        confinement.runJobs(in: self)
        resumeConfined(confinement)
        guard phase.closure == nil, !layerStack.baseState.isPinned, automaticallyMergesChanges || !hasChanges else { return }
        moving { moveUnmerged { moveOn(to: configuration.writer.newestState()) } }
    }

    private func moveOn(to newest: StoreState) {
        // Without newer saves there is nothing to merge, so that the checks which a child has passed on stay.
        if newest.sequence == layerStack.baseState.state.sequence { return renewSnapshot(newest) }
        // From before the context merged automatically, or from a child.
        if automaticallyMergesChanges { tracker.forgetUnmerged() }
        advance(to: newest)
    }

    /// Merges announced saves before a read, so that the read sees every save that the program has awaited (S068).
    @inline(__always)
    func catchUp() {
        if phase.mustCatchUp, !phase.isMoving { mergeAnnounced() }
    }

    /// Merges announced saves, also within a step that reads the state that it started with.
    func mergeAnnounced() {
        moveIfSuspended()
        if !phase.announced.isEmpty { moving { moveToAnnounced() } }
        guard phase.behind != nil else { return }
        phase.behind?.willCatchUp()
        phase.behind = nil
        storeDidChange()
    }

    /// Runs a step that must read the state that it started with.
    func moving<R>(_ body: () throws -> R) rethrows -> R {
        let wasMoving = phase.isMoving
        phase.isMoving = true
        defer { phase.isMoving = wasMoving }
        return try occupied(body)
    }

    /// Moves to a newer snapshot of the same saves, as after a compaction.
    ///
    /// Nothing changes for users of the context. Pages that only the old snapshot needed can be reused.
    func renewSnapshot(_ state: StoreState) {
        let base = layerStack.baseState.state.storeBase
        guard state.base !== base, state.base.generation >= base.generation else { return }
        // Counts and values read earlier leave no registered object, but they must not change either. So check whether the snapshot was
        // read.
        let rests =
            mayRest && registry.registrations == phase.registrationsAtRest
            && (base as? LazySnapshot).map { $0.current == nil } ?? false
        if rests {
            rest(in: state)
        } else if configuration.writer.acquire(state)?.isEmpty == true {
            layerStack.baseState.state = readable(state)
        } else {
            // The snapshot contains saves of other processes, or it is not known whether it does.
            if automaticallyMergesChanges {
                tracker.forgetUnmerged()
                move(to: state, after: [])
            }
            return
        }
        environment.lease.move(to: layerStack.baseState.state)
        layerStack.didMove(showsTheSame: true)
        // Observers of the view, and children that follow, release the old snapshot too.
        if !observers.views.isEmpty { notify(ChangeSet(), refreshed: []) }
        notifyChildren(ChangeSet())
    }

    /// Moves to a newer state of the store, below the same layers.
    func advance(to state: StoreState) {
        // An observer may have moved the context further by a save, which is no merge.
        defer { phase.mergedThrough = min(layerStack.baseState.state.sequence, max(phase.mergedThrough, state.sequence)) }
        guard state.sequence > layerStack.baseState.state.sequence else { return }
        let isDone = move(to: state, after: configuration.writer.changes(after: layerStack.baseState.state, through: state))
        // An observer may have moved the context to a state between the two. A state that it has chosen stays.
        if !isDone, !layerStack.baseState.isPinned { advance(to: state) }
    }

    /// Whether observers of objects have moved the context since it was at a place. They are called before a move, and may save, refresh
    /// the context or choose another state. The context has then notified its observers of that state, and must not move back.
    func hasLeft(_ old: LayerStack.BaseState.Place) -> Bool {
        let new = layerStack.baseState.place
        return new.sequence != old.sequence || new.isPinned && !old.isPinned
    }

    /// Moves to another state of the store, below the same layers.
    ///
    /// - Parameter counted: The saves between the two states; nil if they are unknown.
    /// - Returns: false if an observer of the move has moved the context elsewhere. Then it stays there.
    @discardableResult
    func move(to state: StoreState, after counted: [ChangeSet]?) -> Bool {
        let span = mergeSpan()
        defer { span?.end() }
        // Acquire the snapshot before notifying observers, because it may contain more saves of other connections.
        let between = changes(counted, showing: state)
        let old = layerStack.baseState.place
        let changes = between.map(ChangeSet.union)
        let refreshed: [ObjectID]? = showing(
            layerStack.view(movedTo: layerStack.baseState.moved(to: state)), changes: changes
        ) {
            if hasLeft(old) { return nil }
            move(to: layerStack.baseState.moved(to: state), changes.map { [$0] })
            return refreshRegistered(changes)
        }
        guard let refreshed else {
            phase.unmergedSince = nil
            return false
        }
        span?.set(["strata.objects": .int(Int64(refreshed.count))])
        notify(changes, refreshed: refreshed)
        notifyChildren(changes)
        return true
    }

    /// Starts the span of a merge; nil without a tracer.
    func mergeSpan() -> (any Span)? {
        configuration.coordinator.instruments?.start("strata.merge", ["strata.context": "\(name)"])
    }

    /// Acquires the snapshot of the next state, unless the context shows nothing that it must agree with. Returns the saves that the
    /// context must report: those between the states, and those that only the snapshot contains. Returns nil if they are unknown.
    func changes(_ counted: [ChangeSet]?, showing state: StoreState) -> [ChangeSet]? {
        if layerStack.baseState.route != nil || showsNothing { return counted }
        guard let counted, let more = configuration.writer.acquire(state) else { return nil }
        return more.isEmpty ? counted : counted + more
    }

    /// Makes a root context read another state of the store (S151). Unsaved changes stay on top.
    ///
    /// - Precondition: The context is a root, and the snapshot belongs to its store.
    public func read(from snapshot: Snapshot) {
        checkIsolation()
        precondition(isRoot, "a child reads its parent's state; let its root read the snapshot")
        precondition(snapshot.store == storeIdentity, "the context \(name) cannot read a snapshot of another store")
        var moved = layerStack.baseState
        moved.state = snapshot.state(for: configuration.writer)
        moved.isPinned = true
        let refreshed = showing(layerStack.view(movedTo: moved), changes: nil) {
            move(to: moved, nil)
            return refreshRegistered(nil)
        }
        // Children that are created now may read an older state than the one that was merged last.
        phase.mergedThrough = min(phase.mergedThrough, moved.state.sequence)
        phase.pinnedThrough = configuration.writer.state.sequence
        notify(nil, refreshed: refreshed)
        // The next announcement to the children has only the changes after this move.
        notifyChildren(nil)
    }

    /// Returns the registered objects whose values in the base state may have changed, and updates whether each still exists.
    ///
    /// - Parameter changes: The changes; nil if they are unknown, which includes every registered object.
    func refreshRegistered(_ changes: ChangeSet?) -> [ObjectID] {
        var refreshed: [ObjectID] = []
        guard let changes else {
            registry.forEach { note($0, &refreshed) }
            return refreshed
        }
        for change in changes.entities {
            for page in change.pages {
                guard let registered = registry.page(change.entity, page.number) else { continue }
                ObjectRegistry.forEach(in: registered, page.inserted | page.updated | page.deleted) { note($0, &refreshed) }
            }
        }
        return refreshed
    }

    private func note(_ object: ManagedObject, _ refreshed: inout [ObjectID]) {
        noteExistence(of: object)
        refreshed.append(object.objectID)
    }

    /// Updates whether an object is gone because it is deleted in the base state. An update that has every value shows them until a save
    /// settles it.
    private func noteExistence(of object: ManagedObject) {
        // Of an object that is gone, an undo or a merge policy leaves the last values in a row that is in no layer.
        let hasLastValues = object.row != nil && newestOwnRow(object.entity, object.key) == nil
        if let row = object.row, !hasLastValues {
            guard row.kind == .update, object.isDeletedHere || row.set.count < row.columnCount else { return }
        }
        object.isDeletedHere = !trapOnStoreError { try exists(object.entity, object.key) }
        if hasLastValues, !object.isDeletedHere { object.row = nil }
    }

    // MARK: Refresh

    /// Updates an object to the store's latest values (S024). A root context moves to the newest state, because it reads one state at a
    /// time.
    ///
    /// - Parameters:
    ///   - object: An object of this context.
    ///   - mergeChanges: If true, the object keeps its unsaved changes. If false, they are dropped first, and the changes of its
    ///     relationships at both ends (S055). Objects that were deleted with the object stay deleted.
    public func refresh(_ object: ManagedObject, mergeChanges: Bool) {
        checkIsolation()
        precondition(
            object.context === self,
            "cannot refresh an object in the context \(name): it belongs to another context. Look it up here by its objectID.")
        if !mergeChanges {
            withoutUndo { dropObservedChanges(of: object, members: true) }
            noteExistence(of: object)
        }
        refreshAllObjects()
    }

    /// Moves a root context to the newest state and keeps unsaved changes (S024).
    ///
    /// The main context of `.masterMainWorker` and `.hybrid` counts as a root, because programs do not see its parent. The parent merges
    /// the same saves before the next save of the main context. If it has changes that ``save(_:)`` has moved to it, it merges first, and
    /// this method waits for the jobs that it has. In other children this method does nothing: see ``refreshFromParent()``.
    public func refreshAllObjects() {
        checkIsolation()
        prepareRequest()
        layerStack.baseState.route?.forget(nil)
        guard isRoot || configuration.decidesForParent && layerStack.baseState.route == nil else { return }
        forgetUnmerged()
        let hasMergedBelow = moving {
            merging { () -> Bool in
                let newest = configuration.writer.newestState()
                let hasFollowed = followHiddenRoot(to: newest)
                // Does nothing if the context has reached that state with its root.
                advance(to: newest)
                return hasFollowed
            }
        }
        if configuration.decidesForParent, !hasMergedBelow { mergeInHiddenRoot() }
    }

    /// Moves a main context to the newest state over the unsaved changes in its hidden root, after the root has merged that state below
    /// them. Otherwise this context would show these changes unsettled: one key with two entries, or one object with two partners.
    ///
    /// Waits for the jobs that the root has. They wait for no context.
    ///
    /// - Returns: false if the root has no unsaved changes, or cannot merge now.
    private func followHiddenRoot(to newest: StoreState) -> Bool {
        let base = layerStack.baseState
        guard configuration.decidesForParent, !base.inherited.isEmpty, phase.closure == nil, !phase.isSuspended,
            let parent = configuration.parent?.contextExecutor,
            let new = try? parent.wait({ $0.mergedBase(through: newest) })
        else { return false }
        let state = new.baseState.state
        if new.baseState.parentViewRevision != base.parentViewRevision || state.sequence != base.state.sequence {
            let changes =
                base.state.sequence < state.sequence
                ? configuration.writer.changes(after: base.state, through: state).map(ChangeSet.union) : ChangeSet()
            moveToParent(new, changes: changes)
        }
        phase.mergedThrough = layerStack.baseState.state.sequence
        return layerStack.baseState.state.sequence >= newest.sequence
    }

    /// Merges the saves that the main context merges, in its hidden root.
    ///
    /// - Returns: The state that main then reads. nil if this root is closed or suspended: the end of a suspension moves it, and an
    ///   earlier move would open the file again.
    private func mergedBase(through state: StoreState) -> SealedBase? {
        guard phase.closure == nil, !phase.isSuspended else { return nil }
        // A root that follows the store may be ahead.
        if layerStack.baseState.state.sequence <= state.sequence {
            forgetUnmerged()
            moving { merging { advance(to: state) } }
        }
        return sealedBaseForChild()
    }

    /// Makes the parent of a main context, which programs do not see, merge what the main context has merged. Otherwise the unsaved changes
    /// that the parent has taken would stay in conflict with those saves.
    ///
    /// Does not wait: the parent runs its jobs in their order, so that it merges before the next save of this context reaches it.
    private func mergeInHiddenRoot() {
        guard phase.closure == nil, !phase.isSuspended, let own = contextExecutor else { return }
        // A newer state would contain saves that this context has not merged.
        let state = layerStack.baseState.state
        configuration.parent?.contextExecutor?.enqueue { parent in
            // Changes of a save that was running during the refresh are settled only now.
            guard let new = parent.mergedBase(through: state), !new.baseState.inherited.isEmpty,
                new.baseState.state.sequence <= state.sequence
            else { return }
            own.enqueue { main in
                if main.phase.closure == nil, !main.phase.isSuspended { main.moveToParent(new, changes: nil) }
            }
        }
    }

    /// Folds the sealed layers that no save has taken into the top layer, so that they are writable again.
    func unseal() {
        if layerStack.unseal() { reconnectRows() }
    }

    // MARK: Rollback and reset

    /// Drops all unsaved changes (S048). Reads nothing from the store.
    ///
    /// Inserted objects are gone, deleted objects are back with their relationships, and updated objects show their committed values.
    /// The model of an inserted object is in no context afterwards: it keeps its values, loses its relationships, and may be inserted again.
    /// Using an inserted object that has no model is a programmer error.
    /// Changes that a running save has taken stay. Objects passed to ``detectConflicts(for:)`` are no longer checked. Nothing that was done
    /// before can be undone or redone afterwards (S162).
    ///
    /// The main context of `.masterMainWorker` and `.hybrid` may have saved updates to its root, which programs do not see, of objects
    /// whose deletion by another context it has merged since. Under the policy `.error` these would fail each later save, so they are
    /// dropped, too. Dropping them does not wait for the root.
    public func rollback() {
        checkIsolation()
        dropUpdatesInHiddenRoot()
        tracker.undo?.removeAllActions()
        // Refused assignments are kept for a redo only.
        tracker.replacements = UndecodableReplacements()
        tracker.undoneInFlight = UndoneChanges()
        tracker.keyed = KeyedChanges()
        tracker.checks = ConflictChecks()
        // A running save may give its changes back, with their checks. A preview has taken none.
        if !layerStack.hasTakenLayers { tracker.dropTakenChecks() }
        tracker.log.forgetUnsavedChange()
        if !layerStack.hasTakenLayers { tracker.provisional = [:] }
        if place.confinement != nil { giveBackKeys() }
        guard layerStack.notInFlight.contains(where: { !$0.isEmpty }) else { return }
        // Objects that were inserted since the last notice. Views may have shown them, but no notice names them (S041).
        var gone: [EntityIndex: [PageNumber: UInt64]] = [:]
        let (changes, refreshed) = showing(
            layerStack.viewWithoutChanges, changes: nil, keeping: layerStack.taken, forgetsInserted: true
        ) {
            // Observers may have inserted objects, or processed the changes so far.
            let log = tracker.log
            let affected = layerStack.dropChanges()
            let dropped = Layer.folding(affected, schema: storedModel.storeSchema)
            // The layers that a running save has taken may be unsaved changes again.
            if layerStack.hasTakenLayers { forgetSettledUpdates() } else { tracker.forgetSaved() }
            for layer in affected {
                forEachRegistered(in: layer) { object, row in
                    let folded = dropped.row(object.entity, object.key)
                    // An object whose deletion was taken back has a row that inserts it again, and is in the store.
                    guard row.kind == .insert, folded.map({ $0.kind == .insert }) ?? true else {
                        return revert(object, inserted: nil)
                    }
                    // Folding leaves an object out that was deleted again. Its tombstone has all values.
                    let deleted = object.row?.kind == .delete ? object.row : nil
                    revert(object, inserted: folded ?? deleted ?? row)
                }
            }
            // Observers may have seen an object that was inserted and then deleted, which the folded layers leave out.
            let unreported = tracker.log.take(metadata) { entity, key in
                guard dropped.row(entity, key) == nil, (try? exists(entity, key)) == false else { return nil }
                guard log.isUnnamed(entity, key) else { return .delete }
                gone[entity, default: [:]][key.page, default: 0] |= 1 << UInt64(key.slot)
                return nil
            }
            let reverted = dropped.changeSet(metadata: metadata)
            for change in reverted.entities {
                for key in change.insertedKeys where log.isUnnamed(change.entity, key) {
                    gone[change.entity, default: [:]][key.page, default: 0] |= 1 << UInt64(key.slot)
                }
            }
            let changes = ChangeSet.union([unreported, reverted.inverted])
            return (changes, refreshRegistered(changes))
        }
        notify(changes, refreshed: refreshed, unnamed: gone)
    }

    /// - Parameter inserted: The newest values of an object whose insertion is dropped.
    private func revert(_ object: ManagedObject, inserted: Row?) {
        let own = newestOwnRow(object.entity, object.key)
        object.row = own
        if let inserted, own == nil {
            registry.forget(object)
            observed.remove(object)
            detach(object, inserted)
        } else {
            object.isDeletedHere = own?.kind == .delete
        }
        if own == nil, object.state != .registered || !retainsRegisteredObjects { registry.release(object) }
    }

    /// Forgets every object and every unsaved change, and moves a root context to the newest state (S049).
    ///
    /// Using an object from before the reset is a programmer error. Saving a child from before the reset throws (S078). A main context
    /// also drops the changes that ``rollback()`` drops in its root.
    public func reset() {
        checkIsolation()
        dropUpdatesInHiddenRoot()
        tracker.undo?.removeAllActions()
        // Refused assignments are kept for a redo only.
        tracker.replacements = UndecodableReplacements()
        tracker.undoneInFlight = UndoneChanges()
        layerStack.reset()
        tracker.keyed = KeyedChanges()
        tracker.checks = ConflictChecks()
        tracker.dropTakenChecks()
        tracker.forgetSaved()
        tracker.log.removeAll()
        tracker.provisional = [:]
        tracker.log.forgetUnsavedChange()
        if place.confinement != nil { giveBackKeys() }
        // Released after the reset, because that may run code of the program.
        let observers = observed.removeAll()
        defer { withExtendedLifetime(observers) {} }
        registry.forEach { object in
            registry.forget(object)
            object.state = .invalid
            object.context = nil
            object.row = nil
            registry.release(object)
        }
        var moved = layerStack.baseState
        if isRoot {
            moved.state = configuration.writer.newestState()
            moved.isPinned = false
        }
        layerStack.baseState.route?.forget(nil)
        setBaseState(moved)
        phase.mergedThrough = layerStack.baseState.state.sequence
        beginUndoSegment()
        notify(nil, refreshed: [])
    }
}

extension ChangeSet {
    /// The inverse changes: inserted objects count as deleted, deleted objects as inserted.
    var inverted: ChangeSet {
        var inverse = self
        for entity in inverse.entities.indices {
            for page in inverse.entities[entity].pages.indices {
                let old = entities[entity].pages[page]
                inverse.entities[entity].pages[page].inserted = old.deleted
                inverse.entities[entity].pages[page].deleted = old.inserted
            }
        }
        return inverse
    }
}
