/// A range of the bytes in one column of data, to be read in their order.
public struct OrderedDataQuery: Sendable, Hashable {
    /// The entity.
    public var entity: EntityIndex
    /// The column, whose type is `data`.
    public var column: ColumnIndex
    /// The first bytes of the range.
    public var lower: [UInt8]
    /// The first bytes after the range.
    public var upper: [UInt8]
    /// The order of the result.
    public var direction: StoreSort.Direction
    /// The maximum number of objects; nil for all.
    public var limit: Int?

    /// Creates a query of the objects whose bytes are at least `lower` and less than `upper`.
    public init(
        entity: EntityIndex, column: ColumnIndex, lower: [UInt8], upper: [UInt8], direction: StoreSort.Direction = .ascending,
        limit: Int? = nil
    ) {
        self.entity = entity
        self.column = column
        self.lower = lower
        self.upper = upper
        self.direction = direction
        self.limit = limit
    }

    /// The query that `StoreSnapshot.keys(_:)` answers with the same objects in the same order.
    public var storeQuery: StoreQuery {
        var query = StoreQuery(
            entity: entity,
            predicate: .and([
                .compare(column, .greaterOrEqual, to: .data(.init(lower))), .compare(column, .less, to: .data(.init(upper))),
            ]))
        query.sort = [StoreSort(column: column, direction: direction)]
        query.limit = limit
        return query
    }
}

/// The objects that an ``OrderedDataQuery`` selects, each with its bytes.
public struct OrderedData: Sendable {
    /// The keys of the objects, in the order of their bytes.
    public private(set) var keys: [ObjectKey] = []
    /// The bytes of all objects, one after another.
    private var bytes: [UInt8] = []
    /// The end of each object's bytes in ``bytes``.
    private var ends: [Int] = []

    /// Creates an empty result.
    public init() {}

    /// Adds an object after the others.
    public mutating func append(_ key: ObjectKey, data: UnsafeRawBufferPointer) {
        keys.append(key)
        bytes.append(contentsOf: data)
        ends.append(bytes.count)
    }

    /// Returns the bytes of the object at a position in ``keys``, without copying them.
    public func data(at position: Int) -> ArraySlice<UInt8> {
        bytes[(position == 0 ? 0 : ends[position - 1])..<ends[position]]
    }
}
