package import Platform
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A file that gets its name when it is complete. It is written under a temporary name beside the target, synced and renamed.
/// Then the folder is synced.
///
/// A process that is killed meanwhile leaves the temporary file. The next `PartialFile` for the same name removes it. A file in use has a
/// lock (`flock`) beside it, which ends with its process.
public struct PartialFile: Sendable {
    /// The path of the file when it is complete. Symbolic links are resolved.
    public let target: String
    /// The temporary path to write to.
    public let path: String
    private let existing: ExistingFile
    private let purpose: Purpose
    /// The access of the complete file; nil for that of a new file. Until then, the owner may also read and write it.
    private let access: FileAccess?
    private let lock: UseLock

    private enum Purpose {
        case newFile
        /// A new version of a store, whose log the caller writes back.
        case newVersion
    }

    /// Creates the empty file under its temporary name.
    /// - Parameters:
    ///   - url: The name that the file gets when it is complete.
    ///   - existing: Whether a file of that name is replaced.
    ///   - source: The file whose mode and owner the new file gets; nil for the defaults of a new file.
    /// - Throws: `StoreError` `.cannotOpen` if a file of the wanted name exists and must not be replaced, or is not a regular file;
    ///   also if the name is that of another store's log or lock file, or if there is a filled log beside it. `.inputOutput`.
    public init(for url: URL, existing: ExistingFile, like source: String? = nil) throws {
        try self.init(for: url, existing: existing, access: source.flatMap { FileAccess(of: $0) })
    }

    /// Creates the empty file for the data of another file, as ``init(for:existing:like:)`` does. It gets the mode and owner of the file to
    /// replace. Without such a file it gets those of `source`, but its owner may write it.
    /// - Parameters:
    ///   - url: The wanted name.
    ///   - existing: Whether a file of that name is replaced.
    ///   - source: The file whose data is written, which others may not be allowed to read; nil for the defaults of a new file.
    /// - Throws: As for ``init(for:existing:like:)``.
    public init(for url: URL, existing: ExistingFile, withDataOf source: String?) throws {
        let access = FileAccess(of: url.path) ?? source.flatMap { FileAccess(of: $0) }?.withWritingOwner
        try self.init(for: url, existing: existing, access: access)
    }

    /// Creates the empty file, as ``init(for:existing:like:)`` does.
    /// - Parameter access: The mode and owner that the new file gets; nil for the defaults of a new file.
    package init(for url: URL, existing: ExistingFile, access: FileAccess?) throws {
        // A link of that name counts as an existing file. A replacement replaces the file that the link leads to.
        try Self.checkFree(url.path, existing)
        let target = try StoreFile.resolved(url).path
        try Self.checkCompanions(of: target)
        try self.init(target, existing: existing, purpose: .newFile, access: access)
    }

    /// Creates the empty file for a new version of a store. The caller has the store to itself when it names the file, and has written
    /// back its log.
    /// - Parameters:
    ///   - url: The resolved path of the store.
    ///   - source: The file whose mode and owner the new file gets; nil for the defaults of a new file.
    package init(forNewVersionOf url: URL, like source: String? = nil) throws {
        try self.init(url.path, existing: .replace, purpose: .newVersion, access: source.flatMap { FileAccess(of: $0) })
    }

    /// Creates the empty file for a store that is restored, as ``init(forNewVersionOf:like:)`` does. It gets the mode and owner of the file
    /// to replace. Without such a file it gets those of the backup, but its owner may write it.
    package init(forRestoring url: URL, from backup: String) throws {
        let access = FileAccess(of: url.path) ?? FileAccess(of: backup)?.withWritingOwner
        try self.init(url.path, existing: .replace, purpose: .newVersion, access: access)
    }

    private init(_ target: String, existing: ExistingFile, purpose: Purpose, access: FileAccess?) throws {
        try Self.checkReplaceable(target)
        self.target = target
        self.existing = existing
        self.purpose = purpose
        Self.removeLeftovers(of: target)
        self.access = access
        (path, lock) = try Self.naming(target, saying: "cannot be created: no temporary file can be created in its folder") {
            () throws(SystemError) in try Self.make(target, access)
        }
    }

    /// Creates the temporary file and locks it.
    private static func make(_ target: String, _ access: FileAccess?) throws(SystemError) -> (path: String, lock: UseLock) {
        let prefix = prefix(URL(fileURLWithPath: target, isDirectory: false))
        let path = "\(prefix)\(SaveMetadata.thisProcess)-\(UUID.random().uuidString)"
        let lock = try UseLock(path)
        let file = try OpenFile(
            path, access: .write, options: [.create, .exclusive, .noFollow], permissions: access == nil ? 0o644 : 0o600)
        access?.withWritingOwner.apply(to: file)
        file.close()
        return (path, lock)
    }

    /// The largest part of a file's name in its temporary names, in bytes. File systems allow 255, of which a process number, an id and a
    /// suffix take 64.
    private static let maximumNameByteCount = 180

    /// The common prefix of the temporary names of a file. Files with equal starts of long names have the same one, which is safe: a leftover
    /// is removed if no process uses it.
    private static func prefix(_ url: URL) -> String {
        var name = url.lastPathComponent.unicodeScalars
        while name.reduce(0, { $0 + UTF8.width($1) }) > maximumNameByteCount { name.removeLast() }
        return url.deletingLastPathComponent().appendingPathComponent(".\(String(name)).partial-").path
    }

    private static func checkFree(_ target: String, _ existing: ExistingFile) throws {
        if existing == .refuse, (try? FileStatus(target, links: .notFollowed)) != nil { throw isThere(target) }
    }

    private static func isThere(_ target: String) -> StoreError {
        StoreError(.cannotOpen, "\(target) already exists. Choose another name, or remove or replace the file")
    }

    /// Refuses to replace a folder, a device or a pipe. A missing file is accepted.
    package static func checkReplaceable(_ target: String) throws {
        guard let status = try? FileStatus(target), !status.isRegularFile else { return }
        throw StoreError(.cannotOpen, "\(target) cannot be replaced: it is a folder, or not a regular file. Choose another name")
    }

    /// Refuses the name of a file that belongs to another store, and a name with a log beside it.
    ///
    /// A log or lock file that is overwritten costs the other store its latest saves, or its locks. SQLite applies a log to any file
    /// beside it. Readers leave an empty log, and a killed process may leave a journal that begins with zero. SQLite ignores both.
    ///
    /// The other file is not read to tell whether it is a store: closing it would release the locks on it that this process has.
    private static func checkCompanions(of target: String) throws {
        for suffix in ["-wal", "-shm", "-journal", "-lock", "-signal"] where target.hasSuffix(suffix) {
            let other = String(target.dropLast(suffix.count))
            guard (try? FileStatus(other))?.isRegularFile == true else { continue }
            throw StoreError(
                .cannotOpen, "cannot write \(target): that is the name of a log or lock file of \(other). Choose another name")
        }
        for left in [target + "-wal", target + "-journal"] where StoreFile.hasUnwrittenChanges(left) {
            throw StoreError(
                .cannotOpen,
                "cannot write \(target): \(left) exists, so that file is open or was not closed. "
                    + "Close it, or choose another name")
        }
    }

    /// Opens the temporary file for writing. The caller closes it.
    package func openFile() throws -> OpenFile {
        try Self.naming(target, saying: "cannot be written: its temporary file cannot be opened") { () throws(SystemError) in
            try OpenFile(path, access: .write, options: [.noFollow])
        }
    }

    /// Opens the temporary file for writing. The caller closes the descriptor.
    public func openForWriting() throws -> Int32 {
        try openFile().descriptor
    }

    /// Syncs the file to disk and gives it its final name.
    /// - Throws: `StoreError` as ``init(for:existing:like:)``, because other processes may have created files meanwhile.
    public func finish() throws {
        if let access, access != access.withWritingOwner { try setAccess(access) }
        try Self.sync(path, for: target)
        if purpose == .newFile { try Self.checkCompanions(of: target) }
        try Self.name(path, target, existing: existing)
        lock.release()
    }

    private func setAccess(_ access: FileAccess) throws {
        let file = try openFile()
        defer { file.close() }
        access.apply(to: file)
    }

    /// Renames a file that is on disk, and syncs the new name to disk.
    /// - Throws: `StoreError` `.cannotOpen` if a file of that name exists and must not be replaced, or is not a regular file.
    package static func name(_ path: String, _ target: String, existing: ExistingFile) throws {
        if existing == .replace { try checkReplaceable(target) }
        switch existing {
        case .replace: try rename(path, target)
        case .refuse:
            do throws(SystemError) {
                // Unlike a rename, a link never replaces a file that another process has created meanwhile.
                try FileSystem.link(path, to: target)
                try? FileSystem.remove(path)
            } catch {
                if error == .exists { throw isThere(target) }
                // The file system has no hard links.
                try checkFree(target, existing)
                try rename(path, target)
            }
        }
        // The name is on disk only after its folder is synced.
        try syncFolder(of: URL(fileURLWithPath: target, isDirectory: false))
    }

    private static func rename(_ path: String, _ target: String) throws {
        try naming(target, saying: "cannot be created from its temporary file") { () throws(SystemError) in
            try FileSystem.rename(path, to: target)
        }
    }

    /// Syncs the folder of a file to disk, which makes the names in it durable.
    package static func syncFolder(of url: URL) throws {
        let folder = url.deletingLastPathComponent().path
        try sync(folder.isEmpty ? "." : folder, for: url.path)
    }

    /// Removes the temporary file and its companions. After ``finish()``, removes companions that are left.
    public func discard() {
        // The file first: a store that is still open recreates no companion without it.
        for suffix in Self.suffixes { try? FileSystem.remove(path + suffix) }
        lock.release()
    }

    /// The file itself, then its companions, then its lock.
    private static let suffixes = ["", "-lock", "-wal", "-shm", "-journal", "-signal", UseLock.suffix]

    /// Syncs a file to disk.
    /// - Parameter target: The path to name in an error.
    package static func sync(_ path: String, for target: String) throws {
        let file = try naming(target, saying: "cannot be opened to be synced") { () throws(SystemError) in
            try OpenFile(path, access: .read)
        }
        defer { file.close() }
        try naming(target, saying: "cannot be synced") { () throws(SystemError) in try file.sync() }
    }

    /// Runs calls of the system whose errors name a file and what cannot be done with it.
    private static func naming<R>(
        _ target: String, saying what: String, _ body: () throws(SystemError) -> R
    ) throws(StoreError) -> R {
        do throws(SystemError) { return try body() } catch { throw StoreError(error, "\(target) \(what)") }
    }

    private static func withoutSuffix(_ name: String) -> String {
        suffixes.dropFirst().first { name.hasSuffix($0) }.map { String(name.dropLast($0.count)) } ?? name
    }

    /// Removes temporary files for the same name that no process uses.
    static func removeLeftovers(of target: String) {
        let start = URL(fileURLWithPath: prefix(URL(fileURLWithPath: target, isDirectory: false)), isDirectory: false)
        let (folder, prefix) = (start.deletingLastPathComponent().path, start.lastPathComponent)
        let names = ((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []).filter { $0.hasPrefix(prefix) }
        let complete = StoreFile.identity(target)
        for name in Set(names.map(withoutSuffix)) {
            let path = "\(folder)/\(name)"
            // The process that made a second name of the complete file is about to remove it, or ended. A power cut may leave such a name
            // without its lock, and another process may have that number now.
            if let complete, (try? FileStatus(path, links: .notFollowed))?.identity == complete { try? FileSystem.remove(path) }
            let process = name.dropFirst(prefix.count).split(separator: "-").first.flatMap { Int32($0) }
            UseLock.ifUnused(path, by: process) {
                for suffix in suffixes { try? FileSystem.remove(path + suffix) }
            }
        }
    }
}

/// A lock that shows that a process is using a temporary file. The process holds it until it names or discards the file, or ends.
///
/// The lock is on a separate file, because a store locks the temporary file itself. The process number in the name cannot replace the
/// lock: in a container, a restarted process often gets the same number, and two containers number their processes separately.
private final class UseLock: Sendable {
    static let suffix = "-use"

    private let file: OpenFile
    private let isReleased = Atomic(false)

    /// Locks a new temporary file, before it is created.
    init(_ path: String) throws(SystemError) {
        while true {
            let opened = try OpenFile(
                path + Self.suffix, access: .readAndWrite, options: [.create, .noFollow], permissions: 0o644)
            // A file system may have no such locks. Then the number of the process decides: see ``ifUnused(_:by:_:)``.
            try? opened.lock(.exclusive)
            // Another process may have removed it as a leftover before it was locked.
            if Self.isNamed(opened) {
                file = opened
                return
            }
            opened.close()
        }
    }

    deinit { release() }

    private static func isNamed(_ file: OpenFile) -> Bool {
        guard let status = try? file.status() else { return false }
        return (try? FileStatus(file.path, links: .notFollowed))?.identity == status.identity
    }

    /// Removes the file and its lock.
    func release() {
        guard !isReleased.exchange(true, ordering: .relaxed) else { return }
        try? FileSystem.remove(file.path)
        file.unlock()
        file.close()
    }

    /// Runs `body` unless a process uses a temporary file. If the lock's file is missing, or the file system has no such locks, the file counts
    /// as used while a process with the number in its name exists.
    static func ifUnused(_ path: String, by process: Int32?, _ body: () -> Void) {
        let isGone = process.map(CurrentProcess.isGone) ?? false
        let file: OpenFile
        do throws(SystemError) { file = try OpenFile(path + suffix, access: .read, options: [.noFollow]) } catch {
            if error == .notFound, isGone { body() }
            return
        }
        defer { file.close() }
        do throws(SystemError) { try file.tryLock(.exclusive) } catch {
            if error != .tryAgain, isGone { body() }
            return
        }
        defer { file.unlock() }
        if isNamed(file) { body() }
    }
}
