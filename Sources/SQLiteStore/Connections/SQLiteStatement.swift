import Foundation
internal import CSQLite
internal import Platform
import StoreInterface
import StoreModel

/// A prepared statement that its connection caches. Used only under the connection's lock.
///
/// It binds and reads through SQLite's C functions, as a tuned application does, without argument arrays or row objects.
final class SQLiteStatement {
    private let handle: OpaquePointer
    private let database: OpaquePointer
    private let path: String
    /// The first error of a bind call since the statement ran. SQLite would run the statement with NULL in that place.
    private var bindFailure = SQLITE_OK

    /// `SQLITE_TRANSIENT`, a C macro for -1: SQLite copies the bound bytes before the call returns.
    private static let transient = unsafeBitCast(-1, to: sqlite3_destructor_type.self)

    init(_ sql: String, database: OpaquePointer, path: String) throws {
        self.database = database
        self.path = path
        var statement: OpaquePointer?
        let code = sqlite3_prepare_v3(database, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &statement, nil)
        guard code == SQLITE_OK, let statement else { throw Self.error(code, database: database, path: path) }
        handle = statement
    }

    deinit { sqlite3_finalize(handle) }

    // MARK: Binding; parameters count from 1

    func bind(_ number: Int64, _ parameter: Int) { note(sqlite3_bind_int64(handle, Int32(parameter), number)) }

    func bind(_ key: ObjectKey, _ parameter: Int) { bind(key.stored, parameter) }

    /// Binds a value. NaN, which SQLite would turn into NULL, is bound as the text 'NaN'. The text sorts after every number,
    /// as in ``Value/order(_:)``.
    func bind(_ value: Value, _ parameter: Int) {
        let at = Int32(parameter)
        switch value {
        case .null: note(sqlite3_bind_null(handle, at))
        case .bool(let flag): note(sqlite3_bind_int64(handle, at, flag ? 1 : 0))
        case .int(let number): note(sqlite3_bind_int64(handle, at, number))
        case .uint(let number): note(sqlite3_bind_int64(handle, at, Int64(bitPattern: number)))
        case .reference(let key): note(sqlite3_bind_int64(handle, at, key.stored))
        case .double(let number):
            if number.isNaN { bind(text: "NaN", at) } else { note(sqlite3_bind_double(handle, at, number)) }
        case .string(let text): bind(text: text, at)
        case .data(let data): data.withUnsafeBytes { bind(bytes: $0, at) }
        case .uuid(let uuid): withUnsafeBytes(of: uuid.uuid) { bind(bytes: $0, at) }
        }
    }

    private func note(_ code: Int32) {
        if code != SQLITE_OK, bindFailure == SQLITE_OK { bindFailure = code }
    }

    private func bind(bytes: UnsafeRawBufferPointer, _ parameter: Int32) {
        if bytes.isEmpty {
            note(sqlite3_bind_zeroblob(handle, parameter, 0))
        } else {
            note(sqlite3_bind_blob64(handle, parameter, bytes.baseAddress, UInt64(bytes.count), Self.transient))
        }
    }

    private func bind(text: String, _ parameter: Int32) {
        var text = text
        text.withUTF8 { bytes in
            // An empty buffer may have no address, and a null address would bind NULL.
            guard let start = bytes.baseAddress, !bytes.isEmpty else {
                note(sqlite3_bind_text(handle, parameter, "", 0, Self.transient))
                return
            }
            start.withMemoryRebound(to: CChar.self, capacity: bytes.count) {
                note(sqlite3_bind_text64(handle, parameter, $0, UInt64(bytes.count), Self.transient, UInt8(SQLITE_UTF8)))
            }
        }
    }

    func bind(_ values: [Value]) {
        for (position, value) in values.enumerated() { bind(value, position + 1) }
    }

    // MARK: Running

    /// Returns the number of rows that full scans of the statement have read since the last call; 0 if it made none.
    func takeScannedRows() -> Int {
        // SQLite counts the steps from one row to the next.
        let steps = Int(sqlite3_stmt_status(handle, SQLITE_STMTSTATUS_FULLSCAN_STEP, 1))
        return steps == 0 ? 0 : steps + 1
    }

    /// Advances to the next row. Returns false after the last row. Call ``reset()`` when done.
    func step() throws -> Bool {
        let code = advance()
        if code == SQLITE_ROW { return true }
        if code == SQLITE_DONE { return false }
        let error = Self.error(code, database: database, path: path)
        reset()
        throw error
    }

    /// Runs the statement, unless a value could not be bound. Returns SQLite's code.
    private func advance() -> Int32 {
        guard bindFailure != SQLITE_OK else { return sqlite3_step(handle) }
        defer { bindFailure = SQLITE_OK }
        return bindFailure
    }

    func reset() { sqlite3_reset(handle) }

    /// Runs a statement that returns no rows.
    func run() throws {
        defer { reset() }
        while try step() {}
    }

    /// Runs a statement that inserts one row. Returns false if a row has the same key.
    func runInsert() throws -> Bool {
        defer { reset() }
        let code = advance()
        if code == SQLITE_DONE { return true }
        // SQLITE_CONSTRAINT_PRIMARYKEY and SQLITE_CONSTRAINT_ROWID, macros that Swift does not import.
        if code == SQLITE_CONSTRAINT | (6 << 8) || code == SQLITE_CONSTRAINT | (10 << 8) { return false }
        throw Self.error(code, database: database, path: path)
    }

    /// Runs the statement with the bound values, and returns the first column.
    func integers() throws -> [Int64] {
        defer { reset() }
        var found: [Int64] = []
        while try step() { found.append(integer(0)) }
        return found
    }

    func keys() throws -> [ObjectKey] { try integers().map { ObjectKey(stored: $0) } }

    // MARK: Reading; columns count from 0

    func integer(_ column: Int) -> Int64 { sqlite3_column_int64(handle, Int32(column)) }

    func text(_ column: Int) -> String {
        guard let start = sqlite3_column_text(handle, Int32(column)) else { return "" }
        let bytes = UnsafeBufferPointer(start: start, count: Int(sqlite3_column_bytes(handle, Int32(column))))
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Returns the value of a column with the storage class that it has in the file. A text that is not UTF-8 is returned as its bytes.
    func storedValue(_ column: Int) -> Value {
        let at = Int32(column)
        return switch sqlite3_column_type(handle, at) {
        case SQLITE_INTEGER: .int(integer(column))
        case SQLITE_FLOAT: .double(sqlite3_column_double(handle, at))
        case SQLITE_TEXT: validText(column).map { .string($0) } ?? .data(textBytes(column))
        case SQLITE_BLOB: .data(data(column))
        default: .null
        }
    }

    /// Returns whether the value of a column is a text, of whatever bytes.
    func isText(_ column: Int) -> Bool { sqlite3_column_type(handle, Int32(column)) == SQLITE_TEXT }

    /// Returns a text, or nil if its bytes are not UTF-8.
    private func validText(_ column: Int) -> String? {
        guard let start = sqlite3_column_text(handle, Int32(column)) else { return "" }
        let bytes = UnsafeBufferPointer(start: start, count: Int(sqlite3_column_bytes(handle, Int32(column))))
        return String(validating: bytes, as: UTF8.self)
    }

    private func textBytes(_ column: Int) -> Data {
        guard let start = sqlite3_column_text(handle, Int32(column)) else { return Data() }
        return Data(bytes: start, count: Int(sqlite3_column_bytes(handle, Int32(column))))
    }

    /// Returns the value of a column, or nil if the stored value does not fit the type.
    func value(_ column: Int, _ type: ColumnType) -> Value? {
        let at = Int32(column)
        switch (sqlite3_column_type(handle, at), type) {
        case (SQLITE_NULL, _): return .null
        case (SQLITE_INTEGER, .bool): return .bool(integer(column) != 0)
        case (SQLITE_INTEGER, .uint64): return .uint(UInt64(bitPattern: integer(column)))
        case (SQLITE_INTEGER, .reference): return .reference(ObjectKey(stored: integer(column)))
        case (SQLITE_INTEGER, .int8), (SQLITE_INTEGER, .int16), (SQLITE_INTEGER, .int32), (SQLITE_INTEGER, .int64),
            (SQLITE_INTEGER, .uint8), (SQLITE_INTEGER, .uint16), (SQLITE_INTEGER, .uint32):
            return .int(integer(column))
        case (SQLITE_FLOAT, .float), (SQLITE_FLOAT, .double), (SQLITE_FLOAT, .date):
            return .double(sqlite3_column_double(handle, at))
        case (SQLITE_TEXT, .float), (SQLITE_TEXT, .double), (SQLITE_TEXT, .date):
            return text(column) == "NaN" ? .double(.nan) : nil
        case (SQLITE_TEXT, .string): return .string(text(column))
        case (SQLITE_BLOB, .data): return .data(data(column))
        case (SQLITE_BLOB, .uuid): return uuid(column).map { .uuid($0) }
        default: return nil
        }
    }

    private func data(_ column: Int) -> Data {
        guard let start = sqlite3_column_blob(handle, Int32(column)) else { return Data() }
        return Data(bytes: start, count: Int(sqlite3_column_bytes(handle, Int32(column))))
    }

    private func uuid(_ column: Int) -> UUID? {
        guard sqlite3_column_bytes(handle, Int32(column)) == 16, let start = sqlite3_column_blob(handle, Int32(column))
        else { return nil }
        return UUID(uuid: start.loadUnaligned(as: uuid_t.self))
    }

    static func error(_ code: Int32, database: OpaquePointer, path: String) -> StoreError {
        if let error = StoreError.full(code, database: database, path: path) { return error }
        let cause = SQLiteError(code: code, database: database)
        let reason = cause.message
        var error: StoreError =
            switch code & 0xff {
            case SQLITE_READONLY where SQLiteConnection.hasMoved(database):
                StoreError.fileReplaced(path, isGone: !FileManager.default.fileExists(atPath: path))
            case SQLITE_BUSY, SQLITE_LOCKED:
                StoreError(.inUseElsewhere, "\(path): another connection kept it locked (\(reason)); try again")
            case SQLITE_CORRUPT, SQLITE_NOTADB: StoreError(.damaged, "\(path): \(reason); restore it from a copy")
            case SQLITE_READONLY, SQLITE_PERM: StoreError(.readOnly, "\(path): \(reason); make the file writable")
            case SQLITE_CANTOPEN: StoreError(.cannotOpen, "\(path): \(reason); check the path and its permissions")
            case SQLITE_TOOBIG: StoreError(.valueTooLarge, "\(path): \(reason); store less in one value")
            default: StoreError(.inputOutput, "\(path): SQLite failed with code \(code): \(reason)")
            }
        error.cause = cause
        return error
    }
}

extension Generation {
    /// Creates a generation from a number of a table. SQLite's numbers are signed.
    init(stored number: Int64) { self.init(rawValue: UInt64(bitPattern: number)) }

    /// The number in a table.
    var stored: Int64 { Int64(bitPattern: rawValue) }
}

extension ObjectKey {
    /// Creates a key from a number of a table. SQLite's numbers are signed.
    init(stored number: Int64) { self.init(rawValue: UInt64(bitPattern: number)) }

    /// The number in a table.
    var stored: Int64 { Int64(bitPattern: rawValue) }
}
