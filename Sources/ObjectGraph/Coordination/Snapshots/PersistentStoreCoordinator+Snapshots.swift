import StoreInterface
import StoreModel

extension PersistentStoreCoordinator {
    /// Returns a snapshot of the newest state, to keep or to read in contexts (S150). O(1); never waits.
    ///
    /// - Parameter owner: The name of the snapshot in ``snapshots()``.
    /// - Throws: ``SnapshotError/overBudget(_:)`` if ``snapshotBudget`` refuses new snapshots.
    public func snapshot(owner: String = "a kept snapshot") throws -> Snapshot {
        try checkOpen()
        try writer.checkSnapshotBudget()
        return Snapshot(writer.newestState(), owner: owner, of: writer)
    }

    /// Returns every state of the store that is in use, oldest first, with those of other processes last (S152).
    ///
    /// Includes the contexts and snapshots of other coordinators on the same store object. May be called on any thread and waits
    /// for no executor. O(live snapshots + free pages newer than the oldest).
    public func snapshots() throws -> [LiveSnapshot] {
        try checkOpen()
        return try writer.liveSnapshots()
    }

    /// The budget of snapshots; nil, the default, for no limit. All coordinators on the store object share it.
    ///
    /// The budget is checked after saves, at most every 50 ms.
    public var snapshotBudget: SnapshotBudget? {
        get { writer.snapshotRegistry.budget.budget }
        set { writer.setSnapshotBudget(newValue) }
    }
}
