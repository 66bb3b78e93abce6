internal import Platform

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A store's file that is being created under a temporary name beside its target. After a power failure, a full disk or a
/// kill, the target is either complete or missing.
///
/// The creating process locks another file beside it with `flock`, which the kernel releases when the process ends. So one
/// process creates the file while the others wait. Both names are the same for all processes, so one `stat` finds the
/// leftovers of a dead process.
package struct NewFile: ~Copyable {
    private let target: String
    private let path: String
    private let lock: String
    private let descriptor: Int32

    /// Creates a file unless a file of that name exists; an empty file counts as missing. Waits while another process creates
    /// it.
    /// - Parameters:
    ///   - target: The resolved path.
    ///   - fill: A closure that writes and closes the file at the temporary path, where an empty file exists.
    package static func make(_ target: String, _ fill: (_ path: String) throws -> Void) throws {
        let url = URL(fileURLWithPath: target, isDirectory: false)
        let start = url.deletingLastPathComponent().appendingPathComponent(".\(url.lastPathComponent)").path
        if StoreFile.isFilled(target) {
            var status = stat()
            // Removes the leftovers of a process that died. Usually there are none.
            if lstat(start + ".making", &status) == 0, let left = try? NewFile(target, start) { left.discard() }
            return
        }
        let new = try NewFile(target, start)
        guard !StoreFile.isFilled(target) else { return new.discard() }
        do {
            try new.begin()
            try fill(new.path)
            try new.finish()
        } catch {
            let isThere = StoreFile.isFilled(target)
            new.discard()
            // A process that does not use the lock was faster. The caller opens the file of that process.
            if isThere { return }
            throw error
        }
        new.discard()
    }

    private init(_ target: String, _ start: String) throws {
        self.target = target
        path = start + ".new"
        let lock = start + ".making"
        self.lock = lock
        while true {
            let descriptor = open(lock, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600)
            guard descriptor >= 0 else { throw Self.failure(target, errno) }
            // On a file system without such locks, creation continues without one.
            while flock(descriptor, LOCK_EX) != 0, errno == EINTR {}
            var (opened, named) = (stat(), stat())
            // The previous owner of the lock has removed the lock file.
            guard fstat(descriptor, &opened) == 0, lstat(lock, &named) == 0, named.st_ino == opened.st_ino else {
                close(descriptor)
                continue
            }
            self.descriptor = descriptor
            return
        }
    }

    private static func failure(_ target: String, _ number: Int32) -> StoreError {
        let what = "\(target) cannot be created"
        let reason = String(cString: strerror(number))
        return switch number {
        case EACCES, EPERM, EROFS:
            StoreError(.readOnly, "\(what), nor a file beside it: \(reason). Check the folder's permissions")
        case ELOOP, EEXIST:
            StoreError(.cannotOpen, "\(what): its temporary name is a link. Find out which program created it, and remove it")
        case ENOTDIR, ENOENT, EISDIR: StoreError(.cannotOpen, "\(what): \(reason). Check the path")
        default: StoreError(errorNumber: number, what)
        }
    }

    /// Replaces the leftovers of a dead process with an empty file. It gets the mode and owner of the target if the target is
    /// an empty file.
    private func begin() throws {
        removeFile()
        let access = FileAccess(of: target)
        let made = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, access == nil ? 0o644 : 0o600)
        guard made >= 0 else { throw Self.failure(target, errno) }
        access?.apply(to: made)
        close(made)
    }

    private func removeFile() {
        for suffix in ["", "-wal", "-shm", "-journal"] { unlink(path + suffix) }
    }

    private func finish() throws {
        try PartialFile.sync(path, for: target)
        // An empty file is replaced. Any other file was created by a process that does not use the lock.
        var status = stat()
        let isReplaced = lstat(target, &status) == 0 && status.st_size == 0
        try PartialFile.name(path, target, existing: isReplaced ? .replace : .refuse)
    }

    /// Removes the temporary files. After ``finish()``, only the lock file is left to remove.
    private consuming func discard() {
        removeFile()
        unlink(lock)
        // Closing alone is not enough: a process that is being spawned also has the descriptor until it runs its program.
        flock(descriptor, LOCK_UN)
        close(descriptor)
    }
}
