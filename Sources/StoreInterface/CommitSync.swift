/// A sync of deferred commits beside the writer: see ``ObjectStore/separateSync()``.
public protocol CommitSync: AnyObject, Sendable {
    /// Takes every commit to disk whose ``ObjectStore/write(_:_:)`` has returned before this call, with all commits before it.
    /// Called on any thread, also at the same time as other calls of the store. Blocks.
    /// - Throws: `StoreError`. It is then unknown which of the commits are on disk.
    func sync() throws
}
