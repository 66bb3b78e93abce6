/// A condition on the objects of one entity, lowered to column numbers.
///
/// Logic has two values, as in Swift: a comparison with a null column is false, except that `equal` to null is true for
/// null, and `notEqual` is the negation of `equal`. Stores may evaluate it natively; ``StorePredicate/matches(_:key:in:)`` is the reference.
public indirect enum StorePredicate: Sendable, Hashable {
    case constant(Bool)
    case compare(Int, Comparison, Value)
    case compareColumns(Int, Comparison, Int)
    case isIn(Int, Set<Value>)
    case string(Int, StringMatch, String, CaseSensitivity)
    /// The object itself is one of these.
    case keys(Set<ObjectKey>)
    case and([StorePredicate])
    case or([StorePredicate])
    case not(StorePredicate)
    /// The object that reference column points to exists and satisfies the condition (which is on its entity).
    case toOne(Int, StorePredicate)
    /// Any, all or none of the related objects satisfy the condition; `all` and `none` of nothing are true.
    case toMany(Relation, Quantifier, StorePredicate)
    /// How many related objects satisfy the condition, compared with a number.
    case toManyCount(Relation, StorePredicate, Comparison, Int)

    public enum Comparison: Sendable, Hashable { case equal, notEqual, less, lessOrEqual, greater, greaterOrEqual }
    public enum StringMatch: Sendable, Hashable { case equals, contains, hasPrefix, hasSuffix }
    /// Case-insensitive compares `lowercased()` of both sides.
    public enum CaseSensitivity: Sendable, Hashable { case sensitive, insensitive }
    public enum Quantifier: Sendable, Hashable { case any, all, none }
}

/// How to find the objects at the far end of a to-many relationship.
public enum Relation: Sendable, Hashable {
    /// The objects of `entity` whose reference column `column` holds this object's key.
    case referrers(entity: Int, column: Int)
    /// The partners in a link; forward means that this object is the source.
    case link(Int, LinkDirection, destination: Int)

    /// The entity of the related objects.
    public var entity: Int {
        switch self {
        case .referrers(let entity, _): entity
        case .link(_, _, let destination): destination
        }
    }
}

public enum LinkDirection: Sendable, Hashable { case forward, backward }

/// What to fetch: keys of one entity, in the order of `sort`, ties and the unsorted in the order of keys.
public struct StoreQuery: Sendable, Hashable {
    public var entity: Int
    public var predicate: StorePredicate
    public var sort: [StoreSort]
    /// Never negative: less than 0 is 0.
    public var offset: Int { didSet { offset = max(0, offset) } }
    /// nil: no limit. Never negative: less than 0 is 0, which gives nothing.
    public var limit: Int? { didSet { limit = limit.map { max(0, $0) } } }

    public init(
        entity: Int, predicate: StorePredicate = .constant(true), sort: [StoreSort] = [], offset: Int = 0,
        limit: Int? = nil
    ) {
        self.entity = entity
        self.predicate = predicate
        self.sort = sort
        self.offset = max(0, offset)
        self.limit = limit.map { max(0, $0) }
    }
}

/// Order by one column; null first when ascending and last when descending.
public struct StoreSort: Sendable, Hashable {
    public enum Direction: Sendable, Hashable { case ascending, descending }

    public var column: Int
    public var direction: Direction
    public var caseSensitivity: StorePredicate.CaseSensitivity

    public init(
        column: Int, direction: Direction = .ascending,
        caseSensitivity: StorePredicate.CaseSensitivity = .sensitive
    ) {
        self.column = column
        self.direction = direction
        self.caseSensitivity = caseSensitivity
    }

    /// Compares two values of the column in the sort's direction: negative, zero or positive.
    public func order(_ a: Value, _ b: Value) -> Int {
        var result: Int
        if caseSensitivity == .insensitive, case .string(let x) = a, case .string(let y) = b {
            result = Value.string(x.lowercased()).order(.string(y.lowercased()))
        } else {
            result = a.order(b)
        }
        return direction == .ascending ? result : -result
    }
}
