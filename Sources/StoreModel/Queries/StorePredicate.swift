/// A condition on the objects of one entity, lowered to positions of columns.
///
/// Logic has two values, as in Swift. A comparison with a null column is false, except that `equal` to null is true for null.
/// `notEqual` is the negation of `equal`. Stores may evaluate a condition natively; ``StorePredicate/matches(_:key:in:)`` is
/// the reference.
///
/// Stores evaluate conditions recursively, so nesting is limited by ``maximumDepth``. A condition that is nested deeper keeps
/// its depth and drops its parts. It can be made, compared and released, and every query that has it throws.
public struct StorePredicate: Sendable, Hashable {
    /// The maximum ``depth`` of a condition in a query. Lists may have any number of parts.
    public static let maximumDepth = 128

    /// The operator of the condition and its parts.
    public let form: Form
    /// The number of nested levels: 1 for a comparison, one more than the deepest part for a condition with parts.
    public let depth: Int

    /// The operator of a condition with its operands.
    ///
    /// Columns are given by position. For the meaning of a case, see the method of ``StorePredicate`` with the same name. Create
    /// conditions with these methods, because they compute ``StorePredicate/depth``.
    public indirect enum Form: Sendable, Hashable {
        case constant(Bool)
        case compare(ColumnIndex, Comparison, Value)
        case compareColumns(ColumnIndex, Comparison, ColumnIndex)
        case isIn(ColumnIndex, Set<Value>)
        case string(ColumnIndex, StringMatch, String, CaseSensitivity)
        case keys(Set<ObjectKey>)
        case and([StorePredicate])
        case or([StorePredicate])
        case not(StorePredicate)
        case toOne(ColumnIndex, StorePredicate)
        case toMany(Relation, Quantifier, StorePredicate)
        case toManyCount(Relation, StorePredicate, Comparison, Int)
        case evaluated(EvaluatedCondition)
        /// A condition nested deeper than ``StorePredicate/maximumDepth``. Before evaluation, ``StorePredicate/checkDepth()``
        /// must have passed.
        case tooDeep
    }

    private init(_ form: Form, depth: Int = 1) {
        self.form = depth > Self.maximumDepth ? .tooDeep : form
        self.depth = depth
    }

    /// Selects every object, or none.
    public static func constant(_ value: Bool) -> StorePredicate { StorePredicate(.constant(value)) }

    /// Selects objects by comparing a column with a value.
    ///
    /// Null equals only null, and NaN equals no value. A comparison of order with null or NaN is false.
    public static func compare(_ column: ColumnIndex, _ comparison: Comparison, to value: Value) -> StorePredicate {
        StorePredicate(.compare(column, comparison, value))
    }

    /// Selects objects by comparing two of their columns. Null and NaN compare as with a value.
    public static func compareColumns(
        _ left: ColumnIndex, _ comparison: Comparison, to right: ColumnIndex
    ) -> StorePredicate {
        StorePredicate(.compareColumns(left, comparison, right))
    }

    /// Selects objects whose column has one of the values.
    ///
    /// A value matches only values of its own storage class. Null in the set matches null, and NaN matches no value.
    public static func isIn(_ column: ColumnIndex, _ values: Set<Value>) -> StorePredicate {
        StorePredicate(.isIn(column, values))
    }

    /// Selects objects by comparing a string column with a text.
    ///
    /// Compares by Unicode code points, not by canonical equivalence. The text is compared literally: it has no wildcards. Null
    /// matches no text.
    public static func string(
        _ column: ColumnIndex, _ match: StringMatch, pattern: String, sensitivity: CaseSensitivity
    ) -> StorePredicate {
        StorePredicate(.string(column, match, pattern, sensitivity))
    }

    /// Selects the objects with these keys.
    public static func keys(_ keys: Set<ObjectKey>) -> StorePredicate { StorePredicate(.keys(keys)) }

    /// Selects objects that satisfy all parts. Without parts, selects every object.
    public static func and(_ parts: [StorePredicate]) -> StorePredicate { StorePredicate(.and(parts), depth: depth(over: parts)) }

    /// Selects objects that satisfy at least one part. Without parts, selects no object.
    public static func or(_ parts: [StorePredicate]) -> StorePredicate { StorePredicate(.or(parts), depth: depth(over: parts)) }

    /// Selects objects that do not satisfy a condition.
    public static func not(_ part: StorePredicate) -> StorePredicate { StorePredicate(.not(part), depth: part.depth + 1) }

    /// Selects objects whose reference leads to an existing object that satisfies a condition on its entity.
    public static func toOne(_ column: ColumnIndex, _ part: StorePredicate) -> StorePredicate {
        StorePredicate(.toOne(column, part), depth: part.depth + 1)
    }

    /// Selects objects of which any, all or none of the related objects satisfy the condition. Without related objects, `all`
    /// and `none` are true.
    public static func toMany(_ relation: Relation, _ quantifier: Quantifier, where part: StorePredicate) -> StorePredicate {
        StorePredicate(.toMany(relation, quantifier, part), depth: part.depth + 1)
    }

    /// Compares the number of related objects that satisfy the condition with a number.
    public static func toManyCount(
        _ relation: Relation, where part: StorePredicate, _ comparison: Comparison, to number: Int
    ) -> StorePredicate {
        StorePredicate(.toManyCount(relation, part, comparison, number), depth: part.depth + 1)
    }

    /// Selects objects by a computation in Swift, which stores call through ``matches(_:key:in:)``.
    public static func evaluated(_ condition: EvaluatedCondition) -> StorePredicate { StorePredicate(.evaluated(condition)) }

    private static func depth(over parts: [StorePredicate]) -> Int { parts.reduce(0) { max($0, $1.depth) } + 1 }

    /// Throws if the condition is nested deeper than ``maximumDepth``. Stores call it before they read a row. O(1).
    public func checkDepth() throws {
        guard depth > Self.maximumDepth else { return }
        throw StoreError(
            .unsupported,
            "cannot evaluate a condition: it is nested \(depth) levels deep, and \(Self.maximumDepth) are supported. "
                + "Put the parts of nested lists into one list.")
    }

    /// A comparison of two values.
    public enum Comparison: Sendable, Hashable { case equal, notEqual, less, lessOrEqual, greater, greaterOrEqual }
    /// A comparison of a string with a text: the whole string, or a part of it.
    public enum StringMatch: Sendable, Hashable { case equals, contains, hasPrefix, hasSuffix }
    /// The case sensitivity of a comparison. `insensitive` compares `lowercased()` of both sides.
    public enum CaseSensitivity: Sendable, Hashable { case sensitive, insensitive }
    /// The number of related objects that must satisfy a condition.
    public enum Quantifier: Sendable, Hashable { case any, all, none }
}

extension StorePredicate: CustomStringConvertible {
    /// The operator and its operands as text, for messages. The format may change.
    public var description: String { "\(form)" }
}

/// A way to find the objects at the far end of a to-many relationship.
public enum Relation: Sendable, Hashable {
    /// The objects of `entity` whose reference column `column` has this object's key.
    case referrers(entity: EntityIndex, column: ColumnIndex)
    /// The partners in a link. The direction is forward if this object is the source.
    case link(LinkIndex, LinkDirection, destination: EntityIndex)

    /// The entity of the related objects.
    public var entity: EntityIndex {
        switch self {
        case .referrers(let entity, _): entity
        case .link(_, _, let destination): destination
        }
    }
}

/// The direction in which a relation follows a link: forward from the source, backward from the destination.
public enum LinkDirection: Sendable, Hashable { case forward, backward }

/// A query for keys of one entity, in the order of `sort`. Ties, and results without a sort, are in the order of keys.
public struct StoreQuery: Sendable, Hashable {
    /// The entity to search.
    public var entity: EntityIndex
    /// The condition that selects the objects.
    public var predicate: StorePredicate
    /// The order of the result, by the first element, then by the second, and so on.
    public var sort: [StoreSort]
    /// The number of results to skip. Negative values become 0.
    public var offset: Int { didSet { offset = max(0, offset) } }
    /// The maximum number of results; nil for no limit. Negative values become 0, which selects nothing.
    public var limit: Int? { didSet { limit = limit.map { max(0, $0) } } }

    /// Creates a query. By default, it selects all objects of the entity in the order of their keys.
    public init(
        entity: EntityIndex, predicate: StorePredicate = .constant(true), sort: [StoreSort] = [], offset: Int = 0,
        limit: Int? = nil
    ) {
        self.entity = entity
        self.predicate = predicate
        self.sort = sort
        self.offset = max(0, offset)
        self.limit = limit.map { max(0, $0) }
    }
}

/// An order by one column. By default, null comes first when ascending and last when descending.
public struct StoreSort: Sendable, Hashable {
    /// The direction of a sort.
    public enum Direction: Sendable, Hashable { case ascending, descending }

    /// The place of null among the values of a column.
    public enum NullOrder: Sendable, Hashable {
        /// Null is less than all values.
        case lowest
        /// Null is greater than all values.
        case highest
    }

    /// The column to sort by.
    public var column: ColumnIndex
    /// The direction of the sort.
    public var direction: Direction
    /// The case sensitivity of comparing strings. Other types ignore it.
    public var caseSensitivity: StorePredicate.CaseSensitivity
    /// The place of null among the values, before the direction is applied.
    public var nulls: NullOrder
    /// The reference columns that lead to the object with the column; empty for the selected object itself. A nil on the way sorts as
    /// null.
    package var path: [ColumnIndex] = []
    /// An order of strings that no store has; nil for orders of stores.
    package var textOrder: TextOrder?

    /// Whether stores can sort in this order. Queries that stores receive have no others.
    package var isOrderOfStores: Bool { path.isEmpty && textOrder == nil }

    /// Creates an order by a column, ascending by default.
    public init(
        column: ColumnIndex, direction: Direction = .ascending,
        caseSensitivity: StorePredicate.CaseSensitivity = .sensitive, nulls: NullOrder = .lowest
    ) {
        self.column = column
        self.direction = direction
        self.caseSensitivity = caseSensitivity
        self.nulls = nulls
    }

    /// Compares two values of the column in the sort's direction. Returns a negative number, zero or a positive number.
    public func order(_ a: Value, _ b: Value) -> Int {
        if let textOrder, case .string(let x) = a, case .string(let y) = b {
            return orderOfConverted(.string(textOrder.key(x)), .string(textOrder.key(y)))
        }
        if caseSensitivity == .insensitive, case .string(let x) = a, case .string(let y) = b {
            return orderOfConverted(.string(x.lowercased()), .string(y.lowercased()))
        }
        return orderOfConverted(a, b)
    }

    /// Compares two values in the sort's direction whose strings are already such that they compare by code point.
    package func orderOfConverted(_ a: Value, _ b: Value) -> Int {
        var result = a.order(b)
        // Of null and a value, null is the lower one.
        if nulls == .highest, a.isNull != b.isNull { result = -result }
        return direction == .ascending ? result : -result
    }
}
