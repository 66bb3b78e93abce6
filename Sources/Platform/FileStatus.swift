#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// The identity of a file, independent of its name.
package struct FileIdentity: Sendable, Hashable {
    package let device: UInt64
    package let inode: UInt64
}

/// The properties of a file that the system keeps.
package struct FileStatus: Sendable, Hashable {
    package let identity: FileIdentity
    package let byteCount: Int
    package let isRegularFile: Bool
    /// The number of names of the file: its hard links.
    package let nameCount: Int
    /// The nine bits for reading, writing and executing.
    package let permissions: UInt32
    package let owner: UInt32
    package let group: UInt32
    /// The time of the last write.
    package let writeTime: Time

    package struct Time: Sendable, Hashable {
        /// Since 1970.
        package let seconds: Int
        package let nanoseconds: Int
    }

    package enum Links: Sendable {
        case followed
        /// The status is that of the symbolic link itself.
        case notFollowed
    }

    /// `stat`, or `lstat`.
    package init(_ path: String, links: Links = .followed) throws(SystemError) {
        var status = stat()
        _ = try check(.status, at: path) { links == .followed ? stat(path, &status) : lstat(path, &status) }
        self.init(status)
    }

    /// `fstat`
    init(_ file: OpenFile) throws(SystemError) {
        var status = stat()
        _ = try check(.status, at: file.path) { fstat(file.descriptor, &status) }
        self.init(status)
    }

    private init(_ status: stat) {
        identity = FileIdentity(
            device: UInt64(truncatingIfNeeded: status.st_dev), inode: UInt64(truncatingIfNeeded: status.st_ino))
        byteCount = Int(status.st_size)
        isRegularFile = status.st_mode & S_IFMT == S_IFREG
        nameCount = Int(truncatingIfNeeded: status.st_nlink)
        permissions = UInt32(status.st_mode & 0o777)
        (owner, group) = (status.st_uid, status.st_gid)
        #if canImport(Darwin)
            let time = status.st_mtimespec
        #else
            let time = status.st_mtim
        #endif
        writeTime = Time(seconds: Int(time.tv_sec), nanoseconds: Int(time.tv_nsec))
    }
}
