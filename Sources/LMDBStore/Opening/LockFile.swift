internal import Platform
import StoreInterface

/// An exclusive lock on LMDB's lock file: no other process has the file open, and processes that open it wait.
///
/// Each process that has a file open has a shared lock on the first byte of the lock file. The locks belong to the process:
/// its own locks do not conflict, and closing any descriptor of the lock file releases them. Use this type only while this
/// process does not have the file open.
struct LockFile {
    /// The number of tries, and the wait in microseconds between them, for processes that are about to close the file.
    private static let patience = (tries: 20, wait: useconds_t(50_000))

    private let path: String
    private let descriptor: Int32

    /// Acquires the lock.
    /// - Throws: `StoreError` `.inUseElsewhere` while another process has the file open.
    init(of file: String) throws {
        path = file + "-lock"
        for _ in 0..<Self.patience.tries {
            let descriptor = try StoreFile.openBeside(path, of: file)
            var lock = Self.lock
            // The previous owner of the lock may have removed the file.
            if fcntl(descriptor, F_SETLK, &lock) == 0,
                FileIdentity.of(descriptor: descriptor) == (try? FileIdentity.of(path: path))
            {
                self.descriptor = descriptor
                return
            }
            close(descriptor)
            usleep(Self.patience.wait)
        }
        throw Self.inUse(file)
    }

    /// Removes the lock file, so that waiting processes create a new one.
    func removeAndUnlock() {
        unlink(path)
        close(descriptor)
    }

    /// Returns whether no other process currently has the file open.
    static func isFree(of file: String) throws -> Bool {
        guard try FileIdentity.of(path: file + "-lock") != nil else { return true }
        let descriptor = try StoreFile.openBeside(file + "-lock", of: file)
        defer { close(descriptor) }
        return isFree(descriptor)
    }

    /// Returns whether no other process has a lock on an open lock file; false if that cannot be determined. Needs only read
    /// permission.
    static func isFree(_ descriptor: Int32) -> Bool {
        var lock = Self.lock
        return fcntl(descriptor, F_GETLK, &lock) == 0 && lock.l_type == Int16(F_UNLCK)
    }

    static func inUse(_ file: String) -> StoreError {
        StoreError(
            .inUseElsewhere,
            "cannot migrate \(file): it is open in another process. Close it there")
    }

    private static var lock: flock {
        var lock = flock()
        lock.l_type = Int16(F_WRLCK)
        lock.l_whence = Int16(SEEK_SET)
        lock.l_start = 0
        lock.l_len = 1
        return lock
    }
}
