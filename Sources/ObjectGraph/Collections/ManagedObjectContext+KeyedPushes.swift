import StoreInterface

/// Keys that a child and its parent, or two children, have inserted without knowing of each other.
extension ManagedObjectContext {
    /// Returns a child's changes with each key moved to the object that has the key in this context (S075).
    ///
    /// - Parameter pushed: Layers that are saved before this push, newest first.
    func settledKeys(_ push: ChildChanges, after pushed: [Layer] = []) -> ChildChanges {
        guard let entity = traits.keyedValues, push.layer.entity(entity) != nil else { return push }
        let view = LayeredView(base: layerStack.view.base, layers: pushed + layerStack.view.layers)
        guard let layer = trapOnStoreError({ try view.movingKeys(of: push.layer, entity) }) else { return push }
        layer.seal()
        var settled = push
        settled.layer = layer
        settled.changes = layer.changeSet(origin: push.origin)
        return settled
    }
}

extension LayeredView {
    /// A changed keyed value whose key belongs to another object in this view.
    struct MovedKey {
        var row: Row
        var from: ObjectKey
        var to: ObjectKey
    }

    /// Returns the changes of a layer whose key belongs to another object in this view: both sides have inserted the key, or it was removed
    /// and inserted again here. One look-up per inserted key, and one per changed object that is not here.
    func movedKeys(of layer: Layer, _ entity: Int) throws -> [MovedKey] {
        guard let changes = layer.entity(entity) else { return [] }
        var moved: [MovedKey] = []
        for number in changes.sortedPageNumbers {
            guard let page = changes.page(number) else { continue }
            for slot in SlotIterator(page.touched) {
                let object = PageAddress.key(page: number, slot: slot)
                guard let row = page[slot], row.isSet(KeyedColumn.key), case .data(let key) = row[KeyedColumn.key],
                    try row.kind == .insert || !exists(entity, object), let holder = try keyedObject(entity, key),
                    holder != object, layer.row(entity, holder) == nil
                else { continue }
                moved.append(MovedKey(row: row, from: object, to: holder))
            }
        }
        return moved
    }

    fileprivate func movingKeys(of layer: Layer, _ entity: Int) throws -> Layer? {
        let moved = try movedKeys(of: layer, entity)
        guard !moved.isEmpty else { return nil }
        let copy = Layer(copying: layer)
        for change in moved { copy.move(change, entity) }
        return copy
    }
}

extension Layer {
    /// Applies a change to the object that has the key now. Returns the row of that object.
    @discardableResult
    func move(_ change: LayeredView.MovedKey, _ entity: Int) -> Row {
        let row = change.row.copy(layer: id)
        row.kind = change.row.kind == .delete ? .delete : .update
        remove(entity: entity, key: change.from)
        put(row, entity: entity, key: change.to)
        return row
    }
}
