import StoreInterface
import StoreModel

/// A condition by property names, for entities known at run time and for tests that `#Predicate` cannot express.
///
/// A name is that of a property, or a path through to-one relationships: `"artist.name"`. A nil in a path behaves as
/// with `?.`: the value equals nil, and other comparisons are false.
///
/// Lists may have any number of parts. Nesting is limited to ``maximumDepth`` levels. A condition that is nested deeper keeps its
/// depth and drops its parts. Every request with such a condition throws ``FetchError/conditionTooDeep(entity:depth:limit:)``.
///
/// ```swift
/// let live = FetchRequest<Track>(
///     matching: .all([
///         .string("title", .hasSuffix, pattern: "(live)", sensitivity: .insensitive), .not(.equal("isrc", "")),
///     ]))
/// ```
public struct Condition: Sendable, Hashable {
    /// The greatest ``depth`` that a request may have, on every store.
    public static let maximumDepth = 64

    let form: Form
    /// The number of nested levels. A comparison has one level per name of its path. `not`, a list and a condition on
    /// related objects have one more level than their deepest part. A list in a list of the same kind is merged into it.
    public let depth: Int

    indirect enum Form: Sendable, Hashable {
        case always
        case all([Condition])
        case any([Condition])
        case not(Condition)
        case compare(String, StorePredicate.Comparison, Value)
        case isNil(String)
        case isIn(String, [Value])
        case between(String, Value, Value)
        case string(String, StorePredicate.StringMatch, String, StorePredicate.CaseSensitivity)
        case ids([ObjectID])
        case related(String, StorePredicate.Quantifier, Condition)
        case relatedCount(String, Condition, StorePredicate.Comparison, Int)
        case isKind(String?, of: String, Condition)
        /// Nested deeper than ``Condition/maximumDepth``. Every request throws before it evaluates this.
        case tooDeep
    }

    private init(_ form: Form, depth: Int = 1) {
        self.form = depth > Self.maximumDepth ? .tooDeep : form
        self.depth = depth
    }

    private init(_ form: Form, path: String, over part: Int = 0) {
        self.init(form, depth: path.utf8.count { $0 == UInt8(ascii: ".") } + 1 + part)
    }

    /// Throws if the condition is nested deeper than ``maximumDepth``. O(1).
    func checkDepth(_ entity: String) throws {
        guard depth > Self.maximumDepth else { return }
        throw FetchError.conditionTooDeep(entity: entity, depth: depth, limit: Self.maximumDepth)
    }
}

// MARK: Creating conditions

extension Condition {
    /// A condition that every object satisfies.
    public static let always = Condition(.always)

    /// Returns a condition that is true if all parts are true.
    public static func all(_ parts: [Condition]) -> Condition {
        let parts = parts.flatMap { if case .all(let inner) = $0.form { inner } else { [$0] } }
        return Condition(.all(parts), depth: depth(over: parts))
    }

    /// Returns a condition that is true if any part is true.
    public static func any(_ parts: [Condition]) -> Condition {
        let parts = parts.flatMap { if case .any(let inner) = $0.form { inner } else { [$0] } }
        return Condition(.any(parts), depth: depth(over: parts))
    }

    /// Returns the negation of a condition.
    public static func not(_ part: Condition) -> Condition { Condition(.not(part), depth: part.depth + 1) }

    /// Returns a condition that compares a property with a value. A number can be compared with a `Decimal`.
    ///
    /// A value of another type than the property's equals none of its values. A request that selects objects by their order throws
    /// ``FetchError/unsupportedPredicate(part:)``. In `having`, values of two types have an order.
    public static func compare(_ name: String, _ comparison: StorePredicate.Comparison, to value: Value) -> Condition {
        Condition(.compare(name, comparison, value), path: name)
    }

    /// Returns a condition that a property equals a value.
    public static func equal(_ name: String, _ value: Value) -> Condition { .compare(name, .equal, to: value) }

    /// Returns a condition that a property is nil.
    public static func isNil(_ name: String) -> Condition { Condition(.isNil(name), path: name) }

    /// Returns a condition that a property equals one of the values.
    public static func isIn(_ name: String, _ values: [Value]) -> Condition { Condition(.isIn(name, values), path: name) }

    /// Returns a condition that a property is in a range that includes both bounds.
    public static func between(_ name: String, _ lower: Value, and upper: Value) -> Condition {
        Condition(.between(name, lower, upper), path: name)
    }

    /// Returns a condition that a string property contains, begins with or ends with a pattern, as `match` selects.
    public static func string(
        _ name: String, _ match: StorePredicate.StringMatch, pattern: String, sensitivity: StorePredicate.CaseSensitivity
    ) -> Condition {
        Condition(.string(name, match, pattern, sensitivity), path: name)
    }

    /// Returns a condition that the object's id is one of these.
    public static func ids(_ ids: [ObjectID]) -> Condition { Condition(.ids(ids)) }

    /// Returns a condition that any, all or none of the objects of a to-many relationship satisfy a condition.
    public static func related(_ name: String, _ quantifier: StorePredicate.Quantifier, where part: Condition) -> Condition {
        Condition(.related(name, quantifier, part), path: name, over: part.depth)
    }

    /// Returns a condition that compares a number with the count of objects of a to-many relationship that satisfy a condition.
    public static func relatedCount(
        _ name: String, where part: Condition, _ comparison: StorePredicate.Comparison, to number: Int
    ) -> Condition {
        Condition(.relatedCount(name, part, comparison, number), path: name, over: part.depth)
    }

    /// Returns a condition that an object is of an entity, or of one that inherits from it, and satisfies another condition, which may
    /// name properties of that entity (S182).
    ///
    /// ```swift
    /// let costly = Condition.isKind(of: "BusinessTrip", where: .compare("perDiem", .greater, to: 100))
    /// let request = EntityFetchRequest("Trip", matching: .any([costly, .equal("name", "Home")]))
    /// ```
    /// - Parameters:
    ///   - name: A relationship to one object, or a path of such names; nil for the object that the condition tests.
    ///   - entity: The name of the entity.
    ///   - condition: The other condition.
    public static func isKind(_ name: String? = nil, of entity: String, where condition: Condition = .always) -> Condition {
        Condition(.isKind(name, of: entity, condition), path: name ?? "", over: condition.depth)
    }

    private static func depth(over parts: [Condition]) -> Int { parts.reduce(0) { max($0, $1.depth) } + 1 }
}

extension Condition {
    func storePredicate(on entity: Entity, in scope: RequestScope) throws -> StorePredicate {
        try checkDepth(entity.name)
        return try lowered(on: entity, ConditionLowering(lowering: PredicateLowering(scope)))
            .withoutDangling(on: entity.number, scope.model.storeSchema)
    }

    private func lowered(on entity: Entity, _ names: ConditionLowering) throws -> StorePredicate {
        switch form {
        case .always, .tooDeep: return .constant(true)
        case .all(let parts): return .all(try parts.map { try $0.lowered(on: entity, names) })
        case .any(let parts): return .any(try parts.map { try $0.lowered(on: entity, names) })
        case .not(let part): return .negating(try part.lowered(on: entity, names))
        case .compare(let name, let comparison, let value):
            let term = value.isNull ? try names.term(name, on: entity) : try names.value(name, on: entity)
            return try compare(term, comparison, to: value, lowering: names.lowering)
        case .isNil(let name):
            return try names.lowering.equal(try names.term(name, on: entity), .constant(.null))
        case .isIn(let name, let values):
            return try names.lowering.isIn(try names.value(name, on: entity), .constants(values))
        case .between(let name, let lower, let upper):
            return try names.lowering.isWithin(try names.value(name, on: entity), PredicateRange(lower: lower, upper: upper))
        case .string(let name, let match, let pattern, let sensitivity):
            guard case .scalar(let scalar) = try names.value(name, on: entity) else { throw names.unknown(name, on: entity) }
            return try names.lowering.on(
                scalar, { .string($0, match, pattern: pattern, sensitivity: sensitivity) }, fallback: { _ in false })
        case .ids(let ids):
            return try names.lowering.isIn(.objectID(PredicatePath(scope: 0, entity: entity.number)), .identities(ids))
        case .related(let name, let quantifier, let part):
            let (collection, members) = try names.collection(name, on: entity)
            let inner = try part.lowered(on: members, names)
            return try names.lowering.along(collection.path, .toMany(collection.relation, quantifier, where: inner))
        case .relatedCount(let name, let part, let comparison, let number):
            let (collection, members) = try names.collection(name, on: entity)
            let inner = try part.lowered(on: members, names)
            return try names.lowering.along(
                collection.path, .toManyCount(collection.relation, where: inner, comparison, to: number))
        case .isKind(let name, let kind, let part):
            guard let wanted = names.lowering.model.entity(named: kind) else { throw FetchError.unknownEntity(kind) }
            var path = PredicatePath(scope: 0, entity: entity.number)
            if let name {
                guard case .object(let found) = try names.term(name, on: entity) else { throw names.unknown(name, on: entity) }
                path = found
            }
            guard let cast = names.lowering.cast(path, to: wanted) else { return .constant(false) }
            let inner = try part.lowered(on: wanted, names)
            return .all([try names.lowering.exists(cast), try names.lowering.along(cast, inner)])
        }
    }

    private func compare(
        _ term: PredicateTerm, _ comparison: StorePredicate.Comparison, to value: Value, lowering: PredicateLowering
    ) throws -> StorePredicate {
        switch comparison {
        case .equal: return try lowering.equal(term, .constant(value))
        case .notEqual: return .negating(try lowering.equal(term, .constant(value)))
        default: return try lowering.ordered(term, comparison, to: .constant(value))
        }
    }
}

/// Resolves properties by name. Each condition refers only to its own object, so there is one scope.
private struct ConditionLowering {
    let lowering: PredicateLowering

    func term(_ name: String, on entity: Entity) throws -> PredicateTerm {
        // The usual case, without an array of names and a search for a relationship.
        if entity.column(named: name) != nil,
            let term = lowering.property(named: name, at: PredicatePath(scope: 0, entity: entity.number))
        {
            return term
        }
        return try found(name, on: entity).term
    }

    /// Returns a property, and the entity of the objects to which it leads if it is a relationship.
    private func found(_ name: String, on entity: Entity) throws -> (term: PredicateTerm, destination: Entity?) {
        let path = PredicatePath(scope: 0, entity: entity.number)
        let names = entity.names(onPath: name, in: lowering.model)
        if names.count == 1 { return try property(name, of: entity, at: path) }
        var result = (term: PredicateTerm.object(path), destination: Optional(entity))
        for part in names {
            guard case .object(let next) = result.term, let owner = result.destination else { throw unknown(name, on: entity) }
            result = try property(part, of: owner, at: next)
        }
        return result
    }

    /// Returns a column at the end of a path. A to-one relationship is represented by its reference.
    func value(_ name: String, on entity: Entity) throws -> PredicateTerm {
        let term = try term(name, on: entity)
        guard case .object(var path) = term, let column = path.steps.popLast() else { return term }
        path.entity = path.steps.reduce(entity.number) { lowering.model.entities[$0].columns[$1].destination ?? $0 }
        return .scalar(PredicateScalar(path: path, source: .column(column, isOptional: true)))
    }

    /// Returns a to-many relationship, and the entity of its objects.
    func collection(_ name: String, on entity: Entity) throws -> (PredicateCollection, members: Entity) {
        guard case (.collection(let collection), let members?) = try found(name, on: entity) else {
            throw unknown(name, on: entity)
        }
        return (collection, members)
    }

    func unknown(_ name: String, on entity: Entity) -> FetchError {
        .unknownProperty(entity: entity.name, property: name)
    }

    private func property(
        _ name: String, of entity: Entity, at path: PredicatePath
    ) throws -> (term: PredicateTerm, destination: Entity?) {
        let relationship = entity.relationship(named: name)
        guard relationship != nil || entity.column(named: name) != nil,
            let term = lowering.property(named: name, at: path)
        else { throw unknown(name, on: entity) }
        return (term, relationship.map(lowering.model.destination))
    }
}
