import SQLiteStore
import StoreInterface
import StoreModel

/// The tables of a database that have data of the user, and notes about the others.
struct SQLiteCatalog {
    private(set) var tables: [SQLiteTable] = []
    /// The tables and views that are left out, one line each.
    private(set) var notes: [String] = []

    /// The ends of the names of tables in which virtual tables keep their data, by module.
    private static let shadows: [String: [String]] = [
        "fts3": ["content", "segments", "segdir", "docsize", "stat"],
        "fts4": ["content", "segments", "segdir", "docsize", "stat"],
        "fts5": ["content", "data", "idx", "docsize", "config"], "rtree": ["node", "parent", "rowid"],
        "rtree_i32": ["node", "parent", "rowid"], "geopoly": ["node", "parent", "rowid"],
    ]

    init(_ database: DatabaseReader) throws {
        var names: [String] = []
        var views: [String] = []
        /// The modules of virtual tables.
        var modules: [(table: String, module: String)] = []
        try database.forEachRow(
            "SELECT type, name, sql FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' "
                + "ORDER BY name"
        ) { row in
            // SQLite writes the first words of a definition itself.
            if row.text(0) == "view" {
                views.append(row.text(1))
            } else if row.text(2).hasPrefix("CREATE VIRTUAL TABLE ") {
                modules.append((row.text(1), Self.module(row.text(2))))
            } else {
                names.append(row.text(1))
            }
        }
        let shadows = try shadowTables(of: modules, among: names, in: database)
        for name in names where !shadows.contains(name.lowercased()) {
            do {
                let table = try SQLiteTable(name, in: database)
                // Fails if a generated column calls a function that this program does not have.
                let list = table.columns.map { quoted($0.name) }.joined(separator: ", ")
                try database.forEachRow("SELECT \(list) FROM \(quoted(name)) LIMIT 0") { _ in }
                tables.append(table)
            } catch let error as StoreError where error.code == .inputOutput {
                notes.append("the table \(name) is left out, because SQLite cannot read it: \(error.message)")
            }
        }
        for (table, module) in modules {
            notes.append("the virtual table \(table) of \(module) is left out, with its internal tables")
        }
        if !views.isEmpty {
            notes.append("views are left out, because their data is that of tables: \(views.joined(separator: ", "))")
        }
    }

    /// Returns the names in lowercase of the tables in which virtual tables keep their data.
    private func shadowTables(
        of modules: [(table: String, module: String)], among names: [String], in database: DatabaseReader
    ) throws -> Set<String> {
        guard !modules.isEmpty else { return [] }
        var shadows: Set<String> = []
        // Versions before 3.37 have no such list and return no row. It has no tables of modules that are missing.
        try database.forEachRow("PRAGMA table_list") { row in
            if row.text(0) == "main", row.text(2) == "shadow" { shadows.insert(row.text(1).lowercased()) }
        }
        for (table, module) in modules {
            for end in Self.shadows[module] ?? [] { shadows.insert("\(table)_\(end)".lowercased()) }
        }
        return shadows
    }

    /// Returns the module in the definition of a virtual table, in lowercase: the word after `USING`.
    private static func module(_ sql: String) -> String {
        let words = sql.lowercased().split { $0.isWhitespace || $0 == "(" || $0 == ")" }
        return words.firstIndex(of: "using").flatMap { $0 + 1 < words.count ? String(words[$0 + 1]) : nil } ?? "an unknown module"
    }
}
