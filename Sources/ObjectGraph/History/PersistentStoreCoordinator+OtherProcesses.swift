import StoreInterface

extension PersistentStoreCoordinator {
    /// From now on saves that other processes make are noticed within milliseconds, without looking into the file meanwhile;
    /// contexts with `automaticallyMergesChanges` merge them as they do with saves of this process (S161).
    ///
    /// The system wakes a queue when the other process writes to a small file beside the store's; no thread waits. Costs nothing
    /// in memory stores, where nobody else can save. Stays on as long as a coordinator of the store lives.
    /// - Throws: `StoreError` `.inputOutput` when the file beside cannot be made or watched.
    public func followOtherProcesses() throws {
        try checkOpen()
        try writer.followExternalCommits()
    }

    /// The newest place in the history after saves of other processes or connections: read on from the token that you have. Only
    /// the newest is kept for who reads slowly. Says nothing before ``followOtherProcesses()`` but what `refresh()` finds.
    public var remoteChanges: AsyncStream<HistoryToken> {
        let (stream, continuation) = AsyncStream<HistoryToken>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let writer = writer
        let store = store
        let number = writer.addListener { state, origin in
            guard origin == 0 else { return }
            continuation.yield(HistoryToken(store, state.base.generation))
        }
        writer.endings.withLock { $0[number] = { continuation.finish() } }
        continuation.onTermination = { [weak writer] _ in writer?.removeListener(number) }
        return stream
    }
}

extension PersistentContainer {
    /// Follows the saves of other processes on every coordinator: see ``PersistentStoreCoordinator/followOtherProcesses()``.
    public func followOtherProcesses() throws {
        try coordinator.followOtherProcesses()
        if backgroundCoordinator !== coordinator { try backgroundCoordinator.followOtherProcesses() }
    }
}
