import Datasets
import Baselines
import StoreInterface

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The import in SQLite's C calls: prepared statements, one transaction per batch, and the same indexes as the stores. The cache and
/// the map of the file are as large as those of Strata's store on SQLite.
final class SQLiteBaseline {
    let database: RawSQLite
    let path: String
    let durability: DurabilityKind

    init(path: String, durability: DurabilityKind) throws {
        self.path = path
        self.durability = durability
        database = try RawSQLite(path: path, access: .readWrite)
        // Other threads may create tables of the same file.
        try database.execute("PRAGMA busy_timeout = 10000")
        try database.execute("PRAGMA journal_mode = WAL")
        try database.execute("PRAGMA synchronous = \(durability == .durable ? "FULL" : "NORMAL")")
        // By default, 2 MB are cached and nothing is mapped, which makes random reads of large files slower.
        try database.execute("PRAGMA cache_size = -65536; PRAGMA mmap_size = 1073741824; PRAGMA temp_store = MEMORY")
    }

    /// Creates missing tables and indexes, in one transaction. A store creates its own tables when it opens, so this is not
    /// measured.
    func makeTables(_ dataset: Dataset) throws {
        try database.execute("BEGIN IMMEDIATE")
        for table in dataset.tables { try make(table) }
        for (number, link) in dataset.links.enumerated() { try make(link, number) }
        try database.execute("COMMIT")
    }

    /// Imports objects, then references, then links. A row's key is its number plus one.
    func run(_ data: PreparedDataset, saveEvery: Int) throws {
        let dataset = data.dataset
        for (table, rows) in zip(dataset.tables, data.rows) { try insert(table, rows: rows, saveEvery: saveEvery) }
        for table in dataset.tables where !table.references.isEmpty { try relate(table, saveEvery) }
        for (number, link) in dataset.links.enumerated() { try connect(link, number: number, saveEvery: saveEvery) }
    }

    private func make(_ table: Table) throws {
        let columns = table.attributes.map { "\(quoted($0.name)) \(Self.declaration($0.type))" }
        let references = table.references.map { "\(quoted($0.name)) INTEGER" }
        let all = ["id_key INTEGER PRIMARY KEY"] + columns + references
        try database.execute(
            "CREATE TABLE IF NOT EXISTS \(quoted(table.name)) (\(all.joined(separator: ", ")))"
        )
        for reference in table.references {
            try database.execute(
                "CREATE INDEX IF NOT EXISTS \(quoted(table.name + "." + reference.name)) ON \(quoted(table.name)) (\(quoted(reference.name)))"
            )
        }
    }

    private func make(_ link: Link, _ number: Int) throws {
        try database.execute(
            "CREATE TABLE IF NOT EXISTS link\(number) (source INTEGER, destination INTEGER, PRIMARY KEY (source, destination)) WITHOUT ROWID"
        )
        try database.execute("CREATE INDEX IF NOT EXISTS link\(number)_back ON link\(number) (destination)")
    }

    private func insert(_ table: Table, rows: [[Value]], saveEvery: Int) throws {
        let names = (["id_key"] + table.attributes.map { quoted($0.name) }).joined(separator: ", ")
        let marks = Array(repeating: "?", count: table.attributes.count + 1).joined(separator: ", ")
        let statement = try database.prepare("INSERT INTO \(quoted(table.name)) (\(names)) VALUES (\(marks))")
        let columns = table.attributes.indices
        try transactions(table.rowCount, size: saveEvery) { row in
            statement.bind(1, Int64(row + 1))
            let values = rows[row]
            for column in columns { Self.bind(statement, parameter: column + 2, value: values[column]) }
            try statement.run()
        }
    }

    private func relate(_ table: Table, _ saveEvery: Int) throws {
        let sets = table.references.map { "\(quoted($0.name)) = ?" }.joined(separator: ", ")
        let statement = try database.prepare("UPDATE \(quoted(table.name)) SET \(sets) WHERE id_key = ?")
        let references = table.references.map(\.rows)
        try transactions(table.rowCount, size: saveEvery) { row in
            for column in references.indices {
                if references[column][row] < 0 {
                    statement.bindNull(column + 1)
                } else {
                    statement.bind(column + 1, Int64(references[column][row] + 1))
                }
            }
            statement.bind(references.count + 1, Int64(row + 1))
            try statement.run()
        }
    }

    private func connect(_ link: Link, number: Int, saveEvery: Int) throws {
        let statement = try database.prepare("INSERT INTO link\(number) VALUES (?, ?)")
        let pairs = link.pairs
        try transactions(pairs.count, size: saveEvery) { index in
            statement.bind(1, Int64(pairs[index].source + 1))
            statement.bind(2, Int64(pairs[index].destination + 1))
            try statement.run()
        }
    }

    /// Calls `body` for each number below `count`, in transactions of `size`.
    private func transactions(_ count: Int, size: Int, _ body: (Int) throws -> Void) throws {
        for start in stride(from: 0, to: count, by: size) {
            try database.execute("BEGIN IMMEDIATE")
            for index in start..<min(count, start + size) { try body(index) }
            try database.execute("COMMIT")
        }
    }

    // MARK: What a file holds

    /// Reopens a file, and throws unless it has all values, references and links of the data set, and nothing else.
    static func verify(_ path: String, _ dataset: Dataset) throws {
        let database = try RawSQLite(path: path, access: .readWrite)
        for table in dataset.tables {
            try checksum(database, table).check("raw SQLite: \(table.name)", Checksum(table))
        }
        for (number, link) in dataset.links.enumerated() {
            var sum = Checksum()
            let all = try database.prepare("SELECT source, destination FROM link\(number)")
            while try all.step() { sum.add(Int(all.int(0)) - 1, column: 0, value: .int(all.int(1) - 1)) }
            try sum.check("raw SQLite: link \(number)", Checksum(link))
        }
    }

    /// Returns the checksum of all rows of a table.
    static func checksum(_ database: RawSQLite, _ table: Table) throws -> Checksum {
        var sum = Checksum()
        let types = table.attributes.map(\.type) + table.references.map { _ in .int64 }
        let all = try database.prepare("SELECT * FROM \(quoted(table.name))")
        while try all.step() {
            let row = Int(all.int(0)) - 1
            for (column, type) in types.enumerated() {
                sum.add(row, column: column, value: value(all, column: column + 1, type: type))
            }
        }
        return sum
    }

    private static func value(_ row: RawSQLite.Statement, column: Int, type: ColumnType) -> Value {
        if row.kind(column) == .null { return .null }
        return switch declaration(type) {
        case "REAL": .double(row.double(column))
        case "TEXT": .string(row.text(column))
        case "BLOB": row.kind(column) == .text ? .string(row.text(column)) : .data(row.blob(column))
        default: .int(row.int(column))
        }
    }

    private static func declaration(_ type: ColumnType) -> String {
        switch type {
        case .double, .float, .date: "REAL"
        case .string: "TEXT"
        case .data, .uuid: "BLOB"
        default: "INTEGER"
        }
    }

    @inline(__always)
    static func bind(_ statement: RawSQLite.Statement, parameter: Int, value: Value) {
        switch value {
        case .null: statement.bindNull(parameter)
        case .bool(let flag): statement.bind(parameter, Int64(flag ? 1 : 0))
        case .int(let number): statement.bind(parameter, number)
        case .uint(let number): statement.bind(parameter, Int64(bitPattern: number))
        case .double(let number): statement.bind(parameter, number)
        case .string(let text): statement.bind(parameter, text)
        case .data(let bytes): statement.bind(parameter, bytes)
        case .uuid(let uuid): statement.bind(parameter, uuid.uuidString)
        case .reference(let key): statement.bind(parameter, Int64(bitPattern: key.rawValue))
        }
    }
}

/// Returns a name as a quoted SQL identifier.
func quoted(_ name: String) -> String {
    "\"\(name.split(separator: "\"", omittingEmptySubsequences: false).joined(separator: "\"\""))\""
}
