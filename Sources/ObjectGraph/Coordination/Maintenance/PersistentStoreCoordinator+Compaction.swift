import StoreInterface

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension PersistentStoreCoordinator {
    /// Makes the store's file hold its objects in less room while it is in use: see `CompactableStore`. Saves go on between its
    /// transactions; what is saved and not yet on disk is not packed. A store that cannot be compacted has nothing to do.
    ///
    /// Off the calling executor. Root contexts that merge automatically move on to the packed pages, without a notice; others, and
    /// snapshots, keep the pages from before from reuse until they move (S150).
    /// - Throws: `CancellationError` when the task is cancelled, what was packed stays so; `StoreError`.
    @discardableResult
    public func compact(
        _ options: CompactionOptions = CompactionOptions(),
        progress: @escaping @Sendable (CompactionProgress) -> Void = { _ in }
    ) async throws -> CompactionProgress {
        try checkOpen()
        if store.isReadOnly { throw StoreError.openReadOnly(store.name) }
        guard let compactable = store as? any CompactableStore else { return CompactionProgress() }
        let writer = writer
        return try await compactable.compact(options) { step in
            writer.renewSnapshot { [weak self] in self?.didSave(0) }
            progress(step)
        }
    }

    /// Writes a copy of the store without anything free in it, after all saves made so far: see `CompactableStore`.
    ///
    /// - Throws: `StoreError` `.unsupported` for stores that have no such copy, and those of the store; `CancellationError`.
    public func compactCopy(to url: URL) async throws {
        guard let compactable = store as? any CompactableStore else {
            throw StoreError(.unsupported, "\(name): its store has no file that can be copied. Use a store in a file")
        }
        try await flush()
        try await compactable.compactCopy(to: url)
    }
}

extension StoreWriter {
    /// Lets go of pages that only an older snapshot of the same state needs, so that they can be used again.
    /// - Parameter done: runs on the writer's queue.
    func renewSnapshot(then done: @escaping @Sendable () -> Void = {}) {
        queue.async {
            self.renewSnapshotNow()
            done()
        }
    }

    private func renewSnapshotNow() {
        let current = state
        // While saves are pending the base has their generation; a failure leaves the old snapshot, which is right too.
        guard current.pendingSaves > 0 else { return replaceState(resting(current)) }
        guard let base = try? newSnapshot(), base.generation == current.committed else { return }
        replaceState(current.reading(base))
    }
}

extension PersistentContainer {
    /// Makes the file hold its objects in less room: see `PersistentStoreCoordinator.compact`.
    @discardableResult
    public func compact(
        _ options: CompactionOptions = CompactionOptions(),
        progress: @escaping @Sendable (CompactionProgress) -> Void = { _ in }
    ) async throws -> CompactionProgress {
        try await coordinator.compact(options, progress: progress)
    }

    /// Writes a copy of the store without anything free in it, after all saves made so far: see `CompactableStore`.
    public func compactCopy(to url: URL) async throws {
        try await flush()
        try await coordinator.compactCopy(to: url)
    }
}
