internal import CSQLite
import Foundation
internal import Platform
import StoreFiles
import StoreInterface
import StoreModel

/// One connection to a file, with its cache of prepared statements.
///
/// `@unchecked Sendable` is right because a thread uses the connection only under its lock (``withLock(_:)``), or while no
/// other thread has it. SQLite's own lock per call is therefore disabled (`SQLITE_OPEN_NOMUTEX`).
final class SQLiteConnection: @unchecked Sendable {
    enum Role {
        case writer, reader
        /// Read-only. Changes nothing about the file, not even where its log ends.
        case observer
        /// Read-only, for a file that no process changes while it is open, in a folder where no log can be created.
        case frozen
        /// For a new file that no other connection has open, without a log.
        case creator
        /// For a new file that is filled page by page, without a large cache or memory map.
        case copy

        fileprivate var isReadOnly: Bool { self == .observer || self == .frozen }
    }

    /// SQLite's connection, which is closed once: in `close()`, which sets nil, or in `deinit`.
    private var handle: OpaquePointer?
    /// SQLite's connection if it is open, for calls that do not open it again. The caller holds the lock.
    var openHandle: OpaquePointer? { handle }
    /// The file of a connection that is closed until the next use; nil otherwise.
    private var suspended: FileIdentity?
    /// The path of the file, for errors.
    let path: String
    private let role: Role
    private let lock = NSRecursiveLock()
    private var statements: [String: SQLiteStatement] = [:]
    /// A closure of a test that is called before each statement without result, and whose error fails the statement.
    var beforeRunning: ((String) throws -> Void)?
    /// The state that a snapshot's read transaction shows.
    var pinned: Generation?
    /// The reason why the connection can no longer be used; nil while it is usable.
    var failure: (any Error)?

    /// The number of statements at which the cache is emptied. An application has fewer, except for queries with literal
    /// lists.
    private static let statementLimit = 500
    /// The maximum wait for another process that writes, in milliseconds.
    static let busyTimeout: Int32 = 30_000

    /// Opens the file and reads its schema.
    /// - Parameters:
    ///   - path: The path of the file. The roles `writer`, `creator` and `copy` create it.
    ///   - role: The use of the connection.
    ///   - name: The path for errors, if it differs.
    /// - Throws: `StoreError` `.notAStore` for a file that is not a database, `.damaged`, `.inUseElsewhere`, `.full`, `.cannotOpen`.
    ///   `.readOnly` if a journal has to be rolled back and the role does not change the file.
    init(path: String, role: Role, name: String? = nil) throws {
        self.path = name ?? path
        self.role = role
        handle = try Self.open(path, role, name: name ?? path)
    }

    deinit {
        // Statements first: SQLite keeps a connection with one of them open.
        statements = [:]
        sqlite3_close_v2(handle)
    }

    /// Closes the connection immediately, even while it is referenced. Afterwards, every use throws `StoreError` `.closed`.
    func close() {
        withLock {
            if failure is ClosedConnection { return }
            failure = ClosedConnection()
            statements = [:]
            // If SQLite refuses, the connection is closed with its last reference.
            if sqlite3_close(handle) == SQLITE_OK { handle = nil }
        }
    }

    /// Closes the connection until the next use, which opens the same file again. The caller uses the connection alone.
    func suspend() {
        withLock {
            guard failure == nil, let open = handle else { return }
            let file = StoreFile.identity(path)
            // The next use must not open a file that has taken the name of this one.
            let isReplaced = Self.hasMoved(open)
            statements = [:]
            guard sqlite3_close(open) == SQLITE_OK else { return }
            handle = nil
            if isReplaced { failure = StoreError.fileReplaced(path, isGone: file == nil) } else { suspended = file }
        }
    }

    /// Opens the file again after ``suspend()``.
    private func resume() throws -> OpaquePointer {
        let found = StoreFile.identity(path)
        guard let file = suspended, found == file else { throw StoreError.fileReplaced(path, isGone: found == nil) }
        let opened: OpaquePointer
        do { opened = try Self.open(path, role, name: path) } catch let error as StoreError
            where error.code == .cannotOpen && role == .observer && !SQLiteFile.hasLog(path)
            && !FilePermission.mayWriteFolder(of: path)
        {
            // The last writer has taken the log away, and this user cannot make another one. A new opening reads the file as it is.
            throw StoreError.changedWhileFrozen(path)
        }
        let now = StoreFile.identity(path)
        guard now == file, !Self.hasMoved(opened) else {
            sqlite3_close_v2(opened)
            throw StoreError.fileReplaced(path, isGone: now == nil)
        }
        handle = opened
        suspended = nil
        return opened
    }

    private struct ClosedConnection: Error {}

    /// The open connection. The caller holds the lock.
    private var database: OpaquePointer {
        get throws {
            if let failure { throw failure is ClosedConnection ? StoreError.closed(path) : failure }
            if let handle { return handle }
            if suspended != nil { return try resume() }
            throw StoreError.closed(path)
        }
    }

    /// Runs `body` while no other thread uses the connection. Calls on the same thread may be nested.
    func withLock<R>(_ body: () throws -> R) rethrows -> R {
        lock.lock()
        defer { lock.unlock() }
        return try body()
    }

    /// Switches the file to a write-ahead log, so that readers and the writer do not wait for each other.
    func useLog() throws {
        try withLock {
            guard try switchedToLog() else {
                throw StoreError(.cannotOpen, "\(path) cannot have a write-ahead log beside it; move it to another file system")
            }
        }
    }

    /// Tries for up to 30 seconds while other connections make the same switch: SQLite does not wait for the lock that it needs.
    private func switchedToLog() throws -> Bool {
        let end = ContinuousClock.now + .milliseconds(Self.busyTimeout)
        while true {
            do { return try texts("PRAGMA journal_mode = WAL") == ["wal"] } catch let error as StoreError
                where error.code == .inUseElsewhere && ContinuousClock.now < end
            {
                CurrentThread.sleep(microseconds: 1000)
            }
        }
    }

    /// Runs `body`, unless another thread uses the connection.
    func withLockIfAvailable(_ body: () -> Void) {
        guard lock.try() else { return }
        defer { lock.unlock() }
        body()
    }

    /// Returns the prepared statement for a text, and caches it. The caller holds the lock.
    func statement(_ sql: String) throws -> SQLiteStatement {
        let database = try database
        if let known = statements[sql] { return known }
        if statements.count >= Self.statementLimit { statements = [:] }
        let made = try SQLiteStatement(sql, database: database, path: path)
        statements[sql] = made
        return made
    }

    func run(_ sql: String) throws {
        try beforeRunning?(sql)
        try statement(sql).run()
    }

    /// Runs several statements without caching them.
    func runScript(_ sql: String) throws {
        let database = try database
        let code = sqlite3_exec(database, sql, nil, nil, nil)
        guard code == SQLITE_OK else { throw SQLiteStatement.error(code, database: database, path: path) }
    }

    /// Copies the whole database. The caller uses the connection alone, in a read transaction, so that the copy is of one state.
    /// - Parameters:
    ///   - copy: A connection to an empty database.
    ///   - pagesAtOnce: The number of pages between two calls of `step`.
    ///   - step: A closure that is called before each part with the numbers of pages that are copied, and of all pages. An error ends the
    ///     copy.
    /// - Throws: `StoreError` `.full`, `.inputOutput`, which name the copy.
    func backup(to copy: SQLiteConnection, pagesAtOnce: Int32, step: (Int, Int) throws -> Void) throws {
        let (source, target) = (try database, try copy.database)
        guard let backup = sqlite3_backup_init(target, "main", source, "main") else {
            throw Self.copyError(sqlite3_errcode(target), copy: target, path: copy.path)
        }
        var code = SQLITE_OK
        do {
            while code == SQLITE_OK {
                let total = Int(sqlite3_backup_pagecount(backup))
                try step(total - Int(sqlite3_backup_remaining(backup)), total)
                code = sqlite3_backup_step(backup, pagesAtOnce)
            }
        } catch {
            sqlite3_backup_finish(backup)
            throw error
        }
        // The system's error number is still that of the failed step.
        let failure = code == SQLITE_DONE ? nil : Self.copyError(code, copy: target, path: copy.path)
        sqlite3_backup_finish(backup)
        if let failure { throw failure }
    }

    private static func copyError(_ code: Int32, copy: OpaquePointer, path: String) -> StoreError {
        if let error = StoreError.full(code, database: copy, path: path) { return error }
        let cause = SQLiteError(code: code, database: nil)
        return StoreError(.inputOutput, "\(path): \(cause.message). Check the disk", cause: cause)
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

    /// Whether the file was deleted, moved or replaced since the connection was opened. Costs one `stat`.
    var hasMoved: Bool {
        get throws { Self.hasMoved(try database) }
    }

    static func hasMoved(_ database: OpaquePointer) -> Bool {
        var moved: Int32 = 0
        let code = sqlite3_file_control(database, "main", SQLITE_FCNTL_HAS_MOVED, &moved)
        // A file system that cannot answer returns SQLITE_NOTFOUND.
        return code == SQLITE_OK && moved != 0
    }

    /// Makes the connection unusable if SQLite has ended a snapshot's transaction, as after some errors. Later reads would show another
    /// state. The caller holds the lock.
    func checkReading() {
        guard pinned != nil, failure == nil, let handle, sqlite3_get_autocommit(handle) != 0 else { return }
        failure = StoreError(.inputOutput, "\(path): a read failed, and SQLite ended the snapshot. Read from a new snapshot")
    }

    var isInTransaction: Bool { handle.map { sqlite3_get_autocommit($0) == 0 } ?? false }

    /// Closes the connection, and opens the same file again. If that fails, every later use throws the error. The caller holds the lock.
    func reopen() {
        guard failure == nil, let old = handle else { return }
        let isReplaced = Self.hasMoved(old)
        statements = [:]
        handle = nil
        sqlite3_close_v2(old)
        guard !isReplaced, FileManager.default.fileExists(atPath: path) else {
            failure = StoreError.fileReplaced(path, isGone: !FileManager.default.fileExists(atPath: path))
            return
        }
        do { handle = try Self.open(path, role, name: path) } catch { failure = error }
    }

    /// The number of rows that the last statement changed.
    var changedRows: Int { handle.map { Int(sqlite3_changes($0)) } ?? 0 }

    // MARK: Opening

    private static func open(_ path: String, _ role: Role, name: String) throws -> OpaquePointer {
        var opened: OpaquePointer?
        let access =
            switch role {
            case .observer, .frozen: SQLITE_OPEN_READONLY
            // A missing file would become an empty database.
            case .reader: SQLITE_OPEN_READWRITE
            case .writer, .creator, .copy: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
            }
        let code =
            role == .frozen
            ? sqlite3_open_v2(frozenName(path), &opened, access | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI, nil)
            : sqlite3_open_v2(path, &opened, access | SQLITE_OPEN_NOMUTEX, nil)
        do {
            guard code == SQLITE_OK, let opened else { throw openingError(code, database: opened, path: name) }
            try configure(opened, role: role, path: name)
            return opened
        } catch {
            // SQLite also allocates a connection that it fails to open.
            sqlite3_close_v2(opened)
            throw error
        }
    }

    private static func configure(_ database: OpaquePointer, role: Role, path: String) throws {
        func run(_ sql: String) throws {
            let code = sqlite3_exec(database, sql, nil, nil, nil)
            guard code == SQLITE_OK else { throw openingError(code, database: database, path: path) }
        }
        sqlite3_extended_result_codes(database, 1)
        sqlite3_busy_timeout(database, busyTimeout)
        strata_take_double_quotes_for_names(database)
        addFunctions(database)
        // OFF is the default, unless the library was built with another default.
        try run("PRAGMA foreign_keys = OFF")
        if role != .copy { try run("PRAGMA cache_size = -65536; PRAGMA mmap_size = 1073741824; PRAGMA temp_store = MEMORY") }
        // On macOS, a plain sync leaves the data in the drive's cache.
        if !role.isReadOnly { try run("PRAGMA fullfsync = 1; PRAGMA checkpoint_fullfsync = 1") }
        // The maximum size of the log after it is restarted. Each connection has its own setting.
        if role == .writer { try run("PRAGMA journal_size_limit = \(SQLiteStore.logLimit)") }
        if role == .reader { try run("PRAGMA query_only = 1") }
        // SQLite reads the file at the first statement that needs it. This one detects a file that is not a database.
        try run("SELECT * FROM sqlite_master LIMIT 1")
    }

    /// Returns a name with which SQLite opens the file without a log and without locks.
    private static func frozenName(_ path: String) -> String {
        let name = path.addingPercentEncoding(withAllowedCharacters: .urlPathAllowed) ?? path
        return "file:\(name)?immutable=1"
    }

    private static func openingError(_ code: Int32, database: OpaquePointer?, path: String) -> StoreError {
        if let database, let error = StoreError.full(code, database: database, path: path) { return error }
        let cause = SQLiteError(code: code, database: database)
        let reason = cause.message
        let isReplaced = database.map(hasMoved) ?? false
        var error: StoreError =
            switch code & 0xff {
            case SQLITE_NOTADB: StoreError(.notAStore, "\(path) is not an SQLite database; choose another file")
            case SQLITE_CORRUPT: StoreError(.damaged, "\(path): \(reason); restore it from a copy")
            case SQLITE_BUSY: StoreError(.inUseElsewhere, "\(path): another connection keeps it locked; try again")
            case SQLITE_READONLY where isReplaced:
                StoreError(.inUseElsewhere, "\(path) was replaced while it was opened; open it again")
            // SQLITE_READONLY_ROLLBACK, a macro that Swift does not import.
            case SQLITE_READONLY where code == SQLITE_READONLY | (3 << 8):
                StoreError(
                    .readOnly,
                    "cannot open \(path) read-only: a process ended while it changed the file, and its journal has to be rolled back first. "
                        + "Open it once for writing")
            default: StoreError(.cannotOpen, "\(path): \(reason); check the path and its permissions")
            }
        error.cause = cause
        return error
    }

    /// Defines `strata_lower(text)`, which returns the result of Swift's `lowercased()`, for case-insensitive comparisons. Defines
    /// `strata_is_unicode(text)`, which returns 0 for a text that is not UTF-8.
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
        sqlite3_create_function_v2(
            handle, "strata_is_unicode", 1, flags, nil,
            { context, _, arguments in
                guard let argument = arguments?[0], let start = sqlite3_value_text(argument) else {
                    sqlite3_result_int(context, 1)
                    return
                }
                let bytes = UnsafeBufferPointer(start: start, count: Int(sqlite3_value_bytes(argument)))
                sqlite3_result_int(context, String(validating: bytes, as: UTF8.self) == nil ? 0 : 1)
            }, nil, nil, nil)
    }
}
