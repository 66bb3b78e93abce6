import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A store's file, for a staged migration: a copy is migrated, and replaces the file when all stages have succeeded.
///
/// The file stays unchanged until that one atomic step, however large it is and wherever the work is interrupted. The disk
/// needs room for both files. All methods block; call them off the cooperative threads.
public protocol MigratableFile: Sendable {
    /// Returns the schema of the file, or nil if there is no file. Changes nothing.
    func storedSchema() throws -> StoreSchema?
    /// Creates a copy beside the file, and replaces a copy left by an interrupted migration.
    /// - Throws: `StoreError` `.inUseElsewhere` while the file is open anywhere.
    func makeCopy() throws -> any MigrationCopy
    /// Replaces the file with a copy of a backup, or creates the file.
    ///
    /// The copy is a new incarnation of the store. The file stays unchanged until the whole copy is on disk and checked, and
    /// is then replaced in one step. This method blocks.
    /// - Throws: `StoreError` `.inUseElsewhere` while this or another process has the file open; `.notAStore` or `.damaged`
    ///   for a backup that is not a sound store; `CancellationError`. The default throws `.unsupported`.
    func restore(from backup: URL, cancellation: Cancellation) throws
}

extension MigratableFile {
    /// Throws `StoreError` `.unsupported`: the default for stores without backups.
    public func restore(from backup: URL, cancellation: Cancellation) throws {
        throw StoreError(
            .unsupported, "cannot restore from \(backup.path): this kind of store has no backups. Use a store on LMDB or SQLite")
    }
}

/// The copy on which a migration works.
public protocol MigrationCopy: Sendable {
    /// The description for opening the copy. All stores opened from it must be closed before ``replaceOriginal()``.
    var store: StoreDescription { get }
    /// Replaces the original file with the copy, which is on disk. Atomic if the process or the system crashes.
    /// - Throws: `StoreError` `.inUseElsewhere` if the file has changed since it was copied. The file stays as it is in that
    ///   case.
    func replaceOriginal() throws
    /// Removes the copy.
    func discard()
}
