import LMDB
import StoreInterface

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif
#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// The LMDB file of a staged migration (S164).
struct MigratableLMDBFile: MigratableFile {
    let url: URL
    private let options: LMDBStore.Options

    init(_ url: URL, _ options: LMDBStore.Options) {
        self.url = url
        self.options = options
    }

    func storedSchema() throws -> StoreSchema? {
        guard try FileIdentity.of(path: url.path) != nil else { return nil }
        // Open here: then it has a schema, and the open that follows tells whether it fits.
        if let open = try EnvironmentRegistry.openStore(path: url.path) { return open.schemas.last?.schema }
        return try withEnvironment { environment in
            guard let meta = try environment.openDatabases({ try $0.open(MetaTable.name, .bytes) }) else { return nil }
            let transaction = try ReadTransaction(environment)
            defer { transaction.end() }
            guard try transaction.metaNumber(MetaTable.Key.format, meta) == MetaTable.formatVersion else { return nil }
            return try StoredSchemas(meta, in: transaction, path: url.path).current.schema
        }
    }

    func makeCopy() throws -> any MigrationCopy {
        let copy = URL(fileURLWithPath: url.path + ".migrating")
        try checkUnlocked()
        Self.remove(copy)
        let transaction = try withEnvironment { environment in
            // Not a page less than the newest commit: were it changed meanwhile, its number would tell.
            let newest = try environment.information().lastTransaction
            do {
                try environment.copy(to: copy.path)
            } catch {
                Self.remove(copy)
                throw error
            }
            return newest
        }
        return LMDBMigrationCopy(original: url, copy: copy, options: options, transaction: transaction, file: self)
    }

    /// Opens the file by itself, while nobody of this process has it open.
    func withEnvironment<R>(_ body: (Environment) throws -> R) throws -> R {
        try EnvironmentRegistry.exclusively(path: url.path) {
            do {
                let gap = try FileCheck.beforeOpening(url.path, options.openingCheck)
                let environment = try Environment(
                    path: url.path,
                    options: Environment.Options(
                        mapSize: max(options.mapSize, 1 << 20), smallestMapSize: min(options.mapSize, 1 << 28),
                        maximumReaders: max(options.maximumReaders, 8), maximumDatabases: 8))
                defer { environment.close() }
                try gap?.checkFree(in: environment, path: url.path)
                return try body(environment)
            } catch let error as LMDBError {
                throw StoreError(opening: error, path: url.path)
            }
        }
    }

    /// Another process that has the file open holds a lock on the first byte of the lock file. One of this process is not seen, and
    /// closing the file here would drop it, so this is asked only while nobody here has the store open.
    private func checkUnlocked() throws {
        try EnvironmentRegistry.exclusively(path: url.path) {
            let descriptor = open(url.path + "-lock", O_RDWR | O_CLOEXEC)
            guard descriptor >= 0 else { return }
            defer { close(descriptor) }
            var lock = flock()
            lock.l_type = Int16(F_WRLCK)
            lock.l_whence = Int16(SEEK_SET)
            lock.l_start = 0
            lock.l_len = 1
            guard fcntl(descriptor, F_GETLK, &lock) == 0, lock.l_type == Int16(F_UNLCK) else {
                throw StoreError(
                    .inUseElsewhere,
                    "\(url.path) is open in another process, and a migration in stages puts another file in its place. Close it there"
                )
            }
        }
    }

    static func remove(_ file: URL) {
        for path in [file.path, file.path + "-lock", file.path + "-signal"] { unlink(path) }
    }
}

struct LMDBMigrationCopy: MigrationCopy {
    fileprivate let original: URL
    fileprivate let copy: URL
    fileprivate let options: LMDBStore.Options
    /// The commit that was copied.
    fileprivate let transaction: UInt64
    fileprivate let file: MigratableLMDBFile

    fileprivate init(
        original: URL, copy: URL, options: LMDBStore.Options, transaction: UInt64, file: MigratableLMDBFile
    ) {
        self.original = original
        self.copy = copy
        self.options = options
        self.transaction = transaction
        self.file = file
    }

    var store: StoreDescription {
        let url = copy
        let options = options
        return StoreDescription(name: "lmdb") { schema in try LMDBStore.open(url, schema: schema, options: options) }
    }

    func replaceOriginal() throws {
        try EnvironmentRegistry.exclusively(path: copy.path) {}
        try file.withEnvironment { environment in
            guard let meta = try environment.openDatabases({ try $0.open(MetaTable.name, .bytes) }) else {
                throw StoreError(.damaged, "\(original.path) has lost its meta table. Restore a copy")
            }
            // Holding the writer's lock: nobody changes the file while its place is taken. Who waits for the lock finds the mark.
            try environment.write { write in
                guard write.transactionNumber == transaction + 1 else {
                    throw StoreError(.inUseElsewhere, "\(original.path) was changed while it was migrated. Open it again")
                }
                try MetaTable.put(MetaTable.replacedSchemaNumber, MetaTable.Key.schemaNumber, meta, in: write)
                // The commit comes after the rename, so a full disk must be met before it.
                let used = try (environment.information().lastPage + 1) * environment.pageSize
                try environment.setAside(from: used, to: used + 1 << 17)
                try PartialFile.sync(copy.path, for: original.path)
                guard rename(copy.path, original.path) == 0 else {
                    throw StoreError(errorNumber: errno, "\(original.path) cannot be replaced")
                }
                // The lock file belongs to the old file; one that a crash leaves is made anew by the next open.
                unlink(original.path + "-lock")
                MigratableLMDBFile.remove(copy)
                try PartialFile.syncFolder(of: original)
            }
        }
    }

    func discard() { MigratableLMDBFile.remove(copy) }
}
