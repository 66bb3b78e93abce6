#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A store's file that a backup can replace.
public protocol RestorableFile: Sendable {
    /// Puts a copy of a backup in the file's place, or makes the file.
    ///
    /// The copy is a new incarnation of the store. Until all of it is on disk and checked, the file is as it was; then it is replaced in one
    /// step. Blocking.
    /// - Throws: `StoreError` `.inUseElsewhere` while the file is open, here or in another process; `.notAStore` or `.damaged` for a backup
    ///   that is not a sound store; `CancellationError`.
    func restore(from backup: URL, cancellation: Cancellation) throws
}
