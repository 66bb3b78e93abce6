import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// `is` and `as?` with classes of a hierarchy (S182). An object of another hierarchy is never of the class. Values are computed.
extension PredicateExpressions.TypeCheck: LowerableExpression {
    func lower(_ lowering: inout PredicateLowering) throws -> PredicateTerm {
        guard let path = try lowering.cast(input, to: Desired.self) else { return .constant(.bool(false)) }
        return .truth(PredicateTruth(try lowering.exists(path)))
    }
}

extension PredicateExpressions.ConditionalCast: LowerableExpression {
    func lower(_ lowering: inout PredicateLowering) throws -> PredicateTerm {
        try lowering.cast(input, to: Desired.self).map { .object($0) } ?? .constant(.null)
    }
}

/// Where Swift would stop the program, the result is that of `as?`.
extension PredicateExpressions.ForceCast: LowerableExpression {
    func lower(_ lowering: inout PredicateLowering) throws -> PredicateTerm {
        try lowering.cast(input, to: Desired.self).map { .object($0) } ?? .constant(.null)
    }
}

extension PredicateLowering {
    /// Returns the path to an object if it is of a class; nil if it never is.
    fileprivate mutating func cast<E: PredicateExpression>(_ expression: E, to type: Any.Type) throws -> PredicatePath? {
        guard case .object(let path) = try term(expression) else {
            throw FetchError.unsupportedPredicate(part: "a cast of something other than an object")
        }
        let wrapped = (type as? any OptionalType.Type)?.wrapped ?? type
        guard let model = wrapped as? any PersistentModel.Type else {
            throw FetchError.unsupportedPredicate(part: "a cast to \(wrapped), which is no model")
        }
        guard let entity = self.model.entity(for: model) else { throw FetchError.unknownEntity("\(model)") }
        return cast(path, to: entity)
    }

    /// Returns the path to an object if it is of an entity; nil if it never is.
    func cast(_ path: PredicatePath, to entity: Entity) -> PredicatePath? {
        guard entity.number == path.entity else { return nil }
        return entity.selection.map(path.casting) ?? path
    }
}

/// An optional type.
private protocol OptionalType {
    static var wrapped: Any.Type { get }
}

extension Optional: OptionalType {
    static var wrapped: Any.Type { Wrapped.self }
}
