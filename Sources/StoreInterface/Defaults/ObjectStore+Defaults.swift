import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension ObjectStore {
    /// The default abilities, which are right for a store in a file that several processes use.
    public var capabilities: StoreCapabilities { [.layeredDeferral, .externalSaves, .history] }

    /// false, the default for stores that can be written.
    public var isReadOnly: Bool { false }

    /// A name without a path, for stores that have no file.
    public var name: String { "the store" }

    /// Returns whether a new snapshot is newer than `generation`. Returns false if the snapshot cannot be made.
    public func mayHaveCommitted(after generation: Generation) -> Bool {
        ((try? snapshot().generation) ?? generation) > generation
    }

    /// Returns nil, the default for stores that sync only as part of a commit.
    public func separateSync() -> (any CommitSync)? { nil }

    /// Returns nil, the default for stores to which no other process saves.
    public func claimSaves(_ kind: SaveClaimKind) throws -> (any SaveClaim)? { nil }

    /// Returns nil, the default for stores to which no other process saves.
    public func watchClaimRequests(_ body: @escaping @Sendable () -> Void) throws -> (any StoreWatch)? { nil }

    /// Returns nil, the default for stores without other writers.
    public func watch(_ body: @escaping @Sendable () -> Void) throws -> (any StoreWatch)? { nil }

    /// Returns an unknown number of bytes for each snapshot, and no readers in other processes.
    public func retention(of snapshots: [any StoreSnapshot]) throws -> Retention {
        Retention(bytes: snapshots.map { _ in nil })
    }

    /// Checks references, one-to-one relationships and unique values by reading each object of a snapshot. Blocks.
    public func verify() throws -> [VerificationFinding] {
        try RelationCheck.problems(snapshot()).map { VerificationFinding($0) }
    }

    /// Calls ``ObjectStore/verify()``. Blocks.
    public func verify(cancellation: Cancellation) throws -> [VerificationFinding] {
        try cancellation.check()
        let findings = try verify()
        try cancellation.part(0...1).step(1, of: 1)
        return findings
    }

    /// Returns nil, the default for stores that finish their migration when they are opened.
    public func continueMigration() throws -> MigrationProgress? { nil }

    /// Does nothing, the default for stores without a file.
    public func shutDown() throws {}

    /// Does nothing, the default for stores without a file.
    public func suspend() throws {}

    /// nil, the default for stores without a cache.
    public var cacheUse: CacheUse? { nil }

    /// Returns all change sets after a generation, or nil if the history does not reach back that far.
    public func changes(after generation: Generation) throws -> [ChangeSet]? { try history(after: generation, limit: .max) }
}

extension ObjectStore {
    /// The lineage of a store that never was a copy.
    public var lineage: StoreLineage { StoreLineage(store: identity.uuid) }
}

extension ObjectStore {
    /// Returns no sizes, the default for stores that do not know them.
    public func tableSizes() throws -> [TableSize] { [] }
}
