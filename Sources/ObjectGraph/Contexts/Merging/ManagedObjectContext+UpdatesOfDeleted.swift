import StoreInterface

/// The updated objects that are deleted in the base state, each with the columns that the context changed.
///
/// The other columns of such a row contain the values from before the deletion.
struct UpdatesOfDeletedObjects: Sendable {
    private(set) var changed: [ObjectAddress: ColumnSet] = [:]

    var isEmpty: Bool { changed.isEmpty }

    fileprivate mutating func add(_ address: ObjectAddress, _ columns: ColumnSet) {
        changed[address, default: ColumnSet()].formUnion(columns)
    }

    /// Records a later change.
    mutating func note(_ entity: Int, _ key: ObjectKey, _ column: Int) {
        changed[ObjectAddress(entity: entity, key: key)]?.insert(column)
    }
}

/// Handles updates of objects that another context deletes in the meantime (S106). Such an object is not visible in this context.
/// The next save resolves it by its merge policy, as if the deletion had not been merged.
extension ManagedObjectContext {
    /// Replaces the base state.
    ///
    /// - Parameter changes: The saves of other contexts between the two states; nil if they are unknown.
    func move(to new: LayerStack.BaseState, _ changes: [ChangeSet]?) {
        if hasUnsavedLayers { keepOrphans(movingTo: new, changes) }
        var new = new
        if let route = layerStack.baseState.route {
            route.forget(changes)
            new.route = route
        }
        setBaseState(new)
        if hasUnsavedLayers { settlePairs(of: layerStack.notInFlight) }
    }

    var hasUnsavedLayers: Bool { !layerStack.top.isEmpty || !layerStack.sealed.isEmpty }

    /// Copies the remaining values of updated objects that are deleted in `new` into their rows, so that a merge policy can write them
    /// again.
    ///
    /// O(pages with deletions), or O(updated objects) if the changes are unknown.
    private func keepOrphans(movingTo new: LayerStack.BaseState, _ changes: [ChangeSet]?) {
        let below =
            new.route?.base.map { LayeredView(base: $0) }
            ?? LayeredView(base: new.state.base, layers: new.inherited + new.state.deferred)
        for place in changes.map(updatesOfDeleted) ?? allUpdates() {
            for slot in SlotIterator(place.mask) {
                let key = PageAddress.key(page: place.number, slot: slot)
                guard layerStack.pendingKind(place.entity, key) == .update,
                    trapOnStoreError({ try exists(place.entity, key) && !below.exists(place.entity, key) })
                else { continue }
                complete(place.entity, key)
            }
        }
    }

    private struct UpdatedPage {
        var entity: Int
        var number: UInt64
        var mask: UInt64
    }

    private func updatesOfDeleted(_ changes: [ChangeSet]) -> [UpdatedPage] {
        changes.flatMap(\.entities).flatMap { change in
            change.pages.compactMap { page in
                guard page.deleted != 0 else { return nil }
                let own = (layerStack.sealed + [layerStack.top]).reduce(0 as UInt64) { mask, layer in
                    mask | (layer.entity(change.entity)?.page(page.number)?.updated ?? 0)
                }
                return UpdatedPage(entity: change.entity, number: page.number, mask: own & page.deleted)
            }
        }
    }

    private func allUpdates() -> [UpdatedPage] {
        (layerStack.sealed + [layerStack.top]).flatMap { layer in
            (0..<layer.entityCount).flatMap { entity in
                (layer.entity(entity)?.pages ?? [:]).map { UpdatedPage(entity: entity, number: $0, mask: $1.updated) }
            }
        }
    }

    private func complete(_ entity: Int, _ key: ObjectKey) {
        let row = makeWritableRow(entity, key)
        let place = ObjectAddress(entity: entity, key: key)
        if tracker.updatesOfDeleted.changed[place] == nil {
            var changed = row.set
            for layer in layerStack.sealed { if let older = layer.row(entity, key) { changed.formUnion(older.set) } }
            tracker.updatesOfDeleted.add(place, changed)
        }
        for column in 0..<row.columnCount where !row.isSet(column) {
            row[column] = readBelow(entity, key, column) ?? .null
            layerStack.top.didSet(column, of: row, entity: entity, key: key)
        }
        guard let object = registry.object(entity, key) else { return }
        object.row = row
        registry.retain(object)
    }
}
