import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension PersistentStoreCoordinator {
    /// Writes a copy of the store to a file while the store is in use.
    ///
    /// The copy is one state with all saves made so far, and perhaps saves made during the copy. It can be opened like any store,
    /// and its objects have the same ids.
    ///
    /// Runs on a background queue. Reads and saves continue. The copied state is listed as "a backup" in ``snapshots()``.
    /// The copy gets its name only when it is complete, on disk and checked, with the checksums of a store on LMDB. If the process dies earlier, no file has that name.
    ///
    /// - Parameters:
    ///   - url: The file to write.
    ///   - existing: What to do if the file exists.
    ///   - progress: A closure called with the part of the work that is done, from 0 to 1, on a background thread.
    /// - Returns: The position in the history up to which the copy contains the saves.
    /// - Throws: `StoreError`: `.unsupported` for stores without a file, `.cannotOpen` if the file exists and must not be
    ///   replaced, `.inputOutput`, `.damaged` if a page or value is damaged. `.inUseElsewhere` if a process has the file to replace
    ///   open, or if the store is read without locks and another process writes it meanwhile. `CancellationError` soon after the task
    ///   is cancelled; then no file is left.
    @discardableResult
    public func backup(
        to url: URL, existing: ExistingFile = .refuse, progress: @escaping @Sendable (Double) -> Void = { _ in }
    ) async throws -> HistoryToken {
        let store = try await storeToBackUp()
        let pin = Snapshot(writer.state, owner: "a backup", of: writer)
        let generation = try await offExecutor(progress: progress) { [writer] cancellation -> Generation in
            let newest = try store.backup(to: url, existing: existing, cancellation: cancellation)
            // The copy may have deferred saves that came meanwhile, and that are not on disk in the store's own file.
            try? writer.syncCommitted()
            return min(newest, writer.newestSynced)
        }
        withExtendedLifetime(pin) {}
        return HistoryToken(store, generation)
    }

    /// Writes the bytes of a backup file to a descriptor: a file, pipe or socket. Returns after the last byte; the descriptor stays
    /// open.
    ///
    /// The copied state is listed as "a backup" in ``snapshots()`` until then.
    /// - Throws: `StoreError`: `.unsupported` for stores without a file, `.full`, and `.inputOutput` if the descriptor cannot be written,
    ///   such as a pipe whose reading end was closed. `CancellationError` after the task is cancelled. If nothing reads a full pipe or
    ///   socket, the running write goes on waiting until the reader reads again or closes its end. ``backupBytes()`` has no such wait.
    public func backup(to descriptor: Int32) async throws {
        let store = try await storeToBackUp()
        let pin = Snapshot(writer.state, owner: "a backup", of: writer)
        try await offExecutor { cancellation in try store.backup(to: descriptor, cancellation: cancellation) }
        withExtendedLifetime(pin) {}
    }

    /// Returns the bytes of a backup file as a sequence of parts, which can be read once. Releasing the sequence stops the copy, and so
    /// does cancelling the task that reads it.
    public func backupBytes() async throws -> BackupBytes {
        let store = try await storeToBackUp()
        return try BackupBytes(store, Snapshot(writer.state, owner: "a backup", of: writer))
    }

    /// Runs blocking work on a background queue. Cancelling the task cancels the work.
    func offExecutor<T: Sendable>(
        progress: @escaping @Sendable (Double) -> Void = { _ in }, _ body: @escaping @Sendable (Cancellation) throws -> T
    ) async throws -> T {
        let cancellation = Cancellation(progress: progress)
        return try await withTaskCancellationHandler {
            try await offExecutor { try body(cancellation) }
        } onCancel: {
            cancellation.cancel()
        }
    }

    private func storeToBackUp() async throws -> any ObjectStore {
        guard writer.capabilities.contains(.backup) else {
            throw StoreError(.unsupported, "\(name): its store has no file that can be copied. Use a store in a file")
        }
        try await flush()
        return store
    }
}
