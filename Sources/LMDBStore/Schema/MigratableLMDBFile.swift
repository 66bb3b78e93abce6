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

/// The LMDB file of a staged migration (S164).
struct MigratableLMDBFile: MigratableFile {
    let url: URL
    private let options: LMDBStore.Options

    init(_ url: URL, _ options: LMDBStore.Options) {
        self.url = url
        self.options = options
    }

    func storedSchema() throws -> StoreSchema? { try recordedSchemas()?.current }

    func recordedSchemas() throws -> RecordedSchemas? {
        let url = try StoreFile.resolved(url)
        guard try FileIdentity.of(path: url.path) != nil, StoreFile.isFilled(url.path) else { return nil }
        // If the store is open in this process, its schema is known. The next opening shows whether the schema matches.
        return try EnvironmentRegistry.looking(path: url.path, open: { plain($0.schemas) }) {
            try withClaimedEnvironment(url) { environment -> RecordedSchemas? in
                guard let meta = try environment.openDatabases({ try $0.open(MetaTable.name, .bytes) }) else { return nil }
                let transaction = try ReadTransaction(environment)
                defer { transaction.end() }
                guard let format = try transaction.metaNumber(MetaTable.Key.format, meta), format <= MetaTable.formatVersion
                else { return nil }
                let schemas = try StoredSchemas(meta, in: transaction, path: url.path)
                let count = try transaction.statistics(.main).entries
                try Tables.checkNames(schemas.current, format: format, count: count, in: transaction, path: url.path)
                return plain(schemas.versions)
            }
        }
    }

    private func plain(_ versions: [StoredSchema]) -> RecordedSchemas {
        var recorded = StoredSchema.recorded(versions)
        recorded.current = recorded.current.withoutKeyedValues
        return recorded
    }

    func makeCopy() throws -> any MigrationCopy {
        let url = try StoreFile.resolved(url)
        try checkUnlocked(url)
        let copy = try PartialFile(forNewVersionOf: url, like: url.path)
        do {
            return try withEnvironment(url) { environment in
                // Copies all pages of the newest commit. If the file changes meanwhile, its commit number shows it.
                let newest = try environment.information().lastTransaction
                let file = try copy.openFile()
                defer { file.close() }
                try environment.copy(to: file.descriptor)
                // LMDB does not copy the mark of a backup that was not opened yet. The first stage then begins its incarnation.
                try CopyStamp.read(path: url.path)?.write(toFile: copy.path, for: copy.target)
                return LMDBMigrationCopy(
                    copy: copy, options: options, transaction: newest,
                    original: FileIdentity.of(descriptor: try environment.fileDescriptor()))
            }
        } catch {
            copy.discard()
            throw error
        }
    }

    /// Opens the environment of the file while this process does not have it open.
    private func withEnvironment<R>(_ url: URL, _ body: (Environment) throws -> R) throws -> R {
        try EnvironmentRegistry.exclusively(path: url.path) { try withClaimedEnvironment(url, body) }
    }

    /// Opens the environment of a file that the caller has claimed.
    private func withClaimedEnvironment<R>(_ url: URL, _ body: (Environment) throws -> R) throws -> R {
        do {
            try FileCheck.beforeOpening(url.path, options.openingCheck, isWritten: LockFile.mayBeOpenElsewhere(url.path))
            guard options.isReadOnly else {
                let environment = try OpenedEnvironment.open(url.path, maximumDatabases: 8, options)
                defer { environment.close() }
                return try environment.adoptingSizes { try body(environment) }
            }
            let (environment, readerless) = try LMDBStore.readOnlyEnvironment(
                url.path, maximumDatabases: 8, options: options)
            defer { environment.close() }
            let result = try environment.adoptingSizes { try body(environment) }
            // A process that has opened the file meanwhile may have overwritten the pages that were read.
            try readerless?.checkUnused()
            return result
        } catch let error as LMDBError {
            throw StoreError(opening: error, path: url.path)
        }
    }

    /// Checks, before the long work, whether another process has the file open.
    private func checkUnlocked(_ url: URL) throws {
        try EnvironmentRegistry.exclusively(path: url.path) {
            guard try LockFile.isFree(of: url.path) else { throw LockFile.inUse(url.path) }
        }
    }
}

struct LMDBMigrationCopy: MigrationCopy {
    fileprivate let copy: PartialFile
    fileprivate let options: LMDBStore.Options
    /// The commit that was copied, and the identity of its file.
    fileprivate let transaction: UInt64
    fileprivate let original: FileIdentity?

    var store: StoreDescription {
        let url = URL(fileURLWithPath: copy.path, isDirectory: false)
        let options = options
        return StoreDescription(name: "lmdb") { schema in try LMDBStore.open(url, schema: schema, options: options) }
    }

    func replaceOriginal() throws {
        try EnvironmentRegistry.exclusively(path: copy.path) {}
        try EnvironmentRegistry.exclusively(path: copy.target) {
            // From here on, no process has the file open, and processes that open it wait. The lock file is removed with the
            // lock, so that they create a new one for the new file.
            let lock = try LockFile(of: copy.target)
            defer { lock.removeAndUnlock() }
            guard case .sound(let meta) = try MetaPages.read(path: copy.target), meta.lastTransaction == transaction,
                try FileIdentity.of(path: copy.target) == original
            else {
                throw StoreError(.inUseElsewhere, "\(copy.target) was changed while it was migrated. Open it again")
            }
            try NewFile.whileReplacing(copy.target) { try copy.finish() }
        }
        copy.discard()
    }

    func discard() { copy.discard() }
}
