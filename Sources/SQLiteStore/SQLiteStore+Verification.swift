import StoreInterface

extension SQLiteStore {
    /// SQLite's own check of pages and indexes, then references and links that lead to no object, then values of the wrong kind.
    /// Reads the whole file, in one snapshot.
    public func verify() throws -> [VerificationFinding] {
        let reader = try reader(.snapshot)
        return try reader.connection.withLock {
            let integrity = try reader.connection.texts("PRAGMA integrity_check").filter { $0 != "ok" }
            var findings = integrity.map { VerificationFinding($0) }
            for (number, entity) in schema.entities.enumerated() {
                for (column, definition) in entity.columns.enumerated() {
                    try findings.append(contentsOf: dangling(reader, number, column, definition))
                    try findings.append(contentsOf: wrong(reader, number, column, definition))
                }
            }
            for number in schema.links.indices { try findings.append(contentsOf: loose(reader, number)) }
            return findings
        }
    }

    private func dangling(
        _ reader: SQLiteSnapshot, _ entity: Int, _ column: Int, _ definition: ColumnSchema
    ) throws -> [VerificationFinding] {
        guard let destination = definition.destination else { return [] }
        let name = layout.columns[entity][column]
        let sql = """
            SELECT id FROM \(layout.tables[entity]) WHERE \(name) IS NOT NULL \
            AND \(name) NOT IN (SELECT id FROM \(layout.tables[destination])) ORDER BY id
            """
        return try reader.read(sql) { try $0.keys() }.map { key in
            .init("\(schema.entities[entity].name) \(key): \(definition.name) refers to an object that does not exist")
        }
    }

    private func wrong(
        _ reader: SQLiteSnapshot, _ entity: Int, _ column: Int, _ definition: ColumnSchema
    ) throws -> [VerificationFinding] {
        let kinds =
            switch definition.type {
            case .float, .double, .date: "'real', 'text'"
            case .string: "'text'"
            case .data, .uuid: "'blob'"
            default: "'integer'"
            }
        let sql = """
            SELECT id FROM \(layout.tables[entity]) WHERE \
            typeof(\(layout.columns[entity][column])) NOT IN (\(kinds), 'null') ORDER BY id
            """
        return try reader.read(sql) { try $0.keys() }.map { key in
            .init(
                "\(schema.entities[entity].name) \(key): what is stored in \(definition.name) is not \(definition.type.rawValue)")
        }
    }

    private func loose(_ reader: SQLiteSnapshot, _ number: Int) throws -> [VerificationFinding] {
        let link = schema.links[number]
        let sql = """
            SELECT source FROM \(layout.links[number]) WHERE source NOT IN (SELECT id FROM \(layout.tables[link.source])) \
            OR destination NOT IN (SELECT id FROM \(layout.tables[link.destination])) ORDER BY source
            """
        return try reader.read(sql) { try $0.keys() }.map { key in
            .init("\(link.name): a pair of \(key) has an end that does not exist")
        }
    }
}
