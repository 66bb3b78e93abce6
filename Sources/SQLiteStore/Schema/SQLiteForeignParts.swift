import StoreInterface
import StoreModel

/// The columns, triggers and indexes that another program has added to tables that a migration creates anew, and so would drop. Also the
/// tables, views and indexes whose names the migration needs.
///
/// Indexes are created again. A column or a trigger refuses the migration, because its meaning in the new table is not known.
struct SQLiteForeignParts {
    /// A table that is created anew under the same or another name. The names are quoted.
    struct Table {
        let old: String
        let new: String
        /// The columns that the old table has by its schema.
        let columns: [String]
    }

    private struct Index {
        let name: String
        let sql: String
    }

    private let connection: SQLiteConnection
    private let path: String
    /// The indexes to create again.
    private let indexes: [Index]

    /// Finds the foreign parts of some tables, before the migration changes anything.
    /// - Throws: `StoreError` `.schemaMismatch`, which names what would be lost.
    init(
        _ connection: SQLiteConnection, of tables: [Table], from old: SQLiteLayout, to new: SQLiteLayout, path: String
    ) throws {
        self.connection = connection
        self.path = path
        let known = Set(old.indexes)
        let wanted = new.indexes
        var found: [String] = []
        var indexes: [Index] = []
        for table in tables {
            let name = SQLiteLayout.unquoted(table.old)
            let columns = Set(table.columns.map { SQLiteLayout.unquoted($0).lowercased() })
            // Unlike `pragma_table_info`, the function lists computed columns too.
            let present = try connection.texts("SELECT name FROM pragma_table_xinfo(?)", [.string(name)])
            found += present.filter { !columns.contains($0.lowercased()) }.map { "the column \($0) of the table \(name)" }
            found += try Self.parts("trigger", table: name, connection).map { "the trigger \($0.name) of the table \(name)" }
            for (index, sql) in try Self.parts("index", table: name, connection)
            where !known.contains(sql) && !wanted.contains(sql) {
                // The SQL names the table.
                if table.old == table.new {
                    indexes.append(Index(name: index, sql: sql))
                } else {
                    found.append("the index \(index)")
                }
            }
        }
        found += try Self.taken(by: new, besides: old, connection).map { "the \($0), whose name the model needs" }
        self.indexes = indexes
        guard found.isEmpty else { throw refusal(of: found.joined(separator: ", ")) }
    }

    /// Returns the kinds and names of foreign indexes, tables and views that have the name of a table or an index of the new schema. SQLite
    /// has one space of names for them, which ignores case.
    private static func taken(
        by new: SQLiteLayout, besides old: SQLiteLayout, _ connection: SQLiteConnection
    ) throws -> [String] {
        let ownIndexes = Set(old.indexes + new.indexes)
        let ownTables = Set((old.tables + old.links).map { SQLiteLayout.unquoted($0).lowercased() })
        // Names of own indexes contain no quotes.
        let indexNames = new.indexes.compactMap {
            $0.unicodeScalars.split(separator: "\"").dropFirst().first.map { String($0).lowercased() }
        }
        let names = Set(indexNames + (new.tables + new.links).map { SQLiteLayout.unquoted($0).lowercased() })
        let statement = try connection.statement(
            "SELECT type, name, sql FROM sqlite_master WHERE type IN ('index', 'table', 'view') AND sql IS NOT NULL ORDER BY name"
        )
        defer { statement.reset() }
        var found: [String] = []
        while try statement.step() {
            let (type, name, sql) = (statement.text(0), statement.text(1), statement.text(2))
            let isOwn = type == "index" ? ownIndexes.contains(sql) : ownTables.contains(name.lowercased())
            if !isOwn, names.contains(name.lowercased()) { found.append("\(type) \(name)") }
        }
        return found
    }

    /// Returns the names and the SQL of a table's triggers or indexes. Leaves out the indexes that SQLite creates by itself.
    private static func parts(
        _ type: String, table: String, _ connection: SQLiteConnection
    ) throws -> [(name: String, sql: String)] {
        let statement = try connection.statement(
            "SELECT name, sql FROM sqlite_master WHERE type = ? AND lower(tbl_name) = lower(?) AND sql IS NOT NULL ORDER BY name")
        statement.bind([.string(type), .string(table)])
        defer { statement.reset() }
        var found: [(name: String, sql: String)] = []
        while try statement.step() { found.append((name: statement.text(0), sql: statement.text(1))) }
        return found
    }

    /// Creates the foreign indexes again, after the new tables are filled.
    /// - Throws: `StoreError` `.schemaMismatch` if the new table lacks a column of an index, or has values that a unique index forbids.
    func restoreIndexes() throws {
        for index in indexes {
            do {
                try connection.runScript(index.sql)
            } catch let error as StoreError where error.code == .inputOutput {
                var failure = refusal(of: "the index \(index.name)")
                failure.cause = error.cause
                throw failure
            }
        }
    }

    private func refusal(of parts: String) -> StoreError {
        StoreError(
            .schemaMismatch,
            "\(path): the migration would discard \(parts), added by another program. The file is unchanged. Keep a copy of what "
                + "you need, drop it with sqlite3, then open the file again")
    }
}
