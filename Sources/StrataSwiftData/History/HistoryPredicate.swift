import ObjectGraph

/// A part of a predicate that selects saves only after a position.
private protocol HistoryExpression {
    /// The position; nil if the part may select every save.
    var bound: ObjectGraph.HistoryToken? { get }
    /// The positions with which the part compares those of saves.
    var compared: [ObjectGraph.HistoryToken] { get }
}

extension PredicateExpression {
    /// The position after which every save lies that the expression selects; nil if it may select every save.
    var tokenBefore: ObjectGraph.HistoryToken? { (self as? any HistoryExpression)?.bound }

    /// The positions with which the expression or a part of it compares those of saves.
    var comparedTokens: [ObjectGraph.HistoryToken] { (self as? any HistoryExpression)?.compared ?? [] }

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
    fileprivate var compared: [ObjectGraph.HistoryToken] { lhs.comparedTokens + rhs.comparedTokens }
}

extension PredicateExpressions.Comparison: HistoryExpression {
    fileprivate var compared: [ObjectGraph.HistoryToken] { comparedToken(lhs, rhs) }

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

extension PredicateExpressions.Disjunction: HistoryExpression {
    fileprivate var bound: ObjectGraph.HistoryToken? { nil }
    fileprivate var compared: [ObjectGraph.HistoryToken] { lhs.comparedTokens + rhs.comparedTokens }
}

extension PredicateExpressions.Negation: HistoryExpression {
    fileprivate var bound: ObjectGraph.HistoryToken? { nil }
    fileprivate var compared: [ObjectGraph.HistoryToken] { wrapped.comparedTokens }
}

extension PredicateExpressions.Equal: HistoryExpression {
    fileprivate var bound: ObjectGraph.HistoryToken? { nil }
    fileprivate var compared: [ObjectGraph.HistoryToken] { comparedToken(lhs, rhs) }
}

extension PredicateExpressions.NotEqual: HistoryExpression {
    fileprivate var bound: ObjectGraph.HistoryToken? { nil }
    fileprivate var compared: [ObjectGraph.HistoryToken] { comparedToken(lhs, rhs) }
}

/// Returns the token with which one side is compared if the other side is the token of a save.
private func comparedToken(_ lhs: some PredicateExpression, _ rhs: some PredicateExpression) -> [ObjectGraph.HistoryToken] {
    let token = lhs.isTokenOfSave ? rhs.constantToken : rhs.isTokenOfSave ? lhs.constantToken : nil
    return token.map { [$0] } ?? []
}

extension ObjectGraph.HistoryToken {
    /// The position before the save of this one.
    fileprivate var previous: Self { Self(store: store, incarnation: incarnation, generation: generation.earlier(by: 1)) }
}
