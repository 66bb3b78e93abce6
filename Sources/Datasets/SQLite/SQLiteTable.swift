import SQLiteStore
import StoreInterface
import StoreModel

/// The schema of a table.
struct SQLiteTable {
    struct Column {
        var name: String
        var declaredType: String
        /// The position in the primary key, from 1. 0 means that the column is not in it.
        var keyPosition: Int
        var isNotNull = false
        /// The default as an SQL expression.
        var defaultText: String?
    }

    struct ForeignKey {
        var column: String
        var table: String
        /// The referenced column. Empty means the primary key of the other table.
        var key: String
        /// The action of `ON DELETE`, in capitals.
        var onDelete: String
    }

    /// An index over columns, which selects no rows and has no expressions.
    struct Index {
        var columns: [String]
        var isUnique: Bool
    }

    var name: String
    var columns: [Column]
    var foreignKeys: [ForeignKey]
    /// The foreign keys of several columns.
    var compositeKeys: [[ForeignKey]]
    var indexes: [Index]

    var primaryKey: [String] { columns.filter { $0.keyPosition > 0 }.sorted { $0.keyPosition < $1.keyPosition }.map(\.name) }

    /// Whether the table has the form of a many-to-many relationship.
    var isJoin: Bool {
        let keys = primaryKey
        return keys.count == 2 && columns.count == 2 && foreignKeys.count == 2 && compositeKeys.isEmpty
            && Set(foreignKeys.map { $0.column.lowercased() }) == Set(keys.map { $0.lowercased() })
    }

    init(_ name: String, in database: DatabaseReader) throws {
        self.name = name
        var found: [Column] = []
        // Unlike `table_info`, it lists generated columns. A hidden column of the kind 1 is an argument of a virtual table.
        try database.forEachRow("PRAGMA table_xinfo(\(quoted(name)))") { row in
            guard row.integer(6) != 1 else { return }
            found.append(
                .init(
                    name: row.text(1), declaredType: row.text(2).uppercased(), keyPosition: Int(row.integer(5)),
                    isNotNull: row.integer(3) != 0, defaultText: row.value(4).isNull ? nil : row.text(4)))
        }
        columns = found
        var parts: [Int64: [ForeignKey]] = [:]
        try database.forEachRow("PRAGMA foreign_key_list(\(quoted(name)))") { row in
            parts[row.integer(0), default: []].append(
                .init(column: row.text(3), table: row.text(2), key: row.text(4), onDelete: row.text(6).uppercased()))
        }
        let keys = parts.sorted { $0.key > $1.key }.map(\.value)
        foreignKeys = keys.filter { $0.count == 1 }.map { $0[0] }
        compositeKeys = keys.filter { $0.count > 1 }
        indexes = try Self.indexes(of: name, in: database)
        let key = primaryKey
        // The index of a primary key of integers is the table itself.
        if !key.isEmpty, !indexes.contains(where: { $0.isUnique && $0.columns == key }) {
            indexes.insert(Index(columns: key, isUnique: true), at: 0)
        }
    }

    private static func indexes(of table: String, in database: DatabaseReader) throws -> [Index] {
        var lists: [(name: String, isUnique: Bool)] = []
        try database.forEachRow("PRAGMA index_list(\(quoted(table)))") { row in
            if row.integer(4) == 0 { lists.append((row.text(1), row.integer(2) != 0)) }
        }
        return try lists.reversed().compactMap { list in
            var columns: [String] = []
            var isPlain = true
            try database.forEachRow("PRAGMA index_xinfo(\(quoted(list.name)))") { row in
                guard row.integer(5) != 0 else { return }
                if row.integer(1) < 0 { isPlain = false }
                columns.append(row.text(2))
            }
            return isPlain && !columns.isEmpty ? Index(columns: columns, isUnique: list.isUnique) : nil
        }
    }

    /// Returns the position of a column, whatever the case of its name. One with the same spelling goes first, because SQLite ignores the case
    /// of ASCII letters only.
    func column(named name: String) -> Int? {
        columns.firstIndex { $0.name.utf8.elementsEqual(name.utf8) }
            ?? columns.firstIndex { $0.name.lowercased() == name.lowercased() }
    }

    /// Returns whether SQLite finds a value of a column without reading the table.
    func isIndexed(_ column: String) -> Bool { indexes.contains { $0.columns.first?.lowercased() == column.lowercased() } }
}

/// The values of a table, as they are in the file.
struct SQLiteContent {
    /// The value of each row, by column.
    var columns: [ValueColumn]
    /// The number of texts in each column that are not UTF-8. They are data.
    var badTexts: [Int]

    var rowCount: Int { columns.first?.count ?? 0 }

    /// Returns a line about the texts of a column that are not UTF-8, or nil if there are none.
    func note(_ table: SQLiteTable, _ column: Int) -> String? {
        guard badTexts[column] > 0 else { return nil }
        return
            "\(table.name).\(table.columns[column].name): \(badTexts[column]) of \(rowCount) rows have texts that are not UTF-8; "
            + "the attribute has the bytes of the texts"
    }
}

extension SQLiteTable {
    /// Returns the tables of a database that can be read, by name.
    static func all(in database: DatabaseReader) throws -> [SQLiteTable] { try SQLiteCatalog(database).tables }

    /// Returns the values of every row, by column.
    /// - Parameter scratch: Where long columns are stored; nil if all stay in memory.
    func content(in database: DatabaseReader, order: String? = nil, scratch: ScratchSpace?) throws -> SQLiteContent {
        var builders = columns.indices.map { ValueColumnBuilder($0 < ScratchSpace.maximumFiles ? scratch : nil) }
        var badTexts = columns.map { _ in 0 }
        let list = columns.map { quoted($0.name) }.joined(separator: ", ")
        let end = order.map { " ORDER BY \($0)" } ?? ""
        try database.forEachRow("SELECT \(list) FROM \(quoted(name))\(end)") { row in
            try Task.checkCancellation()
            for column in columns.indices {
                let value = row.value(column)
                if case .data = value, row.isText(column) { badTexts[column] += 1 }
                try builders[column].append(value)
            }
        }
        return SQLiteContent(columns: try builders.indices.map { try builders[$0].finish() }, badTexts: badTexts)
    }

    /// Returns the values of every row, by column, without a count of texts that are not UTF-8.
    func values(in database: DatabaseReader, scratch: ScratchSpace?) throws -> [ValueColumn] {
        try content(in: database, scratch: scratch).columns
    }
}

/// Returns a name as a quoted SQL identifier.
func quoted(_ name: String) -> String {
    // By bytes: as a character, a quote with a combining mark is another one.
    let bytes = name.utf8.flatMap { $0 == 0x22 ? [$0, $0] : [$0] }
    return "\"\(String(decoding: bytes, as: UTF8.self))\""
}
