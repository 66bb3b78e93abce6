import StoreInterface
import StoreModel

/// Moves below unsaved changes that are no merges: the end of a save moves a context to the state after the save, and a child's save
/// moves its parent to the state that the child has read. An object that other saves changed on the way stays a conflict of the next save
/// (S100).
extension ManagedObjectContext {
    /// The view below the unsaved changes.
    ///
    /// - Parameter taken: Layers that a save has taken, newest first, which the next base state contains.
    func viewBelow(_ taken: [Layer] = []) -> LayeredView {
        let base = layerStack.baseState
        return LayeredView(base: base.state.base, layers: taken + base.inherited + base.state.deferred)
    }

    /// Returns the changes of a save of this context among which its merge policy may have written other values than it has shown, also
    /// because of earlier saves of others. Empty under the policy `.error`, which writes none.
    func resolvedByPolicy(_ changes: [ChangeSet?]) -> [ChangeSet] {
        if case .error = mergePolicy { [] } else { changes.compactMap(\.self) }
    }

    /// Records the changed and watched objects that other saves changed between two base states of this context.
    ///
    /// - Parameters:
    ///   - old: The view below the layers before the move.
    ///   - layers: The unsaved changes that were made over it.
    ///   - saved: The layers of this context in the view that the new state contains as saved.
    ///   - changes: The saves of other contexts between the two states; nil if they are unknown.
    func noteUnmerged(since old: LayeredView, in layers: [Layer], saved: [Layer] = [], by changes: [ChangeSet]?) {
        var checks = tracker.checks
        noteUnmerged(
            &checks, since: old, in: layers, saved: saved, restored: tracker.updatesOfDeleted.restored, by: changes)
        tracker.checks = checks
    }

    /// Records the objects among changes and watched ones that other saves changed between a view and the base state of this context.
    ///
    /// O(changed objects) if the layers have changes; most of them are compared by their versions only.
    ///
    /// - Parameters:
    ///   - shown: The view over which the changes were made, if it has more layers than the old one.
    ///   - restored: The objects whose deletion was undone. Insertions of these become updates if others have restored them too.
    func noteUnmerged(
        _ checks: inout ConflictChecks, since old: LayeredView, shown: LayeredView? = nil, in layers: [Layer],
        saved: [Layer] = [], restored: Set<ObjectAddress> = [], by changes: [ChangeSet]? = nil
    ) {
        if automaticallyMergesChanges || layerStack.baseState.route != nil { return }
        let changes = changesInBase(changes)
        if changes?.isEmpty == true { return }
        let (new, shown) = (viewBelow(), shown ?? old)
        let numbers = configuration.writer.shared.withLock { $0.numbers }
        func changed(_ entity: EntityIndex, _ key: ObjectKey) throws -> ColumnSet? {
            let address = ObjectAddress(entity: entity, key: key)
            if let changes, !changes.contains(where: { $0.contains(address) }) { return nil }
            return try changedColumns(of: address, from: old, shown: shown, to: new, saved: saved, numbers: numbers)
        }
        func note(_ entity: EntityIndex, _ key: ObjectKey, row: Row?) throws {
            guard let columns = try changed(entity, key) else { return }
            let own = row?.kind == .update ? columns.intersection(row?.set ?? ColumnSet()) : columns
            checks.note(
                .init(entity: entity, key: key), columns, before: try values(entity, key, of: own, in: shown),
                isNew: try !shown.exists(entity, key))
        }
        trapOnStoreError {
            for layer in layers {
                for entity in layer.entityIndices {
                    for (number, page) in layer.entity(entity)?.pages ?? [:] {
                        for slot in SlotIterator(page.updated | page.deleted) {
                            try note(entity, PageAddress.key(page: number, slot: slot), row: page[slot])
                        }
                    }
                }
            }
            for place in restored where layers.contains(where: { $0.row(place.entity, place.key)?.kind == .insert }) {
                try note(place.entity, place.key, row: nil)
            }
            for id in checks.watched { try note(id.entity, id.key, row: nil) }
            // A child's change of a key is moved to the object that has the key now (S192).
            guard let entity = capabilities.keyedValues else { return }
            for layer in layers {
                for moved in try new.movedKeys(of: layer, entity) where moved.collection == nil {
                    try note(entity, moved.to, row: moved.row)
                }
            }
        }
    }

    /// Returns the columns of an object that differ between two views, if a save has changed the object between them; all columns if only
    /// one of the views has the object. Returns nil if no save has changed it.
    ///
    /// - Parameters:
    ///   - shown: The view whose values are compared with those of the new view. It may have more layers than the old one.
    ///   - saved: The layers among those of `shown` that the new view contains as saved.
    private func changedColumns(
        of address: ObjectAddress, from old: LayeredView, shown: LayeredView, to new: LayeredView, saved: [Layer],
        numbers: CommittedNumbers
    ) throws -> ColumnSet? {
        let (entity, key) = (address.entity, address.key)
        let (before, after) = try (old.version(entity, key), new.version(entity, key))
        guard let before, let after else {
            return (before == nil) == (after == nil) ? nil : ColumnSet(first: storedModel.entities[entity].columns.count)
        }
        let isSavedHere = saved.contains { $0.row(entity, key) != nil }
        if !isSavedHere, numbers.areSame(before, after) { return nil }
        let columns = try differingColumns(of: address, shown, new)
        let mayBeSame = isSavedHere || !capabilities.derivedColumns(of: entity).isEmpty || numbers.isWithdrawn(before)
        return columns.isEmpty && mayBeSame ? nil : columns
    }

    /// Returns the columns whose values differ between two views that have the object, without derived ones.
    private func differingColumns(of address: ObjectAddress, _ shown: LayeredView, _ new: LayeredView) throws -> ColumnSet {
        let (entity, key) = (address.entity, address.key)
        let derived = capabilities.derivedColumns(of: entity)
        var columns = ColumnSet()
        for column in storedModel.entities[entity].columnIndices where !derived.contains(column) {
            let isSame = try Value.areSame(
                shown.value(entity, key: key, column: column), new.value(entity, key: key, column: column))
            if !isSame { columns.insert(column) }
        }
        return columns
    }

    /// Forgets what others have saved without a merge, because the program merges now. An observer may call it within a move that is not
    /// one.
    func forgetUnmerged() {
        tracker.forgetUnmerged()
        phase.unmergedSince = nil
    }

    /// Moves to a state without a save that has failed, if a refresh during that save has moved this context to a state with it (S062).
    /// The save is the context's own, or that of a child which has passed the context.
    ///
    /// Otherwise the next save would conflict with the one that failed. What others have saved since stays in conflict with the unsaved
    /// changes. A root moves to the newest state, and so does the main context above a hidden root. Another child must not get ahead of
    /// its parent, so it only leaves out the failed save.
    func leaveWithdrawnSave() {
        let base = layerStack.baseState
        let state = base.state
        guard phase.saveGate.hasMoved, isRoot || base.route == nil, state.pendingSaves > 0, !base.isPinned, phase.closure == nil
        else { return }
        let numbers = configuration.writer.shared.withLock { $0.numbers }
        let kept = state.deferred.filter { !numbers.isWithdrawn($0.version) }
        guard kept.count < state.deferred.count else { return }
        let mayBeNewest = isRoot || configuration.decidesForParent
        let next = mayBeNewest ? configuration.writer.newestState() : state.keeping(kept)
        phase.unmergedSince = (LayeredView(base: state.base, layers: base.inherited + kept), [])
        moving { _ = move(to: next, after: nil) }
    }

    /// Acquires the snapshot of the base state, which may contain more saves of other connections than the known ones. Returns the saves
    /// with those; nil if they are unknown.
    private func changesInBase(_ known: [ChangeSet]?) -> [ChangeSet]? {
        guard configuration.writer.capabilities.contains(.externalSaves) else { return known }
        let state = layerStack.baseState.state
        state.takeBase()
        if state.base.generation <= state.committed { return known }
        guard let known, state.pendingSaves == 0, let more = configuration.writer.acquire(state) else { return nil }
        return known + more
    }

    private func values(_ entity: EntityIndex, _ key: ObjectKey, of columns: ColumnSet, in view: LayeredView) throws
        -> [ColumnIndex: Value]
    {
        var values: [ColumnIndex: Value] = [:]
        try columns.forEach { values[$0] = try view.value(entity, key: key, column: $0) }
        return values
    }

    /// Counts the changes of a save as merged, in a context whose state contains that save already. Objects that later saves have changed
    /// stay conflicts of the next save.
    func forgetUnmerged(savedWith changes: ChangeSet) {
        let below = viewBelow()
        tracker.forgetUnmerged { address in
            guard changes.contains(address) else { return false }
            if let version = trapOnStoreError({ try below.version(address.entity, address.key) }) {
                return configuration.writer.isVersion(version, of: changes.generation)
            }
            return changes.change(of: address.entity)?.deletedKeys.contains(address.key) ?? false
        }
    }

    /// Moves a parent to the state that a child has read, if that is newer (S090).
    ///
    /// The parent moves to exactly that state. In a newer state, saves that no context has read would count as known. What is recorded about
    /// a child's changes is kept with them, so that it is gone if their save fails.
    ///
    /// - Returns: The view before the move; nil if this context stays where it is.
    @discardableResult func catchUp(with push: inout ChildChanges) -> LayeredView? {
        let own = layerStack.baseState.state
        guard layerStack.baseState.route == nil else {
            advance(to: push.state)
            return nil
        }
        if push.state.sequence < own.sequence {
            noteUnmerged(below: &push)
            return nil
        }
        if push.state.sequence == own.sequence {
            guard own.pendingSaves == 0, own.storeBase !== push.state.storeBase, isRead(push.state) else { return nil }
            guard isRead(own) else {
                share(push.state)
                return nil
            }
            if own.base.generation == push.state.base.generation { return nil }
            if own.base.generation > push.state.base.generation {
                // The writer may have acquired the snapshot, with saves of other connections that no context has merged.
                let old = LayeredView(base: push.state.base, layers: layerStack.baseState.inherited + push.state.deferred)
                noteWatched(of: &push)
                noteUnmerged(
                    &push.checks, since: old, shown: push.shown, in: [push.layer], restored: push.updatesOfDeleted.restored)
                return nil
            }
        }
        let old = viewBelow()
        let counted = push.state.sequence == own.sequence ? [] : configuration.writer.changes(after: own, through: push.state)
        let settlesLater = phase.settlesBaseLater
        // Without the child's changes this context may show nothing. It must not release the snapshot that they are based on.
        phase.settlesBaseLater = true
        defer { phase.settlesBaseLater = settlesLater }
        phase.unmergedSince = (old, [])
        let isDone = move(to: push.state, after: counted)
        // An observer of the move may have moved this context to another state than the one that the child has read.
        if !isDone { catchUp(with: &push) }
        return old
    }

    /// Records the changed and watched objects of a child that reads an older state, if other saves changed them since. For changed
    /// objects, saves that this context has merged do not count: there the child's changes win (S075).
    ///
    /// If the writer no longer knows the saves, each object with another version counts, because an update must not be lost.
    private func noteUnmerged(below push: inout ChildChanges) {
        noteWatched(of: &push)
        if automaticallyMergesChanges { return }
        let start = push.decidesForParent ? push.state.sequence : max(push.state.sequence, phase.mergedThrough)
        let known = configuration.writer.changes(
            after: start, through: layerStack.baseState.state.sequence, notBy: configuration.root ?? number)
        let others = changesInBase(known).map(ChangeSet.union)
        if let others {
            if others.isEmpty { return }
            // Changes of keys may be moved to objects that the child does not know.
            let mayMoveKeys = capabilities.keyedValues.map { push.layer.entity($0) != nil } ?? false
            if !mayMoveKeys, push.checks.watched.isEmpty, push.changes.limited(to: others).entities.isEmpty { return }
        }
        let old = LayeredView(base: push.state.base, layers: push.state.deferred)
        noteUnmerged(
            &push.checks, since: old, shown: push.shown, in: [push.layer], restored: push.updatesOfDeleted.restored,
            by: others.map { [$0] })
    }

    /// Records the watched objects of a child that reads an older state, if saves have changed them since. O(watched objects).
    ///
    /// A merge of this context does not end the check, because the child's program has decided by the older state (S100). Saves of this
    /// context count too, unless the child has read their changes. Objects that the child changes are left out, because there its
    /// properties win (S075).
    func noteWatched(of push: inout ChildChanges) {
        let layer = push.layer
        let watched = push.checks.watched.filter { layer.row($0.entity, $0.key) == nil }
        if watched.isEmpty { return }
        let old = LayeredView(base: push.state.base, layers: push.state.deferred)
        let (shown, new) = (push.shown, viewBelow())
        let numbers = configuration.writer.shared.withLock { $0.numbers }
        trapOnStoreError {
            for id in watched {
                // Changes of ancestors that the child has read, and that no save contains, are no difference. Their rows have versions only
                // for the writer, which may be setting them.
                let (before, after) = try (old.version(id.entity, id.key), new.version(id.entity, id.key))
                if numbers.areSame(before, after) { continue }
                let (isShown, isThere) = try (shown.exists(id.entity, id.key), new.exists(id.entity, id.key))
                if !isShown, !isThere { continue }
                let address = ObjectAddress(entity: id.entity, key: id.key)
                var found: ColumnSet?
                if isShown != isThere {
                    found = ColumnSet(first: storedModel.entities[id.entity].columns.count)
                } else if before == nil {
                    // The child has read an insertion of an ancestor, which is saved now.
                    let columns = try differingColumns(of: address, shown, new)
                    found = columns.isEmpty ? nil : columns
                } else {
                    found = try changedColumns(
                        of: address, from: old, shown: shown, to: new, saved: push.inherited, numbers: numbers)
                }
                guard let columns = found else { continue }
                push.checks.noteOutdated(address, columns, before: try values(id.entity, id.key, of: columns, in: shown))
            }
        }
    }

    /// Takes the snapshot of a child for the same saves, before this context has read any. Nothing changes for its users.
    private func share(_ state: StoreState) {
        layerStack.baseState.state = readable(state)
        environment.lease.move(to: layerStack.baseState.state)
        layerStack.didMove(showsTheSame: true)
    }

    private func isRead(_ state: StoreState) -> Bool { (state.storeBase as? LazySnapshot).map { $0.current != nil } ?? true }

    /// Takes back unsaved changes of objects that a save has not inserted, because a merge policy dropped the insertion (S108). Call this
    /// when the save's layers are gone.
    ///
    /// O(objects that the save inserted) if there are unsaved changes, and one look-up per unsaved key if the save has keyed values.
    ///
    /// - Parameter accepted: The changes that the save has made.
    func dropUpdatesOfDropped(_ written: [Layer], _ accepted: ChangeSet) {
        guard hasUnsavedLayers else { return }
        // Changes of a key belong to the object that has the key after the save (S192).
        if let entity = capabilities.keyedValues, written.contains(where: { $0.entity(entity) != nil }) {
            settleInsertedKeys(after: nil, keepingRemovals: layerStack.baseState.isPinned)
        }
        for layer in written {
            for entity in layer.entityIndices {
                for (number, page) in layer.entity(entity)?.pages ?? [:] {
                    for slot in SlotIterator(page.touched & ~page.updated & ~page.deleted) {
                        let address = ObjectAddress(entity: entity, key: PageAddress.key(page: number, slot: slot))
                        if accepted.contains(address) { continue }
                        dropUpdate(of: address)
                    }
                }
            }
        }
    }

    private func dropUpdate(of address: ObjectAddress) {
        let (entity, key) = (address.entity, address.key)
        guard layerStack.pendingKind(entity, key) != nil, trapOnStoreError({ try !viewBelow().exists(entity, key) }) else {
            return
        }
        unseal()
        guard layerStack.top.row(entity, key)?.kind != .insert else { return }
        layerStack.top.remove(entity: entity, key: key)
        layerStack.top.forgetLinks(of: entity, key, storedModel.storeSchema)
        tracker.log.note(entity, key)
    }
}

extension ChangeSet {
    /// Whether an object is inserted, updated or deleted.
    func contains(_ address: ObjectAddress) -> Bool {
        let (number, slot) = (address.key.page, UInt64(address.key.slot))
        return change(of: address.entity)?.pages.contains {
            $0.number == number && ($0.inserted | $0.updated | $0.deleted) >> slot & 1 != 0
        } ?? false
    }
}
