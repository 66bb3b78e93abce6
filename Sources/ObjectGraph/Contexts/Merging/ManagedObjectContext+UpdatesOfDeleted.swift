import StoreInterface
import StoreModel

/// The unsaved changes that need a check against the state below them: the updated objects that are deleted in the base state, each with
/// the columns that the context changed, and deletions and insertions that may have been made there already.
///
/// The other columns of such an updated row contain the values from before the deletion.
struct UpdatesOfDeletedObjects: Sendable {
    private(set) var changed: [ObjectAddress: ColumnSet] = [:]
    /// The objects of keyed values that are or were among them, by key; of several with one key, the newest one.
    private(set) var keyed: [Value: ObjectAddress] = [:]
    /// The objects whose rows were completed while a save had taken changes of them, each with the columns that the save has not taken.
    private(set) var completions: [ObjectAddress: ColumnSet] = [:]
    /// Whether a child deletes objects that were missing in its parent when it moved.
    private(set) var hasDeletions = false
    /// The objects that an undo has inserted again. Another context may have done the same.
    private(set) var restored: Set<ObjectAddress> = []

    var isEmpty: Bool { changed.isEmpty && !hasDeletions && restored.isEmpty }

    fileprivate mutating func add(_ address: ObjectAddress, _ columns: ColumnSet) {
        changed[address, default: ColumnSet()].formUnion(columns)
    }

    /// Adds the updates of a child.
    mutating func add(_ updates: [ObjectAddress: ColumnSet]) {
        for (address, columns) in updates { add(address, columns) }
    }

    /// The restored objects alone.
    var withoutChanges: Self {
        var rest = Self()
        rest.restored = restored
        return rest
    }

    /// Records the key of a keyed value.
    mutating func note(key: Value, of address: ObjectAddress) { keyed[key] = address }

    /// Records a later change.
    mutating func note(_ entity: EntityIndex, key: ObjectKey, column: ColumnIndex) {
        changed[ObjectAddress(entity: entity, key: key)]?.insert(column)
        completions[ObjectAddress(entity: entity, key: key)]?.insert(column)
    }

    fileprivate mutating func addCompletion(_ address: ObjectAddress, _ columns: ColumnSet) { completions[address] = columns }

    /// Forgets an object that the context does not change any more.
    mutating func forget(_ address: ObjectAddress) { changed[address] = nil }

    fileprivate mutating func noteDeletion() { hasDeletions = true }

    mutating func noteRestored(_ objects: some Sequence<ObjectAddress>) { restored.formUnion(objects) }

    mutating func forgetCompletions() { completions = [:] }
}

/// Handles updates of objects that another context deletes in the meantime (S106). Such an object is not visible in this context.
/// The next save resolves it by its merge policy, as if the deletion had not been merged.
extension ManagedObjectContext {
    /// Replaces the base state.
    ///
    /// - Parameter changes: The saves of other contexts between the two states; nil if they are unknown.
    func move(to new: LayerStack.BaseState, _ changes: [ChangeSet]?) {
        let passed = phase.unmergedSince
        if passed != nil { phase.unmergedSince = nil }
        // Observers of objects may have made changes. Those of observers of notices come later, and are made over the new state.
        defer {
            if let passed {
                noteUnmerged(since: passed.view, in: layerStack.sealed + [layerStack.top], saved: passed.saved, by: nil)
            }
        }
        takeBackRepeatedPairs()
        if hasUnsavedLayers { keepUpdatesOfDeleted(movingTo: new, changes) }
        var new = new
        if let route = layerStack.baseState.route {
            route.forget(changes)
            new.route = route
        }
        setBaseState(new)
        guard hasUnsavedLayers else { return }
        settleReturned()
        if automaticallyMergesChanges || phase.isMerging { dropMovedPositions() }
        settleRestored()
        settlePairs(of: layerStack.notInFlight)
        settleInsertedKeys(after: changes, keepingRemovals: new.isPinned)
    }

    var hasUnsavedLayers: Bool { !layerStack.top.isEmpty || !layerStack.sealed.isEmpty }

    /// Copies the remaining values of updated objects that are deleted in `new` into their rows, so that a merge policy can write them
    /// again.
    ///
    /// O(pages with deletions), or O(changed objects) if the changes are unknown.
    ///
    /// - Parameter afterSave: Whether `new` contains the layers that a save has taken, so that only the others are unsaved.
    func keepUpdatesOfDeleted(movingTo new: LayerStack.BaseState, _ changes: [ChangeSet]?, afterSave: Bool = false) {
        let below =
            new.route?.base.map { LayeredView(base: $0) }
            ?? LayeredView(base: new.state.base, layers: new.inherited + new.state.deferred)
        for page in changes.map(changesOfDeleted) ?? allChanges() {
            for slot in SlotIterator(page.updated) {
                let key = PageAddress.key(page: page.number, slot: slot)
                guard layerStack.pendingKind(page.entity, key, inFlight: !afterSave) == .update,
                    trapOnStoreError({ try !below.exists(page.entity, key) })
                else { continue }
                if trapOnStoreError({ try exists(page.entity, key) }) {
                    complete(page.entity, key)
                } else if !layerStack.view.base.isFixed {
                    noteIncomplete(page.entity, key)
                }
            }
            // A root's writer leaves out such deletions itself.
            guard !isRoot, !tracker.updatesOfDeleted.hasDeletions else { continue }
            let isMissing = SlotIterator(page.deleted).contains { slot in
                let key = PageAddress.key(page: page.number, slot: slot)
                return layerStack.pendingKind(page.entity, key) == .delete
                    && trapOnStoreError { try !below.exists(page.entity, key) }
            }
            if isMissing { tracker.updatesOfDeleted.noteDeletion() }
        }
    }

    /// Takes back what ``complete(_:_:)`` has added to updates of objects that exist below again, because others have undone the deletion.
    /// Otherwise the next save would write values from before the deletion. O(updates of deleted objects).
    func settleReturned() {
        let known = tracker.updatesOfDeleted.changed
        guard !known.isEmpty, layerStack.baseState.route == nil else { return }
        let returned = known.filter { place, _ in trapOnStoreError { try exists(place.entity, place.key) } }
        guard returned.contains(where: { layerStack.pendingKind($0.key.entity, $0.key.key, inFlight: false) == .update }) else {
            return
        }
        droppingValues { takeBack(returned) }
    }

    /// Runs `body`, which removes unsaved values, and tells the observers of the properties that show others then.
    func droppingValues(_ body: () -> Void) {
        if observed.isEmpty { return body() }
        // Sealed layers do not change any more, so that the views can be compared.
        sealTop()
        let before = layerStack.view
        body()
        changingObserved { willShow(from: before, to: layerStack.view, nil) }
    }

    /// Forgets the updates of deleted objects that a save has written or a rollback dropped. Others may have made unsaved changes since.
    func forgetSettledUpdates() {
        for place in tracker.updatesOfDeleted.changed.keys where layerStack.pendingKind(place.entity, place.key) == nil {
            tracker.updatesOfDeleted.forget(place)
        }
    }

    private func takeBack(_ completed: [ObjectAddress: ColumnSet]) {
        unseal()
        for (place, changed) in completed {
            let (entity, key) = (place.entity, place.key)
            guard let row = layerStack.top.row(entity, key), row.kind == .update else { continue }
            let rest = row.copy(layer: layerStack.top.id)
            // A changed row of a keyed value keeps its key.
            row.set.forEach { column in
                if !changed.contains(column), entity != capabilities.keyedValues || column != KeyedColumn.key {
                    rest.clear(column)
                }
            }
            if rest.set.isEmpty {
                layerStack.top.remove(entity: entity, key: key)
            } else {
                layerStack.top.put(rest, entity: entity, key: key)
            }
            // A running save has the whole row, and may give it back.
            if !layerStack.taken.contains(where: { $0.row(entity, key) != nil }) { tracker.updatesOfDeleted.forget(place) }
            tracker.log.note(entity, key)
            tracker.listEnds.removeAll()
            guard let object = registry.object(entity, key) else { continue }
            object.row = newestOwnRow(entity, key)
            object.isDeletedHere = false
        }
    }

    /// Makes the unsaved insertions of objects that exist below updates of these objects. An undo has brought such an object back here, and
    /// others have saved it again (S162). Without this, a deletion would only take the insertion back. O(objects that undos have restored).
    func settleRestored() {
        let restored = tracker.updatesOfDeleted.restored
        guard !restored.isEmpty, layerStack.baseState.route == nil else { return }
        let own = layerStack.notInFlight
        let below = Array(layerStack.view.layers.dropFirst(own.count))
        let view = LayeredView(base: layerStack.view.base, layers: below)
        let existing = restored.filter { place in
            let oldest = own.lazy.compactMap { $0.row(place.entity, place.key) }.first
            return oldest?.kind == .insert && trapOnStoreError { try view.exists(place.entity, place.key) }
        }
        guard !existing.isEmpty else { return }
        unseal()
        for place in existing {
            if let row = layerStack.top.row(place.entity, place.key), row.kind == .insert {
                layerStack.top.replace(row, by: .update, entity: place.entity, key: place.key)
            }
            removeRedundantColumns(place, below)
            tracker.log.note(place.entity, place.key)
            guard let object = registry.object(place.entity, place.key), newestOwnRow(place.entity, place.key) == nil else {
                continue
            }
            object.row = nil
            object.isDeletedHere = false
        }
    }

    /// The unsaved updates and deletions of one page, by slot.
    private struct ChangedPage {
        var entity: EntityIndex
        var number: PageNumber
        var updated: UInt64
        var deleted: UInt64
    }

    /// Returns the unsaved changes of objects that saves have deleted.
    private func changesOfDeleted(_ changes: [ChangeSet]) -> [ChangedPage] {
        changes.flatMap(\.entities).flatMap { change in
            change.pages.compactMap { page in
                guard page.deleted != 0 else { return nil }
                var own = ChangedPage(entity: change.entity, number: page.number, updated: 0, deleted: 0)
                for layer in layerStack.sealed + [layerStack.top] {
                    guard let known = layer.entity(change.entity)?.page(page.number) else { continue }
                    own.updated |= known.updated & page.deleted
                    own.deleted |= known.deleted & page.deleted
                }
                return own
            }
        }
    }

    private func allChanges() -> [ChangedPage] {
        (layerStack.sealed + [layerStack.top]).flatMap { layer in
            layer.entityIndices.flatMap { entity in
                (layer.entity(entity)?.pages ?? [:]).map {
                    ChangedPage(entity: entity, number: $0, updated: $1.updated, deleted: $1.deleted)
                }
            }
        }
    }

    /// Takes back what ``complete(_:_:)`` added during a save that succeeded: the save has written or dropped the changes.
    func dropCompletions() {
        let completions = tracker.updatesOfDeleted.completions
        guard !completions.isEmpty else { return }
        tracker.updatesOfDeleted.forgetCompletions()
        unseal()
        for (address, own) in completions {
            let (entity, key) = (address.entity, address.key)
            guard let completed = layerStack.top.row(entity, key), completed.kind == .update else { continue }
            let exists = trapOnStoreError { try self.exists(entity, key) }
            if !exists, !own.isEmpty { continue }
            tracker.updatesOfDeleted.forget(address)
            if own.isEmpty {
                layerStack.top.remove(entity: entity, key: key)
            } else {
                let row = completed.copy(layer: layerStack.top.id)
                completed.set.forEach { if !own.contains($0) { row.clear($0) } }
                layerStack.top.put(row, entity: entity, key: key)
            }
            guard let object = registry.object(entity, key) else { continue }
            object.row = newestOwnRow(entity, key)
            object.isDeletedHere = !exists
        }
    }

    /// Records an update whose row cannot be completed, because a suspension has released the other values.
    private func noteIncomplete(_ entity: EntityIndex, _ key: ObjectKey) {
        let place = ObjectAddress(entity: entity, key: key)
        guard tracker.updatesOfDeleted.changed[place] == nil else { return }
        var changed = ColumnSet()
        for layer in layerStack.sealed + [layerStack.top] { if let row = layer.row(entity, key) { changed.formUnion(row.set) } }
        tracker.updatesOfDeleted.add(place, changed)
        noteKey(of: place)
    }

    private func noteKey(of place: ObjectAddress) {
        guard place.entity == capabilities.keyedValues, let row = newestOwnRow(place.entity, place.key) else { return }
        tracker.updatesOfDeleted.note(key: row[KeyedColumn.key], of: place)
    }

    private func complete(_ entity: EntityIndex, _ key: ObjectKey) {
        let place = ObjectAddress(entity: entity, key: key)
        if layerStack.hasTakenLayers, tracker.updatesOfDeleted.completions[place] == nil {
            var own = ColumnSet()
            for layer in layerStack.notInFlight { if let row = layer.row(entity, key) { own.formUnion(row.set) } }
            tracker.updatesOfDeleted.addCompletion(place, own)
        }
        let row = makeWritableRow(entity, key)
        if tracker.updatesOfDeleted.changed[place] == nil {
            var changed = row.set
            for layer in layerStack.sealed { if let older = layer.row(entity, key) { changed.formUnion(older.set) } }
            tracker.updatesOfDeleted.add(place, changed)
        }
        for column in row.columnIndices where !row.isSet(column) {
            row[column] = readBelow(entity, key: key, column: column) ?? .null
            layerStack.top.didSet(column, of: row, entity: entity, key: key)
        }
        noteKey(of: place)
        guard let object = registry.object(entity, key) else { return }
        object.row = row
        registry.retain(object)
    }

    // MARK: In a hidden root

    /// Drops the updates of deleted objects that this main context has saved to its root, if the merge policy refuses them. Programs do
    /// not see that root, and such an update would fail each later save through to the store. Does not wait.
    ///
    /// Updates of objects whose deletion this context has not merged stay, because the program does not know of the deletion.
    func dropUpdatesInHiddenRoot() {
        guard configuration.decidesForParent, !layerStack.baseState.inherited.isEmpty, phase.closure == nil,
            let own = contextExecutor
        else { return }
        let state = layerStack.baseState.state
        configuration.parent?.contextExecutor?.enqueue { parent in
            // A running save has taken these updates, and gives them back if it fails.
            parent.whenIdle {
                let hasDropped = parent.dropRefusedUpdates(ofDeletedIn: state)
                parent.endSave()
                guard hasDropped else { return }
                // The partners that the dropped objects had taken from others are those of the others again.
                let new = parent.sealedBaseForChild()
                own.enqueue { main in
                    // A later state would contain saves that main has not merged.
                    let isMerged = new.baseState.state.sequence <= main.layerStack.baseState.state.sequence
                    if isMerged, main.phase.closure == nil, !main.phase.isSuspended { main.moveToParent(new, changes: nil) }
                }
            }
        }
    }

    /// Returns whether there were such updates.
    private func dropRefusedUpdates(ofDeletedIn state: StoreState) -> Bool {
        // The end of a suspension moves this context. An earlier read would open the file again.
        guard case .error = mergePolicy, phase.closure == nil, !phase.isSuspended else { return false }
        let refused = tracker.updatesOfDeleted.changed.keys.filter { place in
            (try? exists(place.entity, place.key)) == false && (try? state.view.exists(place.entity, place.key)) == false
        }
        withoutUndo {
            for place in refused { dropChanges(of: place, gone: []) }
        }
        return !refused.isEmpty
    }
}

extension Layer {
    /// Replaces a row of this layer by one with the same values and another kind. Returns the new row.
    @discardableResult
    func replace(_ row: Row, by kind: RowKind, entity: EntityIndex, key: ObjectKey) -> Row {
        let new = row.copy(layer: id)
        new.kind = kind
        remove(entity: entity, key: key)
        put(new, entity: entity, key: key)
        return new
    }
}
