import StoreInterface

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A part of a Foundation predicate that can be converted to a term with column numbers.
protocol LowerableExpression {
    func lower(_ lowering: inout PredicateLowering) throws -> PredicateTerm
}

/// Converts a Foundation predicate to a `StorePredicate`, once per request.
///
/// Optionals follow Swift: nil equals nil, and other comparisons with nil are false. `!` on nil, which would trap in Swift, behaves
/// like `?`.
struct PredicateLowering {
    let model: Model
    /// The scope in which ids among captured values are looked up.
    let request: RequestScope
    /// The number of collections that enclose the current part.
    private(set) var scope = 0
    /// The entity that the request fetches, for error messages.
    private var fetched = 0
    /// The number of parts that enclose the current part.
    private var depth = 0
    private var bindings: [PredicateExpressions.VariableID: PredicateTerm] = [:]

    init(_ request: RequestScope) {
        model = request.model
        self.request = request
    }

    static func lower<M: PersistentModel>(_ predicate: Predicate<M>, entity: Int, in request: RequestScope) throws
        -> StorePredicate
    {
        var lowering = PredicateLowering(request)
        lowering.fetched = entity
        lowering.bindings[predicate.variable.key] = .object(PredicatePath(scope: 0, entity: entity))
        let lowered = try lowering.truth(predicate.expression).isTrue
            .withoutDangling(on: entity, request.model.storeSchema)
        // Equality of conditions and `?:` each become several levels, and a view adds a few of its own.
        let limit = StorePredicate.maximumDepth - 8
        guard lowered.depth <= limit else { throw lowering.tooDeep(lowered.depth, limit: limit) }
        return lowered
    }

    private func tooDeep(_ depth: Int, limit: Int) -> FetchError {
        .conditionTooDeep(entity: model.entities[fetched].name, depth: depth, limit: limit)
    }

    // MARK: Parts

    mutating func term<E: PredicateExpression>(_ expression: E) throws -> PredicateTerm {
        guard let lowerable = expression as? any LowerableExpression else {
            throw FetchError.unsupportedPredicate(part: Self.name(of: E.self))
        }
        depth += 1
        defer { depth -= 1 }
        guard depth <= Condition.maximumDepth else { throw tooDeep(depth, limit: Condition.maximumDepth) }
        return try lowerable.lower(&self)
    }

    /// Returns the parts of a chain of `&&` or `||`, in order. A chain nests as deep as it is long, so this uses a loop instead of
    /// recursion.
    mutating func chain(
        _ expression: any PredicateExpression,
        _ sides: (any PredicateExpression) -> (left: any PredicateExpression, right: any PredicateExpression)?
    ) throws -> [StorePredicate] {
        var pending = [expression]
        var parts: [StorePredicate] = []
        while let next = pending.popLast() {
            if let (left, right) = sides(next) {
                pending += [right, left]
            } else {
                parts.append(try truth(next).isTrue)
            }
        }
        return parts
    }

    mutating func truth<E: PredicateExpression>(_ expression: E) throws -> PredicateTruth {
        guard let truth = try asTruth(try term(expression)) else {
            throw FetchError.unsupportedPredicate(part: "\(Self.name(of: E.self)) as a condition")
        }
        return truth
    }

    mutating func constant<E: PredicateExpression>(_ expression: E, for part: String) throws -> Value {
        guard case .constant(let value) = try term(expression) else {
            throw FetchError.unsupportedPredicate(part: "\(part) with something other than a captured value")
        }
        return value
    }

    func binding(_ key: PredicateExpressions.VariableID) throws -> PredicateTerm {
        guard let term = bindings[key] else { throw FetchError.unsupportedPredicate(part: "an unknown variable") }
        return term
    }

    /// Converts a part in which a variable is bound to a term, as in `?.`.
    mutating func lower<E: PredicateExpression>(
        _ expression: E, binding key: PredicateExpressions.VariableID, to term: PredicateTerm
    ) throws -> PredicateTerm {
        bindings[key] = term
        return try self.term(expression)
    }

    /// Converts the condition of a closure over the elements of a collection.
    mutating func condition<E: PredicateExpression>(
        _ expression: E, binding key: PredicateExpressions.VariableID, toElementsOf collection: PredicateCollection
    ) throws -> StorePredicate {
        scope += 1
        defer { scope -= 1 }
        bindings[key] = .object(PredicatePath(scope: scope, entity: collection.relation.entity))
        return try truth(expression).isTrue
    }

    mutating func collection<E: PredicateExpression>(_ expression: E, for part: String) throws -> PredicateCollection {
        guard case .collection(let collection) = try term(expression) else {
            throw FetchError.unsupportedPredicate(part: "\(part) of something other than a to-many relationship")
        }
        return collection
    }

    /// Returns the name of an expression type: `Comparison` for `PredicateExpressions.Comparison<…>`.
    static func name(of type: (some PredicateExpression).Type) -> String {
        let name = String(describing: type)
        return String(name.prefix { $0 != "<" })
    }

    // MARK: Conditions on paths

    /// Returns a condition on the object at the end of a path as a condition on the object at its start. It is false if there is no
    /// such object.
    func along(_ path: PredicatePath, _ condition: StorePredicate) throws -> StorePredicate {
        guard path.scope == scope else {
            throw FetchError.unsupportedPredicate(part: "a closure's condition on an object outside of the closure")
        }
        return path.steps.reversed().reduce(condition) { .toOne($1, $0) }
    }

    /// Returns a condition that there is an object at the end of a path.
    func exists(_ path: PredicatePath) throws -> StorePredicate {
        guard let last = path.steps.last else { return .constant(true) }
        var prefix = path
        prefix.steps.removeLast()
        return try along(prefix, .compare(last, .notEqual, .null))
    }

    /// Returns a condition that a scalar is not nil, without its fallback.
    func isPresent(_ scalar: PredicateScalar) throws -> StorePredicate {
        guard scalar.mayBeNil else { return .constant(true) }
        switch scalar.source {
        case .column(let column, isOptional: true): return try along(scalar.path, .compare(column, .notEqual, .null))
        default: return try exists(scalar.path)
        }
    }

    /// Returns a condition on a column. For nil, the result is that of the fallback, or false if there is none.
    func on(
        _ scalar: PredicateScalar, _ leaf: (Int) -> StorePredicate, fallback matches: (Value) -> Bool
    ) throws -> StorePredicate {
        guard case .column(let column, _) = scalar.source else {
            throw FetchError.unsupportedPredicate(part: "a count in this place")
        }
        let present = try along(scalar.path, leaf(column))
        guard let fallback = scalar.fallback, matches(fallback) else { return present }
        return .any([present, .negating(try isPresent(scalar))])
    }

    func asTruth(_ term: PredicateTerm) throws -> PredicateTruth? {
        switch term {
        case .truth(let truth): return truth
        case .constant(.bool(let value)): return PredicateTruth(.constant(value))
        case .constant(.null): return PredicateTruth(.constant(false), isDefined: .constant(false))
        case .scalar(let scalar):
            guard case .column(let column, _) = scalar.source,
                model.entities[scalar.path.entity].columns[column].type == .bool
            else { return nil }
            let isTrue = try on(scalar, { .compare($0, .equal, .bool(true)) }, fallback: { $0 == .bool(true) })
            return PredicateTruth(isTrue, isDefined: scalar.fallback == nil ? try isPresent(scalar) : .constant(true))
        default: return nil
        }
    }
}
