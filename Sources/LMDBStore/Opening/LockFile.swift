internal import Platform
import StoreInterface

/// LMDB's lock on its lock file, had alone: no process has the file open, and those that open it wait.
///
/// Each process that has a file open holds a lock on the first byte of the lock file, shared. The locks are the process's: one of this
/// process is not seen, and closing any descriptor of the lock file drops it. So this is used only while nobody here has the file open.
struct LockFile {
    /// How often, and for how many microseconds, is waited for processes that are about to close the file.
    private static let patience = (tries: 20, wait: useconds_t(50_000))

    private let path: String
    private let descriptor: Int32

    /// - Throws: `StoreError` `.inUseElsewhere` while another process has the file open.
    init(of file: String) throws {
        path = file + "-lock"
        for _ in 0..<Self.patience.tries {
            let descriptor = try StoreFile.openBeside(path, of: file)
            var lock = Self.lock
            // Whoever had it alone may have removed it.
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

    /// Removes the lock file: who waits for it takes a new one.
    func removeAndUnlock() {
        unlink(path)
        close(descriptor)
    }

    /// Whether no other process has the file open now.
    static func isFree(of file: String) throws -> Bool {
        guard try FileIdentity.of(path: file + "-lock") != nil else { return true }
        let descriptor = try StoreFile.openBeside(file + "-lock", of: file)
        defer { close(descriptor) }
        return isFree(descriptor)
    }

    /// Whether no other process holds a lock on an open lock file; false if that cannot be determined. Needs permission to read only.
    static func isFree(_ descriptor: Int32) -> Bool {
        var lock = Self.lock
        return fcntl(descriptor, F_GETLK, &lock) == 0 && lock.l_type == Int16(F_UNLCK)
    }

    static func inUse(_ file: String) -> StoreError {
        StoreError(
            .inUseElsewhere,
            "\(file) is open in another process, and a migration in stages puts another file in its place. Close it there")
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
