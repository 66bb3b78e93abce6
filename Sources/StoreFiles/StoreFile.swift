import StoreModel
package import Platform

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Functions on the names of a store's file and of the files beside it. Locks and logs are named after the file, so a file
/// must have one name. Symbolic links are resolved first, and additional hard links are refused.
package enum StoreFile {
    /// The maximum number of symbolic links to follow, as in the system.
    private static let mostLinks = 40

    /// Returns the absolute path of a file without symbolic links. The file need not exist.
    /// - Throws: `StoreError` `.cannotOpen` for a folder that does not exist, for symbolic links in a circle, and for names that are not UTF-8.
    package static func resolved(_ url: URL) throws -> URL {
        var path = url.path
        for _ in 0..<mostLinks {
            if let found = try realPath(path, for: url) { return URL(fileURLWithPath: found, isDirectory: false) }
            // The file does not exist. Its folder is resolved, and a link to a file not yet created is followed.
            let (folder, name) = parts(path)
            guard let realFolder = try realPath(folder, for: url) else {
                throw StoreError(.cannotOpen, "\(url.path) cannot be created: its folder does not exist. Create the folder")
            }
            let place = realFolder == "/" ? "/\(name)" : "\(realFolder)/\(name)"
            guard let target = try linkTarget(place, for: url) else { return URL(fileURLWithPath: place, isDirectory: false) }
            path = target.hasPrefix("/") ? target : "\(realFolder)/\(target)"
        }
        throw unresolvable(url, .linkLoop)
    }

    private static func parts(_ path: String) -> (folder: String, name: String) {
        let url = URL(fileURLWithPath: path, isDirectory: false)
        let folder = url.deletingLastPathComponent().path
        return (folder.isEmpty ? "." : folder, url.lastPathComponent)
    }

    /// Returns a path without symbolic links, or nil if there is no such file.
    private static func realPath(_ path: String, for url: URL) throws -> String? {
        do throws(SystemError) {
            return try FileSystem.realPath(path)
        } catch {
            if error == .notFound { return nil }
            throw unresolvable(url, error)
        }
    }

    private static func linkTarget(_ path: String, for url: URL) throws -> String? {
        do throws(SystemError) { return try FileSystem.linkTarget(path) } catch { throw unresolvable(url, error) }
    }

    private static func unresolvable(_ url: URL, _ error: SystemError) -> StoreError {
        if error == .accessDenied, let failure = FilePermission.unreachable(url.path) { return failure }
        let remedy =
            switch error {
            case .linkLoop: "Its symbolic links lead in a circle; remove them"
            case .notText: "The name of its folder or of the target of its symbolic link is not UTF-8; rename it"
            default: "Check the path and its permissions"
            }
        return StoreError(.cannotOpen, "\(url.path) cannot be found: \(error). \(remedy)")
    }

    // MARK: Refusing links

    /// Refuses a file that has additional names, under which it would have other locks and logs.
    /// - Parameter path: The resolved path. A missing file is accepted.
    package static func checkSingleName(_ path: String) throws {
        for isRetry in [false, true] {
            guard furtherNames(path) != nil else { return }
            // A process that died while renaming the file has left the temporary name.
            guard !isRetry else { continue }
            PartialFile.removeLeftovers(of: path)
            try NewFile.removeLeftovers(of: path)
        }
        var count = 0
        // Another process may be about to remove the temporary name.
        for _ in 0..<50 {
            CurrentThread.sleep(microseconds: 2_000)
            guard let names = furtherNames(path) else { return }
            count = names
        }
        throw StoreError(
            .cannotOpen,
            "\(path) cannot be opened: it has \(count) names (hard links), and each would have locks of its own. "
                + "Remove the other names, or open a copy made by a backup")
    }

    /// Returns the number of names of a file; nil if it has one name or does not exist.
    private static func furtherNames(_ path: String) -> Int? {
        guard let status = try? FileStatus(path), status.nameCount > 1, status.isRegularFile else { return nil }
        return status.nameCount
    }

    /// Refuses symbolic links, folders and devices under the names of files that the store creates beside its own.
    package static func checkBeside(_ path: String, _ suffixes: [String]) throws {
        for suffix in suffixes {
            guard let status = try? FileStatus(path + suffix, links: .notFollowed) else { continue }
            // A file that is removed meanwhile has no name any more.
            guard status.isRegularFile, status.nameCount <= 1 else { throw foreign(path + suffix) }
        }
    }

    private static func foreign(_ path: String) -> StoreError {
        StoreError(
            .cannotOpen,
            "cannot use \(path): it is a link, or not a regular file. Find out which program created it, and remove it")
    }

    /// Opens a small file beside a store's file for reading and writing. If it is missing, creates it with the mode and owner
    /// of the store's file. Never follows a link.
    /// - Returns: The file, which the caller closes.
    /// - Throws: `StoreError` `.fileReplaced` if both files are missing: beside a store that was removed, the small file would stay.
    package static func openBeside(_ path: String, of file: String) throws -> OpenFile {
        for _ in 0..<16 {
            do throws(SystemError) {
                let found = try OpenFile(path, access: .readAndWrite, options: [.noFollow, .nonBlocking])
                if let status = try? found.status(), status.isRegularFile, status.nameCount <= 1 { return found }
                found.close()
                break
            } catch {
                if error == .linkLoop { break }
                guard error == .notFound else { throw StoreError(error, "\(path) cannot be opened") }
            }
            // Another process may be faster; then that file is opened.
            if let made = try makeBeside(path, of: file) { return made }
        }
        throw foreign(path)
    }

    /// Creates such a file. Returns nil if there is a file of that name.
    private static func makeBeside(_ path: String, of file: String) throws -> OpenFile? {
        guard identity(file) != nil else { throw StoreError.fileReplaced(file, isGone: true) }
        let made: OpenFile
        do throws(SystemError) {
            made = try OpenFile(path, access: .readAndWrite, options: [.create, .exclusive, .noFollow])
        } catch {
            if error == .exists { return nil }
            throw StoreError(error, "\(path) cannot be made")
        }
        // A store that may only be read can become writable again.
        FileAccess(of: file)?.withWritingOwner.apply(to: made)
        do { try PartialFile.syncFolder(of: URL(fileURLWithPath: path)) } catch {
            made.close()
            throw error
        }
        return made
    }

    /// An open file. It is closed with its last reference.
    package final class Opened: Sendable {
        package let file: OpenFile
        private let identity: FileIdentity?

        package init(_ file: OpenFile) {
            self.file = file
            identity = try? file.status().identity
        }

        deinit { file.close() }

        /// Returns whether a path still leads to the file, which was neither removed nor replaced. One `stat`.
        package func isAt(_ path: String) -> Bool { identity != nil && StoreFile.identity(path) == identity }
    }

    /// Returns the identity of the file that currently has a name, or nil if there is none.
    package static func identity(_ path: String) -> FileIdentity? { try? FileStatus(path).identity }

    /// Returns whether two paths have the same bytes. As texts, paths are also equal if they only look alike, such as a letter with an accent
    /// as one character and as two. Most file systems keep two files of such names.
    package static func areSamePaths(_ first: String, _ second: String) -> Bool { first.utf8.elementsEqual(second.utf8) }

    /// Returns whether a file exists and is not empty.
    package static func isFilled(_ path: String) -> Bool { byteCount(path) > 0 }

    /// Returns whether SQLite would apply a log or journal to the file beside it.
    ///
    /// SQLite ignores a journal that begins with zero, because its transaction has not written to the file yet. A killed process may leave
    /// such a journal.
    package static func hasUnwrittenChanges(_ path: String) -> Bool {
        guard isFilled(path) else { return false }
        guard path.hasSuffix("-journal"), let file = try? OpenFile(path, access: .read) else { return true }
        defer { file.close() }
        // A journal that cannot be read may have an effect.
        var first: UInt8 = 1
        _ = withUnsafeMutableBytes(of: &first) { try? file.read(into: $0) }
        return first != 0
    }

    /// Returns the size of a file; 0 if there is no file.
    package static func byteCount(_ path: String) -> Int { (try? FileStatus(path))?.byteCount ?? 0 }
}

/// The owner and permissions of a file.
package struct FileAccess: Sendable, Hashable {
    private var permissions: UInt32
    private let owner: UInt32
    private let group: UInt32

    /// Reads the access of a file. Returns nil if there is no file.
    package init?(of path: String) { self.init(try? FileStatus(path)) }

    /// Reads the access of an open file, also of one without a name. Returns nil if the system does not provide it.
    package init?(of file: OpenFile) { self.init(try? file.status()) }

    private init?(_ status: FileStatus?) {
        guard let status else { return nil }
        (permissions, owner, group) = (status.permissions, status.owner, status.group)
    }

    /// The same access with permission for the owner to read and write.
    package var withWritingOwner: FileAccess {
        var access = self
        access.permissions |= 0o600
        return access
    }

    /// Sets the owner and mode of a new file. If the process may not set the owner or group, the file gets fewer permissions.
    package func apply(to file: OpenFile) {
        guard var status = try? file.status() else { return }
        if status.owner != owner || status.group != group {
            do { try file.setOwner(owner, group: group) } catch { try? file.setOwner(nil, group: group) }
            guard let changed = try? file.status() else { return }
            status = changed
        }
        try? file.setPermissions(status.group == group ? permissions : permissions & ~0o070)
    }
}
