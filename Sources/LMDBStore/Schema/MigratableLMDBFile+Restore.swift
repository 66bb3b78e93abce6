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

extension MigratableLMDBFile {
    /// Copies the backup beside the file, checks the copy as a backup does, marks it as a copy, and renames it to the file's name.
    ///
    /// The lock file is kept and locked meanwhile. A process that opens the store waits, and then finds the new file. The
    /// lock file's content about the old file is not used: the first process that opens a store rewrites it.
    func restore(from backup: URL, cancellation: Cancellation) throws {
        let target = try StoreFile.resolved(url)
        guard let file = try FileIdentity.of(path: backup.path) else {
            throw StoreError(.cannotOpen, "cannot restore \(target.path): there is no backup at \(backup.path). Check the path")
        }
        let source = try StoreFile.resolved(backup)
        guard try FileIdentity.of(path: target.path) != file else {
            throw StoreError(.cannotOpen, "cannot restore \(target.path): it is the backup itself. Give another path")
        }
        guard !EnvironmentRegistry.isOpen(file) else {
            throw StoreError(.inUseElsewhere, "cannot restore from \(source.path): it is open in this process. Close it first")
        }
        try EnvironmentRegistry.exclusively(path: target.path) {
            let lock = try LockFile(of: target.path, like: source.path, for: .restoring)
            defer { lock.unlock() }
            let partial = try PartialFile(forRestoring: target, from: source.path)
            defer { partial.discard() }
            try RestoredCopy(source: source.path, partial: partial, cancellation: cancellation).make()
            try NewFile.whileReplacing(target.path) { try partial.finish() }
        }
    }
}

/// The copy of a backup under its temporary name.
private struct RestoredCopy {
    let source: String
    let partial: PartialFile
    let cancellation: Cancellation

    private static let partSize = 1 << 20

    func make() throws {
        let newest = try newestCommit()
        try copyBytes()
        // A process that has the backup open may have reused pages, so that the copy would have pages of several states.
        guard try newestCommit() == newest else {
            throw StoreError(.inUseElsewhere, "cannot restore from \(source): it was changed while it was copied. Close it there")
        }
        do {
            _ = try LMDBStore.checkCopy(partial, of: source, cancellation.part(0...1))
        } catch let error as StoreError {
            throw StoreError(error.code, "cannot restore from \(source): \(error). Restore from another backup", cause: error)
        }
        // A file that was copied by hand has no mark, or the mark of an earlier copy.
        try CopyStamp().write(toFile: partial.path, for: partial.target)
        try cancellation.check()
    }

    /// The number of the backup's newest commit; nil if its first pages are not sound, which the check of the copy reports.
    private func newestCommit() throws -> UInt64? {
        guard case .sound(let meta) = try MetaPages.read(path: source) else { return nil }
        return meta.lastTransaction
    }

    private func copyBytes() throws {
        let from: OpenFile
        do throws(SystemError) { from = try OpenFile(source, access: .read) } catch {
            throw StoreError(error, "\(source) cannot be opened")
        }
        defer { from.close() }
        let target = try partial.openFile()
        defer { target.close() }
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.partSize, alignment: 16)
        defer { buffer.deallocate() }
        while true {
            try cancellation.check()
            let count: Int
            do throws(SystemError) { count = try from.read(into: buffer) } catch {
                throw StoreError(error, "\(source) cannot be read")
            }
            if count == 0 { return }
            try writeCopy(UnsafeRawBufferPointer(rebasing: buffer[..<count]), to: target, of: source)
        }
    }
}
