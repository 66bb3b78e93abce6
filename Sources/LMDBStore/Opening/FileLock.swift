internal import Platform
import StoreInterface
import StoreModel

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

    /// nil when unlocked.
    private var file: OpenFile?
    /// The descriptor of the data file that has the lock; -1 after ``unlock()``.
    var descriptor: Int32 { file?.descriptor ?? -1 }

    /// Acquires the lock. Returns nil if another caller has it, if the file was moved, or if its file system has no such
    /// locks.
    init?(_ store: LMDBStore, _ kind: Kind) {
        guard let file = try? OpenFile(store.url.path, access: .readAndWrite, options: [.noFollow]) else { return nil }
        guard FileIdentity.of(file) == store.file else {
            file.close()
            return nil
        }
        do throws(SystemError) {
            switch kind {
            case .shared: try file.lock(.shared)
            case .exclusive: try file.tryLock(.exclusive)
            }
        } catch {
            file.close()
            return nil
        }
        self.file = file
    }

    deinit { unlock() }

    /// Releases the lock. A second call does nothing.
    func unlock() {
        file?.unlock()
        file?.close()
        file = nil
    }
}
