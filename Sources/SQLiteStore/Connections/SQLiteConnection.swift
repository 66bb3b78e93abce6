import Foundation
import GRDB
internal import GRDBSQLite
import StoreInterface

/// One connection, opened and configured by GRDB, with its cache of prepared statements.
///
/// `@unchecked Sendable` is right because whoever uses the connection holds its lock (``withLock(_:)``), and GRDB's own queue
/// is idle once the connection is open.
final class SQLiteConnection: @unchecked Sendable {
    enum Role {
        case writer, reader
        /// Changes nothing about the file, not even where its log ends.
        case observer
        /// Read-only, for a file that no process changes while it is open, in a folder where no log can be created.
        case frozen
        /// Of a file that nobody else knows yet: without a log beside it.
        case creator
    }

    private let queue: DatabaseQueue
    private let handle: OpaquePointer
    let path: String
    private let lock = NSRecursiveLock()
    private var statements: [String: SQLiteStatement] = [:]
    /// The state that the read transaction of a snapshot shows.
    var pinned: Generation?
    /// Why the connection shows its snapshot no more.
    var failure: (any Error)?

    /// More statements than an application has; queries with literal lists come and go.
    private static let statementLimit = 500
    /// How long to wait for another process that writes.
    private static let busyTimeout: TimeInterval = 30

    init(path: String, role: Role) throws {
        self.path = path
        var configuration = Configuration()
        configuration.label = "strata.sqlite"
        configuration.foreignKeysEnabled = false
        configuration.busyMode = .timeout(Self.busyTimeout)
        configuration.readonly = role == .observer || role == .frozen
        configuration.prepareDatabase { database in
            try database.execute(
                sql: "PRAGMA cache_size = -65536; PRAGMA mmap_size = 1073741824; PRAGMA temp_store = MEMORY")
            // What the log is cut to when it begins anew; kept by each connection for itself.
            if role == .writer { try database.execute(sql: "PRAGMA journal_size_limit = \(SQLiteStore.logLimit)") }
            if role == .reader { try database.execute(sql: "PRAGMA query_only = 1") }
        }
        do {
            queue = try DatabaseQueue(path: role == .frozen ? Self.frozenName(path) : path, configuration: configuration)
            handle = try queue.inDatabase { database in
                guard let handle = database.sqliteConnection else {
                    throw StoreError(.cannotOpen, "\(path): the connection closed at once; open it again")
                }
                Self.removeHooks(handle)
                Self.addFunctions(handle)
                return handle
            }
        } catch let error as DatabaseError {
            throw Self.openingError(error, path)
        }
    }

    deinit { statements = [:] }

    /// Closes the connection now, and not with its last reference. Every use of it throws `StoreError` `.closed` afterwards.
    func close() {
        withLock {
            if failure is ClosedConnection { return }
            failure = ClosedConnection()
            statements = [:]
            // If SQLite refuses, the connection is closed with its last reference.
            try? queue.close()
        }
    }

    private struct ClosedConnection: Error {}

    /// Runs `body` while no other thread uses the connection. The same thread may nest.
    func withLock<R>(_ body: () throws -> R) rethrows -> R {
        lock.lock()
        defer { lock.unlock() }
        return try body()
    }

    /// Commits to a log beside the file from now on, so that readers and a writer do not wait for each other.
    func useLog() throws {
        try withLock {
            guard try texts("PRAGMA journal_mode = WAL") == ["wal"] else {
                throw StoreError(.cannotOpen, "\(path) cannot have a write-ahead log beside it; move it to another file system")
            }
        }
    }

    /// Runs `body`, unless another thread uses the connection.
    func withLockIfAvailable(_ body: () -> Void) {
        guard lock.try() else { return }
        defer { lock.unlock() }
        body()
    }

    /// The prepared statement for a text; made once. The caller holds the lock.
    func statement(_ sql: String) throws -> SQLiteStatement {
        if let failure { throw failure is ClosedConnection ? StoreError.closed(path) : failure }
        if let known = statements[sql] { return known }
        if statements.count >= Self.statementLimit { statements = [:] }
        let made = try SQLiteStatement(sql, database: handle, path: path)
        statements[sql] = made
        return made
    }

    func run(_ sql: String) throws { try statement(sql).run() }

    /// Runs several statements, none of them kept.
    func runScript(_ sql: String) throws {
        let code = sqlite3_exec(handle, sql, nil, nil, nil)
        guard code == SQLITE_OK else { throw SQLiteStatement.error(code, handle, path) }
    }

    /// Copies the whole database. The caller uses the connection alone, in a read transaction, so that the copy is of one state.
    /// - Parameters:
    ///   - copy: the handle of an open and empty database.
    ///   - step: called between the parts; what it throws ends the copy.
    func backup(to copy: OpaquePointer, pagesAtOnce: Int32, step: () throws -> Void) throws {
        guard let backup = sqlite3_backup_init(copy, "main", handle, "main") else {
            throw DatabaseError(resultCode: ResultCode(rawValue: sqlite3_errcode(copy)))
        }
        var code = SQLITE_OK
        do {
            while code == SQLITE_OK {
                try step()
                code = sqlite3_backup_step(backup, pagesAtOnce)
            }
        } catch {
            sqlite3_backup_finish(backup)
            throw error
        }
        sqlite3_backup_finish(backup)
        guard code == SQLITE_DONE else {
            throw DatabaseError(
                resultCode: ResultCode(rawValue: code), message: String(cString: sqlite3_errmsg(copy)))
        }
    }

    func integer(_ sql: String, _ values: [Value] = []) throws -> Int64? {
        let statement = try statement(sql)
        statement.bind(values)
        return try statement.integers().first
    }

    func texts(_ sql: String, _ values: [Value] = [], column: Int = 0) throws -> [String] {
        let statement = try statement(sql)
        statement.bind(values)
        defer { statement.reset() }
        var found: [String] = []
        while try statement.step() { found.append(statement.text(column)) }
        return found
    }

    /// Whether the file was deleted, moved or replaced since the connection was opened. One `stat`.
    var hasMoved: Bool {
        get throws {
            var moved: Int32 = 0
            let code = sqlite3_file_control(handle, "main", SQLITE_FCNTL_HAS_MOVED, &moved)
            // File systems without the question have SQLITE_NOTFOUND.
            return code == SQLITE_OK && moved != 0
        }
    }

    /// The rows that the last statement changed.
    var changedRows: Int { Int(sqlite3_changes(handle)) }

    // MARK: Opening

    /// A name with which SQLite looks for no log, and asks for no lock. Libraries that take no such names find no file.
    private static func frozenName(_ path: String) -> String {
        let name = path.addingPercentEncoding(withAllowedCharacters: .urlPathAllowed) ?? path
        return "file:\(name)?immutable=1"
    }

    private static func openingError(_ error: DatabaseError, _ path: String) -> StoreError {
        let reason = error.message ?? error.resultCode.description
        return switch error.resultCode {
        case .SQLITE_NOTADB: StoreError(.notAStore, "\(path) is not an SQLite database; choose another file")
        case .SQLITE_CORRUPT: StoreError(.damaged, "\(path): \(reason); restore it from a copy")
        case .SQLITE_BUSY: StoreError(.inUseElsewhere, "\(path): another connection keeps it locked; try again")
        case .SQLITE_FULL: StoreError(.full, "\(path): \(reason); free some room on the disk")
        case .SQLITE_READONLY where error.extendedResultCode == .SQLITE_READONLY_DBMOVED:
            StoreError(.inUseElsewhere, "\(path) was replaced while it was opened; open it again")
        default: StoreError(.cannotOpen, "\(path): \(reason); check the path and its permissions")
        }
    }

    /// GRDB observes transactions and tables for its own users; its hooks expect its own queue and cost time on every row.
    private static func removeHooks(_ handle: OpaquePointer) {
        sqlite3_commit_hook(handle, nil, nil)
        sqlite3_rollback_hook(handle, nil, nil)
        sqlite3_update_hook(handle, nil, nil)
        sqlite3_set_authorizer(handle, nil, nil)
    }

    /// `strata_lower(text)`: what Swift's `lowercased()` gives, for comparisons without case.
    private static func addFunctions(_ handle: OpaquePointer) {
        let flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC
        sqlite3_create_function_v2(
            handle, "strata_lower", 1, flags, nil,
            { context, _, arguments in
                guard let argument = arguments?[0], let start = sqlite3_value_text(argument) else {
                    sqlite3_result_null(context)
                    return
                }
                let bytes = UnsafeBufferPointer(start: start, count: Int(sqlite3_value_bytes(argument)))
                let text = String(decoding: bytes, as: UTF8.self).lowercased()
                // The bits of -1 are SQLITE_TRANSIENT, a macro that Swift does not import: SQLite copies the text.
                sqlite3_result_text64(
                    context, text, UInt64(text.utf8.count), unsafeBitCast(-1, to: sqlite3_destructor_type.self),
                    UInt8(SQLITE_UTF8))
            }, nil, nil, nil)
    }
}
