import LMDB
internal import Platform
import StoreFiles
import StoreInterface
import StoreModel

/// Opens a file with its lock file. A process that writes under another lock file would overwrite the saves of other
/// processes.
///
/// LMDB opens the lock file and then the data file, both by name. In between, a staged migration, or a person who restores a
/// copy by hand, may replace the data file. Both files are therefore checked again before anything is written.
enum OpenedEnvironment {
    private static let tries = 100

    /// Opens an environment.
    /// - Parameter path: The resolved path of an existing file.
    static func open(_ path: String, maximumDatabases: Int, _ options: LMDBStore.Options) throws -> Environment {
        let settings = settings(
            options, maximumDatabases: maximumDatabases, access: options.isReadOnly ? .readOnly : .readWrite)
        for attempt in 1...tries {
            let lock = try lockFile(path, options)
            guard let environment = try opened(path, settings, lock: lock, isLast: attempt == tries) else {
                CurrentThread.sleep(microseconds: 10_000)
                continue
            }
            do {
                if try environment.adoptingSizes({ try fits(environment, at: path, lock: lock, options: options) }) {
                    return environment
                }
                environment.close()
            } catch {
                environment.close()
                throw error
            }
            CurrentThread.sleep(microseconds: 10_000)
        }
        throw StoreError(
            .inUseElsewhere,
            "\(path) cannot be opened: its lock file belongs to another file of that name, which a process still has open. "
                + "Close it there")
    }

    /// Opens the environment. Returns nil, unless this is the last try, if LMDB has waited for a process that had locked an empty
    /// lock file. LMDB then gets only a shared lock, does not create the reader table, and fails to map a file without bytes.
    private static func opened(
        _ path: String, _ settings: Environment.Options, lock: FileIdentity?, isLast: Bool
    ) throws -> Environment? {
        let wasEmpty = !StoreFile.isFilled(path + "-lock")
        do throws(LMDBError) {
            return try Environment(path: path, options: settings)
        } catch {
            guard !isLast, error.call == .environmentOpen, error.code == .system(SystemError.invalidArgument.number) else {
                throw error
            }
            // That process may have created or removed the lock file meanwhile.
            guard try wasEmpty || FileIdentity.of(path: path + "-lock") != lock else { throw error }
            return nil
        }
    }

    static func settings(
        _ options: LMDBStore.Options, maximumDatabases: Int, access: Environment.Access
    ) -> Environment.Options {
        Environment.Options(
            mapSize: max(options.mapSize, 1 << 20), smallestMapSize: min(options.mapSize, 1 << 28),
            maximumReaders: max(options.maximumReaders, 8), maximumDatabases: maximumDatabases, access: access)
    }

    /// Creates the lock file if it is missing, with the mode of the file and without following a link. If that fails, LMDB
    /// reports the reason. Only for a process that has no lock on it, because closing the file would end the lock.
    ///
    /// Reserves room on the disk for all reader slots. LMDB writes them through a map of a file with holes. On a full disk, a write to a hole
    /// ends the process.
    private static func lockFile(_ path: String, _ options: LMDBStore.Options) throws -> FileIdentity? {
        try StoreFile.checkBeside(path, ["-lock", "-signal"])
        let lock = path + "-lock"
        let isNew = try FileIdentity.of(path: lock) == nil
        if let opened = try? StoreFile.openBeside(lock, of: path) {
            defer { opened.close() }
            // Readers register in the lock file, so its owner needs write permission even if the data file is read-only.
            if isNew, options.isReadOnly, let access = FileAccess(of: lock) { access.withWritingOwner.apply(to: opened) }
            let end = max(Environment.lockFileBytes(readers: max(options.maximumReaders, 8)), StoreFile.byteCount(lock))
            do throws(SystemError) { try opened.allocate(from: 0, to: end) } catch {
                // A limit on the size of files does not end the process at a write to a map.
                guard error != .fileTooLarge else { return try FileIdentity.of(path: lock) }
                throw StoreError(error, "\(path) cannot be opened: there is no room for its lock file")
            }
        }
        return try FileIdentity.of(path: lock)
    }

    private static func fits(
        _ environment: Environment, at path: String, lock: FileIdentity?, options: LMDBStore.Options
    ) throws -> Bool {
        guard try FileIdentity.of(descriptor: environment.fileDescriptor()) == FileIdentity.of(path: path),
            try FileIdentity.of(path: path + "-lock") == lock
        else { return false }
        if options.isReadOnly {
            let reader = try ReadTransaction(environment)
            defer { reader.end() }
            // Compares with the commit in the lock file. Another process may commit between the two reads.
            return try MetaPages.hasCommit(reader.transactionNumber, path: path)
        }
        // The lock file counts the commits as long as a process has it open. This transaction writes nothing.
        return try environment.write { try $0.transactionNumber == environment.information().lastTransaction + 1 }
    }
}

extension Environment {
    /// Runs `body`, and repeats it with a larger map each time that another process has made the file larger than the map. The caller
    /// must be the only user of the environment.
    func adoptingSizes<R>(_ body: () throws -> R) throws -> R {
        try adoptingSizes(body) { _ = try resizeMap(to: 0) }
    }

    /// Runs `body` as ``adoptingSizes(_:)`` does, and doubles the map each time that it is full. A file that is as large as its map, such as
    /// a compact copy of a larger one, has no room for what opening writes.
    func growing<R>(to maximum: Int?, _ body: () throws -> R) throws -> R {
        while true {
            do {
                return try adoptingSizes(body)
            } catch let error as LMDBError where error.code == .mapFull {
                let size = try information().mapSize
                let largest = maximum ?? Int.max / 4
                guard size < largest, try resizeMap(to: min(size * 2, largest)) else { throw error }
            }
        }
    }

    /// Runs `body`, and repeats it after `adopt`, which adopts the file's size, each time that another process has made the file larger
    /// than the map.
    func adoptingSizes<R>(_ body: () throws -> R, adopt: () throws -> Void) throws -> R {
        for _ in 0..<5000 {
            do {
                return try body()
            } catch let error as LMDBError where error.code == .mapResized {
                try adopt()
                CurrentThread.sleep(microseconds: 1000)
            }
        }
        return try body()
    }
}
