import Foundation
internal import Platform
import StoreFiles
import StoreInterface
import StoreModel

/// A store in an SQLite file, written as an experienced user of SQLite would write it: a write-ahead log, prepared
/// statements, one transaction per save, one table per entity, and indexes on references and indexed attributes.
///
/// Only SQLite opens the file. Closing any other descriptor of the file would release the process's locks on it. Another
/// process could then remove the log.
///
/// Each opening has its own connections. Several stores, in one or more processes, may have one file open. A deferred save
/// is a commit that is not synced. It is visible at once, and survives a crash of the process but not a power failure.
public final class SQLiteStore: ObjectStore {
    /// The identity of the store, read from the file.
    public let identity: StoreIdentity
    /// The incarnations of the store, read from the file when it was opened. If it was opened read-only, another process may begin one,
    /// so they are read again.
    public var lineage: StoreLineage {
        guard isReadOnly else { return openedLineage }
        return (try? writer.withLock { try SQLiteLineage.readOnly(openedLineage.store, in: writer, path: path) }) ?? openedLineage
    }
    let openedLineage: StoreLineage
    /// The schema that the store was opened with.
    public var schema: StoreSchema { layout.schema }
    /// A Boolean value that indicates whether the store was opened read-only.
    public let isReadOnly: Bool
    /// The path of the file.
    public var name: String { path }
    /// The abilities of the store. Deferred saves are commits of their own, so layers are not kept for them.
    public var capabilities: StoreCapabilities { [.externalSaves, .history, .backup] }
    let layout: SQLiteLayout
    let path: String
    private let connections: SnapshotConnections
    let writer: SQLiteConnection
    let pool: SQLiteReaderPool
    let logUpkeep = LogUpkeep()
    let syncing = Mutex(Syncing())
    private let signal: SaveSignal
    /// The state of the file that later transactions are compared with.
    let known = KnownContent()

    /// The role of further connections, which only read.
    let readerRole: SQLiteConnection.Role
    /// The schema and the inverses as stored in the file.
    private let modelRows: SQLiteFile.ModelRows

    private let isClosed = Atomic(false)

    struct Syncing {
        /// Whether the writer's connection syncs each commit; nil before the first write.
        var durable: Bool?
        /// The number of commits without a sync, and of those among them that were synced later.
        var unsyncedCommits = 0
        var syncedLater = 0

        /// Whether there are commits that are not synced.
        var owes: Bool { syncedLater < unsyncedCommits }

        mutating func noteCommit(_ durability: Durability) {
            if durability == .durable { syncedLater = unsyncedCommits } else { unsyncedCommits += 1 }
        }
    }

    /// Opens the file, or creates it. Blocks on the disk, and for up to 30 seconds while another connection creates the file.
    /// - Parameters:
    ///   - url: The path of the file.
    ///   - schema: The schema of the model.
    ///   - readOnly: Whether to open an existing file without changing it.
    /// - Throws: `StoreError` for a directory, a file of another kind, the store of another model, or a missing permission.
    public convenience init(url: URL, schema: StoreSchema, readOnly: Bool = false) throws {
        try self.init(url: url, schema: schema, connections: .onePerSnapshot, readOnly: readOnly)
    }

    /// Opens the file as ``init(url:schema:readOnly:)`` does.
    ///
    /// - Parameter connections: The connections that snapshots read on.
    package init(url: URL, schema: StoreSchema, connections: SnapshotConnections, readOnly: Bool = false) throws {
        path = try StoreFile.resolved(url).path
        self.connections = connections
        isReadOnly = readOnly
        if readOnly { readerRole = try SQLiteFile.readOnlyRole(path) } else { readerRole = .reader }
        let schema = SQLiteFile.keepingKeyedValues(schema, path: path, role: readerRole, readOnly: readOnly)
        layout = SQLiteLayout(schema)
        if readOnly {
            let (pool, path, layout) = (SQLiteReaderPool(path: path, role: readerRole), path, layout)
            let writer = try SQLiteConnection(path: path, role: readerRole)
            (openedLineage, modelRows) = try pool.whileUnchanged {
                try SQLiteFile.identify(writer, layout: layout, path: path)
            }
            try pool.checkUnchanged()
            (self.pool, self.writer) = (pool, writer)
        } else {
            if let failure = FilePermission.failure(path, companions: ["-wal", "-shm"], isReadOnly: false) { throw failure }
            try SQLiteFile.makeIfMissing(layout, path)
            try SQLiteFile.checkOwner(path)
            writer = try SQLiteConnection(path: path, role: .writer)
            try writer.useLog()
            (openedLineage, modelRows) = try SQLiteFile.prepare(writer, layout: layout, path: path)
            pool = SQLiteReaderPool(path: path, role: readerRole)
        }
        identity = StoreIdentity(openedLineage.store)
        signal = SaveSignal(besideFile: path)
        if !readOnly { pool.didRelease.withLock { $0 = { [weak self] in self?.snapshotWasReleased() } } }
    }

    /// Watches a file beside the data file, whose name ends in `-signal`. If there is no such file, a store that is opened
    /// read-only waits until a writer creates it. The data file itself does not show saves, which are in the log.
    public func watch(_ body: @escaping @Sendable () -> Void) throws -> (any StoreWatch)? {
        try signal.watch(isReadOnly: isReadOnly, body)
    }

    // MARK: Reading

    /// Returns the newest state: a read transaction on a connection of the pool.
    public func snapshot() throws -> any StoreSnapshot { try reader(connections) }

    func reader(_ connections: SnapshotConnections) throws -> SQLiteSnapshot {
        let newest = known.newest
        if connections == .sharedWithWriter {
            try pool.checkUnchanged()
            restoreLog(writer)
            let generation = try writer.withLock {
                try checkSchema(writer)
                try checkReopened(writer)
                return try writer.newestGeneration()
            }
            try checkGeneration(generation, since: newest)
            return SQLiteSnapshot(
                layout: layout, connection: writer, generation: generation, pool: pool, connections: connections)
        }
        let connection = try pool.take()
        restoreLog(connection)
        do {
            let generation = try pool.whileUnchanged {
                try connection.beginReading {
                    try checkSchema(connection)
                    try checkReopened(connection)
                }
            }
            try checkGeneration(generation, since: newest)
            return SQLiteSnapshot(
                layout: layout, connection: connection, generation: generation, pool: pool, connections: connections)
        } catch {
            pool.giveBack(connection)
            throw error
        }
    }

    /// Checks, inside a transaction, that the tables are still those of this store's schema. Takes about 1 µs if no table
    /// has changed.
    /// - Throws: `StoreError` `.schemaTooNew` if another process has migrated the file, `.damaged` if another program has
    ///   changed its tables.
    private func checkSchema(_ connection: SQLiteConnection) throws {
        let tables = try connection.integer("PRAGMA schema_version")
        if let tables, known.tables.withLock({ $0 }) == tables { return }
        guard try modelRows.areThere(in: connection) else {
            throw StoreError(
                .schemaTooNew,
                "\(path) was migrated by another process since it was opened here. Open it again with that model")
        }
        try SQLiteFile.checkTables(connection, layout: layout, path: path)
        known.tables.withLock { $0 = tables }
        known.forgetStatePage()
    }

    /// Returns the size of the data file with its write-ahead log, in bytes.
    public func fileBytes() throws -> Int {
        [path, path + "-wal"].reduce(0) { sum, path in
            let size = (try? FileManager.default.attributesOfItem(atPath: path))?[.size] as? NSNumber
            return sum + (size?.intValue ?? 0)
        }
    }

    // MARK: Writing

    /// Runs a transaction on the connection for writing, and commits it. Syncs the log only if the save is durable.
    ///
    /// Waits for writers of other connections. If `body` throws, the transaction is rolled back.
    public func write<R>(_ durability: Durability, _ body: (any StoreTransaction) throws -> R) throws -> R {
        if isReadOnly { throw StoreError.openReadOnly(path) }
        return try writer.withLock {
            if isClosed.load(ordering: .acquiring) { throw StoreError.closed(path) }
            restoreLog(writer)
            shortenLog()
            try setSynchronous(durability == .durable)
            do { try writer.run("BEGIN IMMEDIATE") } catch let error as StoreError where error.code == .inUseElsewhere {
                throw StoreError(.storeBusy, error.message)
            }
            do {
                try checkSchema(writer)
                try checkReopened(writer)
                try checkFile()
                let failedLog = durability == .durable ? try repeatFailedLog() : nil
                let transaction = try SQLiteTransaction(connection: writer, layout: layout, path: path)
                let before = transaction.generation
                try checkGeneration(before, since: known.newest)
                let result = try body(transaction)
                if durability == .durable, syncing.withLock({ $0.owes }) {
                    // An empty commit does not sync earlier saves, and SQLite skips an update to an equal value.
                    try writer.run("UPDATE strata_state SET generation = generation + 1")
                    try writer.run("UPDATE strata_state SET generation = generation - 1")
                }
                if try writer.hasMoved {
                    throw StoreError.fileReplaced(path, isGone: !FileManager.default.fileExists(atPath: path))
                }
                try writer.run("COMMIT")
                syncing.withLock { $0.noteCommit(durability) }
                if let failedLog { FailedLogs.remove(failedLog) }
                if transaction.generation != before {
                    known.note(transaction.generation)
                    signal.send(transaction.generation)
                }
                noteFile()
                return result
            } catch {
                // A connection that was opened again has its own setting.
                if writer.rollBack() { syncing.withLock { $0.durable = nil } }
                throw error
            }
        }
    }

    /// Waits up to five seconds for snapshots that are still referenced. Closing the file's last connection removes the log.
    public func shutDown() throws {
        isClosed.store(true, ordering: .releasing)
        try waitForReaders(to: "close", pool.close)
        writer.close()
        signal.end()
    }

    /// Closes every connection until the next call. Waits up to five seconds for snapshots that are still referenced.
    public func suspend() throws {
        if isClosed.load(ordering: .acquiring) { throw StoreError.closed(path) }
        try waitForReaders(to: "suspend", pool.closeIdle)
        known.isUnverified.store(true, ordering: .releasing)
        known.mayLackLog.store(true, ordering: .releasing)
        writer.suspend()
        // Shortening the log may have used a connection until the writer's was closed.
        _ = pool.closeIdle()
        // A connection that is opened again has its own setting.
        syncing.withLock { $0.durable = nil }
        signal.end()
    }

    /// - Parameter close: A closure that closes idle connections and returns the number of living snapshots and copies.
    private func waitForReaders(to verb: String, _ close: () -> Int) throws {
        for left in (0..<5000).reversed() {
            let readers = close()
            if readers == 0 { return }
            if left == 0 { throw StoreError.stillRead(path, readers: readers, verb: verb) }
            CurrentThread.sleep(microseconds: 1000)
        }
    }

    /// Sets when SQLite syncs the log: at each commit with `FULL`, only at checkpoints with `NORMAL`.
    private func setSynchronous(_ durable: Bool) throws {
        guard syncing.withLock({ $0.durable }) != durable else { return }
        try writer.run(durable ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL")
        syncing.withLock { $0.durable = durable }
    }
}

extension StoreDescription {
    /// A store in an SQLite file.
    ///
    /// A store that is opened read-only is read like any other. Saves, batches and restoring throw `StoreError` `.readOnly`,
    /// and contexts keep their changes. A file whose model differs is refused, because it would have to be migrated.
    ///
    /// If this user may not write to the folder, SQLite creates no log, so it does not detect changes of the file. If
    /// another process writes the file meanwhile, reading throws `.inUseElsewhere`, also in snapshots that are in use. Property reads
    /// cannot throw: reading a property that is not loaded then stops the program.
    ///
    /// - Parameters:
    ///   - url: The path of the file.
    ///   - readOnly: Whether to open an existing file without changing it.
    public static func sqlite(_ url: URL, readOnly: Bool = false) -> StoreDescription {
        .sqlite(url, connections: .onePerSnapshot, readOnly: readOnly)
    }

    /// A store in an SQLite file, as ``sqlite(_:readOnly:)`` describes it.
    ///
    /// - Parameter connections: The connections that snapshots read on.
    package static func sqlite(_ url: URL, connections: SnapshotConnections, readOnly: Bool = false) -> StoreDescription {
        let file = MigratableSQLiteFile(url)
        var store = StoreDescription(name: "sqlite", migration: readOnly ? nil : file) { schema in
            try SQLiteStore(url: url, schema: schema, connections: connections, readOnly: readOnly)
        }
        store.path = url.path
        store.openForReading = { schema in
            try SQLiteStore(url: url, schema: schema, connections: connections, readOnly: true)
        }
        store.recordedSchemas = { try file.recordedSchemas(readOnly ? .observing : .changing) }
        return store
    }
}
