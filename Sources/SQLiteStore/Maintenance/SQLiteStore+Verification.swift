import StoreInterface
import StoreModel

extension SQLiteStore {
    /// Checks pages and indexes with SQLite's own check. Then checks references and links to missing objects, one-to-one
    /// relationships, unique values, versions, types of values, leased keys, missing indexes, and the history.
    ///
    /// Reads the whole file in one snapshot. Returns at most 200 findings.
    public func verify(cancellation: Cancellation) throws -> [VerificationFinding] {
        let reader = try reader(.onePerSnapshot)
        let found = try pool.whileUnchanged { try reader.connection.withLock { try findings(reader, cancellation) } }
        return found.prefix(RelationCheck.maximumFindings).map { VerificationFinding($0) }
    }

    private func findings(_ reader: SQLiteSnapshot, _ cancellation: Cancellation) throws -> [String] {
        var found: [String] = []
        do {
            try check(reader, into: &found, cancellation)
        } catch let error as StoreError where error.code == .damaged {
            // Earlier findings are reported too. The rest of the file cannot be read.
            found.append(error.message)
        }
        return found
    }

    private func check(_ reader: SQLiteSnapshot, into found: inout [String], _ cancellation: Cancellation) throws {
        // SQLite does not tell how far its own check is.
        found += try reader.connection.cancelled(by: cancellation) {
            try reader.connection.texts("PRAGMA integrity_check").filter { $0 != "ok" }
        }
        found += try RelationCheck.problems(reader, cancellation.part(0.4...0.8))
        for (number, entity) in schema.entities.enumerated(as: EntityIndex.self) {
            try cancellation.part(0.8...1).step(number.rawValue, of: schema.entities.count)
            found += try late(reader, number)
            found += try wrongKeys(reader, number)
            for (column, definition) in entity.columns.enumerated(as: ColumnIndex.self) {
                found += try wrong(reader, entity: number, column: column, definition: definition)
            }
            found += try missingIndexes(reader, number)
        }
        for number in schema.linkIndices {
            found += try loose(reader, number)
            let isThere = try indexes(reader, of: layout.links[number]).contains(["destination", "source"])
            if !isThere { found.append("index on \(schema.links[number].name): is missing") }
        }
        found += try historyProblems(reader)
    }

    /// Checks everything, as ``verify(cancellation:)``, without a way to cancel.
    public func verify() throws -> [VerificationFinding] { try verify(cancellation: Cancellation()) }

    private func late(_ reader: SQLiteSnapshot, _ entity: EntityIndex) throws -> [String] {
        try reader.read("SELECT id FROM \(layout.tables[entity]) WHERE version > ? OR version < 0 ORDER BY id") { statement in
            statement.bind(reader.generation.stored, 1)
            return try statement.keys()
        }.map { "\(schema.entities[entity].name) \($0): was written by a later save" }
    }

    /// Checks keys and leases. Keys of objects must have been leased, and returned keys must never have been used.
    private func wrongKeys(_ reader: SQLiteSnapshot, _ entity: EntityIndex) throws -> [String] {
        let (name, table) = (schema.entities[entity].name, layout.tables[entity])
        var found = try reader.read("SELECT COUNT(*) FROM \(table) WHERE id < 0") { try $0.integers() }.filter { $0 > 0 }.map {
            "\(name): has objects with negative ids, which no store assigns: \($0)"
        }
        for range in try reader.connection.meta(SQLiteFreeKeys.prefix + "\(entity)").flatMap(SQLiteFreeKeys.ranges) ?? [] {
            let used = try reader.read("SELECT id FROM \(table) WHERE id >= ? AND id < ? ORDER BY id") { statement in
                statement.bind(range.lowerBound, 1)
                statement.bind(range.upperBound, 2)
                return try statement.keys()
            }
            found += used.map { "\(name) \($0): its key is among those that were given back unused" }
        }
        let last =
            try reader.connection.integer("SELECT MAX(id) FROM \(table) WHERE id < ?", [.int(SQLiteFreeKeys.end.stored)]) ?? 0
        let next = try reader.connection.integer("SELECT next FROM strata_keys WHERE entity = ?", [.int(Int64(entity.rawValue))])
        // A new file has the first key, although none was leased.
        if let next, next > PageAddress.slots, last >= next {
            found.append("\(name) \(last): its key was never leased: the first such key is \(next)")
        }
        return found
    }

    /// Returns the indexes of the model that an entity's table lacks. SQLite's own check looks only at those that are there.
    private func missingIndexes(_ reader: SQLiteSnapshot, _ entity: EntityIndex) throws -> [String] {
        let definition = schema.entities[entity]
        let single = definition.columnIndices.filter {
            definition.columns[$0].index != .none || definition.columns[$0].type == .reference
        }
        let present = try indexes(reader, of: layout.tables[entity])
        return (single.map { [$0] } + definition.indexes.map(\.columns)).compactMap { columns -> String? in
            if present.contains(columns.map { SQLiteLayout.unquoted(layout.columns[entity][$0]).lowercased() }) { return nil }
            return "index on \(definition.name).\(columns.map { definition.columns[$0].name }.joined(separator: "+")): is missing"
        }
    }

    /// Returns the columns of each index of a table, in lower case.
    private func indexes(_ reader: SQLiteSnapshot, of table: String) throws -> Set<[String]> {
        let sql = """
            SELECT i.name, c.name FROM pragma_index_list(?) i, pragma_index_info(i.name) c WHERE i.partial = 0 ORDER BY i.seq, c.seqno
            """
        return try reader.read(sql) { statement in
            statement.bind([.string(SQLiteLayout.unquoted(table))])
            defer { statement.reset() }
            var columns: [String: [String]] = [:]
            while try statement.step() { columns[statement.text(0), default: []].append(statement.text(1).lowercased()) }
            return Set(columns.values)
        }
    }

    private func wrong(
        _ reader: SQLiteSnapshot, entity: EntityIndex, column: ColumnIndex, definition: ColumnSchema
    ) throws -> [String] {
        let name = layout.columns[entity][column]
        let bounds = definition.type.bounds
        func isOther(_ kind: String) -> String { "typeof(\(name)) NOT IN ('\(kind)', 'null')" }
        let condition =
            switch definition.type {
            // NaN is stored as text.
            case .float, .double, .date: "\(isOther("real")) AND \(name) IS NOT 'NaN'"
            case .string: "\(isOther("text")) OR NOT strata_is_unicode(\(name))"
            case .data: isOther("blob")
            case .uuid: "\(isOther("blob")) OR length(\(name)) <> 16"
            case .uint64, .int64, .reference: isOther("integer")
            case .bool, .int8, .int16, .int32, .uint8, .uint16, .uint32:
                "\(isOther("integer")) OR \(name) NOT BETWEEN \(bounds.lowerBound) AND \(bounds.upperBound)"
            }
        let sql = "SELECT id FROM \(layout.tables[entity]) WHERE \(condition) ORDER BY id"
        return try reader.read(sql) { try $0.keys() }.map { key in
            "\(schema.entities[entity].name) \(key): the value of \(definition.name) is not \(definition.type.rawValue)"
        }
    }

    private func loose(_ reader: SQLiteSnapshot, _ number: LinkIndex) throws -> [String] {
        let link = schema.links[number]
        let sql = """
            SELECT source, destination FROM \(layout.links[number]) \
            WHERE source NOT IN (SELECT id FROM \(layout.tables[link.source])) \
            OR destination NOT IN (SELECT id FROM \(layout.tables[link.destination])) ORDER BY source, destination LIMIT 200
            """
        let pairs = try reader.read(sql) { statement in
            defer { statement.reset() }
            var pairs: [(ObjectKey, ObjectKey)] = []
            while try statement.step() {
                pairs.append((ObjectKey(stored: statement.integer(0)), ObjectKey(stored: statement.integer(1))))
            }
            return pairs
        }
        return try pairs.compactMap { pair in
            try RelationCheck.missingEnd(link, from: pair.0, to: pair.1, in: schema) { try reader.exists($0, $1) }
        }
    }

    private func historyProblems(_ reader: SQLiteSnapshot) throws -> [String] {
        var problems: [String] = []
        var rows: [(number: Generation, written: Generation)] = []
        try reader.read("SELECT generation, changes FROM strata_history ORDER BY generation") { statement in
            defer { statement.reset() }
            while try statement.step() {
                let number = Generation(stored: statement.integer(0))
                var written = number
                do {
                    written = try HistoryText.changes(statement.text(1), path, fitting: schema).generation
                } catch let error as StoreError {
                    problems.append("the history of save \(number): \(error.message)")
                }
                rows.append((number, written))
            }
        }
        return problems + HistoryOrder.problems(rows, newest: reader.generation)
    }
}

extension ColumnType {
    /// The integers that a column of the type stores; all of them for types that are not integers.
    fileprivate var bounds: ClosedRange<Int64> {
        switch self {
        case .bool: 0...1
        case .int8: Int64(Int8.min)...Int64(Int8.max)
        case .int16: Int64(Int16.min)...Int64(Int16.max)
        case .int32: Int64(Int32.min)...Int64(Int32.max)
        case .uint8: 0...Int64(UInt8.max)
        case .uint16: 0...Int64(UInt16.max)
        case .uint32: 0...Int64(UInt32.max)
        default: Int64.min...Int64.max
        }
    }
}
