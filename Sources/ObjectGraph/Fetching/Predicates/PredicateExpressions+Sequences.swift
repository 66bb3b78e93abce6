import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension PredicateExpressions.SequenceContains: LowerableExpression {
    func lower(_ lowering: inout PredicateLowering) throws -> PredicateTerm {
        .truth(PredicateTruth(try lowering.isIn(try lowering.term(element), try lowering.term(sequence))))
    }
}

extension PredicateExpressions.SequenceContainsWhere: LowerableExpression {
    func lower(_ lowering: inout PredicateLowering) throws -> PredicateTerm {
        let collection = try lowering.collection(sequence, for: "contains(where:)")
        let condition = try lowering.condition(test, binding: variable.key, toElementsOf: collection)
        let any = StorePredicate.toMany(collection.relation, .any, where: .all([collection.condition, condition]))
        return .truth(PredicateTruth(try lowering.along(collection.path, any)))
    }
}

extension PredicateExpressions.SequenceAllSatisfy: LowerableExpression {
    func lower(_ lowering: inout PredicateLowering) throws -> PredicateTerm {
        let collection = try lowering.collection(sequence, for: "allSatisfy(_:)")
        let condition = try lowering.condition(test, binding: variable.key, toElementsOf: collection)
        let all = StorePredicate.toMany(
            collection.relation, .all, where: .any([.negating(collection.condition), condition]))
        return .truth(PredicateTruth(try lowering.along(collection.path, all)))
    }
}

extension PredicateExpressions.Filter: LowerableExpression {
    func lower(_ lowering: inout PredicateLowering) throws -> PredicateTerm {
        var collection = try lowering.collection(sequence, for: "filter(_:)")
        let condition = try lowering.condition(filter, binding: variable.key, toElementsOf: collection)
        collection.condition = .all([collection.condition, condition])
        return .collection(collection)
    }
}

// MARK: Strings

extension PredicateExpressions.CollectionContainsCollection: LowerableExpression {
    func lower(_ lowering: inout PredicateLowering) throws -> PredicateTerm {
        let text = try lowering.term(base)
        return .truth(
            PredicateTruth(try lowering.string(text, .contains, pattern: try lowering.term(other), named: "contains(_:)")))
    }
}

extension PredicateExpressions.SequenceStartsWith: LowerableExpression {
    func lower(_ lowering: inout PredicateLowering) throws -> PredicateTerm {
        let text = try lowering.term(base)
        return .truth(
            PredicateTruth(try lowering.string(text, .hasPrefix, pattern: try lowering.term(prefix), named: "starts(with:)")))
    }
}

// MARK: Ranges

extension PredicateExpressions.ClosedRange: LowerableExpression {
    func lower(_ lowering: inout PredicateLowering) throws -> PredicateTerm {
        .range(
            PredicateRange(
                lower: try lowering.constant(lower, for: "a range"), upper: try lowering.constant(upper, for: "a range")))
    }
}

extension PredicateExpressions.Range: LowerableExpression {
    func lower(_ lowering: inout PredicateLowering) throws -> PredicateTerm {
        .range(
            PredicateRange(
                lower: try lowering.constant(lower, for: "a range"), upper: try lowering.constant(upper, for: "a range"),
                upperComparison: .less))
    }
}

extension PredicateExpressions.RangeExpressionContains: LowerableExpression {
    func lower(_ lowering: inout PredicateLowering) throws -> PredicateTerm {
        guard case .range(let range) = try lowering.term(range) else {
            throw FetchError.unsupportedPredicate(part: "contains(_:) of something other than a range")
        }
        try StoredOrder.require(Element.Output.self)
        return .truth(PredicateTruth(try lowering.isWithin(try lowering.term(element), range)))
    }
}
