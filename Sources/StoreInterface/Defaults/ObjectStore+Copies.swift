import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension ObjectStore {
    /// Throws `StoreError` `.unsupported`: the default for stores without ``StoreCapabilities/backup``.
    public func backup(to url: URL, existing: ExistingFile, cancellation: Cancellation) throws -> Generation {
        throw StoreError(.unsupported, "cannot back up \(name): it has no file that can be copied. Use a store in a file")
    }

    /// Throws `StoreError` `.unsupported`: the default for stores without ``StoreCapabilities/backup``.
    public func backup(to descriptor: Int32, cancellation: Cancellation) throws {
        throw StoreError(.unsupported, "cannot back up \(name): it has no file that can be copied. Use a store in a file")
    }

    /// Writes a copy to a new file, without a way to cancel.
    public func backup(to url: URL, existing: ExistingFile) throws -> Generation {
        try backup(to: url, existing: existing, cancellation: Cancellation())
    }

    /// Writes a copy to a descriptor, without a way to cancel.
    public func backup(to descriptor: Int32) throws { try backup(to: descriptor, cancellation: Cancellation()) }
}

extension ObjectStore {
    /// Throws `StoreError` `.unsupported`: the default for stores without ``StoreCapabilities/compaction``.
    public func compact(
        _ options: CompactionOptions, progress: @escaping @Sendable (CompactionProgress) -> Void
    ) async throws -> CompactionProgress {
        throw StoreError(.unsupported, "cannot compact \(name): it has no file. Use a store in a file")
    }

    /// Throws `StoreError` `.unsupported`: the default for stores without ``StoreCapabilities/compaction``.
    public func compactCopy(to url: URL, progress: @escaping @Sendable (Double) -> Void) async throws {
        throw StoreError(.unsupported, "cannot copy \(name): it has no file. Use a store in a file")
    }

    /// Writes a copy without free space, and reports no progress.
    public func compactCopy(to url: URL) async throws { try await compactCopy(to: url) { _ in } }
}
