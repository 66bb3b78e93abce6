import StoreInterface

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension PersistentStoreCoordinator {
    /// Writes a copy of the store to a file while it is in use: all saves made so far, and perhaps some that come meanwhile, as one
    /// state. The file is opened like any store; its objects have the same ids.
    ///
    /// On a background queue; readers and writers go on, and the state that is copied shows as "a backup" among ``snapshots()``.
    /// The name is given to the copy only when it is whole, on disk and checked; a process that dies before leaves nothing
    /// under it.
    /// - Returns: the place in the history up to which the copy holds the saves.
    /// - Throws: `StoreError`: `.unsupported` for stores without a file, `.cannotOpen` when there is a file that is not to be
    ///   replaced, `.inputOutput`. `CancellationError` soon after the task is cancelled; nothing is left then.
    @discardableResult
    public func backup(to url: URL, existing: ExistingFile = .refuse) async throws -> HistoryToken {
        let store = try await storeToBackUp()
        let pin = Snapshot(writer.state, owner: "a backup", of: writer)
        let generation = try await offExecutor { cancellation in
            try store.backup(to: url, existing: existing, cancellation: cancellation)
        }
        withExtendedLifetime(pin) {}
        return HistoryToken(store, generation)
    }

    /// Writes the bytes of such a file to a descriptor, which stays open: a file, pipe or socket. Returns after the last byte.
    public func backup(to descriptor: Int32) async throws {
        let store = try await storeToBackUp()
        let pin = Snapshot(writer.state, owner: "a backup", of: writer)
        try await offExecutor { cancellation in try store.backup(to: descriptor, cancellation: cancellation) }
        withExtendedLifetime(pin) {}
    }

    /// The bytes of such a file, in parts: read once, as fast as they are asked for. Dropping them ends the copy.
    public func backupBytes() async throws -> BackupBytes {
        let store = try await storeToBackUp()
        return try BackupBytes(store, Snapshot(writer.state, owner: "a backup", of: writer))
    }

    /// Runs blocking work on a background queue; cancelling the task cancels it.
    private func offExecutor<T: Sendable>(_ body: @escaping @Sendable (Cancellation) throws -> T) async throws -> T {
        let cancellation = Cancellation()
        return try await withTaskCancellationHandler {
            try await offExecutor { try body(cancellation) }
        } onCancel: {
            cancellation.cancel()
        }
    }

    private func storeToBackUp() async throws -> any BackupableStore {
        guard let store = store as? any BackupableStore else {
            throw StoreError(.unsupported, "\(name): its store has no file that can be copied. Use a store in a file")
        }
        try await flush()
        return store
    }
}
