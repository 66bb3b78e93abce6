internal import Platform
import StoreInterface

/// The identity of a file, independent of its path.
struct FileIdentity: Sendable, Hashable {
    var device: UInt64
    var inode: UInt64

    /// Returns the identity of a file, or nil if there is no file.
    static func of(path: String) throws -> FileIdentity? {
        var status = stat()
        guard stat(path, &status) == 0 else {
            if errno == ENOENT { return nil }
            throw StoreError(.cannotOpen, "\(path) cannot be inspected: \(String(cString: strerror(errno))). Check the path")
        }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw StoreError(.cannotOpen, "\(path) is not a file. A store is one file; give its path")
        }
        return FileIdentity(status)
    }

    /// Returns the identity of an open file, or nil if the system does not provide it.
    static func of(descriptor: Int32) -> FileIdentity? {
        var status = stat()
        return fstat(descriptor, &status) == 0 ? FileIdentity(status) : nil
    }

    static func byteCount(path: String) throws -> Int {
        var status = stat()
        guard stat(path, &status) == 0 else {
            throw StoreError(.inputOutput, "\(path) cannot be inspected: \(String(cString: strerror(errno))). Check the disk")
        }
        return Int(status.st_size)
    }

    private init(_ status: stat) {
        device = UInt64(truncatingIfNeeded: status.st_dev)
        inode = UInt64(truncatingIfNeeded: status.st_ino)
    }
}
