import LMDB
import PageCodec
internal import Platform
import StoreInterface

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension MigratableLMDBFile: RestorableFile {
    /// Copies the backup beside the file, checks its trees, marks it as a copy, and renames it to the file's name.
    ///
    /// The lock file is kept and locked meanwhile. A process that opens the store waits, and then finds the new file. The
    /// lock file's content about the old file is not used: the first process that opens a store rewrites it.
    func restore(from backup: URL, cancellation: Cancellation) throws {
        let source = backup.resolvingSymlinksInPath()
        let target = url.resolvingSymlinksInPath()
        guard let file = try FileIdentity.of(path: source.path) else {
            throw StoreError(.cannotOpen, "cannot restore \(target.path): there is no backup at \(source.path). Check the path")
        }
        guard try FileIdentity.of(path: target.path) != file else {
            throw StoreError(.cannotOpen, "cannot restore \(target.path): it is the backup itself. Give another path")
        }
        guard !EnvironmentRegistry.isOpen(file) else {
            throw StoreError(.inUseElsewhere, "cannot restore from \(source.path): it is open in this process. Close it first")
        }
        try EnvironmentRegistry.exclusively(path: target.path) {
            let lock = try StoreFileLock(of: target.path)
            defer { lock.unlock() }
            let partial = try PartialFile(for: target, existing: .replace)
            defer { partial.discard() }
            try RestoredCopy(source: source.path, partial: partial, cancellation: cancellation).make()
            try partial.finish()
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
        try keepMode()
        try copyBytes()
        do {
            _ = try LMDBStore.checkCopy(partial)
        } catch let error as StoreError {
            throw StoreError(error.code, "cannot restore from \(source): \(error). Restore from another backup")
        }
        // A file that was copied by hand has no mark, or the mark of an earlier copy.
        try CopyStamp().write(toFile: partial.path, for: partial.target)
        try cancellation.check()
    }

    /// Sets the mode and the owner of the replaced file, or of the backup if there is no file.
    private func keepMode() throws {
        var status = stat()
        guard stat(partial.target, &status) == 0 || stat(source, &status) == 0 else { return }
        guard chmod(partial.path, status.st_mode & 0o777) == 0 else {
            throw StoreError(errorNumber: errno, "\(partial.target) cannot be given its mode")
        }
        // Only the superuser may do this.
        _ = chown(partial.path, status.st_uid, status.st_gid)
    }

    private func copyBytes() throws {
        let from = open(source, O_RDONLY | O_CLOEXEC)
        guard from >= 0 else { throw StoreError(errorNumber: errno, "\(source) cannot be opened") }
        defer { close(from) }
        let target = try partial.openForWriting()
        defer { close(target) }
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.partSize, alignment: 16)
        defer { buffer.deallocate() }
        while true {
            try cancellation.check()
            let count = read(from, buffer.baseAddress, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw StoreError(errorNumber: errno, "\(source) cannot be read") }
            if count == 0 { return }
            try writeAll(UnsafeRawBufferPointer(rebasing: buffer[..<count]), to: target, source)
        }
    }
}

/// The lock that LMDB acquires on the first byte of a store's lock file. A process that opens the store alone acquires it
/// exclusively; every process that has the store open shares it. Use this type only for files that this process does not have
/// open, because closing the lock file would release its locks.
private final class StoreFileLock {
    private var descriptor: Int32

    /// Acquires the lock.
    /// - Throws: `StoreError` `.inUseElsewhere` while another process has the store open.
    init(of path: String) throws {
        descriptor = open(path + "-lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o644)
        guard descriptor >= 0 else { throw StoreError(errorNumber: errno, "\(path)-lock cannot be opened") }
        var lock = flock()
        lock.l_type = Int16(F_WRLCK)
        lock.l_whence = Int16(SEEK_SET)
        lock.l_start = 0
        lock.l_len = 1
        guard fcntl(descriptor, F_SETLK, &lock) == 0 else {
            close(descriptor)
            throw StoreError(
                .inUseElsewhere, "cannot restore \(path): it is open in another process. Close it there")
        }
    }

    func unlock() {
        close(descriptor)
        descriptor = -1
    }
}
