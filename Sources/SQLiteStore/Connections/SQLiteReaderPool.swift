internal import Platform
import StoreFiles
import StoreInterface
import StoreModel

/// A pool of connections for snapshots. Each living snapshot has its own connection. A few idle connections are kept with
/// their prepared statements.
final class SQLiteReaderPool: Sendable {
    private let path: String
    private let role: SQLiteConnection.Role
    /// The file if it must not change while it is read; nil otherwise.
    private let frozen: FrozenFile?
    private let connections = Mutex(Connections())
    private let isClosed = Atomic(false)

    private struct Connections {
        /// The connections without a read transaction, to be used again.
        var idle: [SQLiteConnection] = []
        /// The connections of the living snapshots.
        var lent: [ObjectIdentifier: SQLiteConnection] = [:]
        /// The number of connections that do not belong to the pool, or not yet.
        var separate = 0
        /// The number of living snapshots and copies.
        var readers: Int { lent.count + separate }
    }

    private static let idleLimit = 8
    /// A closure that is called after a snapshot has ended; nil for none.
    let didRelease = Mutex<(@Sendable () -> Void)?>(nil)

    /// The identity of the file at the path when the store was opened.
    private let file: FileIdentity?

    /// - Parameter role: The role of the connections: `reader`, `observer` or `frozen`.
    init(path: String, role: SQLiteConnection.Role) {
        self.path = path
        self.role = role
        file = StoreFile.identity(path)
        frozen = role == .frozen ? FrozenFile(path) : nil
    }

    func take() throws -> SQLiteConnection {
        try checkOpen()
        let kept = connections.withLock { connections in
            let connection = connections.idle.popLast()
            if let connection { connections.lent[ObjectIdentifier(connection)] = connection }
            return connection
        }
        if let kept { return kept }
        // Counts as a reader while it is opened, so that closing waits for it.
        connections.withLock { $0.separate += 1 }
        defer { connections.withLock { $0.separate -= 1 } }
        try checkOpen()
        let connection = try open()
        connections.withLock { $0.lent[ObjectIdentifier(connection)] = connection }
        return connection
    }

    /// Runs `body` with a connection that does not belong to the pool, for a copy of the store. Meanwhile it counts as a living snapshot.
    /// - Throws: The errors of ``whileUnchanged(_:)``.
    func withSeparate<R>(_ body: (SQLiteConnection) throws -> R) throws -> R {
        connections.withLock { $0.separate += 1 }
        defer { connections.withLock { $0.separate -= 1 } }
        try checkOpen()
        return try whileUnchanged {
            let connection = try open()
            defer { connection.close() }
            return try body(connection)
        }
    }

    private func checkOpen() throws {
        if isClosed.load(ordering: .acquiring) { throw StoreError.closed(path) }
        try checkUnchanged()
    }

    private func open() throws -> SQLiteConnection {
        // SQLite would open the file that replaced it.
        let found = StoreFile.identity(path)
        guard found == file else { throw StoreError.fileReplaced(path, isGone: found == nil) }
        let connection = try SQLiteConnection(path: path, role: role)
        if try connection.hasMoved { throw StoreError.fileReplaced(path, isGone: StoreFile.identity(path) == nil) }
        return connection
    }

    /// Checks that a file that is read without locks was not written. Costs up to two `stat` calls for such a file.
    /// - Throws: `StoreError` `.inUseElsewhere` if the file was written.
    func checkUnchanged() throws {
        if let frozen, frozen.isChanged { throw StoreError.changedWhileFrozen(path) }
    }

    private func checkUnwritten() throws {
        // A file that has replaced it leaves the one that the connections have open as it was.
        if let frozen, frozen.isWritten, StoreFile.identity(path) == file { throw StoreError.changedWhileFrozen(path) }
    }

    /// Runs `body`, which reads the file. Then checks that a file that is read without locks was not written, because `body` may have read
    /// pages of several states. Such pages may also look damaged, so an error of `body` is checked too. A new log does not change
    /// the pages that were read.
    /// - Throws: `StoreError` `.inUseElsewhere` if the file was written; the error of `body`.
    func whileUnchanged<R>(_ body: () throws -> R) throws -> R {
        do {
            let result = try body()
            try checkUnwritten()
            return result
        } catch let error as StoreError {
            try checkUnwritten()
            throw error
        }
    }

    /// Runs `body` with a connection that has no read transaction.
    func withIdle<R>(_ body: (SQLiteConnection) throws -> R) throws -> R {
        try checkOpen()
        let connection = try connections.withLock { $0.idle.popLast() } ?? open()
        defer { if !keep(connection) { connection.close() } }
        return try body(connection)
    }

    /// Makes a connection idle, unless there are enough. Returns whether it was kept.
    private func keep(_ connection: SQLiteConnection) -> Bool {
        connections.withLock { connections in
            guard connections.idle.count < Self.idleLimit, !isClosed.load(ordering: .acquiring) else { return false }
            connections.lent.removeValue(forKey: ObjectIdentifier(connection))
            connections.idle.append(connection)
            return true
        }
    }

    /// Refuses new snapshots from now on, and closes the idle connections.
    /// - Returns: The number of living snapshots and copies.
    func close() -> Int {
        isClosed.store(true, ordering: .releasing)
        return closeIdle()
    }

    /// Closes the idle connections.
    /// - Returns: The number of living snapshots and copies.
    func closeIdle() -> Int {
        let (old, readers) = connections.withLock { connections in
            defer { connections.idle = [] }
            return (connections.idle, connections.readers)
        }
        for connection in old { connection.close() }
        return readers
    }

    /// Ends the read transaction of a connection and returns it to the pool. If that fails, closes the connection.
    func giveBack(_ connection: SQLiteConnection) {
        let hasEnded = (try? connection.endReading()) != nil
        // The connection counts as lent until it is idle or closed.
        if !hasEnded || !keep(connection) {
            connection.close()
            connections.withLock { _ = $0.lent.removeValue(forKey: ObjectIdentifier(connection)) }
        }
        didRelease.withLock { $0 }?()
    }

    /// Returns whether a snapshot shows an older state or is being read, so that the log cannot be left now. Never waits.
    func hasReader(before newest: Generation) -> Bool {
        connections.withLock { Array($0.lent.values) }.contains { !$0.canRenewReading(of: newest) }
    }

    /// Restarts the read transaction of each snapshot of the newest state, so that it reads the file and not the log. SQLite
    /// can then restart the log.
    ///
    /// The caller has copied the whole log into the file, and prevents saves. This method never waits: it skips a snapshot
    /// that is being read.
    func renew(_ newest: Generation) {
        for connection in connections.withLock({ Array($0.lent.values) }) { connection.renewReading(of: newest) }
    }
}

extension SQLiteConnection {
    /// Begins the read transaction of a snapshot.
    /// - Parameter check: A closure that is called in the transaction.
    /// - Returns: The newest save that the snapshot shows.
    func beginReading(_ check: () throws -> Void) throws -> Generation {
        try withLock {
            try run("BEGIN")
            // The first read determines the state that the transaction shows.
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

    /// Returns whether the connection is not in use, and shows the newest state or none.
    func canRenewReading(of newest: Generation) -> Bool {
        var canRenew = false
        withLockIfAvailable { canRenew = pinned == nil || pinned == newest }
        return canRenew
    }

    func renewReading(of newest: Generation) {
        withLockIfAvailable {
            guard pinned == newest else { return }
            do {
                try run("COMMIT")
                try run("BEGIN")
                guard try newestGeneration() == newest else {
                    throw StoreError(
                        .internalInconsistency, "\(path): a save was committed while saves were blocked. Report this as a bug")
                }
            } catch {
                // The connection would now read another state.
                failure = error
            }
        }
    }

    /// Returns the newest save that the connection sees.
    /// - Throws: `StoreError` `.damaged` if the file has none, or a number with which arithmetic would overflow.
    func newestGeneration() throws -> Generation {
        guard let found = try integer("SELECT generation FROM strata_state"), Generation(stored: found).isPlausible else {
            throw StoreError(.damaged, "\(path): the generation in strata_state is missing or out of range; restore the file")
        }
        return Generation(stored: found)
    }
}
