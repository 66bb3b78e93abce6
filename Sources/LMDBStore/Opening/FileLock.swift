internal import Platform
import StoreInterface

/// A lock on the data file (`flock`), which the kernel frees when its process dies. LMDB's own are on the lock file.
///
/// Not to be taken inside a write transaction: who holds it waits for the writer.
final class FileLock {
    enum Kind {
        /// Many at a time; waits while somebody has it exclusively.
        case shared
        /// Not had while anybody has the lock; does not wait.
        case exclusive
    }

    private(set) var descriptor: Int32

    /// nil when it cannot be had: somebody has it, the file is in another place now, or its file system has no such locks.
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

    /// Does nothing the second time.
    func unlock() {
        guard descriptor >= 0 else { return }
        // Closing alone is not enough: a process that is being spawned has the descriptor too until it runs its program.
        flock(descriptor, LOCK_UN)
        close(descriptor)
        descriptor = -1
    }
}
