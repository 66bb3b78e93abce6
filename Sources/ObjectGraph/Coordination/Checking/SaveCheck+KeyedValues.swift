import StoreInterface
import StoreModel

/// Conflicts of keyed collections (S192): two contexts that write one key conflict on its value, also if both have inserted the key.
extension SaveCheck {
    /// Applies each change of a key that belongs to another object now to that object, as a conflict. One look-up per inserted key.
    mutating func settleKeys() throws {
        guard let entity = keyedValues else { return }
        let current = state.view
        try dropReplacedUpdates(of: entity, current)
        try joinReplacements(of: entity, current)
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

    /// Makes one update of an entry from its removal and an insertion of its key, if others have changed the entry. A child sets a key that
    /// its parent has removed under a new object. A policy that keeps the removed entry would leave two entries with the key (S109, S192).
    ///
    /// Records of types stay apart, because a record with other types is no renaming. O(inserted and removed entries).
    private mutating func joinReplacements(of entity: EntityIndex, _ current: LayeredView) throws {
        let folded = folded
        guard folded.mayDelete else { return }
        var inserted: [Value: ObjectKey] = [:]
        folded.forEachRow(of: entity, \.inserted) { object, row in
            if KeyedColumn.collection(of: row) == nil { inserted[row[KeyedColumn.key]] = object }
        }
        guard !inserted.isEmpty else { return }
        var replaced: [LayeredView.MovedKey] = []
        try folded.forEachRow(of: entity, \.deleted) { object, row in
            let key =
                try row.isSet(KeyedColumn.key)
                ? row[KeyedColumn.key] : current.value(entity, key: object, column: KeyedColumn.key)
            guard let key, let other = inserted[key], let new = folded.row(entity, other) else { return }
            replaced.append(LayeredView.MovedKey(row: new, from: other, to: object))
        }
        for change in replaced {
            let place = ObjectAddress(entity: entity, key: change.to)
            guard request.settled[place] == nil, let theirs = try current.version(entity, change.to) else { continue }
            let isKnown = request.checks.unmerged[place] == nil
            // Without a conflict, the removal and the insertion are written as they are.
            guard try !isKnown || hasChanged(entity, key: change.to, base: request.base.view, theirs: theirs) else { continue }
            movedKeys.insert(change.from)
            movedKeys.insert(change.to)
            let row = writable().move(change, entity)
            try resolve(row, entity: entity, key: change.to, isInStore: true)
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
        let types = try state.view.keyedTypes(entity, key: bytes) ?? request.base.view.keyedTypes(entity, key: bytes)
        return (KeyedColumn.text(bytes, keyType: types?.key), types?.valueForm)
    }
}
