/// The values that the objects of a group share, in the order of the group-by columns. Here NaN equals NaN.
public struct GroupKey: Sendable, Hashable {
    /// The values, one per group-by column.
    public var values: [Value]

    /// Creates a key from one value per group-by column.
    public init(_ values: [Value]) { self.values = values }

    /// Returns whether two keys have the same number of values, and equal values. NaN equals NaN.
    public static func == (a: GroupKey, b: GroupKey) -> Bool {
        a.values.count == b.values.count
            && zip(a.values, b.values).allSatisfy { $0 == $1 || (isNaN($0) && isNaN($1)) }
    }

    /// Hashes the values. Each NaN hashes to the same number.
    public func hash(into hasher: inout Hasher) {
        for value in values {
            if Self.isNaN(value) { hasher.combine(0x4E61_4E) } else { hasher.combine(value) }
        }
    }

    private static func isNaN(_ value: Value) -> Bool {
        if case .double(let number) = value { number.isNaN } else { false }
    }

    /// Orders two keys value by value, by ``Value/order(_:)``.
    public func order(_ other: GroupKey) -> Int {
        for (a, b) in zip(values, other.values) {
            let order = a.order(b)
            if order != 0 { return order }
        }
        return 0
    }
}

/// The groups of an aggregation with their intermediate results. Objects can be added in any order and from several sources.
public struct AggregateGroups: Sendable {
    /// The aggregates of each group, in the order of the states.
    public let aggregates: [StoreAggregate]
    /// The values of the groups, in the order in which the groups were added.
    public private(set) var keys: [GroupKey] = []
    /// The states per group, then per aggregate.
    public private(set) var states: [[AggregateState]] = []
    private let groupCount: Int
    private var positions: [GroupKey: Int] = [:]
    /// The positions of groups by one column whose values fit a 64-bit word.
    private var wordPositions: [UInt64: Int] = [:]
    private var lastWord: (word: UInt64, position: Int)?

    /// Creates the groups before any object is added. Without group-by columns, one group exists from the beginning.
    public init(_ aggregation: StoreAggregation) {
        aggregates = aggregation.aggregates
        groupCount = aggregation.groupBy.count
        if groupCount == 0 {
            keys = [GroupKey([])]
            states = [Array(repeating: AggregateState(), count: aggregates.count)]
        }
    }

    /// Adds an object.
    /// - Parameters:
    ///   - group: Returns the object's value in a group-by column, by position.
    ///   - value: Returns the object's value in a column.
    public mutating func add(group: (Int) throws -> Value, value: (ColumnIndex) throws -> Value) rethrows {
        let position = try place(group)
        for (number, aggregate) in aggregates.enumerated() {
            if let column = aggregate.column {
                states[position][number].add(try value(column), to: aggregate)
            } else {
                states[position][number].count += 1
            }
        }
    }

    /// Returns the number of the group with these values, and creates the group if necessary.
    private mutating func place(_ group: (Int) throws -> Value) rethrows -> Int {
        if groupCount == 0 { return 0 }
        if groupCount == 1 { return place(single: try group(0)) }
        return place(GroupKey(try (0..<groupCount).map(group)))
    }

    private mutating func place(single value: Value) -> Int {
        // One column has values of one storage class, so a word identifies one value.
        let word: UInt64
        switch value {
        case .int(let number): word = UInt64(bitPattern: number)
        case .uint(let number): word = number
        case .reference(let key): word = key.rawValue
        case .bool(let flag): word = flag ? 1 : 0
        default: return place(GroupKey([value]))
        }
        if let lastWord, lastWord.word == word { return lastWord.position }
        let position = wordPositions[word] ?? append(GroupKey([value]))
        wordPositions[word] = position
        lastWord = (word, position)
        return position
    }

    private mutating func place(_ key: GroupKey) -> Int {
        if let known = positions[key] { return known }
        let position = append(key)
        positions[key] = position
        return position
    }

    private mutating func append(_ key: GroupKey) -> Int {
        keys.append(key)
        states.append(Array(repeating: AggregateState(), count: aggregates.count))
        return keys.count - 1
    }

    /// Adds a state computed from many objects to the only group of an aggregation without group-by columns.
    public mutating func join(_ state: AggregateState, of aggregate: Int) {
        states[0][aggregate].join(state, aggregates[aggregate])
    }

    /// Adds the states of a group, which may be new or known.
    public mutating func join(_ key: GroupKey, _ gathered: [AggregateState]) {
        let position = groupCount == 1 ? place(single: key.values[0]) : groupCount == 0 ? 0 : place(key)
        for (number, state) in gathered.enumerated() { states[position][number].join(state, aggregates[number]) }
    }
}
