internal import Platform

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A store that can be copied while it is in use.
public protocol BackupableStore: ObjectStore {
    /// Writes one committed state of the store to a new file, which opens like the store itself and has its identity.
    ///
    /// The file is marked as a copy: its first opening for writing begins a new incarnation of the store, see ``StoreLineage``.
    /// Blocking, for a background thread; readers and writers go on. Under the name there is nothing, or what was there, until
    /// all of the copy is on disk and checked.
    /// - Returns: the newest save that the copy holds.
    /// - Throws: `CancellationError` soon after the cancellation; nothing is left then.
    func backup(to url: URL, existing: ExistingFile, cancellation: Cancellation) throws -> Generation
    /// Writes the bytes of such a file to a descriptor: a file, pipe or socket. Blocking; ends with the last byte, or with an
    /// error when nobody reads any more.
    func backup(to descriptor: Int32, cancellation: Cancellation) throws
}

extension BackupableStore {
    /// The same, without a way to end it early.
    public func backup(to url: URL, existing: ExistingFile) throws -> Generation {
        try backup(to: url, existing: existing, cancellation: Cancellation())
    }

    public func backup(to descriptor: Int32) throws { try backup(to: descriptor, cancellation: Cancellation()) }
}

/// Runs `body` so that writing to a pipe or socket that nobody reads is an error and does not kill the process: also in
/// threads that `body` makes.
public func withoutBrokenPipeSignal<R>(_ body: () throws -> R) rethrows -> R {
    var blocked = sigset_t()
    var before = sigset_t()
    sigemptyset(&blocked)
    sigaddset(&blocked, SIGPIPE)
    pthread_sigmask(SIG_BLOCK, &blocked, &before)
    defer {
        // One that came meanwhile waits for this thread, and must not meet it when it is let through again.
        var pending = sigset_t()
        if sigismember(&before, SIGPIPE) == 0, sigpending(&pending) == 0, sigismember(&pending, SIGPIPE) == 1 {
            var taken: Int32 = 0
            sigwait(&blocked, &taken)
        }
        pthread_sigmask(SIG_SETMASK, &before, nil)
    }
    return try body()
}

extension StoreError {
    /// What a call of the system has refused: `.full` when there was no room.
    /// - Parameter what: the file and what could not be done with it.
    package init(errorNumber: Int32, _ what: String) {
        let reason = "\(what): \(String(cString: strerror(errorNumber)))"
        if [ENOSPC, EDQUOT, EFBIG].contains(errorNumber) {
            self.init(.full, "\(reason). Make room on the disk, or raise the limit of the file's size")
        } else {
            self.init(.inputOutput, "\(reason). Check rights and disk")
        }
    }
}

/// What to do when there is a file of the wanted name.
public enum ExistingFile: Sendable, Hashable {
    /// Throw, and leave it.
    case refuse
    /// Put the new file in its place, in one step, when it is whole. Who has the old one open stays with it.
    case replace
}

/// A file that gets its name when it is whole: a temporary name beside it, a sync, a rename, a sync of the folder.
///
/// A process that is killed meanwhile leaves the temporary file, which the next one for the same name removes.
public struct PartialFile: Sendable {
    public let target: String
    /// Where to write.
    public let path: String
    private let existing: ExistingFile

    /// Makes the file under its temporary name, empty.
    /// It gets the mode and owner of `source`; nil: those of any new file.
    ///
    /// - Throws: `StoreError` `.cannotOpen` when there is a file of the wanted name and it is not to be replaced, `.inputOutput`.
    public init(for url: URL, existing: ExistingFile, like source: String? = nil) throws {
        // A link of that name is something that is there; to be replaced is the file that it leads to.
        try Self.checkFree(url.path, existing)
        let url = try StoreFile.resolved(url)
        target = url.path
        self.existing = existing
        let prefix = Self.prefix(url)
        path = "\(prefix)\(SaveOrigin.thisProcess)-\(UUID().uuidString)"
        Self.removeLeftovers(of: target)
        let access = source.flatMap { FileAccess(of: $0) }
        let mode: mode_t = access == nil ? 0o644 : 0o600
        let descriptor = open(path, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, mode)
        guard descriptor >= 0 else { throw failure("cannot be made beside it") }
        access?.apply(to: descriptor)
        close(descriptor)
    }

    /// What the temporary names of a file begin with.
    private static func prefix(_ url: URL) -> String {
        url.deletingLastPathComponent().appendingPathComponent(".\(url.lastPathComponent).partial-").path
    }

    private static func checkFree(_ target: String, _ existing: ExistingFile) throws {
        var status = stat()
        if existing == .refuse, lstat(target, &status) == 0 { throw isThere(target) }
    }

    private static func isThere(_ target: String) -> StoreError {
        StoreError(.cannotOpen, "\(target) is there already. Give another name, remove it, or ask for it to be replaced")
    }

    /// Opens the temporary file for writing; the caller closes it.
    public func openForWriting() throws -> Int32 {
        let descriptor = open(path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC)
        guard descriptor >= 0 else { throw failure("cannot be opened under its temporary name") }
        return descriptor
    }

    /// Puts the file on disk and gives it its name.
    public func finish() throws {
        try Self.sync(path, for: target)
        try Self.name(path, target, existing: existing)
    }

    /// Gives a file that is on disk another name, and puts that on disk.
    /// - Throws: `StoreError` `.cannotOpen` when there is a file of that name that is not to be replaced.
    package static func name(_ path: String, _ target: String, existing: ExistingFile) throws {
        switch existing {
        case .replace: guard rename(path, target) == 0 else { throw failure(target, "cannot be given to the copy") }
        case .refuse:
            // Unlike a rename, a link never takes the place of a file that somebody has made meanwhile.
            if link(path, target) == 0 {
                unlink(path)
            } else if errno == EEXIST {
                throw isThere(target)
            } else {
                // A file system without hard links.
                try checkFree(target, existing)
                guard rename(path, target) == 0 else { throw failure(target, "cannot be given to the copy") }
            }
        }
        // The name is on disk only when its folder is.
        try syncFolder(of: URL(fileURLWithPath: target, isDirectory: false))
    }

    /// Puts the names of a file's folder on disk.
    package static func syncFolder(of url: URL) throws {
        let folder = url.deletingLastPathComponent().path
        try sync(folder.isEmpty ? "." : folder, for: url.path)
    }

    /// Removes the file under its temporary name, and what stands beside it; nothing when it is finished.
    public func discard() {
        for suffix in ["", "-lock", "-wal", "-shm", "-journal", "-signal"] { unlink(path + suffix) }
    }

    /// Puts a file on disk.
    /// - Parameter target: what an error names.
    package static func sync(_ path: String, for target: String) throws {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw failure(target, "cannot be opened to be synced") }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw failure(target, "cannot be synced") }
    }

    private func failure(_ what: String) -> StoreError { Self.failure(target, what) }

    private static func failure(_ target: String, _ what: String) -> StoreError {
        StoreError(errorNumber: errno, "\(target) \(what)")
    }

    /// Removes temporary files for the same name whose process is gone.
    static func removeLeftovers(of target: String) {
        let start = URL(fileURLWithPath: prefix(URL(fileURLWithPath: target, isDirectory: false)), isDirectory: false)
        let (folder, prefix) = (start.deletingLastPathComponent().path, start.lastPathComponent)
        for name in (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? [] where name.hasPrefix(prefix) {
            guard let process = name.dropFirst(prefix.count).split(separator: "-").first.flatMap({ Int32($0) }),
                kill(process, 0) != 0, errno == ESRCH
            else { continue }
            unlink("\(folder)/\(name)")
        }
    }
}
