import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A part of a Foundation predicate that can be converted to a term with the positions of columns.
protocol LowerableExpression {
    func lower(_ lowering: inout PredicateLowering) throws -> PredicateTerm
}

/// Converts a Foundation predicate to a `StorePredicate`, once per request.
///
/// Optionals follow Swift: nil equals nil, and other comparisons with nil are false. `!` on nil, which would trap in Swift, behaves
/// like `?`. A part that is the same for each object is evaluated once, here. A condition that stores cannot answer becomes an
/// ``EvaluatedCondition`` (see ``RowExpression``).
struct PredicateLowering {
    let model: Model
    /// The scope in which ids among captured values are looked up.
    let request: RequestScope
    /// The number of collections that enclose the current part.
    private(set) var scope = 0
    /// The entity that the request fetches, for error messages.
    private var fetched: EntityIndex = 0
    /// The number of parts that enclose the current part.
    private var depth = 0
    private var bindings: [PredicateExpressions.VariableID: PredicateTerm] = [:]
    /// The scopes in which `?.` and `if let` have bound variables. A condition has no path that says to which object it belongs.
    private var boundScopes: [PredicateExpressions.VariableID: Int] = [:]

    /// Returns the scope in which a variable was bound.
    func boundScope(of key: PredicateExpressions.VariableID) -> Int { boundScopes[key] ?? scope }
    /// The entity that the condition of each enclosing scope tests, from the fetched entity to the innermost collection.
    private(set) var scopeEntities: [EntityIndex] = []
    /// The variables of closures over values, which have no term.
    var elements: Set<PredicateExpressions.VariableID> = []

    init(_ request: RequestScope) {
        model = request.model
        self.request = request
    }

    static func lower<M: PersistentModel>(_ predicate: Predicate<M>, entity: EntityIndex, in request: RequestScope) throws
        -> StorePredicate
    {
        var lowering = PredicateLowering(request)
        lowering.fetched = entity
        lowering.scopeEntities = [entity]
        lowering.bindings[predicate.variable.key] = .object(PredicatePath(scope: 0, entity: entity))
        let lowered: StorePredicate
        do {
            lowered = try lowering.truth(predicate.expression).isTrue.withoutDangling(on: entity, request.model.storeSchema)
        } catch let failure as Unanswerable {
            throw failure.error
        }
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
        try enter()
        defer { leave() }
        do {
            guard let lowerable = expression as? any LowerableExpression else {
                throw FetchError.unsupportedPredicate(part: Self.name(of: E.self))
            }
            return try lowerable.lower(&self)
        } catch let error as FetchError where error.code == .unsupportedPredicate {
            return try withoutStore(expression, error)
        }
    }

    /// Returns a part that stores cannot answer as a constant, or as a condition that is computed for each object.
    ///
    /// - Throws: The store's error for a value, which the condition that contains it may be able to compute.
    private mutating func withoutStore<E: PredicateExpression>(_ expression: E, _ error: FetchError) throws -> PredicateTerm {
        do {
            if let term = try constantTerm(expression) ?? computedTerm(expression) { return term }
        } catch let other as FetchError where other.code == .unsupportedPredicate {
            if E.Output.self == Bool.self { throw Unanswerable(error: other) }
        } catch is MissingValue {
            // Swift would stop the program at this captured value.
        }
        throw error
    }

    /// An error about a condition that neither stores nor Swift can answer. Conditions that contain it do not try again.
    private struct Unanswerable: Error {
        var error: FetchError
    }

    mutating func enter() throws {
        depth += 1
        guard depth <= Condition.maximumDepth else {
            depth -= 1
            throw tooDeep(depth + 1, limit: Condition.maximumDepth)
        }
    }

    mutating func leave() { depth -= 1 }

    /// Returns the parts of a chain of `&&` or `||`, in order. A chain nests as deep as it is long, so this uses a loop instead of
    /// recursion.
    ///
    /// - Parameter decisive: The constant that decides the result. The parts after it are not converted.
    mutating func chain(
        _ expression: any PredicateExpression, until decisive: Bool,
        _ sides: (any PredicateExpression) -> (left: any PredicateExpression, right: any PredicateExpression)?
    ) throws -> [StorePredicate] {
        var pending = [expression]
        var parts: [StorePredicate] = []
        while let next = pending.popLast() {
            if let (left, right) = sides(next) {
                pending += [right, left]
            } else {
                let part = try truth(next).isTrue
                if part == .constant(decisive) { return [part] }
                parts.append(part)
            }
        }
        return parts
    }

    mutating func truth<E: PredicateExpression>(_ expression: E) throws -> PredicateTruth {
        guard let truth = try asTruth(try term(expression)) else {
            throw FetchError.unsupportedPredicate(part: "a value of type \(E.Output.self) as a condition")
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
        boundScopes[key] = scope
        return try self.term(expression)
    }

    /// Returns a part in which a variable is bound to a term as a computation.
    mutating func row<E: PredicateExpression>(
        _ expression: E, binding key: PredicateExpressions.VariableID, to term: PredicateTerm
    ) throws -> RowExpression<E.Output> {
        bindings[key] = term
        boundScopes[key] = scope
        return try row(expression)
    }

    /// Converts the condition of a closure over the elements of a collection.
    mutating func condition<E: PredicateExpression>(
        _ expression: E, binding key: PredicateExpressions.VariableID, toElementsOf collection: PredicateCollection
    ) throws -> StorePredicate {
        try inClosure(over: collection.relation.entity, key) { try $0.truth(expression).isTrue }
    }

    /// Runs `body` in the scope of a closure over objects of an entity, to which a variable is bound.
    mutating func inClosure<R>(
        over entity: EntityIndex, _ key: PredicateExpressions.VariableID, _ body: (inout PredicateLowering) throws -> R
    ) rethrows -> R {
        scope += 1
        scopeEntities.append(entity)
        defer {
            scope -= 1
            scopeEntities.removeLast()
        }
        bindings[key] = .object(PredicatePath(scope: scope, entity: entity))
        return try body(&self)
    }

    mutating func collection<E: PredicateExpression>(_ expression: E, for part: String) throws -> PredicateCollection {
        guard case .collection(let collection) = try term(expression) else {
            throw FetchError.unsupportedPredicate(part: "\(part) of something other than a to-many relationship")
        }
        return collection
    }

    /// Returns words for an expression type that is not one of Foundation's, or newer than this library.
    static func name(of type: (some PredicateExpression).Type) -> String {
        "the expression \("\(type)".prefix { $0 != "<" })"
    }

    // MARK: Conditions on paths

    /// Returns a condition on the object at the end of a path as a condition on the object at its start. It is false if there is no
    /// such object.
    func along(_ path: PredicatePath, _ condition: StorePredicate) throws -> StorePredicate {
        guard path.scope == scope else {
            throw FetchError.unsupportedPredicate(part: "a closure's condition on an object outside of the closure")
        }
        guard !path.casts.isEmpty else { return path.steps.reversed().reduce(condition) { .toOne($1, $0) } }
        var result = condition
        for depth in stride(from: path.steps.count, through: 0, by: -1) {
            if let cast = path.casts[depth] { result = .all([cast, result]) }
            if depth > 0 { result = .toOne(path.steps[depth - 1], result) }
        }
        return result
    }

    /// Returns a condition that there is an object at the end of a path.
    func exists(_ path: PredicatePath) throws -> StorePredicate {
        guard path.casts[path.steps.count] == nil else { return try along(path, .constant(true)) }
        guard let last = path.steps.last else { return .constant(true) }
        var prefix = path
        prefix.steps.removeLast()
        return try along(prefix, .compare(last, .notEqual, to: .null))
    }

    /// Returns a condition that a scalar is not nil, without its fallback.
    func isPresent(_ scalar: PredicateScalar) throws -> StorePredicate {
        guard scalar.mayBeNil else { return .constant(true) }
        switch scalar.source {
        case .column(let column, isOptional: true): return try along(scalar.path, .compare(column, .notEqual, to: .null))
        default: return try exists(scalar.path)
        }
    }

    /// Returns a condition on a column. For nil, the result is that of the fallback, or false if there is none.
    func on(
        _ scalar: PredicateScalar, _ leaf: (ColumnIndex) -> StorePredicate, fallback matches: (Value) -> Bool
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
            let isTrue = try on(scalar, { .compare($0, .equal, to: .bool(true)) }, fallback: { $0 == .bool(true) })
            return PredicateTruth(isTrue, isDefined: scalar.fallback == nil ? try isPresent(scalar) : .constant(true))
        default: return nil
        }
    }
}
