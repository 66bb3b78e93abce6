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
    /// Writes LMDB's own copy of one read transaction, without free pages. The copy's trees are checked before it gets its
    /// name. Writing takes as long as the disk takes. Meanwhile, the copied state is kept alive.
    ///
    /// - Throws: `StoreError` `.cannotOpen` if the file exists or is this store's file, `.inputOutput`, `.damaged` if the
    ///   written copy is not sound; `CancellationError`.
    public func backup(to url: URL, existing: ExistingFile, cancellation: Cancellation) throws -> Generation {
        try checkProcess()
        if let found = try FileIdentity.of(path: url.path), EnvironmentRegistry.isOpen(found) {
            throw StoreError(.cannotOpen, "\(url.path) is a store that is open in this process. Choose another name")
        }
        let partial = try PartialFile(for: url, existing: existing, like: self.url.path)
        defer { partial.discard() }
        let file = try partial.openFile()
        do {
            defer { file.close() }
            try backup(to: file.descriptor, cancellation: cancellation)
        }
        let generation = try Self.checkCopy(partial)
        try cancellation.check()
        try partial.finish()
        return generation
    }

    /// Writes LMDB's own copy of the newest state to a file, pipe or socket. Blocks until the last byte is written.
    ///
    /// The copied state is kept alive meanwhile. The trees of the copy are not checked.
    /// - Throws: `StoreError` if the descriptor cannot be written; `CancellationError`.
    public func backup(to descriptor: Int32, cancellation: Cancellation) throws {
        // Unlike LMDB's copy, this frees a reader slot if necessary, and adopts a map that another process has enlarged.
        let state = try newestSnapshot()
        defer { withExtendedLifetime(state) {} }
        let stamp = CopyStamp()
        let (path, file) = (url.path, OpenFile(descriptor: descriptor))
        let size = try fileBytes()
        try mappingErrors {
            try ByteStream.run({ try environment.copy(to: $0) }) { part, offset in
                try cancellation.check()
                stamp.write(into: part, from: offset)
                try withoutBrokenPipeSignal { try writeCopy(UnsafeRawBufferPointer(part), to: file, of: path) }
                // The copy has no free pages, so that it may end before this size.
                cancellation.report(offset + part.count, of: size)
            }
        }
        cancellation.report(1, of: 1)
    }

    /// Checks the trees of a copy that no other caller has open.
    /// - Returns: The copy's newest save.
    static func checkCopy(_ partial: PartialFile) throws -> Generation {
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
            let generation = try copy.openDatabases { transaction -> Generation? in
                guard let meta = try transaction.open(MetaTable.name, .bytes),
                    try transaction.metaNumber(MetaTable.Key.format, meta) == MetaTable.formatVersion
                else { return nil }
                return try transaction.metaNumber(MetaTable.Key.generation, meta)
            }
            guard let generation else {
                throw StoreError(
                    .damaged, "\(partial.target) was not made, because the copy has no sound meta table. Verify the store")
            }
            return generation
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
