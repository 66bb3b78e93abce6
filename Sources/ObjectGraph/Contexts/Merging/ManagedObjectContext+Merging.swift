import StoreInterface

/// Moving on: merges of siblings' saves, refresh, rollback, reset.
extension ManagedObjectContext {
    /// Moves a root context to a state that holds the save with these changes (S091): registered updated objects show new
    /// values, deleted ones are gone, inserted ones can be fetched. Local changes stay, property by property.
    ///
    /// The context moves to the newest state, which may hold more saves. O(pages in the change set + registered objects in it).
    /// In a child this does nothing: it follows its parent (``refreshFromParent()``).
    public func mergeChanges(from changes: ChangeSet) {
        checkIsolation()
        guard isRoot, changes.generation > baseState.state.generation else { return }
        moving { advance(to: setup.writer.newestState()) }
    }

    /// Called on the context's executor after one or more saves elsewhere on the coordinator (S093): one move for all of them.
    func storeDidChange() {
        guard isRoot, automaticallyMergesChanges, closure == nil else { return }
        let newest = setup.writer.state
        moving { moveOn(to: newest) }
    }

    private func moveOn(to newest: StoreState) {
        if newest.sequence == baseState.state.sequence { renewSnapshot(newest) } else { advance(to: newest) }
    }

    /// At the beginning of a turn that reads: merges what was announced, so that a save that was awaited is seen (S068).
    @inline(__always)
    func catchUp() {
        if behind != nil, !isMoving { mergeAnnounced() }
    }

    private func mergeAnnounced() {
        behind?.willCatchUp()
        behind = nil
        storeDidChange()
    }

    /// Runs a step that reads the state that it began with.
    func moving<R>(_ body: () throws -> R) rethrows -> R {
        let wasMoving = isMoving
        isMoving = true
        defer { isMoving = wasMoving }
        return try body()
    }

    /// Reads the same saves in a newer snapshot, as after a compaction: nothing changes for anybody, and pages that only the old one
    /// needs can be used again.
    private func renewSnapshot(_ state: StoreState) {
        guard state.base !== baseState.state.base, state.base.generation >= baseState.state.base.generation else { return }
        // Counts and values that were read leave no object behind, and must not change either.
        let rests = showsNothing && (baseState.state.base as? LazySnapshot).map { $0.current == nil } ?? false
        baseState.state = rests ? setup.writer.resting(state) : state
        if !rests { state.takeBase() }
        pin.move(to: baseState.state)
        pages.removeAll()
        rebuildView()
    }

    func advance(to state: StoreState) {
        guard state.sequence > baseState.state.sequence else { return }
        let between = setup.writer.changes(after: baseState.state, through: state)
        var moved = baseState
        moved.state = state
        moved.isPinned = false
        let changes = between.map(ChangeSet.union)
        move(to: moved, changes.map { [$0] })
        notify(changes, refreshed: refreshRegistered(changes))
        tellFollowers(changes)
    }

    /// Reads another state of the store from now on (S151). Unsaved changes stay on top. A programmer error in a child, and for a
    /// snapshot of another store.
    public func pin(to snapshot: Snapshot) {
        checkIsolation()
        precondition(isRoot, "a child reads its parent's state; pin its root")
        precondition(snapshot.store == storeIdentity, "the context \(name) cannot read a snapshot of another store")
        var moved = baseState
        moved.state = snapshot.state
        moved.isPinned = true
        move(to: moved, nil)
        notify(nil, refreshed: refreshRegistered(nil))
    }

    /// Finds registered objects whose values may have changed below them, and notices those whose record is gone or is back.
    ///
    /// - Parameter changes: nil when what changed is not known: then every registered object counts.
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
        if object.row == nil {
            object.isDeletedHere = !trapOnStoreError { try exists(object.entity, object.key) }
        }
        refreshed.append(object.objectID)
    }

    // MARK: Refresh

    /// Makes an object show the store's latest values. `mergeChanges: false` drops its unsaved changes first; true keeps them
    /// (S024). Moves a root context to the newest state: a context reads one state at a time.
    public func refresh(_ object: ManagedObject, mergeChanges: Bool) {
        checkIsolation()
        precondition(object.context === self, "an object is refreshed in the context that it belongs to")
        if !mergeChanges { dropChanges(of: object) }
        refreshAllObjects()
    }

    /// Moves a root context to the newest state; unsaved changes stay (S024). In a child it does nothing: see `refreshFromParent()`.
    public func refreshAllObjects() {
        checkIsolation()
        if isRoot { moving { advance(to: setup.writer.newestState()) } }
    }

    /// Makes the sealed layers that no save has taken writable again, as one with the top layer.
    func unseal() {
        let own = Array(sealed.dropFirst(inFlight))
        guard !own.isEmpty else { return }
        top = Layer.folding(own + [top], schema: model.storeSchema)
        sealed.removeLast(own.count)
        viewRevision += 1
        rebuildView()
        reconnectRows()
    }

    // MARK: Rollback and reset

    /// Drops all unsaved changes: inserted objects are gone, deleted ones are back with their relationships, updated ones show
    /// the committed values (S048). Reads nothing. Changes that a running save has taken are not touched.
    public func rollback() {
        checkIsolation()
        let dropped = Layer.folding(Array(sealed.dropFirst(inFlight)) + [top], schema: model.storeSchema)
        guard !dropped.isEmpty || !top.isEmpty || sealed.count > inFlight else { return }
        let affected = Array(sealed.dropFirst(inFlight)) + [top]
        sealed.removeLast(sealed.count - inFlight)
        top = Layer(schema: model.storeSchema)
        viewRevision += 1
        orphans = UpdatesOfDeletedObjects()
        rebuildView()
        for layer in affected {
            forEachRegistered(in: layer) { object, row in revert(object, wasInserted: row.kind == .insert) }
        }
        changeLog.removeAll()
        let changes = dropped.changeSet(origin: origin).inverted
        notify(changes, refreshed: refreshRegistered(changes))
    }

    private func revert(_ object: ManagedObject, wasInserted: Bool) {
        let own = newestOwnRow(object.entity, object.key)
        object.row = own
        if wasInserted, own == nil {
            registry.forget(object)
            object.state = .invalid
            object.context = nil
        } else {
            object.isDeletedHere = own?.kind == .delete
        }
        if own == nil, object.state == .invalid || !retainsRegisteredObjects { registry.release(object) }
    }

    /// Forgets every object and every unsaved change, and moves a root context to the newest state (S049). Using an object from
    /// before is a programmer error; a child's save from before throws (S078).
    public func reset() {
        checkIsolation()
        sealed.removeLast(sealed.count - inFlight)
        top = Layer(schema: model.storeSchema)
        resetGeneration += 1
        orphans = UpdatesOfDeletedObjects()
        changeLog.removeAll()
        registry.forEach { object in
            registry.forget(object)
            object.state = .invalid
            object.context = nil
            object.row = nil
            registry.release(object)
        }
        var moved = baseState
        if isRoot { moved.state = setup.writer.newestState() }
        setBaseState(moved)
        notify(nil, refreshed: [])
    }
}

extension ChangeSet {
    /// What undoing the changes does: inserted objects go, deleted ones come back.
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
