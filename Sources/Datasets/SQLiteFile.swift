import SQLiteStore
import StoreInterface
import StoreModel

/// Reads any SQLite file. A table becomes an entity, a row an object, and a foreign key a to-one relationship. A table becomes
/// a many-to-many relationship if its primary key is exactly two foreign keys and it has no other columns.
///
/// Foreign keys of several columns stay attributes. Types come from the declarations and are checked against the values.
public enum SQLiteFile {
    /// Reads a file. Throws ``DatasetError`` if it is not a SQLite file, or if a value of a Core Data store is in a file that is missing.
    ///
    /// - Parameters:
    ///   - path: The file.
    ///   - leavesOutMissingFiles: Whether values of a Core Data store whose files are missing become null.
    public static func read(_ path: String, leavesOutMissingFiles: Bool = false) throws -> Dataset {
        do {
            let database = try DatabaseReader(path: path)
            let name = path.split(separator: "/").last.map(String.init) ?? path
            return try database.reading {
                let tables = try SQLiteTable.all(in: database)
                if CoreDataFile.isCoreData(tables) {
                    var file = try CoreDataFile(
                        database, tables, path: path, name: name, leavesOutMissingFiles: leavesOutMissingFiles)
                    return try file.dataset()
                }
                return try SQLiteFileReader(database, tables, name: name).dataset()
            }
        } catch let error as StoreError {
            throw DatasetError(error.message)
        }
    }
}

struct SQLiteTable {
    struct Column {
        var name: String
        var declaredType: String
        /// The position in the primary key, from 1. 0 means that the column is not in it.
        var keyPosition: Int
    }

    struct ForeignKey {
        var column: String
        var table: String
        /// The referenced column. Empty means the primary key of the other table.
        var key: String
    }

    var name: String
    var columns: [Column]
    var foreignKeys: [ForeignKey]

    var primaryKey: [String] { columns.filter { $0.keyPosition > 0 }.map(\.name) }

    var isJoin: Bool {
        let keys = primaryKey
        return keys.count == 2 && columns.count == 2 && foreignKeys.count == 2
            && Set(foreignKeys.map { $0.column.lowercased() }) == Set(keys.map { $0.lowercased() })
    }

    init(_ name: String, in database: DatabaseReader) throws {
        self.name = name
        columns = []
        foreignKeys = []
        var found: [Column] = []
        try database.forEachRow("PRAGMA table_info(\(quoted(name)))") { row in
            found.append(.init(name: row.text(1), declaredType: row.text(2).uppercased(), keyPosition: Int(row.integer(5))))
        }
        columns = found
        var parts: [Int64: [ForeignKey]] = [:]
        try database.forEachRow("PRAGMA foreign_key_list(\(quoted(name)))") { row in
            parts[row.integer(0), default: []].append(.init(column: row.text(3), table: row.text(2), key: row.text(4)))
        }
        for (_, keys) in parts.sorted(by: { $0.key > $1.key }) where keys.count == 1 { foreignKeys.append(keys[0]) }
    }
}

extension SQLiteTable {
    /// Returns the tables of a database, by name.
    static func all(in database: DatabaseReader) throws -> [SQLiteTable] {
        var names: [String] = []
        try database.forEachRow(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
        ) { names.append($0.text(0)) }
        return try names.map { try SQLiteTable($0, in: database) }
    }

    /// Returns the values of every row, by column, as they are in the file.
    func values(in database: DatabaseReader, order: String? = nil) throws -> [[Value]] {
        var values: [[Value]] = Array(repeating: [], count: columns.count)
        let list = columns.map { quoted($0.name) }.joined(separator: ", ")
        let end = order.map { " ORDER BY \($0)" } ?? ""
        try database.forEachRow("SELECT \(list) FROM \(quoted(name))\(end)") { row in
            for column in values.indices { values[column].append(row.value(column)) }
        }
        return values
    }
}

/// Returns a name as a quoted SQL identifier.
func quoted(_ name: String) -> String {
    "\"\(name.split(separator: "\"", omittingEmptySubsequences: false).joined(separator: "\"\""))\""
}

struct SQLiteFileReader {
    private let database: DatabaseReader
    private let name: String
    private let all: [SQLiteTable]
    private let entities: [SQLiteTable]

    init(_ database: DatabaseReader, _ tables: [SQLiteTable], name: String) {
        self.database = database
        self.name = name
        all = tables
        let names = Set(tables.map { $0.name.lowercased() })
        entities = tables.filter { table in
            !(table.isJoin && table.foreignKeys.allSatisfy { names.contains($0.table.lowercased()) })
        }
    }

    func dataset() throws -> Dataset {
        guard !entities.isEmpty else { throw DatasetError("\(name): a SQLite file without tables") }
        var names = PropertyNames(tableCount: entities.count)
        var result = Dataset(name: name, tables: [])
        var cells: [[[Value]]] = []
        for table in entities { cells.append(try table.values(in: database)) }
        for (number, table) in entities.enumerated() {
            let keys = Set(references(of: table).map { $0.column.lowercased() })
            var made = Table(name: table.name, attributes: [], rowCount: cells[number].first?.count ?? 0)
            for (column, description) in table.columns.enumerated() where !keys.contains(description.name.lowercased()) {
                made.attributes.append(
                    Self.attribute(
                        names.take(description.name, in: number), declared: description.declaredType,
                        values: cells[number][column]))
            }
            let types = made.attributes.map { "\($0.name) \($0.type.rawValue)\($0.isOptional ? "?" : "")" }
            result.notes.append("\(table.name): \(made.rowCount) rows: \(types.joined(separator: ", "))")
            result.tables.append(made)
        }
        for (number, table) in entities.enumerated() {
            for key in references(of: table) { add(key, number: number, cells: cells, names: &names, result: &result) }
        }
        for table in all where !entities.contains(where: { $0.name == table.name }) {
            try add(table, cells: cells, names: &names, result: &result)
        }
        return result
    }

    // MARK: Rows

    /// Infers the type of a column from its values. The declaration decides only if the values allow several types.
    static func attribute(_ name: String, declared: String, values: [Value]) -> TableAttribute {
        let isOptional = values.contains(.null)
        var ints = 0
        var reals = 0
        var texts = 0
        for value in values {
            switch value {
            case .int: ints += 1
            case .double: reals += 1
            case .string: texts += 1
            default: break
            }
        }
        let present = values.count { !$0.isNull }
        func made(_ type: ColumnType, _ values: [Value]) -> TableAttribute {
            TableAttribute(name: name, type: type, isOptional: isOptional || present == 0, values: values)
        }
        let isReal = ["REAL", "FLOA", "DOUB", "NUMERIC", "DECIMAL"].contains { declared.hasPrefix($0) }
        if present > 0, ints == present {
            if declared.hasPrefix("BOOL"), values.allSatisfy({ $0.isNull || $0 == .int(0) || $0 == .int(1) }) {
                return made(.bool, values.map { if case .int(let number) = $0 { .bool(number == 1) } else { .null } })
            }
            if !isReal { return made(ColumnInference.integerType(ColumnInference.range(of: values)), values) }
        }
        if present > 0, ints + reals == present {
            return made(.double, values.map { if case .int(let number) = $0 { .double(Double(number)) } else { $0 } })
        }
        if present > 0, texts == present, declared.hasPrefix("DATE") || declared.hasPrefix("TIMESTAMP") {
            let dates = values.map { value -> Value? in
                guard case .string(let text) = value else { return .null }
                return DateText.seconds(text).map(Value.double)
            }
            if !dates.contains(nil) { return made(.date, dates.compactMap(\.self)) }
        }
        if present == 0 || texts == present { return made(.string, values) }
        return made(.data, values.map(bytes))
    }

    /// Converts a value of a column with mixed types to bytes, so that nothing is lost.
    private static func bytes(_ value: Value) -> Value {
        switch value {
        case .string(let text): .data(.init(text.utf8))
        case .int(let number): .data(.init("\(number)".utf8))
        case .double(let number): .data(.init("\(number)".utf8))
        default: value
        }
    }

    // MARK: Relationships

    /// Returns the foreign keys that refer to a row of another entity.
    private func references(of table: SQLiteTable) -> [SQLiteTable.ForeignKey] {
        table.foreignKeys.filter { key in destination(key) != nil }
    }

    private func destination(_ key: SQLiteTable.ForeignKey) -> (table: Int, column: Int)? {
        guard let table = entities.firstIndex(where: { $0.name.lowercased() == key.table.lowercased() }) else { return nil }
        let primary = entities[table].primaryKey
        let name = key.key.isEmpty ? (primary.count == 1 ? primary[0] : "") : key.key
        guard let column = entities[table].columns.firstIndex(where: { $0.name.lowercased() == name.lowercased() }) else {
            return nil
        }
        return (table, column)
    }

    private func rows(_ keys: [Value], destination: (table: Int, column: Int), cells: [[[Value]]]) -> (
        rows: [Int32], lost: Int
    ) {
        let places = Dictionary(
            cells[destination.table][destination.column].enumerated().map { ($1, Int32($0)) },
            uniquingKeysWith: { first, _ in first })
        var lost = 0
        let rows = keys.map { key -> Int32 in
            if key.isNull { return TableReference.nobody }
            if let row = places[key] { return row }
            lost += 1
            return TableReference.nobody
        }
        return (rows, lost)
    }

    private func add(
        _ key: SQLiteTable.ForeignKey, number: Int, cells: [[[Value]]], names: inout PropertyNames, result: inout Dataset
    ) {
        guard let destination = destination(key),
            let column = entities[number].columns.firstIndex(where: { $0.name.lowercased() == key.column.lowercased() })
        else { return }
        let found = rows(cells[number][column], destination: destination, cells: cells)
        result.tables[number].references.append(
            TableReference(
                name: names.take(PropertyNames.relationship(forColumn: key.column), in: number),
                inverse: names.take(PropertyNames.plural(ofTable: entities[number].name), in: destination.table),
                destination: destination.table, rows: found.rows))
        result.lostReferences += found.lost
        result.notes.append(
            "\(entities[number].name).\(key.column) refers to \(entities[destination.table].name)"
                + (found.lost == 0 ? "" : "; \(found.lost) references to nothing became null"))
    }

    /// Adds the rows of a join table as pairs.
    private func add(
        _ join: SQLiteTable, cells: [[[Value]]], names: inout PropertyNames, result: inout Dataset
    ) throws {
        let own = try join.values(in: database)
        var ends: [(table: Int, rows: [Int32])] = []
        for column in join.columns.indices {
            guard let key = join.foreignKeys.first(where: { $0.column.lowercased() == join.columns[column].name.lowercased() }),
                let destination = destination(key)
            else { throw DatasetError("\(name): \(join.name) refers to no table that can be found") }
            let found = rows(own[column], destination: destination, cells: cells)
            result.lostReferences += found.lost
            ends.append((destination.table, found.rows))
        }
        let pairs = zip(ends[0].rows, ends[1].rows).compactMap { source, destination in
            source < 0 || destination < 0 ? nil : Link.Pair(source: source, destination: destination)
        }
        let source = ends[0].table
        let destination = ends[1].table
        result.links.append(
            Link(
                name: names.take(PropertyNames.plural(ofTable: entities[destination].name), in: source),
                inverse: names.take(PropertyNames.plural(ofTable: entities[source].name), in: destination),
                source: source, destination: destination, pairs: pairs))
        result.notes.append(
            "\(join.name): \(pairs.count) links between \(entities[source].name) and \(entities[destination].name)")
    }
}
