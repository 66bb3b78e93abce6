/// A store's file as a staged migration needs it: a copy is migrated, and takes the file's place when all has succeeded.
///
/// So the file is as it was until one atomic step, however large it is and wherever the work is interrupted. It takes room for
/// both. Blocking calls, off the cooperative threads.
public protocol MigratableFile: Sendable {
    /// The schema that the file has; nil when there is no file. Nothing is changed.
    func storedSchema() throws -> StoreSchema?
    /// Makes a copy beside the file, in place of one that an interrupted migration left.
    /// - Throws: `StoreError` `.inUseElsewhere` while somebody has the file open.
    func makeCopy() throws -> any MigrationCopy
}

/// The copy on which a migration works.
public protocol MigrationCopy: Sendable {
    /// How the copy is opened. All who opened it are gone before ``replaceOriginal()``.
    var store: StoreDescription { get }
    /// Puts the copy, which is on disk, in the file's place: atomic for a crash.
    /// - Throws: `StoreError` `.inUseElsewhere` when the file was changed since it was copied; it stays then.
    func replaceOriginal() throws
    /// Removes the copy.
    func discard()
}
