internal import Platform
import StoreInterface

/// Watches for saves of other processes, and remembers which looks for them are pending.
final class ExternalCommitMonitor: Sendable {
    /// Whether a look is queued on the writer's queue.
    let isLooking = Atomic(false)
    /// Whether a look became due while deferred saves were being written.
    let isPostponed = Atomic(false)
    /// Held from the first request until the store is closed.
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
