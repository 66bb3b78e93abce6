/// A request to compute aggregates of the objects that a condition selects, in groups of equal values.
public struct StoreAggregation: Sendable, Hashable {
    /// The entity whose objects are selected.
    public var entity: EntityIndex
    /// The condition that selects the objects.
    public var predicate: StorePredicate
    /// The columns whose equal values form a group. If empty, all objects form one group, which exists even if nothing
    /// matches.
    public var groupBy: [ColumnIndex]
    /// The aggregates to compute for each group.
    public var aggregates: [StoreAggregate]

    /// Creates a request. By default, it selects all objects of the entity as one group.
    public init(
        entity: EntityIndex, predicate: StorePredicate = .constant(true), groupBy: [ColumnIndex] = [],
        aggregates: [StoreAggregate] = []
    ) {
        self.entity = entity
        self.predicate = predicate
        self.groupBy = groupBy
        self.aggregates = aggregates
    }
}

/// One number, or one value, computed from the objects of a group. Nulls are ignored.
public enum StoreAggregate: Sendable, Hashable {
    /// The number of objects.
    case count
    /// The number of objects with a value in the column.
    case countValues(ColumnIndex)
    /// The sum; zero if there are no values.
    case sum(ColumnIndex)
    /// The minimum in the order of ``Value/order(_:)``; null if there are no values.
    case minimum(ColumnIndex)
    /// The maximum in the order of ``Value/order(_:)``; null if there are no values.
    case maximum(ColumnIndex)
    /// The average as a double; null if there are no values.
    case average(ColumnIndex)

    /// The column that the aggregate reads; nil for ``count``, which reads none.
    public var column: ColumnIndex? {
        switch self {
        case .count: nil
        case .countValues(let column), .sum(let column), .minimum(let column), .maximum(let column), .average(let column): column
        }
    }
}

/// The intermediate result of an aggregate. It can take further objects and can be joined with another state.
public struct AggregateState: Sendable, Hashable {
    /// The number of objects or values added. Minimum and maximum do not count.
    public var count = 0
    /// The sum of signed and unsigned integers, which cannot overflow.
    public var integers: Int128 = 0
    /// The sum of floating-point values.
    public var doubles = 0.0
    /// The current minimum or maximum.
    public var extreme = Value.null

    /// Creates the state of an aggregate to which nothing was added.
    public init() {}

    /// Adds the value of one object. For ``StoreAggregate/count``, pass any value but null.
    @inlinable
    public mutating func add(_ value: Value, to aggregate: StoreAggregate) {
        if value.isNull { return }
        switch aggregate {
        case .count, .countValues: count += 1
        case .sum, .average:
            count += 1
            switch value {
            case .int(let number): integers += Int128(number)
            case .uint(let number): integers += Int128(number)
            case .double(let number): doubles += number
            default: break
            }
        case .minimum: if extreme.isNull || value.order(extreme) < 0 { extreme = value }
        case .maximum: if extreme.isNull || value.order(extreme) > 0 { extreme = value }
        }
    }

    /// Adds the result of another state, which was computed from other objects.
    public mutating func join(_ other: AggregateState, _ aggregate: StoreAggregate) {
        count += other.count
        integers += other.integers
        doubles += other.doubles
        switch aggregate {
        case .minimum where !other.extreme.isNull && (extreme.isNull || other.extreme.order(extreme) < 0):
            extreme = other.extreme
        case .maximum where !other.extreme.isNull && (extreme.isNull || other.extreme.order(extreme) > 0):
            extreme = other.extreme
        default: break
        }
    }

    /// Returns the aggregate's value, or nil if a sum of integers does not fit the storage class of its column.
    public func result(_ aggregate: StoreAggregate, of type: ColumnType?) -> Value? {
        switch aggregate {
        case .count, .countValues: .int(Int64(count))
        case .minimum, .maximum: extreme
        case .average: count == 0 ? .null : .double((Double(integers) + doubles) / Double(count))
        case .sum:
            switch type {
            case .float, .double, .date: .double(doubles)
            case .uint64: UInt64(exactly: integers).map { .uint($0) }
            default: Int64(exactly: integers).map { .int($0) }
            }
        }
    }
}

extension ColumnType {
    /// A Boolean value that indicates whether values of this type can be added.
    public var isNumeric: Bool {
        switch self {
        case .int8, .int16, .int32, .int64, .uint8, .uint16, .uint32, .uint64, .float, .double: true
        default: false
        }
    }
}
