import Dispatch
import LMDB
import PageCodec
internal import Platform
import StoreFiles
import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A store in one LMDB file, with immutable snapshots. One writer runs at a time across all processes, and every commit is
/// durable.
///
/// Any thread may use the store. Opening a file that this process has open returns the same object. Releasing the last
/// reference closes the file; snapshots have a reference too.
public final class LMDBStore: ObjectStore {
    /// Options for opening a file.
    public struct Options: Sendable, Hashable {
        /// The action to take for a file on a network or user-space file system, whose locks and maps cannot be trusted.
        public enum RemoteFileSystems: Sendable, Hashable { case refuse, allow }

        /// The part of LMDB's trees to check at opening. The check does not use LMDB, which crashes on damaged pages.
        public enum OpeningCheck: Sendable, Hashable {
            /// The pages that opening itself reads, the free list, and up to 32 pages of each table. A small file that is longer than its
            /// newest commit says is read whole, unless another process has it open. A process that died may have left pages there.
            case roots
            /// Every page, as in ``LMDBStore/verify()``: for a file of doubtful origin. Reads the file once.
            case everything
        }

        /// The action to take for a file on a network or user-space file system.
        public var remoteFileSystems = RemoteFileSystems.refuse
        /// A Boolean value that indicates whether to open the file read-only; see
        /// ``StoreInterface/StoreDescription/lmdb(_:readOnly:options:)``.
        public var isReadOnly = false
        /// The part of the file to check at opening.
        public var openingCheck = OpeningCheck.roots
        /// The initial size of the map in bytes of address space. The file grows only as far as it is filled. From the 33rd
        /// open store on, the map has at most 64 GiB.
        public var mapSize = 1 << 38
        /// The maximum size of the map; nil for no limit. A full map doubles while no snapshot of this process uses it.
        public var maximumMapSize: Int?
        /// The maximum number of snapshots in all processes together. The first process that opens the file determines it.
        public var maximumReaders = 1024
        /// The number of saves in the history.
        public var historyLimit = 10_000
        /// The size in bytes of the cache for unpacked pages. Raw pages are read in the file's map and need no cache.
        public var pageCacheBytes = 32 << 20
        /// The maximum size in bytes of strings and data in their object's page. Larger values are stored out-of-line. They
        /// are written once, and read only on access.
        public var largestValueInPage = 512
        /// The time that a save waits for another process that holds saves back. After that, the save fails with `storeBusy`.
        public var busyTimeout: Duration = .seconds(10)
        /// The number of bytes of large values that one transaction writes. Further values of a save are written in earlier
        /// transactions.
        package var valueBytesOfTransaction = 1 << 24

        /// Creates options with the defaults.
        public init() {}
    }

    /// The identity of the store, read from the file.
    public let identity: StoreIdentity
    /// The incarnations of the store, read from the file when it was opened. If it was opened read-only, another process may begin one,
    /// so they are read again.
    public var lineage: StoreLineage {
        guard isReadOnly, let newest = try? newestSnapshot() else { return opened.lineage }
        let found = try? StoredLineage.readOnly(opened.uuid, tables.meta, in: newest.transaction, path: path)
        return found ?? opened.lineage
    }
    /// The schema that the store was opened with.
    public var schema: StoreSchema { opened.schema }
    /// The file of the store.
    public var url: URL { opened.url }
    /// The path of ``url``, without computing it again.
    var path: String { signal.storePath }
    /// The abilities of the store.
    public var capabilities: StoreCapabilities { [.layeredDeferral, .externalSaves, .history, .backup, .compaction] }

    /// The content of the file that opening has read.
    let opened: OpenedFile
    /// The work that the last migration has deferred.
    let unfinished: PendingIndexBuilds
    /// The tables per entity.
    let entities: [EntityTable]
    private let latest = Mutex(Latest())
    /// Acquired while this process has a write transaction. The map may be replaced only while there is none.
    let writing = Mutex(())
    let isClosed = Atomic(false)
    let suspension = Suspension()
    /// The queue for long work other than saves. It runs one piece of work at a time.
    let background = DispatchQueue(label: "strata.background", qos: .utility)
    let counters: Counters
    let signal: SaveSignal
    let claims: SaveClaims
    let dictionaries: Dictionaries
    let pageOverflow: PageOverflow
    let unpackedPages: UnpackedPageCache
    /// The look-ups in the cache of unpacked pages.
    public var cacheUse: CacheUse? { unpackedPages.use }

    /// Counters and flags that outlive transactions.
    struct Counters: ~Copyable, Sendable {
        let writes = Atomic<Int>(0)
        /// The size in bytes up to which disk space is reserved for the file; 0 before the first reservation.
        let reservedEnd = Atomic<Int>(0)
        /// Whether the file may have large values of a failed write, or of a process that ended.
        let mayHaveUnreferenced: Atomic<Bool>
        /// Whether the last commit has failed. LMDB may then have left a meta page that opening calls damaged, until the next commit.
        let hasFailedCommit = Atomic(false)
        /// The newest save that this process has read or written.
        let newestSeen = Atomic<UInt64>(0)
        /// The number of chunks of large values that were read.
        let chunkReads = Atomic<Int>(0)
    }

    /// Whether the file is closed until the next call; see ``LMDBStore/suspend()``.
    struct Suspension: ~Copyable, Sendable {
        let isOn = Atomic(false)
        /// Locked while the file is closed or opened again.
        let reopening = Mutex(())
    }

    var options: Options { opened.options }
    var environment: Environment { opened.environment }
    var file: FileIdentity { opened.file }
    var format: UInt64 { opened.format }
    var tables: Tables { opened.tables }
    var layouts: [PageLayout] { opened.layouts }
    var schemas: [StoredSchema] { opened.schemas }
    /// The number of the current schema, from 1 on.
    var schemaNumber: Int { schemas.count }
    /// The page size of the file in bytes.
    var pageSize: Int { environment.pageSize }

    /// The newest snapshot handed out, for callers that ask for the same state.
    private struct Latest {
        weak var snapshot: LMDBSnapshot?
    }

    init(_ opened: OpenedFile) {
        self.opened = opened
        identity = StoreIdentity(opened.uuid)
        unfinished = PendingIndexBuilds(opened.unfinished)
        counters = Counters(mayHaveUnreferenced: Atomic(opened.hasUnreferenced))
        let tables = opened.tables
        entities = opened.layouts.indices(as: EntityIndex.self).map {
            EntityTable(
                pages: tables.pages[$0], large: tables.large[$0], layout: opened.layouts[$0],
                dataIndexes: tables.dataIndexes($0, opened.schema))
        }
        signal = SaveSignal(besideFile: opened.url.path)
        claims = SaveClaims(
            signalPath: signal.path, storePath: opened.url.path, timeout: opened.options.busyTimeout)
        dictionaries = Dictionaries(opened.tables)
        pageOverflow = PageOverflow(opened.tables)
        unpackedPages = UnpackedPageCache(maximumByteCount: opened.options.pageCacheBytes)
    }

    deinit { EnvironmentRegistry.close(environment, file) }

    /// Returns the newest committed state of any process. Takes about 1 µs, and less if the newest snapshot is still in use.
    ///
    /// - Throws: `StoreError` `.readersFull`, `.usedAfterFork`, `.damaged`, `.mustReopen`. For a file that is read without a lock file:
    ///   `.inUseElsewhere` if another process has it open, and `.fileReplaced` if it was replaced, moved or deleted.
    public func snapshot() throws -> any StoreSnapshot { try newestSnapshot() }

    func newestSnapshot() throws -> LMDBSnapshot {
        // Once, because a disk that fails again and again must not keep this call from returning.
        var mayCloseUnusable = true
        while true {
            let retirements = environment.retirements
            try beginUse()
            do {
                if let readerless = opened.readerless {
                    try readerless.checkUnused()
                    // A process that has replaced the file has opened the new one, and may have closed it again.
                    try checkFileIdentity()
                }
                return try mappingErrors { try reading(newestSnapshotInMap) }
            } catch {
                // Another thread may have suspended the store meanwhile, and a third one may have opened it again.
                if suspension.isOn.load(ordering: .acquiring) || environment.retirements != retirements { continue }
                guard mayCloseUnusable, closeIfUnusable(error) else { throw error }
                mayCloseUnusable = false
            }
        }
    }

    private func newestSnapshotInMap() throws -> LMDBSnapshot {
        let known = newestSeen
        let newest = try environment.information().lastTransaction
        return try latest.withLock { latest in
            if let snapshot = latest.snapshot, snapshot.transactionNumber >= newest {
                // Its content was checked when it was made. A smaller number than the snapshot's is of other content.
                let isKnown =
                    try snapshot.transactionNumber == newest
                    || snapshot.transactionNumber <= environment.information().lastTransaction
                guard isKnown else { throw overwritten }
                return snapshot
            }
            let transaction = try ReadTransaction(environment)
            try checkContent(in: transaction, newest: newest)
            let made = try LMDBSnapshot(self, transaction)
            try checkGeneration(made.generation, since: known)
            // The snapshot's pages and indexes belong to another schema.
            guard try made.transaction.metaNumber(MetaTable.Key.schemaNumber, tables.meta) == UInt64(schemaNumber) else {
                throw StoreError.migratedElsewhere(self)
            }
            // A process that has opened the file for writing may have put parts of pages into tables that this store does not read.
            for name in opened.absentTables where try made.transaction.hasTable(name) { throw StoreError.migratedElsewhere(self) }
            noteNewest(made.generation)
            latest.snapshot = made
            return made
        }
    }

    /// Runs `read`, which begins a read transaction. If another process has made the file larger than the map, adopts the new size
    /// first. A writer of this process, whose map may not move, adopts it before it writes. Inside a write, the file is never
    /// larger than the map.
    func reading<R>(_ read: () throws -> R) throws -> R {
        do {
            return try environment.adoptingSizes(read) {
                // While a writer of this process has the lock, it adopts the size.
                let isAdopted = try writing.withLockIfAvailable { _ in try environment.resizeMap(to: 0) }
                if isAdopted == false { throw StoreError.outgrown(self) }
            }
        } catch let error as LMDBError where error.code == .mapResized {
            throw StoreError.outgrown(self)
        }
    }

    /// Runs `body` in the file's single write transaction, on the calling thread, and commits it durably.
    ///
    /// Waits for writers of other processes. `body` runs again if the map had to grow. It also runs again if it has written
    /// more than 16 MiB of large values, which are then written first, in separate transactions. `body` must therefore be
    /// repeatable, with the same values.
    /// - Throws: The error of `body`; `StoreError` `.full`, `.inputOutput`, `.damaged`, `.mustReopen`. In that case, nothing is
    ///   written.
    public func write<R>(_ durability: Durability, _ body: (any StoreTransaction) throws -> R) throws -> R {
        try beginUse()
        if isReadOnly { throw StoreError.openReadOnly(path) }
        if counters.writes.add(1, ordering: .relaxed).newValue % 256 == 0 { _ = try? environment.clearDeadReaders() }
        var result: R?
        try writing.withLock { _ in
            // Another thread may have closed or suspended the store meanwhile.
            try beginUse()
            result = try reopeningIfUnusable { try writeBounded(body) }
        }
        // The closure has run, or an error was thrown.
        return result.unsafelyUnwrapped
    }

    /// Runs `body` in the write transaction for changes other than saves; otherwise like ``write(_:_:)``.
    /// - Parameter pages: The maximum number of pages that `body` needs, if it must leave room for deletions.
    func writeTables<R>(pages: Int, _ body: (WriteTransaction) throws -> R) throws -> R {
        try write(.durable) { opened in
            guard let opened = opened as? LMDBTransaction else {
                throw StoreError(.internalInconsistency, "a write transaction of another store; report this as a bug")
            }
            try opened.checkSpace(pages: pages)
            return try body(opened.transaction)
        }
    }

    /// Watches a file beside the data file, whose name ends in `-signal`. No process reads the data file to detect a save. If
    /// there is no such file, a store that is opened read-only waits until a writer creates it.
    public func watch(_ body: @escaping @Sendable () -> Void) throws -> (any StoreWatch)? {
        try signal.watch(isReadOnly: isReadOnly, body)
    }

    /// Returns the size of the data file in bytes, without the lock file.
    public func fileBytes() throws -> Int {
        try checkProcess()
        return try FileIdentity.byteCount(path: path)
    }

    /// A Boolean value that indicates whether the file was opened read-only.
    public var isReadOnly: Bool { options.isReadOnly }
    /// The path of the file.
    public var name: String { path }

    /// Begins a call that uses the file, and opens the file again if the store is suspended.
    @inline(__always)
    func beginUse() throws {
        try checkProcess()
        if suspension.isOn.load(ordering: .acquiring) { try reopen(unlessClosed: true) }
    }

    func checkProcess() throws {
        guard !environment.isOfForkedParent else {
            throw StoreError(
                .usedAfterFork,
                "\(path) was opened before a fork, and LMDB must not be used on both sides. Open it again in the new process"
            )
        }
        if isClosed.load(ordering: .acquiring) { throw StoreError.closed(path) }
    }

    /// Waits up to five seconds for snapshots that are still referenced.
    public func shutDown() throws {
        guard !environment.isOfForkedParent else { return }
        replaceFailedCommit()
        isClosed.store(true, ordering: .releasing)
        for _ in 0..<5000 {
            // No write is running, and none can begin. Nor does a read that has begun before open a suspended file.
            if writing.withLock({ _ in suspension.reopening.withLock { _ in environment.retire() } }) {
                EnvironmentRegistry.close(environment, file)
                signal.end()
                claims.end()
                return
            }
            CurrentThread.sleep(microseconds: 1000)
        }
        throw StoreError.stillRead(path, readers: environment.liveReaders)
    }

    /// Runs `body` and converts LMDB's errors to errors of the store.
    func mappingErrors<R>(_ body: () throws -> R) throws -> R {
        do {
            return try body()
        } catch let error as LMDBError {
            if isClosed.load(ordering: .acquiring) { throw StoreError.closed(path) }
            throw StoreError(error, path: path)
        }
    }
}

extension StoreDescription {
    /// A store in one file at `url`. Contexts read from snapshots, so that no context waits for another context.
    ///
    /// The file is created if there is none; its folder must exist. Beside it are two small files without data, whose names end in
    /// `-lock` and `-signal`. To delete a store, close it in every process, and delete the three files.
    ///
    /// A store that is opened read-only is read like any other. Saves, batches, compaction and restoring throw `StoreError`
    /// `.readOnly`, and contexts keep their changes. A file whose model differs is refused, because it would have to be
    /// migrated.
    ///
    /// Within one process, a file is open either read-only or for writing. If this user may not write to the folder, no lock
    /// file can be created. Writers of other processes cannot detect such a reader. Reading therefore throws
    /// `.inUseElsewhere` while another process has the file open, and `.fileReplaced` after another process has replaced it.
    /// A backup that is being made then throws the same errors.
    ///
    /// - Parameters:
    ///   - url: The path of the file.
    ///   - readOnly: Whether to open an existing file without changing it.
    ///   - options: Sizes and limits.
    public static func lmdb(
        _ url: URL, readOnly: Bool = false, options: LMDBStore.Options = LMDBStore.Options()
    ) -> StoreDescription {
        var options = options
        if readOnly { options.isReadOnly = true }
        let file = MigratableLMDBFile(url, options)
        var store = StoreDescription(name: "lmdb", migration: options.isReadOnly ? nil : file) { [options] schema in
            try LMDBStore.open(url, schema: schema, options: options)
        }
        store.path = url.path
        store.recordedSchemas = { try file.recordedSchemas() }
        store.openForReading = { [options] schema in
            var reading = options
            reading.isReadOnly = true
            // A store that this process has open for writing is shared.
            do { return try LMDBStore.open(url, schema: schema, options: reading) } catch let error as StoreError
                where error.code == .inUseElsewhere && !options.isReadOnly
            {
                return try LMDBStore.open(url, schema: schema, options: options)
            }
        }
        return store
    }
}
