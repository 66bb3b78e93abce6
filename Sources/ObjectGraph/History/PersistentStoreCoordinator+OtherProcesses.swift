import StoreInterface
import StoreModel

extension PersistentStoreCoordinator {
    /// Starts to observe saves of other processes (S161). Contexts with `automaticallyMergesChanges` merge them like saves of this
    /// process.
    ///
    /// A save is noticed within milliseconds, without polling the store's file and without a waiting thread.
    /// The system wakes a queue when the other process writes to a small file beside the store's.
    /// In memory stores this does nothing, because no other process can save. It stays active as long as a coordinator of the store
    /// exists.
    ///
    /// - Throws: `StoreError` `.inputOutput` if the small file cannot be created or observed.
    public func followOtherProcesses() throws {
        try checkOpen()
        try writer.followExternalCommits()
    }

    /// The newest position in the history after saves of other processes or connections. Read the history from your last token to get
    /// the saves.
    ///
    /// A slow reader receives only the newest position. Before ``followOtherProcesses()``, the sequence reports only saves that
    /// `refresh()` finds. It does not report the saves of this coordinator: for these, use ``ManagedObjectContext/notices`` of a context
    /// that merges automatically. The sequence ends when the container is closed or released, and at once if it was closed before.
    public var remoteChanges: AsyncStream<HistoryToken> {
        let (stream, continuation) = AsyncStream<HistoryToken>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let writer = writer
        let store = store
        let number = writer.addListener { [weak writer] state, source in
            guard source == .externalProcess, let writer else { return }
            continuation.yield(HistoryToken(store, min(state.base.generation, writer.newestSynced)))
        }
        writer.shared.withLock { $0.listeners.setEnding(of: number, owner: ObjectIdentifier(self)) { continuation.finish() } }
        continuation.onTermination = { [weak writer] _ in writer?.removeListener(number) }
        // After the listener was added: leaving the store ends the sequences that it finds.
        if hasLeft.load(ordering: .acquiring) { continuation.finish() }
        return stream
    }
}

extension PersistentContainer {
    /// Observes saves of other processes on every coordinator: see ``PersistentStoreCoordinator/followOtherProcesses()``.
    public func followOtherProcesses() throws {
        try coordinator.followOtherProcesses()
        if backgroundCoordinator !== coordinator { try backgroundCoordinator.followOtherProcesses() }
    }
}
