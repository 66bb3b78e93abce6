import StoreInterface

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension PredicateExpressions.Value: LowerableExpression {
    func lower(_ lowering: inout PredicateLowering) throws -> PredicateTerm {
        guard let term = PredicateTerm(captured: value) else {
            throw FetchError.unsupportedPredicate(part: "a captured value of type \(Output.self)")
        }
        return term
    }
}

extension PredicateExpressions.Variable: LowerableExpression {
    func lower(_ lowering: inout PredicateLowering) throws -> PredicateTerm { try lowering.binding(key) }
}

extension PredicateExpressions.KeyPath: LowerableExpression {
    func lower(_ lowering: inout PredicateLowering) throws -> PredicateTerm {
        switch try lowering.term(root) {
        case .object(let path):
            return try lowering.property(keyPath, of: Root.Output.self, isID: Output.self == ObjectID.self, at: path)
        case .collection(let collection):
            switch kind {
            case .collectionCount:
                return .scalar(
                    PredicateScalar(path: collection.path, source: .count(collection.relation, collection.condition)))
            case .collectionIsEmpty:
                let isEmpty = StorePredicate.toMany(collection.relation, .none, collection.condition)
                return .truth(PredicateTruth(try lowering.along(collection.path, isEmpty)))
            default: break
            }
        case .scalar(let scalar) where kind == .collectionIsEmpty && Root.Output.self == String.self:
            return .truth(PredicateTruth(try lowering.equal(.scalar(scalar), .constant(.string("")))))
        case .scalar where kind == .collectionCount:
            throw FetchError.unsupportedPredicate(part: "the count of a string")
        default: break
        }
        throw FetchError.unsupportedPredicate(part: "the key path \(keyPath)")
    }
}

extension PredicateLowering {
    /// Returns the stored property of a key path, or the object's id.
    func property<Owner>(
        _ keyPath: AnyKeyPath, of type: Owner.Type, isID: Bool, at path: PredicatePath
    ) throws -> PredicateTerm {
        let entity = model.entities[path.entity]
        guard let name = (type as? any PersistentModel.Type)?.columnsByKeyPath[keyPath] else {
            if isID { return .objectID(path) }
            throw FetchError.unknownProperty(entity: entity.name, property: "\(keyPath)")
        }
        guard let term = property(named: name, at: path) else {
            throw FetchError.unknownProperty(entity: entity.name, property: name)
        }
        return term
    }

    /// Returns the property with this name; nil if the entity has no such property.
    func property(named name: String, at path: PredicatePath) -> PredicateTerm? {
        let entity = model.entities[path.entity]
        if let column = entity.column(named: name) {
            let schema = entity.columns[column]
            if let destination = schema.destination { return .object(path.appending(column, entity: destination)) }
            return .scalar(PredicateScalar(path: path, source: .column(column, isOptional: schema.isOptional)))
        }
        guard case .toMany(let relation)? = entity.relationship(named: name)?.kind else { return nil }
        return .collection(PredicateCollection(path: path, relation: relation))
    }
}

// MARK: Numbers that are known before the request runs

extension PredicateExpressions.UnaryMinus: LowerableExpression {
    func lower(_ lowering: inout PredicateLowering) throws -> PredicateTerm {
        switch try lowering.constant(wrapped, for: "a minus sign") {
        case .int(let number) where number != .min: return .constant(.int(-number))
        case .double(let number): return .constant(.double(-number))
        default: throw FetchError.unsupportedPredicate(part: "a minus sign before this value")
        }
    }
}

extension PredicateExpressions.Arithmetic: LowerableExpression {
    func lower(_ lowering: inout PredicateLowering) throws -> PredicateTerm {
        let left = try lowering.constant(lhs, for: "arithmetic")
        let right = try lowering.constant(rhs, for: "arithmetic")
        switch (left, right) {
        case (.int(let a), .int(let b)):
            let (result, overflow) =
                switch op {
                case .add: a.addingReportingOverflow(b)
                case .subtract: a.subtractingReportingOverflow(b)
                case .multiply: a.multipliedReportingOverflow(by: b)
                @unknown default: throw FetchError.unsupportedPredicate(part: "the operator \(op)")
                }
            guard !overflow else { throw FetchError.unsupportedPredicate(part: "arithmetic that overflows") }
            return .constant(.int(result))
        case (.double(let a), .double(let b)):
            switch op {
            case .add: return .constant(.double(a + b))
            case .subtract: return .constant(.double(a - b))
            case .multiply: return .constant(.double(a * b))
            @unknown default: throw FetchError.unsupportedPredicate(part: "the operator \(op)")
            }
        default:
            throw FetchError.unsupportedPredicate(part: "arithmetic on these values")
        }
    }
}
