import StoreInterface
import StoreModel

/// Conflicts of keyed collections (S192): two contexts that write one key conflict on its value, also if both have inserted the key.
extension SaveCheck {
    /// Applies each change of a key that belongs to another object now to that object, as a conflict. One look-up per inserted key.
    mutating func settleKeys() throws {
        guard let entity = keyedValues else { return }
        let current = state.view
        for change in try current.movedKeys(of: folded, entity) {
            movedKeys.insert(change.from)
            let row = writable().move(change, entity)
            guard let collection = change.collection else {
                try resolve(row, entity: entity, key: change.to, isInStore: true)
                continue
            }
            // Both contexts have recorded the types of one collection. If this save sets no entry of it, the other record stays.
            writable().remove(entity: entity, key: change.to)
            guard row.kind == .delete || folded.hasEntries(entity, of: collection) else { continue }
            guard case .data(let ours) = row[KeyedColumn.value], let types = CollectionTypes(bytes: ours),
                case .data(let theirs) = try current.value(entity, key: change.to, column: KeyedColumn.value)
            else { continue }
            try types.check(theirs, collection)
        }
    }

    /// The entity of keyed values.
    var keyedValues: EntityIndex? { writer.store.schema.keyedValues }

    /// Returns the name of an object in conflicts: its entity's, or the collection with the key.
    func nameInConflict(_ row: Row?, entity: EntityIndex, key: ObjectKey) throws -> String {
        guard entity == keyedValues else { return writer.store.schema.entities[entity].name }
        let value =
            try row.flatMap { $0.isSet(KeyedColumn.key) ? $0[KeyedColumn.key] : nil }
            ?? state.view.value(entity, key: key, column: KeyedColumn.key)
            ?? request.base.view.value(entity, key: key, column: KeyedColumn.key)
        guard case .data(let bytes) = value else { return EntitySchema.keyedValues.name }
        return KeyedColumn.text(bytes)
    }
}
