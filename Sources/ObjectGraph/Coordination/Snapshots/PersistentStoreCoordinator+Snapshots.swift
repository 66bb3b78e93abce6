import StoreInterface

extension PersistentStoreCoordinator {
    /// The newest state, to be kept or given to contexts (S150). O(1) and never waits, unless a budget refuses.
    ///
    /// - Parameter owner: what ``snapshots()`` calls it.
    /// - Throws: ``SnapshotError/overBudget(_:)`` when ``snapshotBudget`` says so.
    public func snapshot(owner: String = "a kept snapshot") throws -> Snapshot {
        try checkOpen()
        try writer.checkSnapshotBudget()
        return Snapshot(writer.newestState(), owner: owner, of: writer)
    }

    /// Every state of the store that somebody reads, oldest first, those of other processes last (S152).
    ///
    /// O(live snapshots + free pages newer than the oldest); may be called from anywhere, and waits for nobody's executor.
    /// Includes the contexts and snapshots of the other coordinators on the same store object.
    public func snapshots() throws -> [LiveSnapshot] {
        try checkOpen()
        return try writer.liveSnapshots()
    }

    /// What snapshots may cost; nil, the default: anything. Looked at after saves, at most every 50 ms. One for all coordinators
    /// on the store object.
    public var snapshotBudget: SnapshotBudget? {
        get { writer.pins.budget.budget }
        set { writer.setSnapshotBudget(newValue) }
    }
}
