import StoreInterface
import StoreModel

/// The names of tables and columns, and the SQL of frequent statements. Created once per store.
///
/// In `sqlite3`, the file has one table per entity, under the model's names.
struct SQLiteLayout: Sendable {
    let schema: StoreSchema
    /// The quoted table names, per entity.
    let tables: [String]
    /// The quoted column names, per entity and column.
    let columns: [[String]]
    /// The column types, per entity and column: the part of the schema that decoding needs, without its strings.
    let types: [[ColumnType]]
    /// The quoted table names, per link.
    let links: [String]
    /// The statements that insert an object, per entity. The parameters are in the order `id, version, columns`.
    let insert: [String]
    let selectRow: [String]
    let selectPage: [String]
    let selectPresence: [String]
    let selectExistence: [String]

    init(_ schema: StoreSchema) {
        self.schema = schema
        // SQLite's names ignore case.
        var taken = Set(Self.ownTables.map { $0.name })
        let tables = schema.entities.map { Self.quoted(Self.unique($0.name, &taken)) }
        let columns = schema.entities.map { entity in
            var taken: Set<String> = ["id", "version"]
            return entity.columns.map { Self.quoted(Self.unique($0.name, &taken)) }
        }
        types = schema.entities.map { $0.columns.map(\.type) }
        self.tables = tables
        self.columns = columns
        links = schema.links.map { Self.quoted(Self.unique($0.name, &taken)) }
        let lists = columns.map { (["id", "version"] + $0).joined(separator: ", ") }
        let values = schema.entityIndices.map { entity in
            let marks = Array(repeating: "?", count: columns[entity].count + 2).joined(separator: ", ")
            return "INTO \(tables[entity]) (\(lists[entity])) VALUES (\(marks))"
        }
        insert = values.map { "INSERT " + $0 }
        selectRow = schema.entityIndices.map { "SELECT \(lists[$0]) FROM \(tables[$0]) WHERE id = ?" }
        selectExistence = tables.map { "SELECT 1 FROM \($0) WHERE id = ?" }
        selectPage = schema.entityIndices.map {
            "SELECT \(lists[$0]) FROM \(tables[$0]) WHERE id BETWEEN ? AND ?"
        }
        // The sum of distinct bits in ascending order never overflows, because only the last bit is a negative integer.
        selectPresence = tables.map { "SELECT SUM(1 << (id & \(PageAddress.slots - 1))) FROM \($0) WHERE id BETWEEN ? AND ?" }
    }

    /// The tables that every file has besides those of the model, and their columns.
    static let ownTables: [(name: String, columns: [String])] = [
        (name: "strata_meta", columns: ["name", "value"]), (name: "strata_state", columns: ["generation"]),
        (name: "strata_keys", columns: ["entity", "next"]), (name: "strata_history", columns: ["generation", "changes"]),
    ]

    static func unique(_ name: String, _ taken: inout Set<String>) -> String {
        var name = name.lowercased().hasPrefix("sqlite_") ? "_" + name : name
        while !taken.insert(name.lowercased()).inserted { name += "_" }
        return name
    }

    /// Returns a name in quotation marks. Works on scalars, because a mark that combines with a quotation mark makes it another character.
    static func quoted(_ name: String) -> String {
        var result: String.UnicodeScalarView = .init("\"".unicodeScalars)
        for scalar in name.unicodeScalars { result.append(contentsOf: scalar == "\"" ? [scalar, scalar] : [scalar]) }
        result.append("\"")
        return String(result)
    }

    /// Returns the name from which ``quoted(_:)`` made the given name.
    static func unquoted(_ name: String) -> String {
        var result = String.UnicodeScalarView()
        var isSecond = false
        for scalar in name.unicodeScalars.dropFirst().dropLast() {
            isSecond = scalar == "\"" && !isSecond
            if !isSecond { result.append(scalar) }
        }
        return String(result)
    }

    private static func withoutQuotes(_ text: String) -> String {
        String(String.UnicodeScalarView(text.unicodeScalars.filter { $0 != "\"" }))
    }

    /// Returns the statement that sets some columns and the version of one object. Its parameters are the version, the
    /// columns in ascending order, and the id.
    func update(_ entity: EntityIndex, _ set: ColumnSet) -> String {
        var parts = ["version = ?"]
        set.forEach { parts.append("\(columns[entity][$0]) = ?") }
        return "UPDATE \(tables[entity]) SET \(parts.joined(separator: ", ")) WHERE id = ?"
    }

    // MARK: Creating the file

    /// The SQL that fills a new file.
    var creation: String {
        var lines = [
            "CREATE TABLE strata_meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
            "CREATE TABLE strata_state (one INTEGER PRIMARY KEY CHECK (one = 1), generation INTEGER NOT NULL)",
            "INSERT INTO strata_state VALUES (1, 0)",
            "CREATE TABLE strata_keys (entity INTEGER PRIMARY KEY, next INTEGER NOT NULL)",
            "CREATE TABLE strata_history (generation INTEGER PRIMARY KEY, changes TEXT NOT NULL)",
        ]
        lines += entityTables + linkTables + indexes
        lines += schema.entityIndices.map { "INSERT INTO strata_keys VALUES (\($0), \(PageAddress.slots))" }
        return lines.joined(separator: ";\n")
    }

    /// The SQL that creates the tables, per entity. Foreign keys are declared but not enforced, because the object layer
    /// applies the delete rules.
    var entityTables: [String] {
        schema.entities.enumerated(as: EntityIndex.self).map { number, entity in
            let parts =
                ["id INTEGER PRIMARY KEY", "version INTEGER NOT NULL"]
                + entity.columns.enumerated(as: ColumnIndex.self).map { declaration(number, column: $0, definition: $1) }
            return "CREATE TABLE \(tables[number]) (\(parts.joined(separator: ", ")))"
        }
    }

    /// The SQL that creates the tables, per link.
    var linkTables: [String] {
        schema.links.enumerated(as: LinkIndex.self).map { number, link in
            """
            CREATE TABLE \(links[number]) (
            source INTEGER NOT NULL REFERENCES \(tables[link.source])(id) DEFERRABLE INITIALLY DEFERRED,
            destination INTEGER NOT NULL REFERENCES \(tables[link.destination])(id) DEFERRABLE INITIALLY DEFERRED,
            PRIMARY KEY (source, destination)) WITHOUT ROWID
            """
        }
    }

    /// The SQL that creates the indexes. A unique attribute has a plain index, because saves check uniqueness themselves:
    /// values that are swapped within one save do not conflict.
    var indexes: [String] {
        var names = Set((tables + links).map { String($0.unicodeScalars.dropFirst().dropLast()).lowercased() })
        names.formUnion(Self.ownTables.map { $0.name })
        func index(_ table: String, name: String, columns: String) -> String {
            let wanted = Self.withoutQuotes(table + "_" + name)
            return "CREATE INDEX \(Self.quoted(Self.unique(wanted, &names))) ON \(table) (\(columns))"
        }
        var lines: [String] = []
        for (number, entity) in schema.entities.enumerated(as: EntityIndex.self) {
            for (column, definition) in entity.columns.enumerated(as: ColumnIndex.self)
            where definition.index != .none || definition.type == .reference {
                lines.append(index(tables[number], name: columns[number][column], columns: columns[number][column]))
            }
            for compound in entity.indexes {
                let names = compound.columns.map { columns[number][$0] }
                lines.append(index(tables[number], name: names.joined(separator: "_"), columns: names.joined(separator: ", ")))
            }
        }
        return lines + links.map { index($0, name: "reverse", columns: "destination, source") }
    }

    private func declaration(_ entity: EntityIndex, column: ColumnIndex, definition: ColumnSchema) -> String {
        var text = columns[entity][column] + " " + Self.declaredType(definition.type)
        if !definition.isOptional { text += " NOT NULL" }
        if let destination = definition.destination {
            text += " REFERENCES \(tables[destination])(id) DEFERRABLE INITIALLY DEFERRED"
        }
        return text
    }

    private static func declaredType(_ type: ColumnType) -> String {
        switch type {
        case .bool, .int8, .int16, .int32, .int64, .uint8, .uint16, .uint32, .uint64, .reference: "INTEGER"
        case .float, .double, .date: "REAL"
        case .string: "TEXT"
        case .data, .uuid: "BLOB"
        }
    }
}
