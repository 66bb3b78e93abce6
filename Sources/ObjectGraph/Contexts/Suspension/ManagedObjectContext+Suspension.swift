import StoreInterface
import StoreModel

/// Suspending (``PersistentContainer/suspend()``): the context releases its snapshot, and keeps its objects and unsaved changes. Its
/// next use moves it to the newest state.
extension ManagedObjectContext {
    /// The knowledge of a context when the store was suspended.
    struct Suspended {
        /// The newest save in the file that the context's root had read; nil if that is forgotten.
        var generation: Generation?
        /// Whether a use of the context has moved it since, before the store was resumed.
        var hasMoved = false
        /// Whether a group of changes for undo has to end after the next move (S162).
        var endsUndoEvent = false
    }

    /// Whether the store is suspended, or about to be, and not closed. Asking does not use the context, which would open the file again.
    package var isStoreSuspended: Bool { configuration.writer.suspension.isClosed && !configuration.coordinator.isClosed }

    /// Suspends the context after its running saves, then calls `done`.
    func suspend(then done: @escaping @Sendable () -> Void) {
        whenIdle { [self] in
            suspendNow()
            endSave()
            done()
        }
    }

    /// Suspends a new root context, or the main context below a hidden root, that was created while the store was suspended: its first use,
    /// or the end of the suspension, moves it to the newest state. Call this on its executor, after it can be found there and before its
    /// first use.
    func suspendIfStoreIs() {
        guard isRoot || configuration.decidesForParent, place.confinement == nil, !layerStack.baseState.isPinned,
            configuration.writer.suspension.isSuspended
        else { return }
        suspendNow()
    }

    private func suspendNow() {
        guard phase.closure == nil else { return }
        let state = layerStack.baseState.state
        // A context that was used since an earlier suspension has noted what others had saved until then.
        if phase.suspended?.hasMoved ?? true {
            let (read, known) = (readGeneration(state), phase.suspended)
            // A child that was used has read more than its root.
            phase.suspended = Suspended(
                generation: isRoot ? read : known.map(\.generation) ?? read, endsUndoEvent: known?.endsUndoEvent ?? false)
        }
        let ended = state.suspended(configuration.coordinator.store)
        for source in observers.takeSources() { source.source?.end(ended) }
        for observer in observers.views { observer.releaseViews(ended.view) }
        layerStack.baseState.route?.forget(nil)
        layerStack.baseState.state = StoreState(
            base: snapshotAfterSuspension(), committed: committedBeforeSuspension(state), sequence: state.sequence)
        environment.lease.move(to: layerStack.baseState.state)
        layerStack.didMove(showsTheSame: true)
    }

    /// Returns the snapshot of the file after the suspension, which the context reads until its next move.
    private func snapshotAfterSuspension() -> LazySnapshot {
        configuration.writer.lazySnapshot(after: configuration.writer.state.committed, isFixed: false)
    }

    /// Returns the newest save in the file that the context has shown. What it would read while it is suspended it has not shown.
    private func committedBeforeSuspension(_ state: StoreState) -> Generation {
        let isSuspended = (state.storeBase as? LazySnapshot).map { !$0.isFixed } ?? false
        return (isSuspended ? nil : configuration.writer.committed(in: state)) ?? state.committed
    }

    /// Returns what the root of the context has read, because the root's save decides about conflicts. Parents are suspended first.
    private func readGeneration(_ state: StoreState) -> Generation? {
        let generation =
            configuration.parent.map { $0.place.readAtSuspension.withLock { $0 } } ?? configuration.writer.committed(in: state)
        place.readAtSuspension.withLock { $0 = generation }
        return generation
    }

    /// Moves a suspended context to the newest state before it is read. Objects and unsaved changes stay.
    func moveIfSuspended() {
        guard phase.isSuspended, let suspended = phase.suspended, phase.closure == nil, canRead() else { return }
        phase.suspended?.hasMoved = true
        let newest = configuration.writer.newestState()
        let old = layerStack.baseState.state
        if !isRoot { phase.suspended?.generation = configuration.writer.committed(in: newest) }
        moving {
            if newest.sequence == old.sequence {
                renewSnapshot(newest)
                return showReleasedViews()
            }
            let changes = suspended.generation == nil ? nil : configuration.writer.changes(after: old, through: newest)
            move(to: newest, after: changes)
            noteChangedWhileSuspended(suspended, changes)
        }
        postChangesOfSuspended(suspended)
    }

    /// Whether the context was not used since the store was suspended, so that its observers wait for its next move. Posting its changes would
    /// read the store, and thus open the file again.
    var isWaitingForResumption: Bool { phase.isSuspended && isStoreSuspended }

    /// Posts the changes that observers have waited for.
    private func postChangesOfSuspended(_ suspended: Suspended) {
        if !phase.arrivals.isEmpty {
            // This may be within the initializer of such an object, which must not be inserted before it is complete.
            announceArrivals()
        } else if suspended.endsUndoEvent {
            phase.suspended?.endsUndoEvent = false
            endUndoEvent()
        }
        if !tracker.log.isEmpty { notify(ChangeSet(), refreshed: []) }
    }

    /// Returns whether the store can be read again. If its file was replaced, for instance, properties read as if the objects were deleted,
    /// and requests throw the error, until a later use finds the store readable.
    private func canRead() -> Bool {
        let store = configuration.coordinator.store
        do {
            _ = try store.snapshot()
            let state = layerStack.baseState.state
            if state.base is ClosedSnapshot {
                // An earlier use could not read the store. The move that follows compares values with those before it.
                layerStack.baseState.state = readable(state.reading(snapshotAfterSuspension()))
                layerStack.didMove(showsTheSame: true)
            }
            return true
        } catch {
            let error = error as? StoreError ?? StoreError(.inputOutput, "cannot read \(store.name): \(error)", cause: error)
            let state = layerStack.baseState.state
            layerStack.baseState.state = state.reading(ClosedSnapshot(store, generation: state.generation, error))
            layerStack.didMove(showsTheSame: true)
            return false
        }
    }

    /// Ends the suspension of a context without a parent.
    func resume() {
        moveIfSuspended()
        if !phase.isSuspended { phase.suspended = nil }
    }

    /// Ends the suspension of a child: moves it to the state of its parent, which was resumed before.
    func resume(from parent: SealedBase) {
        guard let suspended = phase.suspended, phase.closure == nil, canRead() else { return }
        phase.suspended = nil
        moving {
            moveToParent(parent, changes: nil)
            showReleasedViews()
            noteChangedWhileSuspended(suspended, nil)
        }
        postChangesOfSuspended(suspended)
    }

    /// Gives a view to observers that have released theirs, with the changes that they had not shown yet.
    private func showReleasedViews() {
        if !observers.views.isEmpty { notify(ChangeSet(), refreshed: []) }
    }

    /// Records the objects with unsaved changes that other saves have changed since the context was suspended (S100).
    private func noteChangedWhileSuspended(_ suspended: Suspended, _ changes: [ChangeSet]?) {
        // A context that merges takes its unsaved changes to the newest state. Others check them at their save.
        if automaticallyMergesChanges { return }
        let base = layerStack.baseState.state.view
        func note(_ address: ObjectAddress) {
            do {
                guard let version = try base.version(address.entity, address.key) else { return }
                if let known = suspended.generation, let generation = version.generation, generation <= known { return }
            } catch {
                // If the version cannot be read, the object counts as changed, because an update must not be lost; unless the saves are
                // known, and none of them has changed it.
                if let changes, !Self.isTouched(address, by: changes) { return }
            }
            tracker.checks.note(address, changedColumns(address, changes))
        }
        forEachPending { entity, key, kind in
            if kind != .insert { note(ObjectAddress(entity: entity, key: key)) }
        }
        for id in tracker.checks.watched where layerStack.pendingKind(id.entity, id.key) != .insert {
            let address = ObjectAddress(entity: id.entity, key: id.key)
            if (try? base.exists(id.entity, id.key)) == false {
                tracker.checks.note(address, changedColumns(address, nil))
            } else {
                note(address)
            }
        }
    }

    private static func isTouched(_ address: ObjectAddress, by changes: [ChangeSet]) -> Bool {
        changes.contains { change in
            (change.change(of: address.entity)?.pages ?? []).contains { page in
                page.number == address.key.page
                    && (page.inserted | page.updated | page.deleted) >> UInt64(address.key.slot) & 1 != 0
            }
        }
    }

    /// Returns the columns of an object that saves have changed; all of them if that is unknown.
    private func changedColumns(_ address: ObjectAddress, _ changes: [ChangeSet]?) -> ColumnSet {
        let all = ColumnSet(first: storedModel.entities[address.entity].columns.count)
        guard let changes else { return all }
        let (number, slot) = (address.key.page, address.key.slot)
        var columns = ColumnSet()
        for change in changes {
            for page in change.change(of: address.entity)?.pages ?? [] where page.number == number {
                if page.updated >> UInt64(slot) & 1 != 0 { columns.formUnion(page.columns(of: slot)) }
                if (page.inserted | page.deleted) >> UInt64(slot) & 1 != 0 { return all }
            }
        }
        return columns.isEmpty ? all : columns
    }
}

extension ManagedObjectContext {
    /// Moves a confined context to the newest state if the store was suspended since its last use.
    func resumeConfined(_ confinement: ConfinedExecutor) {
        guard confinement.uses.wasSuspended.exchange(false, ordering: .acquiringAndReleasing) else { return }
        phase.suspended = Suspended(generation: configuration.writer.committed(in: layerStack.baseState.state))
        resume()
    }
}
