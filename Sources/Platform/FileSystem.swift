internal import CPlatform

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// Functions on names of files, and on the file system that contains them.
package enum FileSystem {
    package struct Permission: OptionSet, Sendable {
        package let rawValue: Int32
        package init(rawValue: Int32) { self.rawValue = rawValue }

        package static let read = Permission(rawValue: R_OK)
        package static let write = Permission(rawValue: W_OK)
        /// To open files in a folder.
        package static let enter = Permission(rawValue: X_OK)
    }

    /// `access`: fails if there is no such file, or if this user lacks a permission. Without a permission it checks only that the
    /// file exists.
    package static func checkAccess(_ path: String, _ permission: Permission = []) throws(SystemError) {
        _ = try check(.access, at: path) { access(path, permission.isEmpty ? F_OK : permission.rawValue) }
    }

    package static func allows(_ path: String, _ permission: Permission = []) -> Bool {
        do throws(SystemError) {
            try checkAccess(path, permission)
            return true
        } catch {
            return false
        }
    }

    /// `rename`: gives a file another name and replaces the file of that name, in one step.
    package static func rename(_ path: String, to target: String) throws(SystemError) {
        _ = try check(.rename, at: path) { renameFile(path, target) }
    }

    /// `link`: gives a file a further name. Fails with `EEXIST` if there is a file of that name.
    package static func link(_ path: String, to target: String) throws(SystemError) {
        _ = try check(.link, at: path) { linkFile(path, target) }
    }

    /// `unlink`
    package static func remove(_ path: String) throws(SystemError) { _ = try check(.remove, at: path) { unlink(path) } }

    /// `chmod`
    package static func setPermissions(_ permissions: UInt32, of path: String) throws(SystemError) {
        _ = try check(.setMode, at: path) { chmod(path, mode_t(truncatingIfNeeded: permissions)) }
    }

    /// `chown`
    package static func setOwner(_ owner: UInt32, group: UInt32, of path: String) throws(SystemError) {
        _ = try check(.setOwner, at: path) { chown(path, owner, group) }
    }

    /// `realpath`: the absolute path without symbolic links.
    /// - Throws: Also ``SystemError/notText`` for a path that is not UTF-8. A text of it would be the path of another file.
    package static func realPath(_ path: String) throws(SystemError) -> String {
        #if DEBUG
            if let fault = SystemFaults.fault(.realPath, path) { throw SystemError(number: fault) }
        #endif
        guard let found = realpath(path, nil) else { throw SystemError.last }
        defer { free(found) }
        guard let text = String(validatingCString: found) else { throw SystemError.notText }
        return text
    }

    /// `readlink`: the target of a symbolic link; nil for anything else.
    /// - Throws: ``SystemError/notText`` for a target that is not UTF-8.
    package static func linkTarget(_ path: String) throws(SystemError) -> String? {
        var bytes = [UInt8](repeating: 0, count: Int(PATH_MAX))
        let count = bytes.withUnsafeMutableBytes { buffer in
            buffer.baseAddress.map { readlink(path, $0, buffer.count) } ?? -1
        }
        guard count > 0 else { return nil }
        guard let text = String(validating: bytes[..<count], as: UTF8.self) else { throw SystemError.notText }
        return text
    }

    /// Returns the path of the folder of a file. Looks for the byte of the slash: together with a combining mark at the start of a name, the
    /// slash is another character.
    package static func folder(of path: String) -> String {
        guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return "." }
        return slash == path.startIndex ? "/" : String(path.unicodeScalars[..<slash])
    }

    // MARK: The kind of file system

    /// Returns the kind of a file system whose locks or maps do not work across machines or drivers; nil for a local file
    /// system.
    package static func remoteKind(ofFolder path: String) -> String? {
        var status = statfs()
        guard statfs(path, &status) == 0 else { return nil }
        return remoteKind(status)
    }

    private static func remoteKind(_ status: statfs) -> String? {
        #if os(Linux)
            remoteKinds[UInt32(truncatingIfNeeded: status.f_type)]
        #else
            status.f_flags & UInt32(MNT_LOCAL) == 0 ? "a network file system" : nil
        #endif
    }

    /// The kinds by their numbers in statfs(2).
    package static let remoteKinds: [UInt32: String] = [
        0x6969: "nfs", 0xFF53_4D42: "cifs", 0xFE53_4D42: "smb2", 0x517B: "smb", 0x6573_5546: "fuse", 0x0102_1997: "9p",
        0x00C3_6400: "ceph", 0x5346_414F: "afs", 0x6B41_4653: "afs", 0x7375_7245: "coda", 0x564C: "ncp",
        0x0BD0_0BD0: "lustre", 0x4750_4653: "gpfs",
    ]
}

// C functions under names that no static function hides.

private func renameFile(_ path: String, _ target: String) -> Int32 { rename(path, target) }

private func linkFile(_ path: String, _ target: String) -> Int32 { link(path, target) }
