#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A store's file that a backup can replace.
public protocol RestorableFile: Sendable {
    /// Replaces the file with a copy of a backup, or creates the file.
    ///
    /// The copy is a new incarnation of the store. The file stays unchanged until the whole copy is on disk and checked, and
    /// is then replaced in one step. This method blocks.
    /// - Throws: `StoreError` `.inUseElsewhere` while this or another process has the file open; `.notAStore` or `.damaged`
    ///   for a backup that is not a sound store; `CancellationError`.
    func restore(from backup: URL, cancellation: Cancellation) throws
}
