internal import CSQLiteBaseline

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// SQLite in C calls with prepared statements, as a careful programmer would write by hand. Each C function is called in one
/// place.
///
/// One connection, used by one thread.
public final class RawSQLite {
    public enum Access { case readOnly, readWrite }

    public struct Failure: Error, CustomStringConvertible {
        public var description: String
    }

    private var handle: OpaquePointer?

    public static var version: String { String(cString: sqlite3_libversion()) }

    public init(path: String, access: Access) throws {
        let flags = access == .readOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
        let status = sqlite3_open_v2(path, &handle, flags | SQLITE_OPEN_NOMUTEX, nil)
        guard status == SQLITE_OK else { throw Failure(description: "\(path): \(message())") }
    }

    deinit { sqlite3_close_v2(handle) }

    public func execute(_ sql: String) throws {
        guard sqlite3_exec(handle, sql, nil, nil, nil) == SQLITE_OK else { throw Failure(description: "\(message()): \(sql)") }
    }

    public func prepare(_ sql: String) throws -> Statement {
        var statement: OpaquePointer?
        guard sqlite3_prepare_v2(handle, sql, -1, &statement, nil) == SQLITE_OK, let statement else {
            throw Failure(description: "\(message()): \(sql)")
        }
        return Statement(statement, of: self)
    }

    fileprivate func message() -> String { handle.map { String(cString: sqlite3_errmsg($0)) } ?? "out of memory" }

    /// The kind of value in a cell.
    public enum CellKind: Sendable { case null, integer, real, text, blob }

    public final class Statement {
        private let handle: OpaquePointer
        private let database: RawSQLite

        fileprivate init(_ handle: OpaquePointer, of database: RawSQLite) {
            self.handle = handle
            self.database = database
        }

        deinit { sqlite3_finalize(handle) }

        // Parameters count from 1, columns from 0, as in SQLite.

        @inline(__always)
        public func bind(_ parameter: Int, _ value: Int64) { sqlite3_bind_int64(handle, Int32(parameter), value) }

        @inline(__always)
        public func bind(_ parameter: Int, _ value: Double) { sqlite3_bind_double(handle, Int32(parameter), value) }

        @inline(__always)
        public func bindNull(_ parameter: Int) { sqlite3_bind_null(handle, Int32(parameter)) }

        public func bind(_ parameter: Int, _ text: String) {
            var text = text
            text.withUTF8 { bytes in
                _ = bytes.withMemoryRebound(to: CChar.self) {
                    sqlite3_bind_text(handle, Int32(parameter), $0.baseAddress, Int32($0.count), Self.transient)
                }
            }
        }

        public func bind(_ parameter: Int, _ bytes: Data) {
            bytes.withUnsafeBytes {
                _ = sqlite3_bind_blob(handle, Int32(parameter), $0.baseAddress, Int32($0.count), Self.transient)
            }
        }

        /// SQLITE_TRANSIENT, a cast that Swift cannot import from a C macro. SQLite copies the bytes at once.
        private static var transient: sqlite3_destructor_type { unsafeBitCast(-1, to: sqlite3_destructor_type.self) }

        /// Advances to the next row and returns whether there is one.
        @inline(__always)
        public func step() throws -> Bool {
            switch sqlite3_step(handle) {
            case SQLITE_ROW: return true
            case SQLITE_DONE: return false
            default: throw Failure(description: database.message())
            }
        }

        /// Makes the statement ready to run again.
        @inline(__always)
        public func reset() { sqlite3_reset(handle) }

        /// Runs a statement without rows and makes it ready to run again.
        @inline(__always)
        public func run() throws {
            _ = try step()
            reset()
        }

        public func kind(_ column: Int) -> CellKind {
            switch sqlite3_column_type(handle, Int32(column)) {
            case SQLITE_INTEGER: .integer
            case SQLITE_FLOAT: .real
            case SQLITE_TEXT: .text
            case SQLITE_BLOB: .blob
            default: .null
            }
        }

        @inline(__always)
        public func int(_ column: Int) -> Int64 { sqlite3_column_int64(handle, Int32(column)) }

        @inline(__always)
        public func double(_ column: Int) -> Double { sqlite3_column_double(handle, Int32(column)) }

        public func text(_ column: Int) -> String {
            guard let start = sqlite3_column_text(handle, Int32(column)) else { return "" }
            let count = Int(sqlite3_column_bytes(handle, Int32(column)))
            return String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self)
        }

        /// Calls `body` with the bytes of a value, which are valid inside `body` only.
        public func withBlob<R>(_ column: Int, _ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R {
            let start = sqlite3_column_blob(handle, Int32(column))
            return try body(UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(handle, Int32(column)))))
        }

        public func blob(_ column: Int) -> Data {
            guard let start = sqlite3_column_blob(handle, Int32(column)) else { return Data() }
            return Data(bytes: start, count: Int(sqlite3_column_bytes(handle, Int32(column))))
        }
    }
}
