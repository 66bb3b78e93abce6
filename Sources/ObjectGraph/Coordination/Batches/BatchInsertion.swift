import StoreInterface

/// The rows of one save of an import. The writer's queue converts them to a layer.
///
/// If the writer repeats its transaction, the layer is created again from the same keys.
struct BatchInsertion: Sendable {
    let entity: Entity
    /// The columns for which rows have values.
    let columns: [Int]
    /// The columns by which existing objects are found; nil if they are not looked up.
    let match: [Int]?
    let rule: UpsertRule
    var rows: [[Value]] = []
    /// Allocated keys, at least as many as rows, ascending within each range.
    var keys: [Range<ObjectKey>] = []
    /// The number of the first row in the whole import, for errors.
    var firstRow = 0

    init(_ entity: Entity, properties: [String], rule: UpsertRule, in model: Model) throws {
        self.entity = entity
        self.rule = rule
        columns = try properties.map { try entity.batchColumn(named: $0, in: model) }
        match = try rule.properties?.map { try entity.batchColumn(named: $0, in: model) }
        for column in match ?? [] where !columns.contains(column) {
            throw FetchError.unknownProperty(entity: entity.name, property: "\(entity.columns[column].name) in the rows")
        }
    }

    mutating func append(_ row: [Value], number: Int) throws {
        guard row.count == columns.count else {
            throw BatchError.wrongCount(entity: entity.name, row: number, values: row.count, properties: columns.count)
        }
        for (value, column) in zip(row, columns) where !entity.columns[column].accepts(value) {
            throw BatchError.wrongValue(entity: entity.name, property: entity.columns[column].name, value: value)
        }
        rows.append(zip(row, columns).map { entity.columns[$1].type.stored($0) })
    }

    func layer(over state: StoreState, schema: StoreSchema) throws -> Layer {
        let layer = Layer(schema: schema)
        var free = keys.lazy.joined().makeIterator()
        /// Objects that earlier rows of this save inserted or updated, by their values.
        var met: [[Value]: ObjectKey] = [:]
        let positions = match?.map { column in columns.firstIndex(of: column) ?? 0 }
        for row in rows {
            let values = positions.map { positions in positions.map { row[$0] } }
            var found: ObjectKey?
            if let values, let match, !values.contains(where: \.isNull) {
                found = try met[values] ?? Self.find(values, match, entity.number, state)
            }
            if let found {
                if let values { met[values] = found }
                if case .keep = rule { continue }
                update(found, row, in: layer)
            } else {
                // There are as many keys as rows.
                guard let key = free.next() else { break }
                if let values { met[values] = key }
                insert(key, row, in: layer)
            }
        }
        return layer
    }

    private func insert(_ key: ObjectKey, _ row: [Value], in layer: Layer) {
        let made = Row.make(kind: .insert, layer: layer.id, columnCount: entity.columns.count)
        for (value, column) in zip(row, columns) { made[column] = value }
        if columns.count < entity.columns.count { made.fill(with: entity.defaults) }
        layer.put(made, entity: entity.number, key: key)
    }

    private func update(_ key: ObjectKey, _ row: [Value], in layer: Layer) {
        let known = layer.row(entity.number, key)
        let changed = known ?? Row.make(kind: .update, layer: layer.id, columnCount: entity.columns.count)
        for (value, column) in zip(row, columns) { changed[column] = value }
        if known == nil { layer.put(changed, entity: entity.number, key: key) }
    }

    private static func find(_ values: [Value], _ columns: [Int], _ entity: Int, _ state: StoreState) throws -> ObjectKey? {
        if state.deferred.isEmpty { return try state.base.lookup(entity, columns: columns, values: values).first }
        let parts = zip(columns, values).map { StorePredicate.compare($0, .equal, $1) }
        return try state.view.keys(StoreQuery(entity: entity, predicate: .and(parts), limit: 1)).first
    }
}
