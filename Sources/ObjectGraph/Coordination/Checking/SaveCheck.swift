import StoreInterface

/// Checks one save against the state that it would follow: versions (S100 … S106), unique values, relationships (S050 … S052), and gives
/// the layer to write.
///
/// Runs on the writer's queue. Cost: O(changed objects) when the state has moved since the context read it, O(objects with a
/// changed unique attribute) otherwise.
struct SaveCheck {
    let request: SaveRequest
    let state: StoreState
    let writer: StoreWriter
    private var conflicts: [MergeConflict] = []
    /// For a policy of the user's, which gets all of them at once.
    var contested: [Contested] = []
    /// For a preview: every conflict, whatever the policy makes of it.
    private(set) var met: [MergeConflict] = []
    /// Made when a policy changes what is written; the request's own layers stay as they are.
    private var resolved: Layer?
    /// What a policy wrote from the base, because the whole object is to be written: not what the save itself has set.
    var restored: [ChangeLog.Place: ColumnSet] = [:]
    let folded: Layer
    private let numbers: CommittedNumbers
    /// What is to be written, as far as the check has come.
    var layer: Layer { resolved ?? folded }

    init(request: SaveRequest, state: StoreState, writer: StoreWriter) {
        self.request = request
        self.state = state
        self.writer = writer
        numbers = writer.shared.withLock { $0.numbers }
        let layers = request.layers
        folded = layers.count == 1 ? layers[0] : Layer.folding(layers, schema: writer.store.schema)
    }

    /// The layer to write, not yet stamped. Throws ``SaveError``.
    mutating func resolvedLayer() throws -> Layer {
        if request.base.sequence != state.sequence || request.mayHaveOrphans {
            try checkVersions()
            try checkWatched()
            if case .custom(let resolve) = request.policy { conflicts = try settleContested(resolve) }
            if !conflicts.isEmpty { throw SaveError.conflicts(conflicts) }
        }
        try checkUnique()
        // What relationships take away may free or bring back unique values.
        while try settleRelationships() { try checkUnique() }
        try checkValues()
        return layer
    }

    // MARK: Versions

    private mutating func checkVersions() throws {
        let base = request.base.view
        let current = state.view
        for entity in 0..<folded.entityCount {
            guard let changes = folded.entity(entity) else { continue }
            for number in changes.sortedPageNumbers {
                guard let page = changes.page(number) else { continue }
                for slot in SlotIterator(page.updated | page.deleted) {
                    guard let row = page[slot] else { continue }
                    let key = PageAddress.key(page: number, slot: slot)
                    let theirs = try current.version(entity, key)
                    let isOrphan = theirs == nil && row.kind == .update
                    guard try isOrphan || !numbers.areSame(base.version(entity, key), theirs) else { continue }
                    try resolve(row, entity, key, isInStore: theirs != nil)
                }
            }
        }
    }

    private mutating func checkWatched() throws {
        let base = request.base.view
        let current = state.view
        for id in request.watched where folded.row(id.entity, id.key) == nil {
            let theirs = try current.version(id.entity, id.key)
            guard try !numbers.areSame(base.version(id.entity, id.key), theirs) else { continue }
            let found = try conflict(nil, id.entity, id.key, isInStore: theirs != nil)
            if request.isPreview { met.append(found) }
            if case .custom = request.policy {
                contested.append(Contested(conflict: found, row: nil, isInStore: theirs != nil))
            } else {
                conflicts.append(found)
            }
        }
    }

    private mutating func resolve(_ row: Row, _ entity: Int, _ key: ObjectKey, isInStore: Bool) throws {
        if request.isPreview, row.kind != .delete || isInStore {
            met.append(try conflict(row, entity, key, isInStore: isInStore))
        }
        try apply(request.policy, row, entity, key, isInStore: isInStore)
    }

    /// Makes what is to be written of one object in conflict.
    mutating func apply(_ policy: MergePolicy, _ row: Row, _ entity: Int, _ key: ObjectKey, isInStore: Bool) throws {
        // An update of what nobody has saved: the parent that inserted it has rolled back.
        if !isInStore, row.kind == .update, try !request.base.view.exists(entity, key), row.set.count < row.columnCount {
            return writable().remove(entity: entity, key: key)
        }
        switch (policy, row.kind, isInStore) {
        case (_, .delete, false):
            writable().remove(entity: entity, key: key)
        case (.error, _, _):
            conflicts.append(try conflict(row, entity, key, isInStore: isInStore))
        case (.custom, _, _):
            contested.append(
                Contested(
                    conflict: try conflict(row, entity, key, isInStore: isInStore), row: row, isInStore: isInStore))
        case (.rollback, _, _), (.storeTrump, .delete, _), (.storeTrump, _, false):
            writable().remove(entity: entity, key: key)
        case (.objectTrump, .delete, _), (.overwrite, .delete, _):
            break
        case (.storeTrump, _, true):
            try keepUncontested(row, entity, key)
        case (.objectTrump, _, true):
            break
        case (.objectTrump, _, false):
            try putWhole(row, entity, key, kind: .insert)
        case (.overwrite, _, _):
            try putWhole(row, entity, key, kind: isInStore ? .update : .insert)
        }
    }

    /// Drops our value of each property that the store changed too.
    private mutating func keepUncontested(_ row: Row, _ entity: Int, _ key: ObjectKey) throws {
        let base = request.base.view
        let current = state.view
        let layer = writable()
        let ours = row.copy(layer: layer.id)
        try row.set.forEach { column in
            if try base.value(entity, key, column) != current.value(entity, key, column) { ours.clear(column) }
        }
        if ours.set.isEmpty {
            layer.remove(entity: entity, key: key)
        } else {
            layer.put(ours, entity: entity, key: key)
        }
    }

    /// Writes our whole object: changed properties as they are, the others as we read them.
    private mutating func putWhole(_ row: Row, _ entity: Int, _ key: ObjectKey, kind: RowKind) throws {
        let base = request.base.view
        let layer = writable()
        let whole = row.copy(layer: layer.id)
        whole.kind = kind
        // An object that was gone in the base already was made whole when the context learned of it.
        var added = try base.exists(entity, key) ? ColumnSet() : row.set
        for column in 0..<whole.columnCount where !whole.isSet(column) {
            whole[column] = try base.value(entity, key, column) ?? .null
            added.insert(column)
        }
        restored[.init(entity: entity, key: key)] = added
        layer.put(whole, entity: entity, key: key)
    }

    mutating func writable() -> Layer {
        if let resolved { return resolved }
        // Nobody writes what was folded here any more, and only sealed layers are copied.
        if !folded.isSealed { folded.seal() }
        let copy = Layer(copying: folded)
        resolved = copy
        return copy
    }

    func conflict(_ row: Row?, _ entity: Int, _ key: ObjectKey, isInStore: Bool) throws -> MergeConflict {
        let base = request.base.view
        let current = state.view
        let schema = writer.store.schema.entities[entity]
        var properties: [MergeConflict.Property] = []
        for (column, definition) in schema.columns.enumerated() {
            let before = try base.value(entity, key, column)
            let theirs = try current.value(entity, key, column)
            let isOurs = row?.isSet(column) ?? false
            guard isOurs || before != theirs else { continue }
            let ours = row?.kind == .delete ? nil : isOurs ? row?[column] : before
            properties.append(.init(name: definition.name, base: before, ours: ours, theirs: theirs))
        }
        return MergeConflict(
            objectID: ObjectID(store: writer.store.identity, entity: entity, key: key), entityName: schema.name,
            properties: properties, isDeletedHere: row?.kind == .delete, isDeletedInStore: !isInStore)
    }
}
