import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

private protocol ConjunctionExpression: PredicateExpression {
    var sides: (left: any PredicateExpression, right: any PredicateExpression) { get }
}

private protocol DisjunctionExpression: PredicateExpression {
    var sides: (left: any PredicateExpression, right: any PredicateExpression) { get }
}

extension PredicateExpressions.Conjunction: LowerableExpression, ConjunctionExpression {
    fileprivate var sides: (left: any PredicateExpression, right: any PredicateExpression) { (lhs, rhs) }

    func lower(_ lowering: inout PredicateLowering) throws -> PredicateTerm {
        .truth(PredicateTruth(.all(try lowering.chain(self, until: false) { ($0 as? any ConjunctionExpression)?.sides })))
    }
}

extension PredicateExpressions.Disjunction: LowerableExpression, DisjunctionExpression {
    fileprivate var sides: (left: any PredicateExpression, right: any PredicateExpression) { (lhs, rhs) }

    func lower(_ lowering: inout PredicateLowering) throws -> PredicateTerm {
        .truth(PredicateTruth(.any(try lowering.chain(self, until: true) { ($0 as? any DisjunctionExpression)?.sides })))
    }
}

extension PredicateExpressions.Negation: LowerableExpression {
    func lower(_ lowering: inout PredicateLowering) throws -> PredicateTerm {
        .truth(PredicateTruth(.negating(try lowering.truth(wrapped).isTrue)))
    }
}

extension PredicateExpressions.Equal: LowerableExpression {
    func lower(_ lowering: inout PredicateLowering) throws -> PredicateTerm {
        .truth(PredicateTruth(try lowering.equal(try lowering.term(lhs), try lowering.term(rhs))))
    }
}

extension PredicateExpressions.NotEqual: LowerableExpression {
    func lower(_ lowering: inout PredicateLowering) throws -> PredicateTerm {
        .truth(PredicateTruth(.negating(try lowering.equal(try lowering.term(lhs), try lowering.term(rhs)))))
    }
}

extension PredicateExpressions.Comparison: LowerableExpression {
    func lower(_ lowering: inout PredicateLowering) throws -> PredicateTerm {
        try StoredOrder.require(LHS.Output.self)
        return .truth(PredicateTruth(try lowering.ordered(try lowering.term(lhs), storeComparison, to: try lowering.term(rhs))))
    }

    var storeComparison: StorePredicate.Comparison {
        get throws {
            switch op {
            case .lessThan: .less
            case .lessThanOrEqual: .lessOrEqual
            case .greaterThan: .greater
            case .greaterThanOrEqual: .greaterOrEqual
            @unknown default: throw FetchError.unsupportedPredicate(part: "the operator \(op)")
            }
        }
    }
}

extension PredicateExpressions.Conditional: LowerableExpression {
    func lower(_ lowering: inout PredicateLowering) throws -> PredicateTerm {
        let test = try lowering.truth(test).isTrue
        if test == .constant(true) { return try lowering.term(trueBranch) }
        if test == .constant(false) { return try lowering.term(falseBranch) }
        let (yes, no) = (try lowering.truth(trueBranch), try lowering.truth(falseBranch))
        let other = StorePredicate.negating(test)
        let isAlwaysDefined = yes.isDefined == .constant(true) && no.isDefined == .constant(true)
        return .truth(
            PredicateTruth(
                .any([.all([test, yes.isTrue]), .all([other, no.isTrue])]),
                isDefined: isAlwaysDefined
                    ? .constant(true) : .any([.all([test, yes.isDefined]), .all([other, no.isDefined])])))
    }
}

// MARK: Optionals

extension PredicateExpressions.NilLiteral: LowerableExpression {
    func lower(_ lowering: inout PredicateLowering) throws -> PredicateTerm { .constant(.null) }
}

extension PredicateExpressions.ForcedUnwrap: LowerableExpression {
    func lower(_ lowering: inout PredicateLowering) throws -> PredicateTerm { try lowering.term(inner) }
}

extension PredicateExpressions.OptionalFlatMap: LowerableExpression {
    func lower(_ lowering: inout PredicateLowering) throws -> PredicateTerm {
        let base = try lowering.term(wrapped)
        if case .constant(.null) = base { return base }
        let result = try lowering.lower(transform, binding: variable.key, to: base)
        if result.isNil(where: base) { return result }
        guard let truth = try lowering.asTruth(result) else {
            throw FetchError.unsupportedPredicate(part: "a closure whose result does not depend on its parameter")
        }
        let isPresent: StorePredicate
        switch base {
        case .scalar(let scalar): isPresent = scalar.fallback == nil ? try lowering.isPresent(scalar) : .constant(true)
        case .object(let path), .objectID(let path): isPresent = try lowering.exists(path)
        case .collection(let collection): isPresent = try lowering.exists(collection.path)
        case .truth(let truth): isPresent = truth.isDefined
        case .constant, .constants, .range, .identities: isPresent = .constant(true)
        }
        return .truth(
            PredicateTruth(.all([isPresent, truth.isTrue]), isDefined: .all([isPresent, truth.isDefined])))
    }
}

extension PredicateExpressions.NilCoalesce: LowerableExpression {
    func lower(_ lowering: inout PredicateLowering) throws -> PredicateTerm {
        let left = try lowering.term(lhs)
        switch left {
        case .constant(.null): return try lowering.term(rhs)
        case .constant: return left
        case .scalar(var scalar) where scalar.fallback == nil:
            guard case .constant(let value) = try lowering.term(rhs) else { break }
            scalar.fallback = value.isNull ? nil : value
            return .scalar(scalar)
        default: break
        }
        guard let first = try lowering.asTruth(left), let second = try lowering.asTruth(try lowering.term(rhs)) else {
            throw FetchError.unsupportedPredicate(part: "?? with something other than a captured value")
        }
        return .truth(
            PredicateTruth(
                .any([first.isTrue, .all([.negating(first.isDefined), second.isTrue])]),
                isDefined: .any([first.isDefined, second.isDefined])))
    }
}
