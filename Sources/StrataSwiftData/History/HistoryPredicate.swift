import ObjectGraph

/// A part of a predicate that selects saves only after a position.
private protocol HistoryExpression {
    /// The position; nil if the part may select every save.
    var bound: ObjectGraph.HistoryToken? { get }
}

extension PredicateExpression {
    /// The position after which every save lies that the expression selects; nil if it may select every save.
    var tokenBefore: ObjectGraph.HistoryToken? { (self as? any HistoryExpression)?.bound }

    fileprivate var isTokenOfSave: Bool {
        self is PredicateExpressions.KeyPath<PredicateExpressions.Variable<DefaultHistoryTransaction>, DefaultHistoryToken>
    }

    /// The token that the expression gives without a save.
    fileprivate var constantToken: ObjectGraph.HistoryToken? {
        (try? evaluate(PredicateBindings()) as? DefaultHistoryToken)?.token
    }
}

extension PredicateExpressions.Conjunction: HistoryExpression {
    fileprivate var bound: ObjectGraph.HistoryToken? { [lhs.tokenBefore, rhs.tokenBefore].compactMap(\.self).max() }
}

extension PredicateExpressions.Comparison: HistoryExpression {
    fileprivate var bound: ObjectGraph.HistoryToken? {
        switch op {
        case .greaterThan: lhs.isTokenOfSave ? rhs.constantToken : nil
        case .greaterThanOrEqual: lhs.isTokenOfSave ? rhs.constantToken?.previous : nil
        case .lessThan: rhs.isTokenOfSave ? lhs.constantToken : nil
        case .lessThanOrEqual: rhs.isTokenOfSave ? lhs.constantToken?.previous : nil
        @unknown default: nil
        }
    }
}

extension ObjectGraph.HistoryToken {
    /// The position before the save of this one.
    fileprivate var previous: Self { Self(store: store, incarnation: incarnation, generation: generation.earlier(by: 1)) }
}
