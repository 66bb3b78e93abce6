import StoreInterface

/// A condition by names, for entities known at run time and for what `#Predicate` cannot say.
///
/// A name is that of a property, or a path through to-one relationships: `"artist.name"`. A path that meets nil behaves as
/// `?.` does: comparisons are false, and the value equals nil.
public indirect enum Condition: Sendable, Hashable {
    /// True for every object.
    case always
    case all([Condition])
    case any([Condition])
    case not(Condition)
    case compare(String, StorePredicate.Comparison, Value)
    case isNil(String)
    case isIn(String, [Value])
    /// Both bounds belong to the range.
    case between(String, Value, Value)
    case string(String, StorePredicate.StringMatch, String, StorePredicate.CaseSensitivity)
    /// The object itself is one of these.
    case ids([ObjectID])
    /// Any, all or none of the objects of a to-many relationship satisfy a condition.
    case related(String, StorePredicate.Quantifier, Condition)
    /// How many objects of a to-many relationship satisfy a condition, compared with a number.
    case relatedCount(String, Condition, StorePredicate.Comparison, Int)

    public static func equal(_ name: String, _ value: Value) -> Condition { .compare(name, .equal, value) }
}

extension Condition {
    func storePredicate(on entity: Entity, in scope: RequestScope) throws -> StorePredicate {
        try lowered(on: entity.number, ConditionLowering(lowering: PredicateLowering(scope)))
    }

    private func lowered(on entity: Int, _ names: ConditionLowering) throws -> StorePredicate {
        let lowering = names.lowering
        switch self {
        case .always: return .constant(true)
        case .all(let parts): return .all(try parts.map { try $0.lowered(on: entity, names) })
        case .any(let parts): return .any(try parts.map { try $0.lowered(on: entity, names) })
        case .not(let part): return .negating(try part.lowered(on: entity, names))
        case .compare(let name, let comparison, let value):
            return try compare(try names.term(name, on: entity), comparison, value, lowering)
        case .isNil(let name):
            return try lowering.equal(try names.term(name, on: entity), .constant(.null))
        case .isIn(let name, let values):
            return try lowering.isIn(try names.value(name, on: entity), .constants(values))
        case .between(let name, let lower, let upper):
            return try lowering.isWithin(try names.value(name, on: entity), PredicateRange(lower: lower, upper: upper))
        case .string(let name, let match, let pattern, let sensitivity):
            guard case .scalar(let scalar) = try names.value(name, on: entity) else { throw names.unknown(name, on: entity) }
            return try lowering.on(scalar, { .string($0, match, pattern, sensitivity) }, fallback: { _ in false })
        case .ids(let ids):
            return try lowering.isIn(.objectID(PredicatePath(scope: 0, entity: entity)), .identities(ids))
        case .related(let name, let quantifier, let part):
            let collection = try names.collection(name, on: entity)
            let inner = try part.lowered(on: collection.relation.entity, names)
            return try lowering.along(collection.path, .toMany(collection.relation, quantifier, inner))
        case .relatedCount(let name, let part, let comparison, let number):
            let collection = try names.collection(name, on: entity)
            let inner = try part.lowered(on: collection.relation.entity, names)
            return try lowering.along(collection.path, .toManyCount(collection.relation, inner, comparison, number))
        }
    }

    private func compare(
        _ term: PredicateTerm, _ comparison: StorePredicate.Comparison, _ value: Value, _ lowering: PredicateLowering
    ) throws -> StorePredicate {
        var term = term
        if case .object(var path) = term, let column = path.steps.popLast(), !value.isNull {
            term = .scalar(PredicateScalar(path: path, source: .column(column, isOptional: true)))
        }
        switch comparison {
        case .equal: return try lowering.equal(term, .constant(value))
        case .notEqual: return .negating(try lowering.equal(term, .constant(value)))
        default: return try lowering.ordered(term, comparison, .constant(value))
        }
    }
}

/// Finds properties by name. Every closure of a ``Condition`` speaks of its own object only, so there is one scope.
private struct ConditionLowering {
    let lowering: PredicateLowering

    func term(_ name: String, on entity: Int) throws -> PredicateTerm {
        var path = PredicatePath(scope: 0, entity: entity)
        if !name.utf8.contains(UInt8(ascii: ".")) { return try property(name, at: path) }
        let names = name.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
        var result: PredicateTerm?
        for (index, part) in names.enumerated() {
            let found = try property(part, at: path)
            if case .object(let next) = found { path = next } else if index < names.count - 1 { throw unknown(name, on: entity) }
            result = found
        }
        guard let result else { throw unknown(name, on: entity) }
        return result
    }

    /// A column at the end of a path; a to-one relationship counts as its reference.
    func value(_ name: String, on entity: Int) throws -> PredicateTerm {
        let term = try term(name, on: entity)
        if case .object(var path) = term, let column = path.steps.popLast() {
            return .scalar(PredicateScalar(path: path, source: .column(column, isOptional: true)))
        }
        return term
    }

    func collection(_ name: String, on entity: Int) throws -> PredicateCollection {
        guard case .collection(let collection) = try term(name, on: entity) else { throw unknown(name, on: entity) }
        return collection
    }

    func unknown(_ name: String, on entity: Int) -> FetchError {
        .unknownProperty(entity: lowering.model.entities[entity].name, property: name)
    }

    private func property(_ name: String, at path: PredicatePath) throws -> PredicateTerm {
        guard let term = lowering.property(named: name, at: path) else { throw unknown(name, on: path.entity) }
        return term
    }
}
