internal import Platform

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
    /// - Throws: `StoreError` `.cannotOpen` for a folder that does not exist and for symbolic links in a circle.
    package static func resolved(_ url: URL) throws -> URL {
        var path = url.path
        for _ in 0..<mostLinks {
            if let found = realPath(path) { return URL(fileURLWithPath: found, isDirectory: false) }
            guard errno == ENOENT else { throw unresolvable(url, errno) }
            // The file does not exist. Its folder is resolved, and a link to a file not yet created is followed.
            let (folder, name) = parts(path)
            guard let realFolder = realPath(folder) else {
                guard errno == ENOENT else { throw unresolvable(url, errno) }
                throw StoreError(.cannotOpen, "\(url.path) cannot be created: its folder does not exist. Create the folder")
            }
            let place = realFolder == "/" ? "/\(name)" : "\(realFolder)/\(name)"
            guard let target = linkTarget(place) else { return URL(fileURLWithPath: place, isDirectory: false) }
            path = target.hasPrefix("/") ? target : "\(realFolder)/\(target)"
        }
        throw unresolvable(url, ELOOP)
    }

    private static func parts(_ path: String) -> (folder: String, name: String) {
        let url = URL(fileURLWithPath: path, isDirectory: false)
        let folder = url.deletingLastPathComponent().path
        return (folder.isEmpty ? "." : folder, url.lastPathComponent)
    }

    private static func realPath(_ path: String) -> String? {
        guard let found = realpath(path, nil) else { return nil }
        defer { free(found) }
        return String(cString: found)
    }

    /// Returns the target of a symbolic link; nil for anything else.
    private static func linkTarget(_ path: String) -> String? {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(PATH_MAX) + 1) { buffer in
            guard let base = buffer.baseAddress else { return nil }
            let count = readlink(path, base, Int(PATH_MAX))
            guard count > 0 else { return nil }
            return String(decoding: UnsafeRawBufferPointer(start: base, count: count), as: UTF8.self)
        }
    }

    private static func unresolvable(_ url: URL, _ number: Int32) -> StoreError {
        if number == EACCES, let failure = FilePermission.unreachable(url.path) { return failure }
        let remedy = number == ELOOP ? "Its symbolic links lead in a circle; remove them" : "Check the path and its permissions"
        return StoreError(.cannotOpen, "\(url.path) cannot be found: \(String(cString: strerror(number))). \(remedy)")
    }

    // MARK: Refusing links

    /// Refuses a file that has additional names, under which it would have other locks and logs.
    /// - Parameter path: The resolved path. A missing file is accepted.
    package static func checkSingleName(_ path: String) throws {
        var status = stat()
        for isRetry in [false, true] {
            guard stat(path, &status) == 0, status.st_nlink > 1, status.st_mode & S_IFMT == S_IFREG else { return }
            // A process that died while renaming the file has left the temporary name.
            if !isRetry { PartialFile.removeLeftovers(of: path) }
        }
        // Another process may be about to remove the temporary name.
        for _ in 0..<50 {
            usleep(2_000)
            guard stat(path, &status) == 0, status.st_nlink > 1 else { return }
        }
        throw StoreError(
            .cannotOpen,
            "\(path) cannot be opened: it has \(status.st_nlink) names (hard links), and each would have locks of its own. "
                + "Remove the other names, or open a copy made by a backup")
    }

    /// Refuses symbolic links, folders and devices under the names of files that the store creates beside its own.
    package static func checkBeside(_ path: String, _ suffixes: [String]) throws {
        for suffix in suffixes {
            var status = stat()
            guard lstat(path + suffix, &status) == 0 else { continue }
            guard status.st_mode & S_IFMT == S_IFREG, status.st_nlink == 1 else { throw foreign(path + suffix) }
        }
    }

    private static func foreign(_ path: String) -> StoreError {
        StoreError(
            .cannotOpen,
            "cannot use \(path): it is a link, or not a regular file. Find out which program created it, and remove it")
    }

    /// Opens a small file beside a store's file for reading and writing. If it is missing, creates it with the mode and owner
    /// of the store's file. Never follows a link.
    /// - Returns: A descriptor, which the caller closes.
    package static func openBeside(_ path: String, of file: String) throws -> Int32 {
        for _ in 0..<16 {
            let found = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)
            if found >= 0 {
                var status = stat()
                if fstat(found, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_nlink <= 1 { return found }
                close(found)
                throw foreign(path)
            }
            if errno == ELOOP { throw foreign(path) }
            guard errno == ENOENT else { throw StoreError(errorNumber: errno, "\(path) cannot be opened") }
            let made = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
            if made >= 0 {
                FileAccess(of: file)?.apply(to: made)
                do { try PartialFile.syncFolder(of: URL(fileURLWithPath: path)) } catch {
                    close(made)
                    throw error
                }
                return made
            }
            // Another process was faster.
            guard errno == EEXIST else { throw StoreError(errorNumber: errno, "\(path) cannot be made") }
        }
        throw foreign(path)
    }

    /// An open file. It is closed with its last reference.
    package final class Opened: Sendable {
        package let descriptor: Int32

        package init(_ descriptor: Int32) { self.descriptor = descriptor }

        deinit { close(descriptor) }
    }

    /// Returns whether a path still leads to an open file, which was neither removed nor replaced.
    package static func isAt(_ path: String, _ descriptor: Int32) -> Bool {
        var (named, opened) = (stat(), stat())
        return stat(path, &named) == 0 && fstat(descriptor, &opened) == 0 && named.st_ino == opened.st_ino
            && named.st_dev == opened.st_dev
    }

    /// Returns the identity of the file that currently has a name, or nil if there is none.
    package static func identity(_ path: String) -> Identity? {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        return Identity(
            device: UInt64(truncatingIfNeeded: status.st_dev), inode: UInt64(truncatingIfNeeded: status.st_ino))
    }

    /// The identity of a file, independent of its name.
    package struct Identity: Sendable, Hashable {
        var device: UInt64
        var inode: UInt64
    }

    /// Returns whether a file exists and is not empty.
    package static func isFilled(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_size > 0
    }
}

/// The owner and permissions of a file.
package struct FileAccess: Sendable, Hashable {
    private var mode: mode_t
    private var owner: uid_t
    private var group: gid_t

    /// Reads the access of a file. Returns nil if there is no file.
    package init?(of path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        (mode, owner, group) = (status.st_mode & 0o777, status.st_uid, status.st_gid)
    }

    /// The same access with permission for the owner to read and write.
    package var withWritingOwner: FileAccess {
        var access = self
        access.mode |= 0o600
        return access
    }

    /// Sets the owner and mode of a new file. If the process may not set the owner or group, the file gets fewer permissions.
    package func apply(to descriptor: Int32) {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return }
        if status.st_uid != owner || status.st_gid != group {
            if fchown(descriptor, owner, group) != 0 { _ = fchown(descriptor, uid_t.max, group) }
            guard fstat(descriptor, &status) == 0 else { return }
        }
        fchmod(descriptor, status.st_gid == group ? mode : mode & ~0o070)
    }
}
