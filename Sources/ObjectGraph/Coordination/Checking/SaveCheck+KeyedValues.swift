import StoreInterface
import StoreModel

/// Conflicts of keyed collections (S192): two contexts that write one key conflict on its value, also if both have inserted the key.
extension SaveCheck {
    /// Applies each change of a key that belongs to another object now to that object, as a conflict. One look-up per inserted key.
    mutating func settleKeys() throws {
        guard let entity = keyedValues else { return }
        let current = state.view
        try dropReplacedUpdates(of: entity, current)
        for change in try current.movedKeys(of: folded, entity) where !movedKeys.contains(change.from) {
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

    /// Drops updates of entries that others have removed and whose keys this save sets anew: in a child of the context with the update, or
    /// during a save of the update that failed. Otherwise a policy would write the older value again, as a second entry with the key (S192).
    private mutating func dropReplacedUpdates(of entity: EntityIndex, _ current: LayeredView) throws {
        guard request.mayUpdateDeleted else { return }
        var inserted: Set<Value> = []
        folded.forEachRow(of: entity, \.inserted) { _, row in inserted.insert(row[KeyedColumn.key]) }
        guard !inserted.isEmpty else { return }
        var replaced: [ObjectKey] = []
        try folded.forEachRow(of: entity, \.updated) { key, row in
            guard row.isSet(KeyedColumn.key), inserted.contains(row[KeyedColumn.key]) else { return }
            if try !current.exists(entity, key) { replaced.append(key) }
        }
        for key in replaced {
            movedKeys.insert(key)
            writable().remove(entity: entity, key: key)
        }
    }

    /// The entity of keyed values.
    var keyedValues: EntityIndex? { writer.store.schema.keyedValues }

    /// Returns the name of an object in conflicts: its entity's, or the collection with the key and the form of its values.
    func nameInConflict(_ row: Row?, entity: EntityIndex, key: ObjectKey) throws -> (name: String, form: ValueForm?) {
        guard entity == keyedValues else { return (writer.store.schema.entities[entity].name, nil) }
        let value =
            try row.flatMap { $0.isSet(KeyedColumn.key) ? $0[KeyedColumn.key] : nil }
            ?? state.view.value(entity, key: key, column: KeyedColumn.key)
            ?? request.base.view.value(entity, key: key, column: KeyedColumn.key)
        guard case .data(let bytes) = value else { return (EntitySchema.keyedValues.name, nil) }
        return (KeyedColumn.text(bytes), try state.view.keyedForm(entity, key: bytes))
    }
}
