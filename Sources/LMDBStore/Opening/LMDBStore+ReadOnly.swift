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

extension LMDBStore {
    /// Opens an existing file without changing it (S166).
    /// - Throws: The errors of ``open(_:schema:options:)``; `.readOnly` if the file would have to be changed first.
    static func openReadOnly(_ url: URL, schema: StoreSchema, options: Options) throws -> OpenedFile {
        let path = url.path
        if let failure = FilePermission.failure(path, companions: [], isReadOnly: true) { throw failure }
        try checkFileSystem(url, options)
        do {
            guard try FileIdentity.of(path: path) != nil else { throw StoreError.noFileToRead(path) }
            guard try MetaPages.read(path: path) != .empty else { throw StoreError.emptyFileToRead(path) }
            try FileCheck.beforeOpening(path, options.openingCheck, isWritten: LockFile.mayBeOpenElsewhere(path))
            let (environment, readerless) = try readOnlyEnvironment(
                path, maximumDatabases: Tables.mostOpen(schema, path: path), options: options)
            do {
                var opened = try environment.adoptingSizes {
                    try openTablesReadOnly(url, schema: schema, options: options, environment: environment)
                }
                // A process that has opened the file meanwhile may have overwritten the pages that were read.
                try readerless?.checkUnused()
                opened.readerless = readerless
                return opened
            } catch {
                environment.close()
                throw error
            }
        } catch let error as LMDBError {
            throw StoreError(error, path: path)
        }
    }

    /// Opens a copy of a store that no other process and no other caller has open: without a lock file, and without the registry of open
    /// files. The caller closes the environment.
    /// - Parameter schema: The current schema of the file.
    static func openUnshared(_ url: URL, schema: StoreSchema) throws -> LMDBStore {
        var options = Options()
        options.isReadOnly = true
        options.mapSize = 1 << 20
        let settings = OpenedEnvironment.settings(
            options, maximumDatabases: Tables.count(schema) + 128, access: .readOnlyWithoutLock)
        let environment = try Environment(path: url.path, options: settings)
        do {
            return LMDBStore(try openTablesReadOnly(url, schema: schema, options: options, environment: environment))
        } catch {
            environment.close()
            throw error
        }
    }

    /// Opens the environment with a slot in the reader table if the lock file exists or can be created. Otherwise, requires
    /// that no process has the file open.
    /// - Parameter usesSlot: false for a file that was opened without a slot before. Its store tests the lock file at each snapshot, which
    ///   would release LMDB's locks of this process.
    static func readOnlyEnvironment(
        _ path: String, maximumDatabases: Int, options: Options, usesSlot: Bool = true
    ) throws -> (Environment, ReaderlessFile?) {
        let lock = path + "-lock"
        let isThere = FileSystem.allows(lock)
        if usesSlot, isThere ? FileSystem.allows(lock, [.read, .write]) : FilePermission.mayWriteFolder(of: path) {
            return (try OpenedEnvironment.open(path, maximumDatabases: maximumDatabases, options), nil)
        }
        let readerless = ReaderlessFile(path: path, lock: lock)
        try readerless.checkUnused()
        let settings = OpenedEnvironment.settings(options, maximumDatabases: maximumDatabases, access: .readOnlyWithoutLock)
        return (try Environment(path: path, options: settings), readerless)
    }

    private static func openTablesReadOnly(
        _ url: URL, schema: StoreSchema, options: Options, environment: Environment
    ) throws -> OpenedFile {
        let path = url.path
        guard let file = FileIdentity.of(descriptor: try environment.fileDescriptor()) else {
            throw StoreError(.cannotOpen, "\(path) was removed while it was being opened. Open it again")
        }
        // Handles are opened in one transaction and used in the next. The schema number shows whether another process has
        // migrated the file between the two.
        var schema = schema
        var absent: [String] = []
        var uncounted: [SchemaLoss] = []
        let (meta, schemas, tables) = try environment.openDatabases { transaction in
            guard let meta = try transaction.open(MetaTable.name, .bytes) else {
                throw StoreError.fileOfAnotherProgram(path, "table named meta")
            }
            guard let format = try transaction.metaNumber(MetaTable.Key.format, meta), format <= MetaTable.formatVersion else {
                return (meta, nil as StoredSchemas?, nil as Tables?)
            }
            var schemas = try StoredSchemas(meta, in: transaction, path: path)
            let count = try transaction.statistics(.main).entries
            try Tables.checkNames(schemas.current, format: format, count: count, in: transaction, path: path)
            schema = schema.keepingKeyedValues(of: schemas.current.schema, mayAdd: false)
            let found = schemas
            if let change = try schemas.adopt(schema), change.number != change.formerNumber {
                guard !change.hasSteps, change.losses.allSatisfy(\.subject.isOfDestinations) else {
                    throw StoreError.needsMigration(path)
                }
                (schemas, uncounted) = (found, change.losses)
            }
            let tables = try Tables(schemas.current, meta: meta) { name, kind in
                if let table = try transaction.open(name, kind) { return table }
                // Older files do not have these tables until they are opened for writing.
                guard Tables.isOptional(name) else { throw StoreError.unfinishedFileToRead(path) }
                absent.append(name)
                return .absent
            }
            return (meta, schemas, tables)
        }
        let transaction = try ReadTransaction(environment)
        defer { transaction.end() }
        let (format, uuid) = try checkMeta(meta, commit: transaction.transactionNumber, in: transaction, path: path) {
            try transaction.withCursor(meta, $0)
        }
        guard let schemas, let tables,
            try transaction.metaNumber(MetaTable.Key.schemaNumber, meta) == UInt64(schemas.versions.count)
        else { throw StoreError.needsMigration(path) }
        let builds = try transaction.withCursor(meta) { try MetaTable.entries(MetaTable.Key.build, at: $0) }
        return OpenedFile(
            url: url, options: options, environment: environment, file: file, format: format, uuid: uuid,
            lineage: try StoredLineage.readOnly(uuid, meta, in: transaction, path: path), schema: schema, tables: tables,
            layouts: try StoredSchema.layouts(schemas.versions, model: schema, format: format), schemas: schemas.versions,
            unfinished: StoredSchemas.builds(builds.map(\.name), tables), hasUnreferenced: false, absentTables: absent,
            uncountedLosses: uncounted)
    }

    /// Checks that no relationship leads to objects outside its destination in the model. Reads nothing if the file records that none does.
    ///
    /// A file that is open for writing was checked before.
    /// - Throws: `StoreError` `.schemaMismatch`.
    func checkDestinations() throws {
        guard !opened.uncountedLosses.isEmpty else { return }
        let state = try snapshot()
        try opened.uncountedLosses.check(path: path) { try state.countByDestination($0) ?? 0 }
    }
}

/// A file that is read without a slot in the reader table. A writer would reuse the pages that are read.
struct ReaderlessFile: Sendable {
    let path: String
    let lock: String

    /// Checks that no process has the file open. Every process that has it open has a lock on the first byte of the lock
    /// file. Testing the lock needs read permission. About 3 µs.
    /// - Throws: `StoreError` `.inUseElsewhere` if a process has the file open, or if the lock cannot be tested.
    func checkUnused() throws {
        let file: OpenFile
        do throws(SystemError) {
            file = try OpenFile(lock, access: .read, options: [.noFollow])
        } catch {
            if error == .notFound { return }
            throw inUse("this user may not read \(lock), which tells whether another process has the file open")
        }
        // This process has no lock on that file. Closing a descriptor would release such a lock.
        defer { file.close() }
        guard LockFile.isFree(file) else {
            throw inUse(
                "another process has it open, and this user may not write to \(lock), which protects readers from writers")
        }
    }

    private func inUse(_ reason: String) -> StoreError {
        StoreError(
            .inUseElsewhere,
            "cannot read \(path) read-only: \(reason). Let this user read and write the lock file, or close the file there")
    }
}
