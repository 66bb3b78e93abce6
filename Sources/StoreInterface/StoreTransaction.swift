import StoreModel

/// The single write transaction of a store. It is valid only inside ``ObjectStore/write(_:_:)``, on the thread of that call.
///
/// Nothing that a transaction does is visible to snapshots before it is committed. All of it becomes visible at once.
public protocol StoreTransaction {
    /// The newest save in the store, including the saves that this transaction has written; 0 if there is none.
    var generation: Generation { get }
    /// The generation that the next save of this transaction gets. The default is `generation.next`.
    ///
    /// Generations are ordered, and need not be consecutive. A store ordered by timestamps returns its clock, or
    /// `generation.next` if that is greater. The value must be greater than ``generation``, and less than 2^63. It must stay the
    /// same until ``apply(_:changes:numbers:)`` writes a save. A transaction of several saves numbers them
    /// consecutively from here.
    var nextGeneration: Generation { get }
    /// Writes a stamped layer, updates the indexes, and appends `changes` to the history under the layer's generation.
    ///
    /// Each row is written under the generation that `numbers` has for its `Row.version`. The layer's own generation is that
    /// of `Layer.version`; a layer of several folded saves has rows with older ones. `changes.generation` is to be ignored.
    ///
    /// The store applies rows first, then pairs:
    /// - An insert writes all columns. It replaces an object that exists, unless the store can prove that the key was never
    ///   allocated, which it may refuse with `.damaged`.
    /// - An update writes the columns that the row has set. An update of a missing object becomes an insert if all its columns
    ///   are set, and is dropped otherwise.
    /// - A delete removes the object and every pair with it. References to it stay: the layer above has resolved them.
    /// - A pair with a missing end is not written.
    ///
    /// The layer above has checked conflicts, relationships and unique values. The store checks the type of each value and
    /// writes what `ColumnType.stored(_:)` returns for it.
    /// - Throws: `StoreError` `.unsupported` for a value that a column does not accept, `.valueTooLarge`, `.full`,
    ///   `.inputOutput`. The caller then aborts the transaction.
    func apply(_ layer: Layer, changes: ChangeSet, numbers: CommitNumbers) throws
    /// Leases unused keys in whole pages, at least one page. No other caller gets these keys, in this process or another, also
    /// after the store was closed.
    ///
    /// Keys begin at 64. An aborted transaction leases nothing. Durable with the transaction.
    func allocateKeys(_ entity: EntityIndex, pages: Int) throws -> Range<ObjectKey>
    /// Leases unused keys in pages shared with other objects: some of the returned keys of each newer page, all of older ones, or
    /// some keys of a new page if none were returned. No other caller gets these keys.
    ///
    /// For a process that opens the store. Use the last range first. Durable with the transaction. The default returns nothing:
    /// the caller then allocates whole pages. Implement it if a sparse page costs as much as a full one.
    func allocateFreeKeys(_ entity: EntityIndex) throws -> [Range<ObjectKey>]
    /// Ends the lease of keys that no object has had. The caller must not use them afterwards. The default forgets them.
    func giveBackKeys(_ keys: [Range<ObjectKey>], _ entity: EntityIndex) throws
    /// Deletes the oldest saves of the history that match a cut, at most `limit`; none if `limit` is negative. Objects stay.
    /// Returns the number of deleted saves.
    func deleteHistory(_ cut: HistoryCut, limit: Int) throws -> Int
}

extension StoreTransaction {
    /// The generation after ``generation``.
    public var nextGeneration: Generation { generation.next }

    /// Writes a layer that is stamped with the generation of its save.
    public func apply(_ layer: Layer, changes: ChangeSet) throws { try apply(layer, changes: changes, numbers: .none) }
}

/// Defaults for stores in which the number of objects per page does not matter.
extension StoreTransaction {
    /// Returns no keys, so that the caller allocates whole pages.
    public func allocateFreeKeys(_ entity: EntityIndex) throws -> [Range<ObjectKey>] { [] }
    /// Does nothing: the keys are never used again.
    public func giveBackKeys(_ keys: [Range<ObjectKey>], _ entity: EntityIndex) throws {}
}
