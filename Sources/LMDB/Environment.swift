internal import CLMDB
internal import Platform

/// An open LMDB file with its lock file.
///
/// A process must open a file only once, because LMDB's file locks break otherwise. The caller is responsible for this.
///
/// `@unchecked Sendable` is right for three reasons. LMDB locks what threads share of an environment. The pool of readers has
/// its own lock. The map is replaced only while this process has no transaction.
package final class Environment: @unchecked Sendable {
    /// The access to the file, and the use of its lock file.
    package enum Access: Sendable, Hashable {
        /// Reads and writes a file that other processes may use. Creates the lock file.
        case readWrite
        /// For a file without writers. Creates no lock file.
        case readOnlyWithoutLock
        /// For a file that no other process uses. Creates no lock file.
        case readWriteWithoutLock
        /// Uses the reader table, so that writers of other processes keep the pages that this environment reads.
        case readOnly
    }

    /// Options for opening an environment.
    package struct Options: Sendable {
        /// The size of the map in bytes, and thereby the maximum size of the file. See also ``smallestMapSize``.
        package var mapSize: Int
        /// The lower bound of the map size. The map is halved until it fits into the address space, down to this size.
        package var smallestMapSize: Int
        /// The maximum number of read transactions in all processes together. The process that creates the lock file determines
        /// it.
        package var maximumReaders: Int
        /// The maximum number of sub-databases that can be open.
        package var maximumDatabases: Int
        /// The permissions of a new data file and lock file.
        package var fileMode: UInt32
        /// The access to the file.
        package var access: Access

        /// Creates options. By default, the map shrinks to 16 MiB if the address space has no room for `mapSize`.
        package init(
            mapSize: Int, smallestMapSize: Int = 1 << 24, maximumReaders: Int = 1024, maximumDatabases: Int = 64,
            fileMode: UInt32 = 0o644, access: Access = .readWrite
        ) {
            self.mapSize = mapSize
            self.smallestMapSize = smallestMapSize
            self.maximumReaders = maximumReaders
            self.maximumDatabases = maximumDatabases
            self.fileMode = fileMode
            self.access = access
        }
    }

    /// A read transaction of LMDB.
    ///
    /// `@unchecked Sendable` is right because without thread-local slots (MDB_NOTLS) any thread may use the transaction, one
    /// at a time.
    struct Reader: @unchecked Sendable {
        // Right because one owner uses it: the pool, or the `ReadTransaction` that took it from the pool.
        let pointer: OpaquePointer
    }

    struct Readers {
        /// Reset transactions that keep their reader slots for reuse.
        var idle: [Reader] = []
        /// A transaction reserved for the time when all slots are in use; see ``Environment/reserveReader()``.
        var spare: Reader?
        var live = 0
        /// The number of running calls that use the environment without a transaction of the pool.
        var calls = 0
        /// Whether the environment is about to be closed, or is suspended. Later transactions and calls fail.
        var isRetired = false
        /// The names and kinds of the open sub-databases by handle.
        var databases: [UInt32: (name: String, kind: Database.Kind)] = [:]

        func checkUsable() throws(LMDBError) {
            if isRetired { throw LMDBError(returnCode: SystemError.badDescriptor.number, call: .begin) }
        }
    }

    /// The maximum number of reader slots kept for reuse.
    static let maximumIdleReaders = 16

    // Right because `init` creates it and `close()` closes it, after the last transaction. It changes only between
    // `suspend()` and the end of `resume(with:)`, when there is no transaction and no other call.
    private(set) var pointer: OpaquePointer
    let readers = Mutex(Readers())
    /// The page size in bytes, a power of two.
    package let pageSize: Int
    private let isClosed = Atomic(false)
    /// Whether the closing that ``isClosed`` announces has ended.
    private let hasReleasedLocks = Atomic(false)
    private let retirementCount = Atomic(0)
    private let processForks: Int

    /// Opens an environment. Blocks: reads the file's first pages and acquires its lock file.
    package init(path: String, options: Options) throws(LMDBError) {
        processForks = ForkCount.current
        try LMDBLibrary.check()
        var size = options.mapSize
        while true {
            do throws(LMDBError) {
                let opened = try Self.open(path, options, mapSize: size)
                var statistics = MDB_stat()
                // The call cannot fail for an open environment.
                mdb_env_stat(opened, &statistics)
                (pointer, pageSize) = (opened, Int(statistics.ms_psize))
                return
            } catch {
                guard error.code == .system(SystemError.noMemory.number), error.call == .environmentOpen,
                    size / 2 >= options.smallestMapSize
                else {
                    throw error
                }
                size /= 2
            }
        }
    }

    private static func open(_ path: String, _ options: Options, mapSize: Int) throws(LMDBError) -> OpaquePointer {
        var made: OpaquePointer?
        try check(.environmentCreate, of: .file(path)) { mdb_env_create(&made) }
        guard let made else { throw LMDBError(returnCode: SystemError.noMemory.number, call: .environmentCreate) }
        do throws(LMDBError) {
            try check(.setMapSize, of: .file(path)) { mdb_env_set_mapsize(made, mapSize) }
            try check(.setMaxDatabases, of: .file(path)) { mdb_env_set_maxdbs(made, UInt32(clamping: options.maximumDatabases)) }
            try check(.setMaxReaders, of: .file(path)) { mdb_env_set_maxreaders(made, Self.readerSlots(options.maximumReaders)) }
            // Never MDB_WRITEMAP, MDB_NOSYNC or MDB_NOMETASYNC: a power failure must neither damage the file nor lose a
            // commit.
            let access: Int32 =
                switch options.access {
                case .readWrite: 0
                case .readOnlyWithoutLock: Int32(MDB_RDONLY | MDB_NOLOCK)
                case .readWriteWithoutLock: Int32(MDB_NOLOCK)
                case .readOnly: Int32(MDB_RDONLY)
                }
            let flags = UInt32(MDB_NOSUBDIR | MDB_NOTLS) | UInt32(access)
            // LMDB would open a file under the number of a closed standard stream.
            StandardStreams.occupyClosed()
            try check(.environmentOpen, of: .file(path)) { mdb_env_open(made, path, flags, options.fileMode) }
        } catch {
            mdb_env_close(made)
            throw error
        }
        return made
    }

    /// Limits the number of slots to what a machine can use. A slot takes 64 bytes of the lock file.
    private static func readerSlots(_ wanted: Int) -> UInt32 { UInt32(min(max(wanted, 1), 1 << 20)) }

    /// Returns an upper limit of the size of the lock file: a reader slot has 64 bytes, and the header less than 256.
    package static func lockFileBytes(readers: Int) -> Int { Int(readerSlots(readers)) * 64 + 256 }

    deinit { close() }

    /// Closes the file. Precondition: there are no transactions. Does nothing on a second call, and after a fork.
    package func close() {
        guard isClosed.exchange(true, ordering: .acquiringAndReleasing) == false else { return }
        // A forked child shares the reader table with its parent. Closing would free the parent's slots.
        guard ForkCount.current == processForks else { return }
        dropIdleReaders()
        mdb_env_close(pointer)
        hasReleasedLocks.store(true, ordering: .releasing)
    }

    /// Closes the file and releases its locks, until ``resume(with:)``. Refuses transactions and calls meanwhile.
    ///
    /// Returns false, and changes nothing, if a read transaction or another call is running. Precondition: this process has no
    /// write transaction.
    package func suspend() -> Bool {
        guard retire() else { return false }
        close()
        return true
    }

    /// Whether the file is open. It is closed while the environment is suspended.
    package var isOpen: Bool { !isClosed.load(ordering: .acquiring) }

    /// Whether the environment uses the lock file. In contrast to ``isOpen``, true until the file is closed.
    package var hasLocks: Bool { !hasReleasedLocks.load(ordering: .acquiring) }

    /// Opens the file again after ``suspend()``. Handles of sub-databases stay valid.
    /// - Parameter reopened: A new environment of the same file, which becomes this one and must not be used any more.
    /// - Throws: ``LMDBError`` `.notFound` if the file does not have the sub-databases that were open. The file stays closed.
    package func resume(with reopened: Environment) throws(LMDBError) {
        let databases = readers.withLock { $0.databases }
        for (handle, database) in databases.sorted(by: { $0.key < $1.key }) {
            // LMDB numbers handles in the order in which they are opened.
            guard try reopened.handle(of: database.name, database.kind) == handle else {
                throw LMDBError(returnCode: MDB_NOTFOUND, call: .openDatabase)
            }
        }
        reopened.dropIdleReaders()
        readers.withLock { readers in
            pointer = reopened.pointer
            // `reopened` does not close what this environment has now.
            _ = reopened.isClosed.exchange(true, ordering: .acquiringAndReleasing)
            hasReleasedLocks.store(false, ordering: .releasing)
            isClosed.store(false, ordering: .releasing)
            readers.isRetired = false
        }
    }

    /// Remembers a sub-database that is open from now on, unless the transaction that opened it is aborted.
    func note(_ database: Database, named name: String, kind: Database.Kind) {
        readers.withLock { $0.databases[database.handle] = (name, kind) }
    }

    private func handle(of name: String, _ kind: Database.Kind) throws(LMDBError) -> UInt32? {
        do {
            return try openDatabases { try $0.open(name, kind) }?.handle
        } catch let error as LMDBError {
            throw error
        } catch {
            throw LMDBError(returnCode: MDB_NOTFOUND, call: .openDatabase)
        }
    }

    /// Refuses all later transactions and calls. Returns false, and changes nothing, if a read transaction or another call is
    /// running.
    package func retire() -> Bool {
        readers.withLock { readers in
            guard readers.live == 0, readers.calls == 0 else { return false }
            readers.isRetired = true
            retirementCount.add(1, ordering: .sequentiallyConsistent)
            return true
        }
    }

    /// How often ``suspend()`` and ``retire()`` have succeeded. If the number has changed, a call may have been refused for that reason.
    package var retirements: Int { retirementCount.load(ordering: .sequentiallyConsistent) }

    /// Runs a call during which the environment stays open.
    func staying<R>(_ body: () throws(LMDBError) -> R) throws(LMDBError) -> R {
        let begun: Result<Void, LMDBError> = readers.withLock { readers in
            do throws(LMDBError) { try readers.checkUsable() } catch { return .failure(error) }
            readers.calls += 1
            return .success(())
        }
        try begun.get()
        defer { readers.withLock { $0.calls -= 1 } }
        return try body()
    }

    /// A Boolean value that indicates whether this process is a fork of the process that opened the environment. If true, no
    /// method may be called. About 1 ns.
    package var isOfForkedParent: Bool { ForkCount.current != processForks }

    // MARK: Information

    /// The sizes and counters of an open environment.
    package struct Information: Sendable, Hashable {
        /// The size of this process's map in bytes.
        package var mapSize: Int
        /// The number of the last page in use, from 0. The file extends at least to its end.
        package var lastPage: Int
        /// The number of the newest commit.
        package var lastTransaction: UInt64
        /// The number of slots in the reader table.
        package var readerSlots: Int
        /// The maximum number of slots that have been in use at once.
        package var usedReaderSlots: Int
    }

    /// Returns the map size and the last page. About 40 ns: reads the meta pages in the map.
    package func information() throws(LMDBError) -> Information {
        var info = MDB_envinfo()
        // Acquires the lock, because the map is replaced under it.
        let outcome: Result<Void, LMDBError> = readers.withLock { readers in
            do throws(LMDBError) {
                try readers.checkUsable()
                return .success(try check(.information, of: .environment(pointer)) { mdb_env_info(pointer, &info) })
            } catch {
                return .failure(error)
            }
        }
        try outcome.get()
        return Information(
            mapSize: info.me_mapsize, lastPage: info.me_last_pgno, lastTransaction: UInt64(info.me_last_txnid),
            readerSlots: Int(info.me_maxreaders), usedReaderSlots: Int(info.me_numreaders))
    }

    /// Returns the descriptor of the open file. The environment closes it.
    package func fileDescriptor() throws(LMDBError) -> Int32 {
        var file: mdb_filehandle_t = -1
        try check(.fileDescriptor, of: .environment(pointer)) { mdb_env_get_fd(pointer, &file) }
        return file
    }

    /// Frees the slots of readers whose process has ended.
    /// - Returns: The number of freed slots.
    @discardableResult
    package func clearDeadReaders() throws(LMDBError) -> Int {
        try staying { () throws(LMDBError) in try clearDeadReadersNow() }
    }

    /// Frees the slots of dead readers. The caller must have acquired the lock of the readers.
    func clearDeadReadersNow() throws(LMDBError) -> Int {
        var dead: Int32 = 0
        try check(.readerCheck, of: .environment(pointer)) { mdb_reader_check(pointer, &dead) }
        return Int(dead)
    }

    /// Writes a copy of the newest state to a new file, without free pages. Blocks; readers and writers continue.
    package func copy(to path: String) throws(LMDBError) {
        StandardStreams.occupyClosed()
        try takingSlot { () throws(LMDBError) in
            try check(.copy, of: .environment(pointer)) { mdb_env_copy2(pointer, path, UInt32(MDB_CP_COMPACT)) }
        }
    }

    /// Writes a copy of the newest state to a descriptor of a file, pipe or socket, without free pages. Blocks; readers and
    /// writers continue.
    package func copy(to descriptor: Int32) throws(LMDBError) {
        try takingSlot { () throws(LMDBError) in
            try staying { () throws(LMDBError) in
                try check(.copyToDescriptor, of: .environment(pointer)) {
                    mdb_env_copyfd2(pointer, descriptor, UInt32(MDB_CP_COMPACT))
                }
            }
        }
    }

    // MARK: The map

    /// Enlarges the map. Pass 0 to adopt the size that another process has given the file.
    ///
    /// Precondition: this process has no write transaction.
    /// - Returns: False, without a change, if this process has a read transaction, because the map cannot move then. Also
    ///   false if the address space has no room for the new map beside the old one.
    package func resizeMap(to size: Int) throws(LMDBError) -> Bool {
        // Acquires the lock, so that no reader begins meanwhile.
        let outcome: Result<Bool, LMDBError> = readers.withLock { readers in
            guard readers.live == 0 else { return .success(false) }
            do throws(LMDBError) {
                try readers.checkUsable()
                // LMDB unmaps the old map before it requests the new one. If that fails, LMDB crashes at its next call.
                guard AddressSpace.hasSpace(for: size > 0 ? size : try sizeInFile()) else { return .success(false) }
                readers.dropUnused()
                try check(.setMapSize, of: .environment(pointer)) { mdb_env_set_mapsize(pointer, size) }
                return .success(true)
            } catch {
                return .failure(error)
            }
        }
        return try outcome.get()
    }

    /// Returns the map size that LMDB uses when it adopts the size set by another process.
    func sizeInFile() throws(LMDBError) -> Int {
        max(try MetaPages.mapSize(OpenFile(descriptor: try fileDescriptor()), pageSize: pageSize), 1)
    }

    func dropIdleReaders() { readers.withLock { $0.dropUnused() } }

    /// The number of read transactions of this process in use.
    package var liveReaders: Int { readers.withLock { $0.live } }
}

extension DatabaseStatistics {
    init(_ stat: MDB_stat) {
        self.init(
            pageSize: Int(stat.ms_psize), depth: Int(stat.ms_depth), branchPages: Self.possible(stat.ms_branch_pages),
            leafPages: Self.possible(stat.ms_leaf_pages), overflowPages: Self.possible(stat.ms_overflow_pages),
            entries: Self.possible(stat.ms_entries))
    }

    /// The greatest count of a file. In a damaged file it can be any number, and callers add and multiply counts.
    static let mostEntries = 1 << 40

    /// Limits a count read from the file.
    private static func possible(_ count: Int) -> Int { min(max(0, count), mostEntries) }
}
