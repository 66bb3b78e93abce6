import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The destinations of a to-many relationship as a computation, for closures over them that also use objects outside of the closure.
struct RelatedRows: RowPart {
    /// The expression as text: `owner.errands`.
    var text: String
    /// The path to the object whose relationship it is.
    let path: PredicatePath
    let relation: Relation
    var scopes: Set<Int>
    var variables: Set<PredicateExpressions.VariableID> = []
    var follows: [FollowedPath]
    var constants: [CapturedValue]
    /// Returns the row of the closure for each destination.
    var rows: (EvaluatedRow) throws -> [EvaluatedRow]
}

/// An expression whose value is a part of a to-many relationship, other than a key path.
protocol RelatedExpression: PredicateExpression {
    func related(_ lowering: inout PredicateLowering) throws -> RelatedRows
}

extension PredicateExpressions.Filter: RelatedExpression {
    func related(_ lowering: inout PredicateLowering) throws -> RelatedRows {
        guard let (all, test) = try lowering.closure(filter, over: sequence, variable.key) else {
            throw FetchError.unsupportedPredicate(part: "filter(_:) of something other than a to-many relationship")
        }
        var filtered = all
        filtered.text = "\(all.text).filter { \(test.text) }"
        filtered.scopes.formUnion(test.scopes)
        filtered.variables.formUnion(test.variables)
        filtered.follows += test.follows
        filtered.constants += test.constants
        filtered.rows = { row in try all.rows(row).filter { try test.holds($0) } }
        return filtered
    }
}

extension PredicateLowering {
    /// Returns an expression whose value is a to-many relationship, or a part of one.
    mutating func related<E: PredicateExpression>(_ expression: E) throws -> RelatedRows {
        do {
            return try related(try collection(expression, for: "a closure"))
        } catch let error as FetchError where error.code == .unsupportedPredicate {
            guard let expression = expression as? any RelatedExpression else { throw error }
            return try expression.related(&self)
        }
    }

    private func related(_ collection: PredicateCollection) throws -> RelatedRows {
        let start = try location(of: collection.path)
        let (relation, schema) = (collection.relation, model.storeSchema)
        let condition = collection.condition.withoutDangling(on: relation.entity, schema)
        let source = scopeEntities[collection.path.scope]
        let entity = collection.path.steps.reduce(source) { schema.entities[$0].columns[$1].destination ?? $0 }
        let name = model.entities[entity].relationships.first { $0.kind == .toMany(relation) }?.name ?? "objects"
        return RelatedRows(
            text: names(of: collection.path, name), path: collection.path, relation: relation, scopes: [collection.path.scope],
            follows: [collection.path.following(.toMany(relation, .any, where: condition))],
            constants: CapturedValue.all(of: condition)
        ) { row in
            guard let object = try start.object(row) else { throw MissingValue() }
            return try object.reader.related(relation, to: object.key).filter {
                try condition.matches(relation.entity, key: $0, in: object.reader)
            }.map { row.entering($0) }
        }
    }

    /// Returns a closure over related objects as a computation; nil if the sequence does not have models.
    mutating func closure<S: PredicateExpression, E: PredicateExpression>(
        _ test: E, over sequence: S, _ variable: PredicateExpressions.VariableID
    ) throws -> (related: RelatedRows, test: RowExpression<Bool>)? where E.Output == Bool {
        guard ModelTypes.contain(S.Output.self) else { return nil }
        let related = try related(sequence)
        var row = try inClosure(over: related.relation.entity, variable) { try $0.row(test) }
        let inner = scope + 1
        row.scopes.remove(inner)
        row.follows = row.follows.map { follow in
            follow.scope == inner ? related.path.following(.toMany(related.relation, .any, where: follow.condition)) : follow
        }
        return (related, row)
    }
}

extension RowExpression<Bool> {
    /// Returns the value; false where Swift would stop the program.
    func holds(_ row: EvaluatedRow) throws -> Bool {
        do { return try evaluate(row) } catch is MissingValue { return false }
    }
}

extension PredicatePath {
    /// Returns a condition on the object at the end of the path as one on the object at its start.
    func following(_ condition: StorePredicate) -> FollowedPath {
        FollowedPath(scope: scope, condition: steps.reversed().reduce(condition) { .toOne($1, $0) })
    }
}
