internal import Platform
import StoreInterface

/// A lock on the data file (`flock`), which the kernel releases when the process ends. LMDB's own locks are on the lock file.
///
/// Do not acquire it inside a write transaction: a caller that has the lock waits for the writer.
final class FileLock {
    enum Kind {
        /// Can be acquired by many callers. Waits while another caller has the exclusive lock.
        case shared
        /// Fails while another caller has the lock; does not wait.
        case exclusive
    }

    private(set) var descriptor: Int32

    /// Acquires the lock. Returns nil if another caller has it, if the file was moved, or if its file system has no such
    /// locks.
    init?(_ store: LMDBStore, _ kind: Kind) {
        descriptor = open(store.url.path, O_RDWR | O_NOFOLLOW | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        guard FileIdentity.of(descriptor: descriptor) == store.file else {
            unlock()
            return nil
        }
        let operation = kind == .shared ? LOCK_SH : LOCK_EX | LOCK_NB
        while flock(descriptor, operation) != 0 {
            guard errno == EINTR else {
                unlock()
                return nil
            }
        }
    }

    deinit { unlock() }

    /// Releases the lock. A second call does nothing.
    func unlock() {
        guard descriptor >= 0 else { return }
        // Closing alone is not enough: a process that is being spawned also has the descriptor until it runs its program.
        flock(descriptor, LOCK_UN)
        close(descriptor)
        descriptor = -1
    }
}
