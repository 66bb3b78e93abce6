import StoreInterface
import StoreModel

extension SQLiteSnapshot {
    func keys(_ query: StoreQuery) throws -> [ObjectKey] {
        guard let text = try text(of: query, selecting: "t0.id") else { return try evaluated(query) }
        return try read(text.sql) { statement in
            statement.bind(text.arguments)
            return try statement.keys()
        }
    }

    func count(_ query: StoreQuery) throws -> Int {
        var unsorted = query
        unsorted.sort = []
        guard let text = try text(of: unsorted, selecting: "1") else { return try evaluated(unsorted).count }
        return try read("SELECT COUNT(*) FROM (\(text.sql))") { statement in
            statement.bind(text.arguments)
            return Int(try statement.integers().first ?? 0)
        }
    }

    func orderedData(_ query: OrderedDataQuery) throws -> OrderedData {
        let (entity, column) = (query.entity, query.column)
        guard let text = try text(of: query.storeQuery, selecting: "t0.id, t0.\(layout.columns[entity][column])") else {
            return try readOrderedData(query)
        }
        return try read(text.sql) { statement in
            statement.bind(text.arguments)
            defer { statement.reset() }
            var result = OrderedData()
            while try statement.step() {
                let key = ObjectKey(stored: statement.integer(0))
                if case .data(let data) = try decode(statement, at: 1, entity: entity, column: column, key: key) {
                    data.withUnsafeBytes { result.append(key, data: $0) }
                }
            }
            return result
        }
    }

    func explain(_ query: StoreQuery) throws -> String {
        guard let text = try text(of: query, selecting: "t0.id") else {
            if query.predicate.hasEvaluatedParts {
                var candidates = query
                candidates.predicate = query.predicate.withoutEvaluated
                return try explain(candidates)
            }
            return "scan of \(schema.entities[query.entity].name), evaluated outside SQLite"
        }
        return try connection.withLock {
            try connection.texts("EXPLAIN QUERY PLAN " + text.sql, text.arguments, column: 3).joined(separator: "; ")
        }
    }

    struct QueryText {
        var sql: String
        var arguments: [Value]
    }

    /// Returns the SQL of a query. Returns nil if SQL cannot express the predicate exactly or with its limit of parameters.
    func text(of query: StoreQuery, selecting selection: String) throws -> QueryText? {
        try query.predicate.checkDepth()
        var predicate = SQLitePredicate(layout: layout)
        let condition: String
        do {
            condition = try predicate.condition(query.predicate, entity: query.entity, alias: "t0")
        } catch is SQLitePredicate.NotExpressible {
            return nil
        }
        guard predicate.arguments.count <= SQLitePredicate.parameterLimit else { return nil }
        var sql = "SELECT \(selection) FROM \(layout.tables[query.entity]) t0 WHERE \(condition)"
        if selection != "1" { sql += " ORDER BY \(order(query))" }
        if query.limit != nil || query.offset != 0 {
            sql += " LIMIT ? OFFSET ?"
            predicate.arguments.append(.int(query.limit.map { Int64($0) } ?? -1))
            predicate.arguments.append(.int(Int64(query.offset)))
        }
        return QueryText(sql: sql, arguments: predicate.arguments)
    }

    /// Returns the terms of `ORDER BY`. SQLite sorts NULL first in ascending and last in descending order, and compares text
    /// by bytes, as the reference semantics do by default.
    private func order(_ query: StoreQuery) -> String {
        var parts: [String] = []
        for sort in query.sort {
            let name = "t0.\(layout.columns[query.entity][sort.column])"
            let direction = sort.direction == .ascending ? "ASC" : "DESC"
            let column = schema.entities[query.entity].columns[sort.column]
            if sort.nulls == .highest, column.isOptional { parts.append("\(name) IS NULL \(direction)") }
            switch column.type {
            case .uint64:
                // Numbers from 2^63 on are stored as negative numbers.
                parts.append("\(name) < 0 \(direction)")
                parts.append("\(name) \(direction)")
            case .string where sort.caseSensitivity == .insensitive:
                parts.append("strata_lower(\(name)) \(direction)")
            default:
                parts.append("\(name) \(direction)")
            }
        }
        parts.append("t0.id")
        return parts.joined(separator: ", ")
    }

    /// Returns the result of a query whose predicate is evaluated in Swift, on each object that its other parts select.
    private func evaluated(_ query: StoreQuery) throws -> [ObjectKey] {
        try connection.withLock {
            var all = query
            all.predicate = query.predicate.hasEvaluatedParts ? query.predicate.withoutEvaluated : .constant(true)
            all.offset = 0
            all.limit = nil
            let found = try keys(all).filter { try query.predicate.matches(query.entity, key: $0, in: self) }
            return Array(found.dropFirst(query.offset).prefix(query.limit ?? .max))
        }
    }
}
