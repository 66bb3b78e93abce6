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

/// The result of opening a file.
struct OpenedFile {
    let url: URL
    let options: LMDBStore.Options
    let environment: Environment
    let file: FileIdentity
    /// The format of the file; see `Docs/Internals/FileFormat.md`.
    let format: UInt64
    let uuid: UUID
    let lineage: StoreLineage
    let schema: StoreSchema
    let tables: Tables
    let layouts: [PageLayout]
    /// All versions of the schema that the file has had. The last version is current.
    let schemas: [StoredSchema]
    /// The work that the last migration has deferred, as the file lists it.
    let unfinished: [PendingIndexBuilds.Item]
    /// Whether the file has large values that no save has claimed yet, when it is opened.
    let hasUnreferenced: Bool
    /// Set for a file that is read without a slot in the reader table.
    var readerless: ReaderlessFile?
    /// The tables that an older file, which is open read-only, did not have when it was opened.
    var absentTables: [String] = []
    /// The losses for a file that is open read-only. Its objects are counted once it is open.
    var uncountedLosses: [SchemaLoss] = []
}

extension LMDBStore {
    /// Opens or creates the file. Blocks: waits for a writer of another process, and reads some pages. Symbolic links are
    /// resolved, so that the file has one lock file under all names. A new file gets its name when it is complete and on
    /// disk. If a standard stream of the process is closed, it is opened as `/dev/null`, so that no file gets its number and with
    /// it the program's output.
    ///
    /// If the schema has changed, the new schema takes effect without rewriting a page: O(schema). A new unique constraint
    /// reads its columns in all objects once. Deferred work (building indexes) is done by ``continueMigration()``. After an
    /// error, the file is unchanged.
    ///
    /// - Throws: `StoreError` `.notAStore` for files of other programs, and `.damaged` for a truncated file.
    ///   `.schemaMismatch` if the change needs more than another way of reading, or if two objects share a value that must be
    ///   unique. `.schemaTooNew`, `.remoteFileSystem`, `.formatTooNew`, `.cannotOpen` (also for a file with several hard
    ///   links), `.readOnly`.
    public static func open(_ url: URL, schema: StoreSchema, options: Options = Options()) throws -> LMDBStore {
        let url = try StoreFile.resolved(url)
        let store = try EnvironmentRegistry.store(path: url.path, schema: schema) { openFiles in
            var options = options
            // A process has 128 TiB of address space. Many stores get smaller maps, which grow, so that they leave room for
            // other uses.
            if openFiles >= 32 { options.mapSize = min(options.mapSize, 1 << 36) }
            return try options.isReadOnly
                ? openReadOnly(url, schema: schema, options: options) : openFile(url, schema: schema, options: options)
        }
        guard store.isReadOnly == options.isReadOnly else { throw StoreError.openOtherwise(store) }
        try store.checkDestinations()
        return store
    }

    /// The suffixes of the files that are opened for writing beside a store's file.
    static let companions = ["-lock", "-signal"]

    private static func openFile(_ url: URL, schema: StoreSchema, options: Options) throws -> OpenedFile {
        let path = url.path
        try checkFileSystem(url, options)
        if let failure = FilePermission.failure(path, companions: companions, isReadOnly: false) { throw failure }
        do {
            try NewFile.make(path) { try createFile($0, schema: schema, options: options) }
            try FileCheck.beforeOpening(path, options.openingCheck, isWritten: LockFile.mayBeOpenElsewhere(path))
            let environment = try OpenedEnvironment.open(path, maximumDatabases: Tables.mostOpen(schema, path: path), options)
            do {
                // The opening may have waited for the lock of a process that has replaced the file since.
                try NewFile.removeLeftovers(of: path)
                try environment.clearDeadReaders()
                return try environment.growing(to: options.maximumMapSize) {
                    try openOrChangeTables(url, schema: schema, options: options, environment: environment)
                }
            } catch {
                environment.close()
                throw error
            }
        } catch let error as LMDBError {
            throw StoreError(opening: error, path: path)
        }
    }

    static func checkFileSystem(_ url: URL, _ options: Options) throws {
        guard options.remoteFileSystems == .refuse else { return }
        let folder = url.deletingLastPathComponent().path
        guard let kind = FileSystem.remoteKind(ofFolder: folder.isEmpty ? "." : folder) else { return }
        throw StoreError(
            .remoteFileSystem,
            "\(url.path) is on \(kind), where locks and maps cannot be trusted. Move it to a local disk, or open it with remoteFileSystems: .allow"
        )
    }

    /// Creates the file with its meta table under a name that no other process uses.
    private static func createFile(_ path: String, schema: StoreSchema, options: Options) throws {
        let environment = try Environment(
            path: path,
            options: Environment.Options(
                mapSize: max(min(options.mapSize, 1 << 26), 1 << 20), maximumDatabases: 8, access: .readWriteWithoutLock))
        defer { environment.close() }
        try environment.growing(to: options.maximumMapSize) {
            try environment.write { transaction in
                let meta = try transaction.open(MetaTable.name, .bytes)
                try writeMeta(schema, meta, in: transaction)
                try MetaCheck.write(meta, in: transaction)
            }
        }
    }

    /// Thrown to begin again with a claim: another process may hold saves back that use the schema to be changed.
    private struct ClaimNeeded: Error {}

    /// Changes a schema only while no process holds saves back, because that process could no longer write them (S067).
    private static func openOrChangeTables(
        _ url: URL, schema: StoreSchema, options: Options, environment: Environment
    ) throws -> OpenedFile {
        do {
            return try openTables(url, schema: schema, options: options, environment: environment, mayChange: false)
        } catch is ClaimNeeded {
            let path = url.path
            let claims = SaveClaims(signalPath: path + "-signal", storePath: path, timeout: options.busyTimeout)
            let claim = try claims.claim(.committing)
            defer { claim.release() }
            return try openTables(url, schema: schema, options: options, environment: environment, mayChange: true)
        }
    }

    private static func openTables(
        _ url: URL, schema: StoreSchema, options: Options, environment: Environment, mayChange: Bool
    ) throws -> OpenedFile {
        guard let file = try FileIdentity.of(descriptor: environment.fileDescriptor()) else {
            throw StoreError(.cannotOpen, "\(url.path) was removed while it was being opened. Open it again")
        }
        // Also sets LMDB's order of the table of names. Without it, reading the table calls a null pointer.
        _ = try environment.openDatabases { try $0.open(MetaTable.name, .bytes) }
        return try environment.write { transaction in
            let tableCount = try transaction.statistics(.main).entries
            let isNew = tableCount == 0
            let meta = try metaTable(transaction, isNew: isNew, path: url.path)
            // The file has only LMDB's own pages: a process may have died before it wrote the tables.
            if isNew { try writeMeta(schema, meta, in: transaction) }
            let (format, uuid) = try checkMeta(meta, isNew: isNew, in: transaction, path: url.path)
            let known = try StoredLineage.read(uuid, meta, in: transaction, path: url.path)
            let lineage = try StoredLineage.adopt(uuid, meta, in: transaction, path: url.path)
            var schemas = try StoredSchemas(meta, in: transaction, path: url.path)
            let found = schemas.versions
            try Tables.checkNames(schemas.current, format: format, count: tableCount, in: transaction, path: url.path)
            let schema = schema.keepingKeyedValues(of: schemas.current.schema, mayAdd: true)
            let change = try schemas.adopt(schema)
            if let change {
                guard mayChange || change.isRecordOnly else { throw ClaimNeeded() }
                try LossCount(versions: found, meta: meta, format: format, path: url.path).check(change.losses, in: transaction)
            }
            let tables = try Tables(schemas.current, meta: meta, in: transaction)
            let layouts = try StoredSchema.layouts(schemas.versions, model: schema, format: format)
            if let change {
                let pages = OpeningPages(
                    tables: tables, dictionaries: Dictionaries(tables), layouts: layouts, schema: schema, path: url.path)
                let check = UniqueCheck(pages: pages, storeName: "strata://\(uuid.uuidString)")
                for index in change.unique { try check.check(index.columns, of: index.entity, in: transaction) }
                try schemas.write(change, tables: tables, in: transaction)
            }
            let isChanged =
                try change != nil || lineage.copies.count != known.copies.count
                || transaction.statistics(.main).entries != tableCount
            if isChanged, format > 1 { try MetaCheck.write(meta, in: transaction) }
            return OpenedFile(
                url: url, options: options, environment: environment, file: file, format: format, uuid: uuid, lineage: lineage,
                schema: schema, tables: tables, layouts: layouts, schemas: schemas.versions,
                unfinished: try StoredSchemas.unfinished(tables, in: transaction),
                hasUnreferenced: try !MetaTable.entries(MetaTable.Key.unreferenced, meta, in: transaction).isEmpty)
        }
    }

    private static func metaTable(_ transaction: WriteTransaction, isNew: Bool, path: String) throws -> Database {
        guard try isNew || transaction.hasTable(MetaTable.name) else {
            throw StoreError.fileOfAnotherProgram(path, "table named meta")
        }
        return try transaction.open(MetaTable.name, .bytes)
    }

    private static func writeMeta(_ schema: StoreSchema, _ meta: Database, in transaction: WriteTransaction) throws {
        try MetaTable.put(MetaTable.formatVersion, key: MetaTable.Key.format, meta: meta, in: transaction)
        try Array(MetaTable.libraryLine.utf8).withUnsafeBytes {
            try MetaTable.put($0, key: MetaTable.Key.library, meta: meta, in: transaction)
        }
        try withUnsafeBytes(of: UUID.random().uuid) {
            try MetaTable.put($0, key: MetaTable.Key.uuid, meta: meta, in: transaction)
        }
        try StoredSchemas.put(StoredSchema(first: schema), number: 1, meta: meta, in: transaction)
        try MetaTable.put(1, key: MetaTable.Key.schemaNumber, meta: meta, in: transaction)
        try MetaTable.put(0, key: MetaTable.Key.generation, meta: meta, in: transaction)
    }

    private static func checkMeta(
        _ meta: Database, isNew: Bool, in transaction: WriteTransaction, path: String
    ) throws -> (format: UInt64, uuid: UUID) {
        let number = isNew ? nil : transaction.transactionNumber - 1
        return try checkMeta(meta, commit: number, in: transaction, path: path) { try transaction.withCursor(meta, $0) }
    }

    /// Checks the meta table.
    /// - Parameter commit: LMDB's number of the state; nil for a new file, which has no checksum yet.
    static func checkMeta(
        _ meta: Database, commit: UInt64?, in transaction: some ByteReading, path: String,
        withCursor: ((Cursor) throws -> String?) throws -> String?
    ) throws -> (format: UInt64, uuid: UUID) {
        guard let format = try transaction.metaNumber(MetaTable.Key.format, meta) else {
            throw StoreError.fileOfAnotherProgram(path, "format number")
        }
        try checkFormat(format, path: path)
        if format > 1, let commit {
            let row = try transaction.metaBytes(MetaTable.Key.check, meta)
            let problem = try withCursor { try MetaCheck.problem(row, at: $0, number: commit) }
            if let problem { throw StoreError(.damaged, "\(path) is damaged: \(problem). Restore a copy") }
        }
        try checkLibrary(meta, in: transaction, path: path)
        guard let uuid = try transaction.metaBytes(MetaTable.Key.uuid, meta), uuid.count == 16 else {
            throw StoreError(.damaged, "\(path): the identity in its meta table cannot be read. Restore a copy")
        }
        return (format, UUID(uuid: uuid.loadUnaligned(as: uuid_t.self)))
    }

    /// Throws unless this library reads files of a format.
    static func checkFormat(_ format: UInt64, path: String) throws {
        guard format <= MetaTable.formatVersion else {
            throw StoreError(
                .formatTooNew,
                "\(path) has format \(format); this library reads up to \(MetaTable.formatVersion). Update the library")
        }
        guard format >= MetaTable.oldestFormatVersion else {
            throw StoreError(.damaged, "\(path): the format in its meta table is \(format), which does not exist. Restore a copy")
        }
    }

    private static func checkLibrary(_ meta: Database, in transaction: some ByteReading, path: String) throws {
        guard let line = try transaction.metaBytes(MetaTable.Key.library, meta) else { return }
        let text = String(decoding: line, as: UTF8.self)
        guard text == MetaTable.libraryLine else {
            throw StoreError(
                .formatTooNew,
                "\(path) was written with LMDB \(text); this library uses \(MetaTable.libraryLine). Export it there and import it here"
            )
        }
    }
}
