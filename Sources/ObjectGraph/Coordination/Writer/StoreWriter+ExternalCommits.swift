import Locking
import StoreInterface

/// What a writer has under way to learn of saves of other processes.
final class ExternalCommitMonitor: Sendable {
    /// A look waits for its turn on the writer's queue.
    let isLooking = Atomic(false)
    /// A look was due while deferred saves were being written.
    let isPostponed = Atomic(false)
    /// Held as long as the writer lives, once somebody has asked.
    let watch = Mutex<(any StoreWatch)?>(nil)
}

extension StoreWriter {
    /// After deferred saves were written.
    func lookIfPostponed() {
        if externalCommits.isPostponed.exchange(false, ordering: .relaxed) { lookForExternalCommits() }
    }

    /// From now on saves of other processes, and of other connections, are looked for when they happen.
    func followExternalCommits() throws {
        try externalCommits.watch.withLock { watch in
            guard watch == nil else { return }
            watch = try store.watch { [weak self] in self?.lookForExternalCommits() }
        }
        // Those from before the watch.
        lookForExternalCommits()
    }
}
