import Dispatch
import LMDB
import PageCodec
internal import Platform
import StoreInterface

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A store in one LMDB file: immutable snapshots, one writer at a time over all processes, every commit durable.
///
/// Any thread may use it. Opening a file that this process has open gives the same object; dropping the last reference
/// (snapshots hold one) closes the file.
public final class LMDBStore: ObjectStore {
    /// How to open a file.
    public struct Options: Sendable, Hashable {
        /// What to do when the file lies on a network or user-space file system, whose locks and maps cannot be trusted.
        public enum RemoteFileSystems: Sendable, Hashable { case refuse, allow }

        /// How much of LMDB's trees opening looks at, without LMDB, which crashes on pages that are wrong.
        public enum OpeningCheck: Sendable, Hashable {
            /// Some pages: what opening itself reads.
            case roots
            /// Every page, as ``LMDBStore/verify()`` does: for a file of doubtful origin. Reads the file once.
            case everything
        }

        public var remoteFileSystems = RemoteFileSystems.refuse
        /// Opens the file for reading only: see ``StoreInterface/StoreDescription/lmdb(_:readOnly:options:)``.
        public var isReadOnly = false
        public var openingCheck = OpeningCheck.roots
        /// Bytes of address space to begin with; the file grows only as far as it is filled. From the 33rd open store on at
        /// most 64 GiB.
        public var mapSize = 1 << 38
        /// What a full map may grow to, by doubling, while no snapshot of this process lies in it; nil: no bound of ours.
        public var maximumMapSize: Int?
        /// Snapshots that all processes together may hold. Decided by whoever has the file open first.
        public var maximumReaders = 1024
        /// Saves that the history keeps.
        public var historyLimit = 10_000
        /// Memory for packed pages that were read, in bytes; raw pages are read in the file's map and need none.
        public var pageCacheBytes = 32 << 20
        /// Strings and data of more bytes lie outside of their object's page: they are written once, and read only when they are asked for.
        public var largestValueInPage = 512
        /// How long a save waits for another process that holds saves back; then it fails with `storeBusy`.
        public var busyTimeout: Duration = .seconds(10)
        /// Bytes of large values that one transaction writes; what a save has beyond is written before it.
        package var valueBytesOfTransaction = 1 << 24

        public init() {}
    }

    public let identity: StoreIdentity
    public let lineage: StoreLineage
    public let schema: StoreSchema
    public let url: URL
    public var deferralStyle: DeferralStyle { .layered }

    let options: Options
    let environment: Environment
    let file: FileIdentity
    /// Of the file: see `Docs/Internals/FileFormat.md`.
    let format: UInt64
    let tables: Tables
    let layouts: [PageLayout]
    /// All versions of the schema that the file has had; the last is in force.
    let schemas: [StoredSchema]
    /// What the last migration left for later.
    let unfinished: PendingIndexBuilds
    /// Of the schema in force, from 1 on.
    var schemaNumber: Int { schemas.count }
    /// By entity.
    let entities: [EntityTable]
    /// Bytes to a page of the file.
    var pageSize: Int { environment.pageSize }
    private let latest = Mutex(Latest())
    /// Held while a write transaction of this process lives: the map may be replaced only while there is none.
    private let writing = Mutex(())
    let isClosed = Atomic(false)
    /// Where what takes long and is not a save runs, one at a time.
    let background = DispatchQueue(label: "strata.background", qos: .utility)
    let writes = Atomic<Int>(0)
    /// Up to here, in bytes, the disk has room for the file; 0 until somebody has asked for some.
    let setAside = Atomic<Int>(0)
    let signal: SaveSignal
    let claims: SaveClaims
    let dictionaries: Dictionaries
    let tails: PageOverflow
    /// Whether the file may have large values of a write that failed, or of a process that died.
    let mayHaveUnclaimed: Atomic<Bool>
    /// How many chunks of large values were read.
    let chunkReads = Atomic<Int>(0)
    let unpackedPages: UnpackedPageCache
    /// Of a file that is read without a place in the table of readers.
    private let readerless: ReaderlessFile?

    /// The newest snapshot that was handed out, for those who ask for the same state.
    private struct Latest {
        weak var snapshot: LMDBSnapshot?
    }

    init(_ opened: OpenedFile) {
        identity = StoreIdentity(opened.uuid)
        lineage = opened.lineage
        schema = opened.schema
        url = opened.url
        options = opened.options
        environment = opened.environment
        file = opened.file
        format = opened.format
        tables = opened.tables
        layouts = opened.layouts
        schemas = opened.schemas
        unfinished = PendingIndexBuilds(opened.unfinished)
        mayHaveUnclaimed = Atomic(opened.hasUnclaimed)
        let tables = opened.tables
        entities = opened.layouts.indices.map {
            EntityTable(pages: tables.pages[$0], large: tables.large[$0], layout: opened.layouts[$0])
        }
        signal = SaveSignal(besideFile: opened.url.path)
        claims = SaveClaims(
            signalPath: signal.path, storePath: opened.url.path, timeout: opened.options.busyTimeout)
        dictionaries = Dictionaries(opened.tables)
        tails = PageOverflow(opened.tables)
        unpackedPages = UnpackedPageCache(maximumByteCount: opened.options.pageCacheBytes)
        readerless = opened.readerless
    }

    deinit { EnvironmentRegistry.close(environment, file) }

    /// The newest committed state of any process. About 1 µs, less when the newest snapshot is still in use.
    ///
    /// - Throws: `StoreError` `.readersFull`, `.usedAfterFork`, `.damaged`.
    public func snapshot() throws -> any StoreSnapshot { try newestSnapshot() }

    func newestSnapshot() throws -> LMDBSnapshot {
        try checkProcess()
        try readerless?.checkUnused()
        return try mappingErrors {
            do {
                return try newestSnapshotInMap()
            } catch let error as LMDBError where error.code == .mapResized {
                return try adoptingSize(newestSnapshotInMap)
            }
        }
    }

    private func newestSnapshotInMap() throws -> LMDBSnapshot {
        let newest = try environment.information().lastTransaction
        return try latest.withLock { latest in
            if let snapshot = latest.snapshot, snapshot.transactionNumber >= newest { return snapshot }
            let made = try LMDBSnapshot(self, try ReadTransaction(environment))
            // Its pages and indexes are those of another schema.
            guard try made.transaction.metaNumber(MetaTable.Key.schemaNumber, tables.meta) == UInt64(schemaNumber) else {
                throw StoreError.migratedElsewhere(self)
            }
            latest.snapshot = made
            return made
        }
    }

    /// Takes the size that another process has given the file, and runs `read`. A writer of this process, whose map may not move
    /// meanwhile, takes it by itself before it writes; inside of a write the file is never larger than the map.
    private func adoptingSize<R>(_ read: () throws -> R) throws -> R {
        for _ in 0..<5000 {
            let isAdopted = try writing.withLockIfAvailable { _ in try environment.resizeMap(to: 0) }
            if isAdopted == false { throw StoreError.outgrown(self) }
            do {
                return try read()
            } catch let error as LMDBError where error.code == .mapResized {
                usleep(1000)
            }
        }
        throw StoreError.outgrown(self)
    }

    /// Runs `body` in the file's one write transaction, on the calling thread, and commits it durably.
    ///
    /// Waits for writers of other processes. `body` is run again when the map had to grow, and when it has written more than 16 MiB of
    /// large values, which then go into the file before, in transactions of their own; so it must be repeatable, with the same values.
    /// - Throws: what `body` throws; `StoreError` `.full`, `.inputOutput`, `.damaged`. Nothing is written then.
    public func write<R>(_ durability: Durability, _ body: (any StoreTransaction) throws -> R) throws -> R {
        try checkProcess()
        if isReadOnly { throw StoreError.openReadOnly(url.path) }
        if writes.add(1, ordering: .relaxed).newValue % 256 == 0 { _ = try? environment.clearDeadReaders() }
        var result: R?
        try writing.withLock { _ in
            // Another thread may have closed it meanwhile.
            try checkProcess()
            result = try writeBounded(body)
        }
        // The closure has run, or an error was thrown.
        return result.unsafelyUnwrapped
    }

    /// Runs `body` in the write transaction for what is not a save, as ``write(_:_:)`` otherwise.
    /// - Parameter pages: what it takes of the file at most, when it must leave room for deleting.
    func writeTables<R>(pages: Int, _ body: (WriteTransaction) throws -> R) throws -> R {
        try write(.durable) { opened in
            guard let opened = opened as? LMDBTransaction else {
                throw StoreError(.internalInconsistency, "a write transaction of another store; report this as a bug")
            }
            try opened.checkRoom(pages: pages)
            return try body(opened.transaction)
        }
    }

    /// By a file beside the data file, whose name ends in `-signal`: no process looks into the data file to find out.
    /// A store that is opened read-only watches the data file itself where there is no such file.
    public func watch(_ body: @escaping @Sendable () -> Void) throws -> (any StoreWatch)? {
        try signal.watch(isReadOnly: isReadOnly, body)
    }

    /// Bytes of the data file, without the lock file.
    public func fileBytes() throws -> Int {
        try checkProcess()
        return try FileIdentity.byteCount(path: url.path)
    }

    public var isReadOnly: Bool { options.isReadOnly }
    public var name: String { url.path }

    func checkProcess() throws {
        guard !environment.isOfForkedParent else {
            throw StoreError(
                .usedAfterFork,
                "\(url.path) was opened before a fork, and LMDB must not be used on both sides. Open it again in the new process"
            )
        }
        if isClosed.load(ordering: .acquiring) { throw StoreError.closed(url.path) }
    }

    /// Waits up to five seconds for snapshots that are still held.
    public func shutDown() throws {
        guard !environment.isOfForkedParent else { return }
        isClosed.store(true, ordering: .releasing)
        for _ in 0..<5000 {
            // No write is under way, and none begins.
            if writing.withLock({ _ in environment.retire() }) {
                EnvironmentRegistry.close(environment, file)
                signal.end()
                claims.end()
                return
            }
            usleep(1000)
        }
        throw StoreError.stillRead(url.path, readers: environment.liveReaders)
    }

    /// Runs `body` and tells LMDB's errors in the words of stores.
    func mappingErrors<R>(_ body: () throws -> R) throws -> R {
        do {
            return try body()
        } catch let error as LMDBError {
            if isClosed.load(ordering: .acquiring) { throw StoreError.closed(url.path) }
            throw StoreError(error, path: url.path)
        }
    }
}

extension StoreDescription {
    /// A store in one file at `url`, with a lock file beside it. Snapshots route reads: no context waits for another.
    ///
    /// A store that is opened read-only is read like any other. Saves, batches, compaction and restoring throw `StoreError` `.readOnly`, and
    /// contexts keep their changes. A file whose model differs is refused, because it would have to be migrated.
    ///
    /// Within one process a file is open either read-only or for writing. In a folder in which this user may not write, no lock file can be
    /// made. Writers of other processes cannot see such a reader, so reading throws `.inUseElsewhere` while another process has the file open.
    ///
    /// - Parameters:
    ///   - url: the place of the file.
    ///   - readOnly: whether to open an existing file without changing it.
    ///   - options: sizes and limits.
    public static func lmdb(
        _ url: URL, readOnly: Bool = false, options: LMDBStore.Options = LMDBStore.Options()
    ) -> StoreDescription {
        var options = options
        if readOnly { options.isReadOnly = true }
        return StoreDescription(name: "lmdb", migration: options.isReadOnly ? nil : MigratableLMDBFile(url, options)) {
            [options] schema in
            try LMDBStore.open(url, schema: schema, options: options)
        }
    }
}
