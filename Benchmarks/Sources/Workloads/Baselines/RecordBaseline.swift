import Datasets
import Baselines
import StoreInterface

/// Records in C calls, in one file that one thread uses. Rows are numbered from 0.
protocol RecordBaseline: AnyObject, SendableMetatype {
    static var engine: Engine { get }
    /// Opens a file, and creates the table of records if it is missing.
    init(path: String, durability: DurabilityKind) throws
    /// Opens the same file for another thread.
    var another: @Sendable () throws -> Self { get }
    /// Inserts rows in one transaction. All existing rows have lower numbers.
    func insert(_ rows: [[Value]], from first: Int) throws
    /// Updates rows in one transaction. Each row's amount becomes its position in the whole list.
    func update(_ rows: ArraySlice<Int>) throws
    func beginReading() throws
    func endReading() throws
    /// Returns the value of the first column of a record. Call this while reading.
    func count(_ row: Int) throws -> Int
    /// Returns the number of records that satisfy the scan's condition. Call this while reading.
    func matching() throws -> Int
    func checksum() throws -> Checksum
}

extension RecordBaseline {
    func update(_ rows: [Int], saveEvery: Int) throws {
        for start in stride(from: 0, to: rows.count, by: saveEvery) {
            try update(rows[start..<min(rows.count, start + saveEvery)])
        }
    }
}

final class SQLiteRecords: RecordBaseline {
    static let engine = Engine.sqliteRaw

    let another: @Sendable () throws -> SQLiteRecords
    private let database: RawSQLite
    private let inserting: RawSQLite.Statement
    private let updating: RawSQLite.Statement
    private let getting: RawSQLite.Statement
    private let scanning: RawSQLite.Statement

    convenience init(path: String, durability: DurabilityKind) throws {
        let baseline = try SQLiteBaseline(path: path, durability: durability)
        try baseline.makeTables(RecordData.make(0, seed: 0))
        try self.init(baseline)
    }

    /// Uses the connection of a baseline that has the table.
    init(_ baseline: SQLiteBaseline) throws {
        another = { [path = baseline.path, durability = baseline.durability] in
            try SQLiteRecords(path: path, durability: durability)
        }
        database = baseline.database
        inserting = try database.prepare("INSERT INTO Record VALUES (?, ?, ?, ?, ?, ?, ?, ?)")
        updating = try database.prepare("UPDATE Record SET amount = ? WHERE id_key = ?")
        getting = try database.prepare("SELECT \"count\" FROM Record WHERE id_key = ?")
        scanning = try database.prepare("SELECT COUNT(*) FROM Record WHERE \"count\" >= ? AND kind = ?")
        scanning.bind(1, RecordData.leastCount)
        scanning.bind(2, RecordData.kind)
    }

    func insert(_ rows: [[Value]], from first: Int) throws {
        try database.execute("BEGIN IMMEDIATE")
        for (number, row) in rows.enumerated() {
            inserting.bind(1, Int64(first + number + 1))
            for (column, value) in row.enumerated() { SQLiteBaseline.bind(inserting, parameter: column + 2, value: value) }
            try inserting.run()
        }
        try database.execute("COMMIT")
    }

    func update(_ rows: ArraySlice<Int>) throws {
        try database.execute("BEGIN IMMEDIATE")
        for index in rows.indices {
            updating.bind(1, Double(index))
            updating.bind(2, Int64(rows[index] + 1))
            try updating.run()
        }
        try database.execute("COMMIT")
    }

    func beginReading() throws { try database.execute("BEGIN") }
    func endReading() throws { try database.execute("COMMIT") }

    func count(_ row: Int) throws -> Int {
        getting.bind(1, Int64(row + 1))
        defer { getting.reset() }
        return try getting.step() ? Int(getting.int(0)) : 0
    }

    func matching() throws -> Int {
        defer { scanning.reset() }
        return try scanning.step() ? Int(scanning.int(0)) : 0
    }

    func checksum() throws -> Checksum { try SQLiteBaseline.checksum(database, RecordData.make(0, seed: 0).tables[0]) }
}

final class LMDBRecords: RecordBaseline {
    static let engine = Engine.lmdbRaw

    private let environment: RawLMDB
    private let table: RawLMDB.Table
    private var bytes = RowBytes()
    private var copy: [UInt8] = []

    convenience init(path: String, durability: DurabilityKind) throws {
        let baseline = try LMDBBaseline(path: path, durability: durability)
        try baseline.makeTables(RecordData.make(0, seed: 0))
        self.init(baseline.environment, baseline.firstTable)
    }

    init(_ environment: RawLMDB, _ table: RawLMDB.Table) {
        self.environment = environment
        self.table = table
    }

    var another: @Sendable () throws -> LMDBRecords {
        { [environment = environment.environment, table] in LMDBRecords(RawLMDB(sharing: environment), table) }
    }

    func insert(_ rows: [[Value]], from first: Int) throws {
        try environment.begin(.writing)
        for (number, row) in rows.enumerated() {
            bytes.removeAll()
            for value in row { bytes.append(value) }
            try bytes.withBytes { try environment.put(table, key: UInt64(first + number + 1), order: .ascending, $0) }
        }
        try environment.commit()
    }

    func update(_ rows: ArraySlice<Int>) throws {
        try environment.begin(.writing)
        for index in rows.indices {
            let key = UInt64(rows[index] + 1)
            let found: Void? = try environment.get(table, key: key) {
                copy.removeAll(keepingCapacity: true)
                copy.append(contentsOf: $0)
            }
            guard found != nil else { throw VerificationError("raw LMDB: no row \(rows[index]) to update") }
            // Two numbers precede it, each with a byte for null or not.
            copy.withUnsafeMutableBytes { $0.storeBytes(of: Double(index).bitPattern, toByteOffset: 19, as: UInt64.self) }
            try copy.withUnsafeBytes { try environment.put(table, key: key, $0) }
        }
        try environment.commit()
    }

    func beginReading() throws { try environment.begin(.reading) }
    func endReading() throws { try environment.commit() }

    /// "count" is the first value of a row: a byte for null or not, then eight bytes.
    func count(_ row: Int) throws -> Int {
        try environment.get(table, key: UInt64(row + 1)) { Int($0.loadUnaligned(fromByteOffset: 1, as: Int64.self)) } ?? 0
    }

    func matching() throws -> Int {
        var count = 0
        try environment.forEach(table) { bytes in
            if bytes.loadUnaligned(fromByteOffset: 1, as: Int64.self) >= RecordData.leastCount,
                bytes.loadUnaligned(fromByteOffset: 10, as: Int64.self) == RecordData.kind
            {
                count += 1
            }
        }
        return count
    }

    func checksum() throws -> Checksum {
        try environment.begin(.reading)
        let sum = try LMDBBaseline.checksum(environment, rows: table, table: RecordData.make(0, seed: 0).tables[0])
        try environment.commit()
        return sum
    }
}
