import StoreInterface
import StoreModel

// The spelling without labels, for programs that use it.

extension Condition {
    /// The spelling of ``compare(_:_:to:)`` before version 0.1.
    @available(*, deprecated, renamed: "compare(_:_:to:)")
    public static func compare(_ name: String, _ comparison: StorePredicate.Comparison, _ value: Value) -> Condition {
        compare(name, comparison, to: value)
    }

    /// The spelling of ``between(_:_:and:)`` before version 0.1.
    @available(*, deprecated, renamed: "between(_:_:and:)")
    public static func between(_ name: String, _ lower: Value, _ upper: Value) -> Condition {
        between(name, lower, and: upper)
    }

    /// The spelling of ``string(_:_:pattern:sensitivity:)`` before version 0.1.
    @available(*, deprecated, renamed: "string(_:_:pattern:sensitivity:)")
    public static func string(
        _ name: String, _ match: StorePredicate.StringMatch, _ pattern: String, _ sensitivity: StorePredicate.CaseSensitivity
    ) -> Condition {
        string(name, match, pattern: pattern, sensitivity: sensitivity)
    }

    /// The spelling of ``related(_:_:where:)`` before version 0.1.
    @available(*, deprecated, renamed: "related(_:_:where:)")
    public static func related(_ name: String, _ quantifier: StorePredicate.Quantifier, _ part: Condition) -> Condition {
        related(name, quantifier, where: part)
    }

    /// The spelling of ``relatedCount(_:where:_:to:)`` before version 0.1.
    @available(*, deprecated, renamed: "relatedCount(_:where:_:to:)")
    public static func relatedCount(
        _ name: String, _ part: Condition, _ comparison: StorePredicate.Comparison, _ number: Int
    ) -> Condition {
        relatedCount(name, where: part, comparison, to: number)
    }
}

extension SortBy {
    /// The spelling of `init(_:by:_:nils:)` before version 0.1.
    @available(*, deprecated, renamed: "init(_:by:_:nils:)")
    public init<N: PersistentModel, V: AttributeValue>(
        _ relationship: KeyPath<M, N?>, _ attribute: KeyPath<N, V>, _ direction: StoreSort.Direction = .ascending
    ) {
        self.init(relationship, by: attribute, direction)
    }

    /// The spelling of `init(_:by:_:comparing:nils:)` before version 0.1.
    @available(*, deprecated, renamed: "init(_:by:_:comparing:nils:)")
    public init<N: PersistentModel>(
        _ relationship: KeyPath<M, N?>, _ attribute: KeyPath<N, String>, _ direction: StoreSort.Direction = .ascending,
        comparing comparison: StringComparison
    ) {
        self.init(relationship, by: attribute, direction, comparing: comparison)
    }
}
