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
    /// Writes LMDB's own copy of one read transaction, without free pages. Before the copy gets its name, its trees and the
    /// checksums of its pages and large values are checked. Writing takes as long as the disk takes. Meanwhile, the copied state
    /// is kept alive. The open file is copied, also if it has lost its name.
    ///
    /// - Throws: `StoreError` `.cannotOpen` if the file exists or has the name of this store, `.inUseElsewhere` if a process has the
    ///   file to replace open, or if the store is read without a lock file and another process opens it meanwhile, `.inputOutput`,
    ///   `.damaged` if the written copy is not sound; `CancellationError`.
    public func backup(to url: URL, existing: ExistingFile, cancellation: Cancellation) throws -> Generation {
        try checkProcess()
        if let found = try FileIdentity.of(path: url.path), EnvironmentRegistry.isOpen(found) {
            throw StoreError(.cannotOpen, "\(url.path) is a store that is open in this process. Choose another name")
        }
        let partial = try PartialFile(for: url, existing: existing, access: fileAccess())
        defer { partial.discard() }
        try checkForeignName(partial.target)
        let file = try partial.openFile()
        do {
            defer { file.close() }
            try write(to: file.descriptor, cancellation.part(0...0.75))
        }
        let generation = try Self.checkCopy(partial, of: path, cancellation.part(0.75...1))
        try partial.finishLMDB()
        return generation
    }

    /// Writes LMDB's own copy of the newest state to a file, pipe or socket. Blocks until the last byte is written.
    ///
    /// The copied state is kept alive meanwhile. The copy is not checked.
    /// - Throws: `StoreError` if the descriptor cannot be written; `.inUseElsewhere`, also after the last byte, if the store is read
    ///   without a lock file and another process has opened it meanwhile; `CancellationError`.
    public func backup(to descriptor: Int32, cancellation: Cancellation) throws {
        try write(to: descriptor, cancellation.part(0...1))
    }

    /// Refuses a name of this store's files for a copy. The names belong to the open file, even if that has lost its name.
    /// - Parameter target: The resolved path of the copy.
    func checkForeignName(_ target: String) throws {
        for name in [path, path + "-lock", path + "-signal"] where StoreFile.areSamePaths(target, name) {
            throw StoreError(.cannotOpen, "\(name) is a name of the store to be copied. Choose another name")
        }
    }

    /// Returns the mode and owner of the open file. Opens the file of a suspended store.
    func fileAccess() throws -> FileAccess? {
        // Keeps the file open.
        let state = try newestSnapshot()
        defer { withExtendedLifetime(state) {} }
        return FileAccess(of: OpenFile(descriptor: try mappingErrors(environment.fileDescriptor)))
    }

    private func write(to descriptor: Int32, _ progress: WorkPart) throws {
        // Unlike LMDB's copy, this frees a reader slot if necessary, and adopts a map that another process has enlarged.
        let state = try newestSnapshot()
        defer { withExtendedLifetime(state) {} }
        let stamp = CopyStamp()
        let (path, file) = (url.path, OpenFile(descriptor: descriptor))
        do {
            try mappingErrors {
                let size = try (environment.information().lastPage + 1) * pageSize
                try ByteStream.run({ try environment.copy(to: $0) }) { part, offset in
                    try progress.step(offset, of: size)
                    stamp.write(into: part, from: offset)
                    try withoutBrokenPipeSignal { try writeCopy(UnsafeRawBufferPointer(part), to: file, of: path) }
                }
            }
        } catch let error as StoreError {
            // Pages of several states may look damaged.
            try checkUnchanged(since: state)
            throw error
        }
        // The copy has no free pages, so that it may end before the last page of the file.
        try progress.step(1, of: 1)
        try checkUnchanged(since: state)
    }

    /// Checks that no process may have reused pages of a snapshot of a file that is read without a slot in the reader table. Does nothing
    /// for other files.
    /// - Throws: `StoreError` `.inUseElsewhere` if another process has the file open or has committed to it, `.fileReplaced`.
    func checkUnchanged(since state: LMDBSnapshot) throws {
        guard let readerless = opened.readerless else { return }
        try readerless.checkUnused()
        try checkFileIdentity()
        guard try mappingErrors(environment.information).lastTransaction == state.transactionNumber else {
            throw StoreError(
                .inUseElsewhere, "cannot copy \(path): it was changed while it was copied. Close it there, and try again")
        }
    }

    /// Checks a copy that no other caller has open: its trees, and each page of objects and each large value against its checksum.
    /// - Parameters:
    ///   - source: The path of the copied file, for errors.
    ///   - progress: The part of the work for the pages.
    /// - Returns: The copy's newest save.
    /// - Throws: `StoreError` `.damaged` with the source's path and the page; `CancellationError`.
    static func checkCopy(_ partial: PartialFile, of source: String, _ progress: WorkPart) throws -> Generation {
        let (generation, schema) = try checkTrees(ofCopy: partial, of: source)
        do {
            let copy = try openUnshared(URL(fileURLWithPath: partial.path, isDirectory: false), schema: schema)
            defer { copy.environment.close() }
            try copy.checkPages(progress)
        } catch let error as StoreError {
            let reason = error.message.replacing(partial.path, with: source)
            throw StoreError(error.code, "\(partial.target) was not made: \(reason)", cause: error)
        } catch let error as LMDBError {
            throw StoreError(error, path: partial.target)
        }
        return generation
    }

    /// Checks each page of objects and each large value of the newest state against its checksum. Reads them once.
    /// - Throws: `StoreError` `.damaged` with the first page; `CancellationError`.
    private func checkPages(_ progress: WorkPart) throws {
        let state = try newestSnapshot()
        let total = try mappingErrors { try tables.pages.reduce(0) { try $0 + state.transaction.statistics($1).entries } }
        var checked = 0
        for entity in schema.entityIndices {
            var large = LargeValueCheck(state, entity)
            try state.forEachPage(entity) { number, bytes in
                checked += 1
                try progress.step(checked, of: total)
                try withPage(bytes, entity: entity, number: number, for: .verifying, check: .full, in: state.reader) {
                    try large.add($0, number)
                }
                return large.problems.isEmpty ? .next : .stop
            }
            if let problem = large.problems.first { throw StoreError.damaged(self, problem) }
        }
        try progress.step(1, of: 1)
    }

    /// Checks the trees of a copy, but not the pages of objects.
    /// - Returns: The copy's newest save and its schema.
    private static func checkTrees(ofCopy partial: PartialFile, of source: String) throws -> (Generation, StoreSchema) {
        do {
            let findings = try TreeCheck.findings(path: partial.path, scope: .everything, readAtOpening: MetaTable.name)
            if let finding = findings?.first {
                throw StoreError(
                    .damaged, "\(partial.target) was not made, because the copy is damaged: \(finding). Verify the store")
            }
            let copy = try Environment(
                path: partial.path,
                options: .init(mapSize: 1 << 20, maximumReaders: 8, maximumDatabases: 8, access: .readOnlyWithoutLock))
            defer { copy.close() }
            let found = try copy.openDatabases { transaction -> (Generation, StoreSchema)? in
                guard let meta = try transaction.open(MetaTable.name, .bytes),
                    let format = try transaction.metaNumber(MetaTable.Key.format, meta)
                else { return nil }
                try checkFormat(format, path: source)
                guard let generation = try transaction.metaGeneration(meta) else { return nil }
                return (generation, try StoredSchemas(meta, in: transaction, path: source).current.schema)
            }
            guard let found else {
                throw StoreError(
                    .damaged, "\(partial.target) was not made, because the copy has no sound meta table. Verify the store")
            }
            return found
        } catch let error as LMDBError {
            throw StoreError(error, path: partial.target)
        }
    }
}

/// Writes a part of a copy.
/// - Parameters:
///   - bytes: The part.
///   - file: The file, pipe or socket to write to.
///   - path: The path of the copied file, for errors.
func writeCopy(_ bytes: UnsafeRawBufferPointer, to file: OpenFile, of path: String) throws {
    do throws(SystemError) { try file.write(bytes) } catch {
        throw StoreError(error, "a copy of \(path) cannot be written")
    }
}
