import StoreInterface
import StoreModel

extension SQLiteSnapshot {
    /// Selects the objects and columns in SQL, and computes the aggregates in Swift. SQLite has no unsigned numbers, no NaN
    /// and no sums beyond 64 bits.
    func groups(_ aggregation: StoreAggregation) throws -> AggregateGroups {
        let entity = aggregation.entity
        var groups = AggregateGroups(aggregation)
        let wanted = Array(Set(aggregation.groupBy + aggregation.aggregates.compactMap(\.column))).sorted()
        let names = ["t0.id"] + wanted.map { "t0.\(layout.columns[entity][$0])" }
        let query = StoreQuery(entity: entity, predicate: aggregation.predicate)
        guard let text = try text(of: query, selecting: names.joined(separator: ", ")) else {
            for key in try keys(query) {
                try groups.add {
                    try value(entity, key: key, column: aggregation.groupBy[$0]) ?? .null
                } value: {
                    try value(entity, key: key, column: $0) ?? .null
                }
            }
            return groups
        }
        var places: [ColumnIndex: Int] = [:]
        for (place, column) in wanted.enumerated() { places[column] = place }
        try read(text.sql) { statement in
            statement.bind(text.arguments)
            defer { statement.reset() }
            while try statement.step() {
                let key = ObjectKey(stored: statement.integer(0))
                let row = try wanted.indices.map {
                    try decode(statement, at: $0 + 1, entity: entity, column: wanted[$0], key: key)
                }
                func read(_ column: ColumnIndex) -> Value { places[column].map { row[$0] } ?? .null }
                groups.add(group: { read(aggregation.groupBy[$0]) }, value: read)
            }
        }
        return groups
    }
}
