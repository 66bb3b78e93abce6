// The spelling without labels, for programs that use it.

extension StorePredicate {
    /// The spelling of `compare(_:_:to:)` before version 0.1.
    @available(*, deprecated, renamed: "compare(_:_:to:)")
    public static func compare(_ column: ColumnIndex, _ comparison: Comparison, _ value: Value) -> StorePredicate {
        compare(column, comparison, to: value)
    }

    /// The spelling of ``compareColumns(_:_:to:)`` before version 0.1.
    @available(*, deprecated, renamed: "compareColumns(_:_:to:)")
    public static func compareColumns(_ left: ColumnIndex, _ comparison: Comparison, _ right: ColumnIndex) -> StorePredicate {
        compareColumns(left, comparison, to: right)
    }

    /// The spelling of ``string(_:_:pattern:sensitivity:)`` before version 0.1.
    @available(*, deprecated, renamed: "string(_:_:pattern:sensitivity:)")
    public static func string(
        _ column: ColumnIndex, _ match: StringMatch, _ pattern: String, _ sensitivity: CaseSensitivity
    ) -> StorePredicate {
        string(column, match, pattern: pattern, sensitivity: sensitivity)
    }

    /// The spelling of ``toMany(_:_:where:)`` before version 0.1.
    @available(*, deprecated, renamed: "toMany(_:_:where:)")
    public static func toMany(_ relation: Relation, _ quantifier: Quantifier, _ part: StorePredicate) -> StorePredicate {
        toMany(relation, quantifier, where: part)
    }

    /// The spelling of ``toManyCount(_:where:_:to:)`` before version 0.1.
    @available(*, deprecated, renamed: "toManyCount(_:where:_:to:)")
    public static func toManyCount(
        _ relation: Relation, _ part: StorePredicate, _ comparison: Comparison, _ number: Int
    ) -> StorePredicate {
        toManyCount(relation, where: part, comparison, to: number)
    }
}
