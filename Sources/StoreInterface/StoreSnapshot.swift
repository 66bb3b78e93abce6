import StoreModel

/// One immutable state of a store.
///
/// Contexts read through snapshots on any thread, several threads at once, also on the main thread. A snapshot shows the same
/// state for as long as it is referenced, whatever is saved meanwhile. Releasing the last reference frees what it holds.
///
/// Reads do not wait for writers. A read of a remote store may wait for the network: the caller waits with it. Such a store
/// should fetch a whole page in ``page(_:_:)``, because contexts keep up to ``pagesWorthKeeping`` pages and ask them for every
/// other value.
///
/// Entities and columns in arguments exist in `ObjectReader.schema`. Keys may be any number. A read that fails throws
/// `StoreError`: `.damaged` if stored bytes cannot be decoded, `.inputOutput` if the medium fails, `.closed` after
/// ``ObjectStore/shutDown()``. It must not return a value that was not saved.
public protocol StoreSnapshot: AnyObject, ObjectReader {
    /// The newest save in the snapshot; 0 if the store has no save. Constant.
    var generation: Generation { get }
    /// A Boolean value that indicates whether the snapshot shows one state for as long as it is referenced. True for every
    /// store, and the default. False only for one that reads through a context.
    var isFixed: Bool { get }
    /// Returns the save that last wrote the object, or nil if the object does not exist.
    ///
    /// Conflicts between contexts are found by comparing versions, so every save of an object must change its version.
    func version(_ entity: EntityIndex, _ key: ObjectKey) throws -> Generation?
    /// Returns the 64 objects from key `number * 64` on. If none of them exists, returns nil or a page without objects.
    ///
    /// The result stays valid as long as it is referenced, and keeps what it reads from.
    func page(_ entity: EntityIndex, _ number: PageNumber) throws -> (any StorePage)?
    /// Returns a page as ``page(_:_:)`` does, but never values that differ from those that were saved, as far as the store can tell: by
    /// checksums, for instance. For salvaging what is whole in a damaged store. The default calls ``page(_:_:)``.
    /// - Throws: `StoreError` `.damaged`, here or when a value is read.
    func checkedPage(_ entity: EntityIndex, _ number: PageNumber) throws -> (any StorePage)?
    /// The number of pages that a reader should keep: many if a page is a view into the map, few if it has copies of its
    /// values. The default is 64.
    var pagesWorthKeeping: Int { get }
    /// Returns the numbers of the pages that have an object of the entity, ascending.
    func pageNumbers(_ entity: EntityIndex) throws -> [PageNumber]
    /// Returns the keys that a query selects, in the order of its sort. Objects that are equal in it, and objects of a query
    /// without a sort, are in the order of their keys. Offset and limit apply to the sorted list.
    ///
    /// `StorePredicate.matches(_:key:in:)` defines what a condition means, and `StoreSort.order(_:_:)` what a sort means.
    /// - Throws: `StoreError` `.unsupported` if the condition is nested too deep. Call `StorePredicate.checkDepth()` first.
    func keys(_ query: StoreQuery) throws -> [ObjectKey]
    /// Returns the number of keys that ``keys(_:)`` would return.
    func count(_ query: StoreQuery) throws -> Int
    /// Returns the groups of the objects that a condition selects, with the computed aggregates, in no particular order. Without
    /// columns to group by there is one group, also of no objects. The default reads each object that ``keys(_:)`` returns.
    func groups(_ aggregation: StoreAggregation) throws -> AggregateGroups
    /// Returns the keys of the objects with this value in a column, ascending. Scans the entity if the column has no index.
    ///
    /// Finds values of the column's own storage class only: the integer 5 is not found in a column of doubles.
    func lookup(_ entity: EntityIndex, column: ColumnIndex, value: Value) throws -> [ObjectKey]
    /// Returns the keys of the objects that have all of the values, column by column, ascending. The default asks ``keys(_:)``.
    func lookup(_ entity: EntityIndex, columns: [ColumnIndex], values: [Value]) throws -> [ObjectKey]
    /// Returns the first of the keys that ``lookup(_:column:value:)`` returns for these bytes in a column of data, or nil. For look-ups
    /// without copies. The bytes are valid only during the call. The default copies them.
    func holder(_ entity: EntityIndex, column: ColumnIndex, of data: UnsafeRawBufferPointer) throws -> ObjectKey?
    /// Returns the objects whose bytes in a column of data are in a range, in the order of the bytes, each with its bytes. Objects with
    /// equal bytes are in the order of their keys, whatever the direction.
    ///
    /// For reading an index without the objects. The default asks ``keys(_:)`` and reads each object.
    func orderedData(_ query: OrderedDataQuery) throws -> OrderedData
    /// Returns the bytes of a string or of data, to be read part by part. Returns nil for null, for other types and for a
    /// missing object. The result keeps the snapshot alive. The default reads the value at once.
    func parts(_ entity: EntityIndex, key: ObjectKey, column: ColumnIndex) throws -> (any ValueParts)?
    /// Returns a description of how the query would be answered: by which index, or by a scan. For people; not empty.
    func explain(_ query: StoreQuery) throws -> String
}

/// The 64 objects of one page in one snapshot. A slot is the position of an object in its page, from 0 to 63.
///
/// Several threads may read a page at once. The values never change.
public protocol StorePage: AnyObject, Sendable {
    /// A mask of the slots that have an object. If the store cannot read it, all bits are set, so that the read that follows
    /// throws.
    var presence: UInt64 { get }
    /// Returns whether a slot has an object. Implement it if ``presence`` costs more than one lookup.
    func contains(_ slot: Int) throws -> Bool
    /// Returns the slots of a mask that have an object, without reading the objects. The default asks ``presence``.
    func present(among slots: UInt64) throws -> UInt64
    /// Returns the save that last wrote an object. Precondition: the slot is present.
    func version(_ slot: Int) throws -> Generation
    /// Returns the value of a column. Precondition: the slot is present.
    func value(_ slot: Int, _ column: ColumnIndex) throws -> Value
    /// Returns the value of a column, or nil if the slot is empty. The default makes two calls.
    func presentValue(_ slot: Int, _ column: ColumnIndex) throws -> Value?
    /// Calls `body` with the bytes of a column of data, which are valid only during the call. Returns false without a call if the slot is
    /// empty or the value is null. Implement it if the page has the bytes in one piece. The default copies them.
    func withData(_ slot: Int, column: ColumnIndex, _ body: (UnsafeRawBufferPointer) throws -> Void) throws -> Bool
}
