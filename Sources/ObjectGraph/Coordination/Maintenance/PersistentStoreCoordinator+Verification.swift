import StoreInterface

extension PersistentStoreCoordinator {
    /// The identity of the store, which is part of each object's id.
    public var storeIdentity: StoreIdentity { store.identity }

    /// Reads the whole store and checks that it is consistent: checksums, indexes, relationships and the history.
    ///
    /// Runs on a background queue, on one snapshot. Reads and saves continue. O(store). Deferred saves that are not on disk yet are not
    /// checked; call ``flush()`` before to include them.
    ///
    /// ```swift
    /// for finding in try await container.coordinator.verify() { log(finding.description) }
    /// ```
    /// - Returns: The findings; empty for a consistent store.
    /// - Throws: `StoreError` if the store cannot be read, and `.closed` after the container was closed.
    public func verify() async throws -> [VerificationFinding] {
        try checkOpen()
        return try await offExecutor { [store] in try store.verify() }
    }
}
