import StoreInterface
import StoreModel

extension PersistentStoreCoordinator {
    /// The identity of the store, which is part of each object's id.
    public var storeIdentity: StoreIdentity { store.identity }

    /// Reads the whole store and checks that it is consistent: checksums, indexes, relationships with their order, derived values and the
    /// history.
    ///
    /// Runs on a background queue, on one snapshot. Reads and saves continue. O(store). Deferred saves that are not on disk yet are not
    /// checked; call ``flush()`` before to include them. The state is listed as "a verification" in ``snapshots()``.
    ///
    /// ```swift
    /// for finding in try await container.coordinator.verify() { log(finding.description) }
    /// ```
    /// - Parameter progress: A closure called with the part of the work that is done, from 0 to 1, on a background thread.
    /// - Returns: The findings; empty for a consistent store.
    /// - Throws: `StoreError` if the store cannot be read, and `.closed` after the container was closed. `CancellationError` soon after the
    ///   task is cancelled.
    public func verify(
        progress: @escaping @Sendable (Double) -> Void = { _ in }
    ) async throws -> [VerificationFinding] {
        try checkOpen()
        // The store's own check is most of the work.
        return try await offExecutor(progress: { progress($0 * 0.9) }) {
            [store, writer, rules = capabilities.rules, derived = writer.derived] cancellation in
            let pin = Snapshot(writer.state, owner: "a verification", of: writer)
            defer { withExtendedLifetime(pin) {} }
            let findings = try store.verify(cancellation: cancellation)
            // Positions and derived values can be read only if the pages can.
            guard findings.isEmpty else { return findings }
            let snapshot = try store.snapshot()
            let positions = try OrderVerification(snapshot: snapshot, rules: rules, willReadPage: cancellation.check).findings()
            progress(0.95)
            let wrong = try derived?.findings(in: snapshot, store.identity, cancellation.check) ?? []
            progress(1)
            return positions + wrong
        }
    }

    /// Returns the size of each table of the store: objects, large values, indexes, links, and the history. Empty for stores that do
    /// not know their sizes: SQLite and memory.
    ///
    /// Runs on a background queue. O(tables).
    /// - Throws: `StoreError`, and its code `.closed` after the container was closed.
    public func tableSizes() async throws -> [TableSize] {
        try checkOpen()
        return try await offExecutor { [store] in try store.tableSizes() }
    }

    /// Returns the size of the store's file or files in bytes; 0 in memory.
    public func fileBytes() throws -> Int {
        try checkOpen()
        return try store.fileBytes()
    }
}
