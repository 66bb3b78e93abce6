internal import Platform
import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension PersistentStoreCoordinator {
    /// Packs pages of the store while it is in use: see `ObjectStore`. The file keeps its length, and later saves use the freed space. A
    /// store that cannot be compacted is left unchanged.
    ///
    /// Saves continue between the transactions of the compaction. Deferred saves that are not on disk are not compacted. Runs off
    /// the calling executor. Root contexts that merge automatically move to the compacted pages without a notice. Other contexts,
    /// and snapshots, keep the old pages from reuse until they move (S150). A suspension of the store does not wait for the whole: the
    /// compaction pauses after the running transaction, and goes on when the store is resumed (S167). Pages with few objects are packed,
    /// but not merged, because objects keep their ids (S155).
    ///
    /// - Throws: `CancellationError` if the task is cancelled, also while the store is suspended; pages compacted so far stay compacted.
    ///   `StoreError`.
    @discardableResult
    public func compact(
        _ options: CompactionOptions = CompactionOptions(),
        progress: @escaping @Sendable (CompactionProgress) -> Void = { _ in }
    ) async throws -> CompactionProgress {
        try checkOpen()
        if store.isReadOnly { throw StoreError.openReadOnly(store.name) }
        guard writer.capabilities.contains(.compaction) else { return CompactionProgress() }
        return try await instruments.span("strata.compact", attributes: [:]) {
            var done = CompactionProgress()
            while true {
                try await writer.suspension.enterUnlessCancelled(for: self)
                defer { writer.suspension.leave() }
                let (newest, isWhole) = try await compactUntilSuspended(options, after: done, progress)
                if isWhole { return newest }
                done = newest
            }
        }
    }

    /// Compacts until the store is about to be suspended. Pages that are packed already are not packed again.
    ///
    /// - Parameter done: What was compacted before.
    private func compactUntilSuspended(
        _ options: CompactionOptions, after done: CompactionProgress, _ progress: @escaping @Sendable (CompactionProgress) -> Void
    ) async throws -> (CompactionProgress, isWhole: Bool) {
        let (writer, store) = (writer, store)
        let newest = Mutex(done)
        let isInterrupted = Mutex(false)
        let task = Task {
            try await store.compact(options) { step in
                let sum = step.following(done)
                newest.withLock { $0 = sum }
                writer.renewSnapshot { [weak self] in self?.didSave(.externalProcess) }
                progress(sum)
            }.following(done)
        }
        let number = writer.suspension.onClosing {
            isInterrupted.withLock { $0 = true }
            task.cancel()
        }
        defer { writer.suspension.endInterruption(number) }
        do {
            return try await withTaskCancellationHandler {
                (try await task.value, true)
            } onCancel: {
                task.cancel()
            }
        } catch is CancellationError where !Task.isCancelled && isInterrupted.withLock({ $0 }) {
            return (newest.withLock { $0 }, false)
        }
    }

    /// Writes a copy of the store without free space, with all saves made so far: see `ObjectStore`. The copied state is listed as
    /// "a compact copy" in ``snapshots()``.
    ///
    /// - Parameters:
    ///   - url: The file to create.
    ///   - progress: A closure called with the part of the work that is done, from 0 to 1, on a background thread.
    /// - Throws: `StoreError` `.unsupported` for stores without such a copy, and errors of the store; `CancellationError`.
    public func compactCopy(to url: URL, progress: @escaping @Sendable (Double) -> Void = { _ in }) async throws {
        guard writer.capabilities.contains(.compaction) else {
            throw StoreError(
                .unsupported,
                writer.capabilities.contains(.backup)
                    ? "cannot write a compact copy of \(store.name): the store cannot be compacted. Use backup(to:)"
                    : "\(name): its store has no file that can be copied. Use a store in a file")
        }
        try await flush()
        let pin = Snapshot(writer.state, owner: "a compact copy", of: writer)
        try await store.compactCopy(to: url, progress: progress)
        withExtendedLifetime(pin) {}
    }
}

extension CompactionProgress {
    /// Returns the progress of a compaction that continues another one.
    fileprivate func following(_ earlier: CompactionProgress) -> CompactionProgress {
        var sum = self
        // A later part looks at the first pages again.
        sum.pages = max(pages, earlier.pages)
        sum.pagesSeen = max(pagesSeen, earlier.pagesSeen)
        sum.pagesPacked += earlier.pagesPacked
        sum.bytesBefore += earlier.bytesBefore
        sum.bytesAfter += earlier.bytesAfter
        sum.longestWrite = max(longestWrite, earlier.longestWrite)
        return sum
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
    /// Packs pages of the store, so that later saves use their space: see `PersistentStoreCoordinator.compact`.
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
