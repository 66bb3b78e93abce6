import StoreInterface
import StoreModel

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
    func lower(_ lowering: inout PredicateLowering) throws -> PredicateTerm {
        let term = try lowering.binding(key)
        guard case .truth = term, lowering.boundScope(of: key) != lowering.scope else { return term }
        throw FetchError.unsupportedPredicate(part: "a condition on an object outside of the closure that uses it")
    }
}

extension PredicateExpressions.KeyPath: LowerableExpression {
    func lower(_ lowering: inout PredicateLowering) throws -> PredicateTerm {
        switch try lowering.term(root) {
        case .object(let path):
            return try lowering.property(
                keyPath, of: Root.Output.self, isID: Output.self is any ObjectIDConvertible.Type, at: path)
        case .collection(let collection):
            switch kind {
            case .collectionCount:
                return .scalar(
                    PredicateScalar(path: collection.path, source: .count(collection.relation, collection.condition)))
            case .collectionIsEmpty:
                let isEmpty = StorePredicate.toMany(collection.relation, .none, where: collection.condition)
                return .truth(PredicateTruth(try lowering.along(collection.path, isEmpty)))
            default: break
            }
        case .scalar(let scalar) where kind == .collectionIsEmpty && Root.Output.self == String.self:
            return .truth(PredicateTruth(try lowering.equal(.scalar(scalar), .constant(.string("")))))
        case .scalar(let scalar) where RawValuePath.is(keyPath, of: Root.Output.self):
            return .scalar(scalar)
        default: break
        }
        throw FetchError.unsupportedPredicate(part: RowText.name(of: keyPath) ?? "a computed property")
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
            throw FetchError.unknownProperty(entity: entity.name, property: RowText.property(keyPath))
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
            if let destination = entity.columns[column].destination {
                return .object(path.appending(column, entity: destination))
            }
            return .scalar(PredicateScalar(path: path, source: .column(column, isOptional: entity.columns[column].isOptional)))
        }
        guard case .toMany(let relation)? = entity.relationship(named: name)?.kind else { return nil }
        return .collection(PredicateCollection(path: path, relation: relation))
    }
}

/// Recognizes the key path `rawValue` of an enum, whose attribute has the same stored value.
private enum RawValuePath {
    /// Returns whether a key path gives the raw value of each case. Key paths made in generic code equal no others, so this compares
    /// results. Other enums than those with all cases are computed.
    static func `is`(_ keyPath: AnyKeyPath, of type: Any.Type) -> Bool {
        guard let type = type as? any (CaseIterable & RawRepresentable).Type else { return false }
        return gives(keyPath, type)
    }

    private static func gives<E: CaseIterable & RawRepresentable>(_ keyPath: AnyKeyPath, _ type: E.Type) -> Bool {
        guard Swift.type(of: keyPath).valueType == E.RawValue.self else { return false }
        return E.allCases.allSatisfy { element in
            guard let value = StoredValue.rawValue(of: element) else { return false }
            return (element[keyPath: keyPath] as? any AttributeValue)?.storeValue == value
        }
    }
}
