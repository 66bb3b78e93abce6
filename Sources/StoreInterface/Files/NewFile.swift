internal import Platform

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A store's file that is being made under a temporary name beside it: a power cut, a full disk or a kill leaves nothing under
/// its own name, or all of it.
///
/// Whoever makes it has another file beside it locked (`flock`, which the kernel frees when its process dies), so that one makes it
/// while the others wait. Both names are the same for all processes: what a dead one has left is seen by one `stat`.
package struct NewFile: ~Copyable {
    private let target: String
    private let path: String
    private let lock: String
    private let descriptor: Int32

    /// Makes a file unless there is one of that name; an empty one counts as none. Waits while another process makes it.
    /// - Parameters:
    ///   - target: resolved.
    ///   - fill: writes the file under its temporary name, where an empty one is, and closes it.
    package static func make(_ target: String, _ fill: (_ path: String) throws -> Void) throws {
        let url = URL(fileURLWithPath: target, isDirectory: false)
        let start = url.deletingLastPathComponent().appendingPathComponent(".\(url.lastPathComponent)").path
        if StoreFile.isFilled(target) {
            var status = stat()
            // What a process has left that died: usually there is nothing.
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
            // Somebody who does not know of the lock was faster: that file is opened.
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
            // Where the file system has no such locks, it goes without.
            while flock(descriptor, LOCK_EX) != 0, errno == EINTR {}
            var (opened, named) = (stat(), stat())
            // Whoever had it before has removed it.
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
            StoreError(.cannotOpen, "\(what): a link stands under a temporary name. Find out who made it, and remove it")
        case ENOTDIR, ENOENT, EISDIR: StoreError(.cannotOpen, "\(what): \(reason). Check the path")
        default: StoreError(errorNumber: number, what)
        }
    }

    /// Makes the empty file in place of what a dead process has left, with mode and owner of an empty file of the wanted name.
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
        // An empty file is replaced; anything else was made by somebody who does not know of the lock.
        var status = stat()
        let isReplaced = lstat(target, &status) == 0 && status.st_size == 0
        try PartialFile.name(path, target, existing: isReplaced ? .replace : .refuse)
    }

    /// Removes what is under the temporary names: nothing but the lock when the file has its own.
    private consuming func discard() {
        removeFile()
        unlink(lock)
        // Closing alone is not enough: a process that is being spawned has the descriptor too until it runs its program.
        flock(descriptor, LOCK_UN)
        close(descriptor)
    }
}
