import ObjectGraph

/// A part of a predicate that selects saves only after a position.
private protocol HistoryExpression {
    /// Returns the position; nil if the part may select every save.
    func bound(_ bindings: PredicateBindings) -> ObjectGraph.HistoryToken?
}

/// A part of a predicate whose negation selects saves only after a position.
private protocol NegatedHistoryExpression {
    func boundOfNegation(_ bindings: PredicateBindings) -> ObjectGraph.HistoryToken?
}

extension PredicateExpression {
    /// The position after which every save lies that the expression selects; nil if it may select every save.
    var tokenBefore: ObjectGraph.HistoryToken? { tokenBefore(PredicateBindings()) }

    /// The positions that the expression captures, with which it compares those of saves.
    var comparedTokens: [ObjectGraph.HistoryToken] {
        // A part that has a value without a save is captured, or computed from what is.
        if let value = try? evaluate(PredicateBindings()) { return Captured.tokens(in: value) }
        return Mirror(reflecting: self).children.flatMap { ($0.value as? any PredicateExpression)?.comparedTokens ?? [] }
    }

    fileprivate func tokenBefore(_ bindings: PredicateBindings) -> ObjectGraph.HistoryToken? {
        (self as? any HistoryExpression)?.bound(bindings)
    }

    fileprivate var isTokenOfSave: Bool {
        self is PredicateExpressions.KeyPath<PredicateExpressions.Variable<DefaultHistoryTransaction>, DefaultHistoryToken>
    }

    /// Returns the token that the expression gives without a save.
    fileprivate func constantToken(_ bindings: PredicateBindings) -> ObjectGraph.HistoryToken? {
        (try? evaluate(bindings) as? DefaultHistoryToken)?.token
    }
}

/// Tokens in values of predicates: alone, optional, as the bounds of a range, or in a collection.
private enum Captured {
    static func tokens(in value: Any) -> [ObjectGraph.HistoryToken] {
        switch value {
        case let token as DefaultHistoryToken: [token.token]
        case let range as any TokenRange: range.bounds.map(\.token)
        case let tokens as any Sequence<DefaultHistoryToken>: tokens.map(\.token)
        case let tokens as any Sequence<DefaultHistoryToken?>: tokens.compactMap { $0?.token }
        default: []
        }
    }
}

/// A range of tokens.
private protocol TokenRange {
    var bounds: [DefaultHistoryToken] { get }
    /// The end below which the range has no save; nil if there is none.
    var lower: DefaultHistoryToken? { get }
}

extension ClosedRange: TokenRange where Bound == DefaultHistoryToken {
    fileprivate var bounds: [DefaultHistoryToken] { [lowerBound, upperBound] }
    fileprivate var lower: DefaultHistoryToken? { lowerBound }
}

extension Range: TokenRange where Bound == DefaultHistoryToken {
    fileprivate var bounds: [DefaultHistoryToken] { [lowerBound, upperBound] }
    fileprivate var lower: DefaultHistoryToken? { lowerBound }
}

extension PartialRangeFrom: TokenRange where Bound == DefaultHistoryToken {
    fileprivate var bounds: [DefaultHistoryToken] { [lowerBound] }
    fileprivate var lower: DefaultHistoryToken? { lowerBound }
}

extension PartialRangeThrough: TokenRange where Bound == DefaultHistoryToken {
    fileprivate var bounds: [DefaultHistoryToken] { [upperBound] }
    fileprivate var lower: DefaultHistoryToken? { nil }
}

extension PartialRangeUpTo: TokenRange where Bound == DefaultHistoryToken {
    fileprivate var bounds: [DefaultHistoryToken] { [upperBound] }
    fileprivate var lower: DefaultHistoryToken? { nil }
}

// MARK: Parts of predicates

extension PredicateExpressions.Conjunction: HistoryExpression {
    fileprivate func bound(_ bindings: PredicateBindings) -> ObjectGraph.HistoryToken? {
        [lhs.tokenBefore(bindings), rhs.tokenBefore(bindings)].compactMap(\.self).max()
    }
}

extension PredicateExpressions.Comparison: HistoryExpression, NegatedHistoryExpression {
    fileprivate func bound(_ bindings: PredicateBindings) -> ObjectGraph.HistoryToken? {
        switch op {
        case .greaterThan: lhs.isTokenOfSave ? rhs.constantToken(bindings) : nil
        case .greaterThanOrEqual: lhs.isTokenOfSave ? rhs.constantToken(bindings)?.previous : nil
        case .lessThan: rhs.isTokenOfSave ? lhs.constantToken(bindings) : nil
        case .lessThanOrEqual: rhs.isTokenOfSave ? lhs.constantToken(bindings)?.previous : nil
        @unknown default: nil
        }
    }

    fileprivate func boundOfNegation(_ bindings: PredicateBindings) -> ObjectGraph.HistoryToken? {
        switch op {
        case .lessThanOrEqual: lhs.isTokenOfSave ? rhs.constantToken(bindings) : nil
        case .lessThan: lhs.isTokenOfSave ? rhs.constantToken(bindings)?.previous : nil
        case .greaterThanOrEqual: rhs.isTokenOfSave ? lhs.constantToken(bindings) : nil
        case .greaterThan: rhs.isTokenOfSave ? lhs.constantToken(bindings)?.previous : nil
        @unknown default: nil
        }
    }
}

extension PredicateExpressions.Negation: HistoryExpression {
    fileprivate func bound(_ bindings: PredicateBindings) -> ObjectGraph.HistoryToken? {
        (wrapped as? any NegatedHistoryExpression)?.boundOfNegation(bindings)
    }
}

extension PredicateExpressions.RangeExpressionContains: HistoryExpression {
    fileprivate func bound(_ bindings: PredicateBindings) -> ObjectGraph.HistoryToken? {
        guard element.isTokenOfSave, let range = try? range.evaluate(bindings) as? any TokenRange else { return nil }
        return range.lower?.token.previous
    }
}

extension PredicateExpressions.Conditional: HistoryExpression {
    fileprivate func bound(_ bindings: PredicateBindings) -> ObjectGraph.HistoryToken? {
        guard let isTrue = try? test.evaluate(bindings) else { return nil }
        return isTrue ? trueBranch.tokenBefore(bindings) : falseBranch.tokenBefore(bindings)
    }
}

/// `if let last { $0.token > last } else { true }` is such a part.
extension PredicateExpressions.NilCoalesce: HistoryExpression {
    fileprivate func bound(_ bindings: PredicateBindings) -> ObjectGraph.HistoryToken? {
        do {
            return try lhs.evaluate(bindings) == nil ? rhs.tokenBefore(bindings) : nil
        } catch {
            return lhs.tokenBefore(bindings)
        }
    }
}

extension PredicateExpressions.OptionalFlatMap: HistoryExpression {
    /// The position if the optional has a value without a save. Otherwise the part may be nil for any save.
    fileprivate func bound(_ bindings: PredicateBindings) -> ObjectGraph.HistoryToken? {
        guard let value = try? wrapped.evaluate(bindings) else { return nil }
        var bindings = bindings
        bindings[variable] = value
        return transform.tokenBefore(bindings)
    }
}

extension ObjectGraph.HistoryToken {
    /// The position before the save of this one.
    fileprivate var previous: Self { Self(store: store, incarnation: incarnation, generation: generation.earlier(by: 1)) }
}
