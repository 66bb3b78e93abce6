internal import Platform
import StoreInterface

/// Connections for snapshots. A snapshot has one for itself while it lives; a few idle ones are kept, with their statements.
final class SQLiteReaderPool: Sendable {
    private let path: String
    private let role: SQLiteConnection.Role
    /// The time of the last write, for a file that must not change while it is read.
    private let frozen: SQLiteFile.Times?
    private let idle = Mutex<[SQLiteConnection]>([])
    private let isClosed = Atomic(false)
    /// Those of the snapshots that live.
    private let lent = Mutex<[ObjectIdentifier: SQLiteConnection]>([:])

    private static let idleLimit = 8

    /// The file that the path led to when the store was opened.
    private let file: StoreFile.Identity?

    /// - Parameter role: of the connections: `reader`, `observer` or `frozen`.
    init(path: String, role: SQLiteConnection.Role) {
        self.path = path
        self.role = role
        frozen = role == .frozen ? SQLiteFile.Times(path) : nil
        file = StoreFile.identity(path)
    }

    func take() throws -> SQLiteConnection {
        let connection = try idleOrNew()
        lent.withLock { $0[ObjectIdentifier(connection)] = connection }
        return connection
    }

    private func idleOrNew() throws -> SQLiteConnection {
        if isClosed.load(ordering: .acquiring) { throw StoreError.closed(path) }
        try checkUnchanged()
        if let kept = idle.withLock({ $0.popLast() }) { return kept }
        // Another file would be read in its place, and a file that is gone would be made anew.
        let found = StoreFile.identity(path)
        guard found == file else { throw StoreError.fileReplaced(path, isGone: found == nil) }
        return try SQLiteConnection(path: path, role: role)
    }

    /// - Throws: `StoreError` `.inUseElsewhere` for a file that was written although it is read without locks. One `stat` or two then.
    func checkUnchanged() throws {
        guard let frozen else { return }
        if SQLiteFile.Times(path) != frozen || SQLiteFile.hasLog(path) { throw StoreError.changedWhileFrozen(path) }
    }

    /// Runs `body` with a connection that reads nothing.
    func withIdle<R>(_ body: (SQLiteConnection) throws -> R) throws -> R {
        let connection = try idleOrNew()
        defer { keep(connection) }
        return try body(connection)
    }

    private func keep(_ connection: SQLiteConnection) {
        let isKept = idle.withLock { idle in
            guard idle.count < Self.idleLimit, !isClosed.load(ordering: .acquiring) else { return false }
            idle.append(connection)
            return true
        }
        if !isKept { connection.close() }
    }

    /// Refuses snapshots from now on, and closes the connections that none has.
    /// - Returns: how many snapshots live.
    func close() -> Int {
        isClosed.store(true, ordering: .releasing)
        let old = idle.withLock { idle in
            defer { idle = [] }
            return idle
        }
        for connection in old { connection.close() }
        return lent.withLock { $0.count }
    }

    /// Ends the read transaction. A connection that cannot is dropped, which closes it.
    func giveBack(_ connection: SQLiteConnection) {
        // Counted until it is closed.
        defer { _ = lent.withLock { $0.removeValue(forKey: ObjectIdentifier(connection)) } }
        do { try connection.endReading() } catch { return connection.close() }
        keep(connection)
    }

    /// Lets each snapshot of the newest state begin its read transaction anew, so that it reads the file and not the log, which can then be
    /// used from its beginning. The caller has seen to it that all of the log is in the file, and keeps others from saving.
    ///
    /// Never waits: a snapshot that somebody reads just now stays as it is.
    func renew(_ newest: Generation) {
        for connection in lent.withLock({ Array($0.values) }) { connection.renewReading(of: newest) }
    }
}

extension SQLiteConnection {
    /// Begins the read transaction of a snapshot.
    /// - Parameter check: is run in it.
    func beginReading(_ check: () throws -> Void) throws -> Generation {
        try withLock {
            try run("BEGIN")
            // The transaction takes its state at its first read.
            let generation = try newestGeneration()
            try check()
            pinned = generation
            return generation
        }
    }

    func endReading() throws {
        try withLock {
            pinned = nil
            try run("COMMIT")
        }
    }

    func renewReading(of newest: Generation) {
        withLockIfAvailable {
            guard pinned == newest else { return }
            do {
                try run("COMMIT")
                try run("BEGIN")
                guard try newestGeneration() == newest else {
                    throw StoreError(.internalInconsistency, "\(path): a save came while none could; report this as a bug")
                }
            } catch {
                // What it would read now is another state.
                failure = error
            }
        }
    }

    /// The newest save that the connection sees.
    func newestGeneration() throws -> Generation {
        Generation(bitPattern: try integer("SELECT generation FROM strata_state") ?? 0)
    }
}
