/// What to compute from the objects that a condition selects, in groups of equal values.
public struct StoreAggregation: Sendable, Hashable {
    public var entity: Int
    public var predicate: StorePredicate
    /// Columns whose equal values make a group; none: all objects are one group, which is there even when nothing matches.
    public var groupBy: [Int]
    public var aggregates: [StoreAggregate]

    public init(
        entity: Int, predicate: StorePredicate = .constant(true), groupBy: [Int] = [], aggregates: [StoreAggregate] = []
    ) {
        self.entity = entity
        self.predicate = predicate
        self.groupBy = groupBy
        self.aggregates = aggregates
    }
}

/// One number, or one value, computed from the objects of a group. Nulls do not count.
public enum StoreAggregate: Sendable, Hashable {
    /// How many objects.
    case count
    /// How many objects have a value in the column.
    case countValues(Int)
    /// Zero of nothing.
    case sum(Int)
    /// Null of nothing; the first in the order of ``Value/order(_:)``.
    case minimum(Int)
    case maximum(Int)
    /// A double; null of nothing.
    case average(Int)

    public var column: Int? {
        switch self {
        case .count: nil
        case .countValues(let column), .sum(let column), .minimum(let column), .maximum(let column), .average(let column): column
        }
    }
}

/// What an aggregate knows after some objects: enough to add further ones, and to join two such sums.
public struct AggregateState: Sendable, Hashable {
    public var count = 0
    /// Of signed and unsigned integers: no sum of stored ones overflows.
    public var integers: Int128 = 0
    public var doubles = 0.0
    /// Of minimum and maximum.
    public var extreme = Value.null

    public init() {}

    /// Adds the value of one object. For ``StoreAggregate/count`` any value but null.
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

    /// Adds what another state has gathered of other objects.
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

    /// The aggregate's value; nil when a sum of integers does not fit the storage class of its column.
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
    /// Whether values can be added up.
    public var isNumeric: Bool {
        switch self {
        case .int8, .int16, .int32, .int64, .uint8, .uint16, .uint32, .uint64, .float, .double: true
        default: false
        }
    }
}
