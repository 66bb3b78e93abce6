import StoreModel
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
/// process creates the file while the others wait. Both names are the same for all processes, so a `stat` of each finds the
/// leftovers of a dead process.
package struct NewFile: ~Copyable {
    private let target: String
    private let path: String
    private let lock: String
    private let lockFile: OpenFile

    /// Creates a file unless a file of that name exists; an empty file counts as missing. Waits while another process creates
    /// it.
    /// - Parameters:
    ///   - target: The resolved path.
    ///   - fill: A closure that writes and closes the file at the temporary path, where an empty file exists.
    package static func make(_ target: String, _ fill: (_ path: String) throws -> Void) throws {
        if StoreFile.isFilled(target) { return try removeLeftovers(of: target) }
        // A device or pipe has no bytes either.
        try PartialFile.checkReplaceable(target)
        let new = try NewFile(target, start(of: target))
        guard !StoreFile.isFilled(target) else { return try new.settle() }
        do {
            try new.begin()
            try fill(new.path)
            try new.finish()
        } catch {
            // A process that does not use the lock was faster, or the folder could not be synced. The caller opens the file.
            if StoreFile.isFilled(target) { return try new.settle() }
            new.discard()
            throw error
        }
        new.discard()
    }

    /// Runs `body` while no process creates a file of this name, and returns its result. Returns nil without running it if there is a
    /// file.
    package static func whileMissing<R>(_ target: String, _ body: () throws -> R) throws -> R? {
        let new = try NewFile(target, start(of: target))
        guard (try? FileStatus(target)) == nil else {
            try new.settle()
            return nil
        }
        do {
            let result = try body()
            new.discard()
            return result
        } catch {
            try? new.settle()
            throw error
        }
    }

    /// Runs `body`, which gives a new version of a store the name of the target.
    ///
    /// If this process dies meanwhile, or the folder cannot be synced, the lock file stays. The next opening then syncs the folder: a power
    /// cut could otherwise take the name away, and with it saves that are in the new version by then.
    package static func whileReplacing(_ target: String, _ body: () throws -> Void) throws {
        let new = try NewFile(target, start(of: target))
        do { try body() } catch {
            try? new.settle()
            throw error
        }
        new.discard()
    }

    /// Removes the temporary files of a process that died while it created the target. Usually there are none. Waits for a process that is
    /// alive. A power cut may leave either of the two files without the other.
    package static func removeLeftovers(of target: String) throws {
        let start = start(of: target)
        let isLeft = [".making", ".new"].contains { (try? FileStatus(start + $0, links: .notFollowed)) != nil }
        guard isLeft else { return }
        guard let left = try? NewFile(target, start) else {
            // The lock file is another user's, or a link. The name of the target may not be on disk all the same.
            return try PartialFile.syncFolder(of: URL(fileURLWithPath: target, isDirectory: false))
        }
        try left.settle()
    }

    /// The start of the temporary names.
    private static func start(of target: String) -> String {
        let url = URL(fileURLWithPath: target, isDirectory: false)
        return url.deletingLastPathComponent().appendingPathComponent(".\(url.lastPathComponent)").path
    }

    private init(_ target: String, _ start: String) throws {
        self.target = target
        path = start + ".new"
        let lock = start + ".making"
        self.lock = lock
        while true {
            let opened: OpenFile
            do throws(SystemError) {
                opened = try OpenFile(lock, access: .readAndWrite, options: [.create, .noFollow])
            } catch {
                throw Self.failure(target, error)
            }
            // On a file system without such locks, creation continues without one.
            try? opened.lock(.exclusive)
            // The previous owner of the lock has removed the lock file.
            guard let status = try? opened.status(), let named = try? FileStatus(lock, links: .notFollowed),
                named.identity == status.identity
            else {
                opened.close()
                continue
            }
            lockFile = opened
            return
        }
    }

    private static func failure(_ target: String, _ error: SystemError) -> StoreError {
        let what = "\(target) cannot be created"
        return switch error {
        case .linkLoop, .exists:
            StoreError(.cannotOpen, "\(what): its temporary name is a link. Find out which program created it, and remove it")
        case .notFolder, .notFound, .isFolder: StoreError(.cannotOpen, "\(what): \(error). Check the path")
        case _ where error.isPermission:
            StoreError(.readOnly, "\(what), nor a file beside it: \(error). Check the folder's permissions")
        default: StoreError(error, what)
        }
    }

    /// Replaces the leftovers of a dead process with an empty file. It gets the mode and owner of the target if the target is
    /// an empty file.
    private func begin() throws {
        removeFile()
        let access = FileAccess(of: target)
        do throws(SystemError) {
            let made = try OpenFile(
                path, access: .write, options: [.create, .exclusive, .noFollow], permissions: access == nil ? 0o644 : 0o600)
            access?.apply(to: made)
            made.close()
        } catch {
            throw Self.failure(target, error)
        }
    }

    private func removeFile() {
        for suffix in ["", "-wal", "-shm", "-journal"] { try? FileSystem.remove(path + suffix) }
    }

    private func finish() throws {
        try PartialFile.sync(path, for: target)
        // An empty file is replaced. Any other file was created by a process that does not use the lock.
        let isReplaced = (try? FileStatus(target, links: .notFollowed))?.byteCount == 0
        try PartialFile.name(path, target, existing: isReplaced ? .replace : .refuse)
    }

    /// Removes the temporary files beside a file that another process has created or replaced. Syncs the folder first. If that process died
    /// before it did so, a power cut could take the name of the file away, and with it saves that are in the file. If the folder cannot be
    /// synced, the lock file stays for the next opening.
    private consuming func settle() throws {
        do {
            try PartialFile.syncFolder(of: URL(fileURLWithPath: target, isDirectory: false))
        } catch {
            self.release()
            throw error
        }
        self.discard()
    }

    /// Removes the temporary files. After ``finish()``, only the lock file is left to remove.
    private consuming func discard() {
        removeFile()
        try? FileSystem.remove(lock)
        release()
    }

    /// Ends the lock, and leaves its file.
    private consuming func release() {
        lockFile.unlock()
        lockFile.close()
    }
}
