import StoreInterface
import StoreModel

/// Checks one save against the state that it follows: versions (S100 … S106), unique values, relationships (S050 … S052). The
/// result is the layer to write.
///
/// Runs on the writer's queue. If the state has changed since the context read it, the cost is O(changed objects). Otherwise it is
/// O(objects with a changed unique attribute).
struct SaveCheck {
    let request: SaveRequest
    let state: StoreState
    let writer: StoreWriter
    private var conflicts: [MergeConflict] = []
    /// The conflicts for a custom policy, which resolves all of them in one call.
    var contested: [Contested] = []
    /// For a preview, every conflict, even if the policy resolves it.
    private(set) var met: [MergeConflict] = []
    /// The changed copy of the request's layers; nil until a policy changes what is written.
    private var resolved: Layer?
    /// The columns that a policy wrote from the base in order to write a whole object. The save itself did not set them.
    var restored: [ObjectAddress: ColumnSet] = [:]
    /// The ends of pairs whose values the check has given up. They are not written again.
    var lost: [ObjectAddress: ColumnSet] = [:]
    /// The rows that the context completed after a deletion which others have undone since. The layer has its own changes of them only.
    private(set) var completed: [ObjectAddress: Row] = [:]
    /// The objects deleted in the store whose changes a custom policy drops.
    var abandoned: Set<ObjectAddress> = []
    /// The keyed values whose versions are not compared: their changes were moved to other objects with the same keys, are replaced by
    /// these, or were joined with these and have been checked.
    var movedKeys: Set<ObjectKey> = []
    /// The objects that the context deleted and that a policy keeps.
    var kept: [ObjectAddress] = []
    /// The changes that the check has added to the save.
    var added = AddedChanges()
    let folded: Layer
    let numbers: CommittedNumbers
    /// The layer to write, as far as it has been checked.
    var layer: Layer { resolved ?? folded }
    /// Whether ``layer`` differs from what the request asked to write.
    var isChanged: Bool { resolved != nil }

    init(request: SaveRequest, state: StoreState, writer: StoreWriter) {
        self.request = request
        self.state = state
        self.writer = writer
        restored = request.settled
        numbers = writer.shared.withLock { $0.numbers }
        let layers = request.layers
        folded = layers.count == 1 ? layers[0] : Layer.folding(layers, schema: writer.store.schema)
    }

    /// Returns the layer to write, without its version. Throws ``SaveError``.
    mutating func resolvedLayer() throws -> Layer {
        forgetDerivedValues()
        if folded.mayRepeatPairs { try forgetRepeatedPairs() }
        let hasChanged =
            request.base.sequence != state.sequence || request.mayUpdateDeleted || !request.checks.unmerged.isEmpty
            || !request.checks.outdated.isEmpty
        if hasChanged {
            try settleKeys()
            try checkRestored()
            try checkVersions()
            try checkWatched()
            if case .custom(let resolve) = request.policy { conflicts = try settleContested(resolve) }
            if !conflicts.isEmpty { throw SaveError.conflicts(conflicts) }
            if !kept.isEmpty { try keepConsequences() }
        }
        try settleTypes(hasChanged: hasChanged)
        try checkUnique()
        // Changes of relationships may free unique values or bring them back.
        while try settleRelationships() { try checkUnique() }
        if layer.mayDelete { try unlinkDeleted() }
        try checkValues()
        try deriveValues()
        return layer
    }

    // MARK: Versions

    /// Turns each insertion of an object that exists into an update: another context has undone its deletion too.
    private mutating func checkRestored() throws {
        for place in request.restored {
            guard let row = folded.row(place.entity, place.key), row.kind == .insert,
                let theirs = try state.view.version(place.entity, place.key)
            else { continue }
            let update = writable().replace(row, by: .update, entity: place.entity, key: place.key)
            let isKnown = request.checks.unmerged[place] == nil
            if try !isKnown || hasChanged(place.entity, key: place.key, base: request.base.view, theirs: theirs) {
                try resolve(update, entity: place.entity, key: place.key, isInStore: true)
            }
        }
    }

    private mutating func checkVersions() throws {
        let base = request.base.view
        let current = state.view
        for entity in folded.entityIndices {
            guard let changes = folded.entity(entity) else { continue }
            for number in changes.sortedPageNumbers {
                guard let page = changes.page(number) else { continue }
                for slot in SlotIterator(page.updated | page.deleted) {
                    guard let row = page[slot] else { continue }
                    let key = PageAddress.key(page: number, slot: slot)
                    if !movedKeys.isEmpty, movedKeys.contains(key), entity == keyedValues { continue }
                    if !request.settled.isEmpty, request.settled[.init(entity: entity, key: key)] != nil { continue }
                    let theirs = try current.version(entity, key)
                    let isUpdateOfDeleted = theirs == nil && row.kind == .update
                    let isKnown = request.checks.unmerged[.init(entity: entity, key: key)] == nil
                    guard try isUpdateOfDeleted || !isKnown || hasChanged(entity, key: key, base: base, theirs: theirs) else {
                        continue
                    }
                    if settlePosition(row, entity: entity, key: key, isInStore: theirs != nil) { continue }
                    guard let own = try ownChanges(of: row, entity: entity, key: key, isInStore: theirs != nil) else { continue }
                    try resolve(own, entity: entity, key: key, isInStore: theirs != nil)
                }
            }
        }
    }

    /// Returns the changes of an object to check; nil if there are none.
    ///
    /// If others have undone a deletion after which the context completed the row, only the properties that the context has changed are
    /// returned. The other properties have values from before the deletion (S103).
    private mutating func ownChanges(of row: Row, entity: EntityIndex, key: ObjectKey, isInStore: Bool) throws -> Row? {
        let place = ObjectAddress(entity: entity, key: key)
        guard isInStore, row.kind == .update, let changed = request.changedOfDeleted[place],
            try !request.base.view.exists(entity, key)
        else { return row }
        completed[place] = row
        let isKeyed = entity == keyedValues
        let layer = writable()
        let own = row.copy(layer: layer.id)
        row.set.forEach { column in
            if !changed.contains(column), !isKeyed || column != KeyedColumn.key { own.clear(column) }
        }
        if own.set.isEmpty || isKeyed && !own.isSet(KeyedColumn.value) {
            layer.remove(entity: entity, key: key)
            return nil
        }
        layer.put(own, entity: entity, key: key)
        return own
    }

    private mutating func checkWatched() throws {
        let base = request.base.view
        let current = state.view
        for id in request.checks.watched where folded.row(id.entity, id.key) == nil {
            let theirs = try current.version(id.entity, id.key)
            let place = ObjectAddress(entity: id.entity, key: id.key)
            let isKnown = request.checks.unmerged[place] == nil && request.checks.outdated[place] == nil
            guard try !isKnown || hasChanged(id.entity, key: id.key, base: base, theirs: theirs) else { continue }
            let found = try conflict(nil, entity: id.entity, key: id.key, isInStore: theirs != nil)
            if request.isPreview { met.append(found) }
            switch request.policy {
            case .error: conflicts.append(found)
            case .custom:
                contested.append(Contested(conflict: found, row: nil, isInStore: theirs != nil, place: place))
            // The context has no change of the object that could be kept or dropped.
            case .storeTrump, .objectTrump, .overwrite, .rollback: break
            }
        }
    }

    mutating func resolve(_ row: Row, entity: EntityIndex, key: ObjectKey, isInStore: Bool) throws {
        if request.isPreview, row.kind != .delete || isInStore {
            met.append(try conflict(row, entity: entity, key: key, isInStore: isInStore))
        }
        try apply(request.policy, to: row, entity: entity, key: key, isInStore: isInStore)
    }

    /// Resolves the conflict of one object by a policy.
    mutating func apply(_ policy: MergePolicy, to row: Row, entity: EntityIndex, key: ObjectKey, isInStore: Bool) throws {
        if !isInStore, row.kind == .update, try !request.base.view.exists(entity, key), row.set.count < row.columnCount {
            // Either the parent that inserted the object has rolled back, and there is nothing to update; or the object was deleted, and a
            // suspension has released its other values. No policy can write those again, but the update is a conflict.
            let isOfDeleted = request.changedOfDeleted[.init(entity: entity, key: key)] != nil
            switch policy {
            case .error where isOfDeleted, .custom where isOfDeleted: break
            default: return writable().remove(entity: entity, key: key)
            }
        }
        if !isInStore, isOnlyRelated(row, entity: entity, key: key) { return writable().remove(entity: entity, key: key) }
        switch (policy, row.kind, isInStore) {
        case (_, .delete, false):
            writable().remove(entity: entity, key: key)
        case (.error, _, _):
            conflicts.append(try conflict(row, entity: entity, key: key, isInStore: isInStore))
        case (.custom, _, _):
            contested.append(
                Contested(
                    conflict: try conflict(row, entity: entity, key: key, isInStore: isInStore), row: row, isInStore: isInStore,
                    place: .init(entity: entity, key: key)))
        case (.rollback, _, _), (.storeTrump, .delete, _), (.storeTrump, _, false):
            writable().remove(entity: entity, key: key)
            if row.kind == .delete { kept.append(.init(entity: entity, key: key)) }
        case (.objectTrump, .delete, _), (.overwrite, .delete, _):
            break
        case (.storeTrump, _, true):
            try keepUncontested(row, entity: entity, key: key)
        case (.objectTrump, _, true):
            try keepPositionsInStore(row, entity: entity, key: key)
        case (.objectTrump, _, false):
            noteWrittenAgain(.init(entity: entity, key: key), row: row)
            try putWhole(row, entity: entity, key: key, kind: .insert)
        case (.overwrite, _, _):
            let whole = completed[.init(entity: entity, key: key)] ?? row
            try putWhole(whole, entity: entity, key: key, kind: isInStore ? .update : .insert)
            if !isInStore {
                noteWrittenAgain(.init(entity: entity, key: key), row: row, whole: layer.row(entity, key))
            }
        }
    }

    /// Drops our value of each property that the store also changed.
    private mutating func keepUncontested(_ row: Row, entity: EntityIndex, key: ObjectKey) throws {
        let layer = writable()
        let ours = row.copy(layer: layer.id)
        let unseen = request.checks.unmerged[.init(entity: entity, key: key)]?.columns
        try row.set.forEach { column in
            let isUnseen = unseen?.contains(column) ?? false
            if try isUnseen || hasStoreChanged(column, entity: entity, key: key) { ours.clear(column) }
        }
        for reference in request.rules.ordered[entity] {
            let isMoved = row.isSet(reference.column)
            let isUnseen = unseen?.contains(reference.column) ?? false
            if try isUnseen || hasStoreChanged(reference.column, entity: entity, key: key) {
                ours.clear(reference.position)
            } else if isMoved, row.isSet(reference.position) {
                ours[reference.position] = row[reference.position]
            }
        }
        // The key of a keyed value never changes.
        if ours.set.isEmpty || entity == keyedValues && !ours.isSet(KeyedColumn.value) {
            layer.remove(entity: entity, key: key)
        } else {
            layer.put(ours, entity: entity, key: key)
        }
    }

    /// Drops our position in a list if only the store has moved the object to another list: a position goes with its list.
    private mutating func keepPositionsInStore(_ row: Row, entity: EntityIndex, key: ObjectKey) throws {
        let unseen = request.checks.unmerged[.init(entity: entity, key: key)]?.columns
        for reference in request.rules.ordered[entity] where row.isSet(reference.position) && !row.isSet(reference.column) {
            // All columns are noted if it is unknown which have changed. Positions in other lists were dropped before the save.
            let isUnseen = unseen.map { $0.contains(reference.column) && $0.count < row.columnCount } ?? false
            if try isUnseen || hasStoreChanged(reference.column, entity: entity, key: key) {
                drop(reference.position, entity: entity, key: key)
            }
        }
    }

    private func hasStoreChanged(_ column: ColumnIndex, entity: EntityIndex, key: ObjectKey) throws -> Bool {
        let place = ObjectAddress(entity: entity, key: key)
        var before = try request.base.view.value(entity, key: key, column: column)
        // The base lacks the object. Its completed row has the values that the context has read.
        if let row = completed[place], row.isSet(column), request.changedOfDeleted[place]?.contains(column) != true {
            before = row[column]
        }
        return try !Value.areSame(before, state.view.value(entity, key: key, column: column))
    }

    /// Writes our whole object: changed properties, and the other properties as the context read them.
    private mutating func putWhole(_ row: Row, entity: EntityIndex, key: ObjectKey, kind: RowKind) throws {
        let base = request.base.view
        let layer = writable()
        let whole = row.copy(layer: layer.id)
        whole.kind = kind
        // The context completed the row of an object that was already deleted in the base.
        var added = try base.exists(entity, key) ? ColumnSet() : row.set
        for column in whole.columnIndices where !whole.isSet(column) {
            whole[column] = try base.value(entity, key: key, column: column) ?? .null
            added.insert(column)
        }
        restored[.init(entity: entity, key: key)] = added
        layer.put(whole, entity: entity, key: key)
    }

    mutating func writable() -> Layer {
        if let resolved { return resolved }
        // The folded layer is not written any more. Only sealed layers can be copied.
        if !folded.isSealed { folded.seal() }
        let copy = Layer(copying: folded)
        resolved = copy
        return copy
    }

    func conflict(_ row: Row?, entity: EntityIndex, key: ObjectKey, isInStore: Bool) throws -> MergeConflict {
        if let moved = try placeConflict(row, entity: entity, key: key) { return moved }
        let base = request.base.view
        let current = state.view
        let schema = writer.store.schema.entities[entity]
        let place = ObjectAddress(entity: entity, key: key)
        let unmerged = request.checks.unmerged[place] ?? (row == nil ? request.checks.outdated[place] : nil)
        let (name, keyedForm) = try nameInConflict(row, entity: entity, key: key)
        var properties: [MergeConflict.Property] = []
        for (column, definition) in schema.columns.enumerated(as: ColumnIndex.self) {
            let before =
                unmerged?.isNew == true ? nil : try unmerged?.before[column] ?? base.value(entity, key: key, column: column)
            let theirs = try current.value(entity, key: key, column: column)
            let isOurs = row?.isSet(column) ?? false
            guard isOurs || !Value.areSame(before, theirs), definition.derivation == nil,
                entity != keyedValues || column != KeyedColumn.key
            else { continue }
            let ours = row?.kind == .delete ? nil : isOurs ? row?[column] : before
            properties.append(
                .init(
                    name: definition.name, base: before, ours: ours, theirs: theirs,
                    form: keyedForm ?? request.rules.form(of: column, in: entity)))
        }
        return MergeConflict(
            objectID: ObjectID(store: writer.store.identity, entity: entity, key: key),
            entityName: name, properties: properties, isDeletedHere: row?.kind == .delete, isDeletedInStore: !isInStore)
    }
}
