internal import Platform
import StoreInterface
import StoreModel

/// Observes saves of other processes, and records which checks for them are pending.
final class ExternalCommitMonitor: Sendable {
    /// Whether a check is enqueued on the writer's queue.
    let isLooking = Atomic(false)
    /// Whether a check became due while deferred saves were being written.
    let isPostponed = Atomic(false)
    /// The store's observer, kept from the first request until the store is closed.
    let watch = Mutex<(any StoreWatch)?>(nil)
}

extension StoreWriter {
    /// Runs a postponed check. Called after deferred saves were written.
    func lookIfPostponed() {
        if externalCommits.isPostponed.exchange(false, ordering: .relaxed) { lookForExternalCommits() }
    }

    /// Starts to check for saves of other processes and connections whenever they happen.
    func followExternalCommits() throws {
        guard capabilities.contains(.externalSaves) else { return }
        try externalCommits.watch.withLock { watch in
            guard watch == nil else { return }
            watch = try store.watch { [weak self] in self?.lookForExternalCommits() }
        }
        // Also check for saves made before the observer started.
        lookForExternalCommits()
    }

    /// Checks the newest save of a store against one that it has had before. An older one shows that the file was replaced.
    ///
    /// - Throws: `StoreError` `.fileReplaced`.
    func checkGeneration(_ found: Generation, since known: Generation) throws {
        if found < known { throw StoreError.fileReplaced(store.name, isGone: false) }
    }
}
