import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension PersistentStoreCoordinator {
    /// Reduces the size of the store's file while the store is in use: see `ObjectStore`. A store that cannot be compacted is left
    /// unchanged.
    ///
    /// Saves continue between the transactions of the compaction. Deferred saves that are not on disk are not compacted. Runs off
    /// the calling executor. Root contexts that merge automatically move to the compacted pages without a notice. Other contexts,
    /// and snapshots, keep the old pages from reuse until they move (S150).
    ///
    /// - Throws: `CancellationError` if the task is cancelled; pages compacted so far stay compacted. `StoreError`.
    @discardableResult
    public func compact(
        _ options: CompactionOptions = CompactionOptions(),
        progress: @escaping @Sendable (CompactionProgress) -> Void = { _ in }
    ) async throws -> CompactionProgress {
        try checkOpen()
        if store.isReadOnly { throw StoreError.openReadOnly(store.name) }
        guard writer.capabilities.contains(.compaction) else { return CompactionProgress() }
        let writer = writer
        try await writer.suspension.enter(for: self)
        defer { writer.suspension.leave() }
        return try await instruments.span("strata.compact", attributes: [:]) {
            try await store.compact(options) { step in
                writer.renewSnapshot { [weak self] in self?.didSave(.externalProcess) }
                progress(step)
            }
        }
    }

    /// Writes a copy of the store without free space, with all saves made so far: see `ObjectStore`.
    ///
    /// - Parameters:
    ///   - url: The file to create.
    ///   - progress: A closure called with the part of the work that is done, from 0 to 1, on a background thread.
    /// - Throws: `StoreError` `.unsupported` for stores without such a copy, and errors of the store; `CancellationError`.
    public func compactCopy(to url: URL, progress: @escaping @Sendable (Double) -> Void = { _ in }) async throws {
        guard writer.capabilities.contains(.compaction) else {
            throw StoreError(.unsupported, "\(name): its store has no file that can be copied. Use a store in a file")
        }
        try await flush()
        try await store.compactCopy(to: url, progress: progress)
    }
}

extension StoreWriter {
    /// Releases the snapshot of an older commit with the same saves, so that its pages can be reused.
    ///
    /// - Parameter done: Runs on the writer's queue.
    func renewSnapshot(then done: @escaping @Sendable () -> Void = {}) {
        queue.async {
            self.renewSnapshotNow()
            done()
        }
    }

    private func renewSnapshotNow() {
        let current = state
        // While saves are pending, the base has their generation. If this fails, the old snapshot stays, which is correct too.
        guard current.pendingSaves > 0 else { return replaceState(resting(current)) }
        guard let base = try? newSnapshot(), base.generation == current.committed else { return }
        replaceState(current.reading(base))
    }
}

extension PersistentContainer {
    /// Reduces the size of the store's file: see `PersistentStoreCoordinator.compact`.
    @discardableResult
    public func compact(
        _ options: CompactionOptions = CompactionOptions(),
        progress: @escaping @Sendable (CompactionProgress) -> Void = { _ in }
    ) async throws -> CompactionProgress {
        try await coordinator.compact(options, progress: progress)
    }

    /// Writes a copy of the store without free space, with all saves made so far: see
    /// ``PersistentStoreCoordinator/compactCopy(to:progress:)``.
    public func compactCopy(to url: URL, progress: @escaping @Sendable (Double) -> Void = { _ in }) async throws {
        try await flush()
        try await coordinator.compactCopy(to: url, progress: progress)
    }
}
