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

    /// Records the changed and watched objects that other saves changed between two base states of this context.
    ///
    /// O(changed objects) if the layers have changes; most of them are compared by their versions only.
    ///
    /// - Parameters:
    ///   - old: The view below the layers before the move.
    ///   - layers: The unsaved changes that were made over it.
    ///   - saved: The layers of this context in the view that the new state contains as saved.
    ///   - changes: The saves of other contexts between the two states; nil if they are unknown.
    func noteUnmerged(since old: LayeredView, in layers: [Layer], saved: [Layer] = [], by changes: [ChangeSet]?) {
        if automaticallyMergesChanges || layerStack.baseState.route != nil { return }
        let state = layerStack.baseState.state
        state.takeBase()
        // A snapshot that is acquired now may contain more saves of other connections than the known ones.
        let changes = state.base.generation > state.committed ? nil : changes
        if changes?.isEmpty == true { return }
        let new = viewBelow()
        let numbers = setup.writer.shared.withLock { $0.numbers }
        func note(_ entity: Int, _ key: ObjectKey) throws {
            let address = ObjectAddress(entity: entity, key: key)
            if let changes, !changes.contains(where: { $0.contains(address) }) { return }
            let (before, after) = try (old.version(entity, key), new.version(entity, key))
            guard let before, let after else {
                if (before == nil) != (after == nil) {
                    tracker.checks.note(address, ColumnSet(first: storedModel.entities[entity].columns.count))
                }
                return
            }
            let isSavedHere = saved.contains { $0.row(entity, key) != nil }
            if !isSavedHere, numbers.areSame(before, after) { return }
            let derived = traits.derived.isEmpty ? ColumnSet() : traits.derived[entity]
            var columns = ColumnSet()
            for column in storedModel.entities[entity].columns.indices where !derived.contains(column) {
                if try old.value(entity, key: key, column: column) != new.value(entity, key: key, column: column) {
                    columns.insert(column)
                }
            }
            if columns.isEmpty, isSavedHere || !derived.isEmpty { return }
            tracker.checks.note(address, columns)
        }
        trapOnStoreError {
            for layer in layers {
                for entity in 0..<layer.entityCount {
                    for (number, page) in layer.entity(entity)?.pages ?? [:] {
                        for slot in SlotIterator(page.updated | page.deleted) {
                            try note(entity, PageAddress.key(page: number, slot: slot))
                        }
                    }
                }
            }
            for id in tracker.checks.watched { try note(id.entity, id.key) }
        }
    }

    /// Moves a parent to the state that a child has read, if that is newer (S090).
    ///
    /// The parent moves to exactly that state. In a newer state, saves that no context has read would count as known.
    ///
    /// - Parameter layers: Changes of other children that are saved together with the child's.
    func catchUp(with push: ChildChanges, over layers: [Layer] = []) {
        let own = layerStack.baseState.state
        guard layerStack.baseState.route == nil else { return advance(to: push.state) }
        if push.state.sequence < own.sequence { return }
        if push.state.sequence == own.sequence {
            guard own.pendingSaves == 0, own.storeBase !== push.state.storeBase, isRead(push.state) else { return }
            if !isRead(own) { return share(push.state) }
            if own.base.generation == push.state.base.generation { return }
            if own.base.generation > push.state.base.generation {
                // The writer may have acquired the snapshot, with saves of other connections that no context has merged.
                let old = LayeredView(base: push.state.base, layers: layerStack.baseState.inherited)
                return noteUnmerged(since: old, in: [push.layer], by: nil)
            }
        }
        let old = viewBelow()
        let counted = push.state.sequence == own.sequence ? [] : setup.writer.changes(after: own, through: push.state)
        let settlesLater = phase.settlesBaseLater
        // Without the child's changes this context may show nothing. It must not release the snapshot that they are based on.
        phase.settlesBaseLater = true
        defer { phase.settlesBaseLater = settlesLater }
        move(to: push.state, after: counted)
        noteUnmerged(since: old, in: layerStack.sealed + [layerStack.top] + layers, by: nil)
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
    /// O(objects that the save inserted) if there are unsaved changes.
    ///
    /// - Parameter accepted: The changes that the save has made.
    func dropUpdatesOfDropped(_ written: [Layer], _ accepted: ChangeSet) {
        guard hasUnsavedLayers else { return }
        for layer in written {
            for entity in 0..<layer.entityCount {
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
        let (number, slot) = (PageAddress.page(of: address.key), UInt64(PageAddress.slot(of: address.key)))
        return change(of: address.entity)?.pages.contains {
            $0.number == number && ($0.inserted | $0.updated | $0.deleted) >> slot & 1 != 0
        } ?? false
    }
}
