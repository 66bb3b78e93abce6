import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A part of a predicate as a computation in Swift, for what stores cannot answer and for parts that are the same for each object.
struct RowExpression<Output> {
    /// The expression as text: `plays + 1`.
    var text: String
    /// The scopes of the objects on which the result depends.
    var scopes: Set<Int> = []
    /// The variables of closures over values that must have a value when the expression is computed.
    var variables: Set<PredicateExpressions.VariableID> = []
    /// Conditions that follow the relationships that the expression follows.
    var follows: [FollowedPath] = []
    /// The values that the expression uses, for comparing it with others.
    var constants: [CapturedValue] = []
    /// Computes the value. Throws ``MissingValue`` where Swift would stop the program.
    let evaluate: (EvaluatedRow) throws -> Output

    /// Whether the value is the same for each object.
    var isConstant: Bool { scopes.isEmpty && variables.isEmpty }

    init(constant: Output, _ text: String) {
        self.text = text
        constants = [CapturedValue(constant)]
        evaluate = { _ in constant }
    }

    init(_ text: String, of parts: any RowPart..., evaluate: @escaping (EvaluatedRow) throws -> Output) {
        self.text = text
        scopes = parts.reduce(into: []) { $0.formUnion($1.scopes) }
        variables = parts.reduce(into: []) { $0.formUnion($1.variables) }
        follows = parts.flatMap(\.follows)
        constants = parts.flatMap(\.constants)
        self.evaluate = evaluate
    }
}

/// The properties of an expression that those that contain it inherit.
protocol RowPart {
    var scopes: Set<Int> { get }
    var variables: Set<PredicateExpressions.VariableID> { get }
    var follows: [FollowedPath] { get }
    var constants: [CapturedValue] { get }
}

extension CapturedValue {
    /// Returns the values by which conditions are compared.
    static func all(of conditions: StorePredicate...) -> [CapturedValue] {
        conditions.flatMap { condition in
            [CapturedValue(condition.withEvaluatedPartsTrue)]
                + condition.evaluatedParts.flatMap { [CapturedValue($0.description)] + $0.constants }
        }
    }
}

/// A condition that follows relationships from the object of a scope.
struct FollowedPath {
    var scope: Int
    var condition: StorePredicate
}

extension RowExpression: RowPart {}

/// The object for which an expression is computed.
struct EvaluatedRow {
    /// The object of the innermost scope.
    private(set) var key: ObjectKey
    private var scope: Int
    /// The objects of the closures that enclose the innermost scope, and of the condition, outermost first.
    private var enclosing: [ObjectKey] = []
    /// The state that has the object; nil for expressions that are the same for each object.
    let reader: (any ObjectReader)?
    /// The elements for which closures over values are computed.
    var variables: [PredicateExpressions.VariableID: Any] = [:]

    init(key: ObjectKey, scope: Int, reader: (any ObjectReader)?) {
        self.key = key
        self.scope = scope
        self.reader = reader
    }

    /// Returns the object of a scope.
    func key(in scope: Int) -> ObjectKey { scope == self.scope ? key : enclosing[enclosing.count - (self.scope - scope)] }

    /// Returns the row in which a closure is computed for an object.
    func entering(_ key: ObjectKey) -> EvaluatedRow {
        var row = self
        row.enclosing.append(self.key)
        row.key = key
        row.scope += 1
        return row
    }

    func setting(_ variable: PredicateExpressions.VariableID, to value: Any) -> EvaluatedRow {
        var row = self
        row.variables[variable] = value
        return row
    }
}

/// An error where Swift would stop the program, such as an overflow, a division by zero, or `!` on nil. The condition is then false.
struct MissingValue: Error {}

/// A part of a Foundation predicate that can be computed in Swift.
protocol ComputedExpression: PredicateExpression {
    func row(_ lowering: inout PredicateLowering) throws -> RowExpression<Output>
}

extension PredicateLowering {
    /// Returns an expression as a computation.
    mutating func row<E: PredicateExpression>(_ expression: E) throws -> RowExpression<E.Output> {
        try enter()
        defer { leave() }
        guard let computed = expression as? any ComputedExpression else {
            throw FetchError.unsupportedPredicate(part: Self.name(of: E.self))
        }
        do {
            if let row = try self.computed(computed, as: E.Output.self) { return row }
        } catch let error as FetchError where error.code == .unsupportedPredicate {
            // A condition on related objects has only the store's form, which can be computed too.
            guard E.Output.self == Bool.self, let lowerable = expression as? any LowerableExpression else { throw error }
            return try row(of: try lowerable.lower(&self), as: E.Output.self)
        }
        throw FetchError.unsupportedPredicate(part: Self.name(of: E.self))
    }

    private mutating func computed<E: ComputedExpression, T>(_ expression: E, as type: T.Type) throws -> RowExpression<T>? {
        try expression.row(&self) as? RowExpression<T>
    }

    /// Returns the closure over the elements of a value as a computation.
    mutating func row<E: PredicateExpression>(
        _ expression: E, over variable: PredicateExpressions.VariableID
    ) throws -> RowExpression<E.Output> {
        elements.insert(variable)
        defer { elements.remove(variable) }
        var row = try row(expression)
        row.variables.remove(variable)
        return row
    }

    /// Returns the constant that an expression is; nil if it depends on the object.
    mutating func constantTerm<E: PredicateExpression>(_ expression: E) throws -> PredicateTerm? {
        let row = try row(expression)
        guard row.isConstant else { return nil }
        do {
            return PredicateTerm(captured: try row.evaluate(EvaluatedRow(key: 0, scope: scope, reader: nil)))
        } catch is MissingValue {
            // A value has no term then. The condition that contains it is computed, and is false for each object.
            return E.Output.self == Bool.self ? .constant(.bool(false)) : nil
        }
    }

    /// Returns an expression of type `Bool` as a condition that is computed for each object; nil if it depends on an object outside of
    /// the closure. Then the condition that contains the closure is computed.
    mutating func computedTerm<E: PredicateExpression>(_ expression: E) throws -> PredicateTerm? {
        guard let row = try row(expression) as? RowExpression<Bool> else { return nil }
        guard row.variables.isEmpty else {
            throw FetchError.unsupportedPredicate(part: "a closure's condition on an object outside of the closure")
        }
        guard row.scopes.isSubset(of: [scope]) else { return nil }
        let computation = Computation(row: row, scope: scope)
        var condition = EvaluatedCondition(row.text, follows: row.follows.map(\.condition)) { try computation.call($0, $1) }
        condition.constants = row.constants
        return .truth(PredicateTruth(.evaluated(condition)))
    }

    /// `@unchecked Sendable` is safe because `Predicate` is `Sendable`, so all values and key paths of its expression are.
    private struct Computation: @unchecked Sendable {
        let row: RowExpression<Bool>
        let scope: Int

        func call(_ key: ObjectKey, _ reader: any ObjectReader) throws -> Bool {
            do { return try row.evaluate(EvaluatedRow(key: key, scope: scope, reader: reader)) } catch is MissingValue {
                return false
            }
        }
    }

    // MARK: Properties

    /// Returns a term of the store as a computation.
    func row<T>(of term: PredicateTerm, in bound: Int? = nil, as type: T.Type) throws -> RowExpression<T> {
        switch term {
        case .constant(let value):
            let constant: T = try Self.decode(value)
            return RowExpression(constant: constant, "\(value)")
        case .scalar(let scalar): return try row(of: scalar)
        case .truth(let truth): return try row(of: truth, in: bound ?? scope)
        case .objectID(let path): return try row(ofObjectAt: path)
        default: throw FetchError.unsupportedPredicate(part: "\(Self.kind(term)) as a value")
        }
    }

    private func row<T>(of scalar: PredicateScalar) throws -> RowExpression<T> {
        let start = try location(of: scalar.path)
        switch scalar.source {
        case .column(let column, _):
            let name = model.entities[scalar.path.entity].columns[column].name
            var result: RowExpression<T> = onRow(names(of: scalar.path, name), path: scalar.path) { row in
                guard let object = try start.object(row) else { return try Self.decode(scalar.fallback ?? .null) }
                let value = try object.reader.value(object.entity, key: object.key, column: column) ?? .null
                return try Self.decode(value.isNull ? scalar.fallback ?? .null : value)
            }
            result.constants = [CapturedValue(scalar.fallback as Any)]
            return result
        case .count(let relation, let condition):
            let condition = condition.withoutDangling(on: relation.entity, model.storeSchema)
            var result: RowExpression<T> = onRow(names(of: scalar.path, "count"), path: scalar.path) { row in
                guard let object = try start.object(row) else { return try Self.decode(scalar.fallback ?? .null) }
                let keys = try object.reader.related(relation, to: object.key)
                let count = try keys.count { try condition.matches(relation.entity, key: $0, in: object.reader) }
                return try Self.decode(.int(Int64(count)))
            }
            result.follows.append(scalar.path.following(.toMany(relation, .any, where: condition)))
            result.constants = [CapturedValue(scalar.fallback as Any)] + CapturedValue.all(of: condition)
            return result
        }
    }

    private func row<T>(of truth: PredicateTruth, in scope: Int) throws -> RowExpression<T> {
        let entity = scopeEntities[scope]
        let schema = model.storeSchema
        let (isTrue, isDefined) = (
            truth.isTrue.withoutDangling(on: entity, schema), truth.isDefined.withoutDangling(on: entity, schema)
        )
        var result: RowExpression<T> = onRow("a condition", path: PredicatePath(scope: scope, entity: entity)) { row in
            guard let reader = row.reader else { throw MissingValue() }
            let key = row.key(in: scope)
            guard try isDefined.matches(entity, key: key, in: reader) else { return try Self.decode(.null) }
            return try Self.decode(.bool(try isTrue.matches(entity, key: key, in: reader)))
        }
        for part in [isTrue, isDefined] where part.traversesRelationships {
            result.follows.append(FollowedPath(scope: scope, condition: part))
        }
        result.constants = CapturedValue.all(of: isTrue, isDefined)
        return result
    }

    private func row<T>(ofObjectAt path: PredicatePath) throws -> RowExpression<T> {
        let start = try location(of: path)
        let (store, name) = (request.store, model.entities[path.entity].name)
        return onRow(names(of: path, "id"), path: path) { row in
            guard let object = try start.object(row) else {
                guard let none = ObjectID?.none as? T else { throw MissingValue() }
                return none
            }
            let found = ObjectID(store: store, entity: object.entity, key: object.key)
            guard let id = StoredValue.identifier(found, entityName: name, as: T.self) else { throw MissingValue() }
            return id
        }
    }

    private func onRow<T>(
        _ text: String, path: PredicatePath, _ evaluate: @escaping (EvaluatedRow) throws -> T
    ) -> RowExpression<T> {
        var row = RowExpression(text, evaluate: evaluate)
        row.scopes = [path.scope]
        if !path.steps.isEmpty { row.follows = [path.following(.constant(true))] }
        return row
    }

    /// Returns a value in the type of an expression.
    private static func decode<T>(_ value: Value) throws -> T {
        guard let decoded = StoredValue.decode(value, as: T.self) else { throw MissingValue() }
        return decoded
    }

    // MARK: Objects

    /// The way from the object that a condition tests to the object at the end of a path.
    struct RowLocation {
        let scope: Int
        let entity: EntityIndex
        let steps: [ColumnIndex]
        let casts: [Int: StorePredicate]

        /// Returns the object at the end; nil if a reference on the way is nil or its destination is missing.
        func object(_ row: EvaluatedRow) throws -> (reader: any ObjectReader, entity: EntityIndex, key: ObjectKey)? {
            guard let reader = row.reader else { return nil }
            var (entity, key) = (entity, row.key(in: scope))
            if let cast = casts[0], try !cast.matches(entity, key: key, in: reader) { return nil }
            for (position, step) in steps.enumerated() {
                guard let next = try reader.value(entity, key: key, column: step)?.referenceKey,
                    let destination = reader.schema.entities[entity].columns[step].destination,
                    try reader.exists(destination, next)
                else { return nil }
                (entity, key) = (destination, next)
                if let cast = casts[position + 1], try !cast.matches(entity, key: key, in: reader) { return nil }
            }
            return (reader, entity, key)
        }
    }

    /// Returns the way to the object at the end of a path, which begins at the innermost object or at that of an enclosing scope.
    func location(of path: PredicatePath) throws -> RowLocation {
        guard scopeEntities.indices.contains(path.scope) else {
            throw FetchError.unsupportedPredicate(part: "an object outside of its closure")
        }
        return RowLocation(scope: path.scope, entity: scopeEntities[path.scope], steps: path.steps, casts: path.casts)
    }

    /// Returns the names of a path's properties: `singer.name`.
    func names(of path: PredicatePath, _ last: String) -> String {
        var names: [String] = []
        var entity = scopeEntities[min(path.scope, scopeEntities.count - 1)]
        for step in path.steps {
            let column = model.entities[entity].columns[step]
            names.append(column.name)
            entity = column.destination ?? entity
        }
        return (names + [last]).joined(separator: ".")
    }
}
