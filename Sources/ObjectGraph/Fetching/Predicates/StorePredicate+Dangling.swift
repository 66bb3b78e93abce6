import StoreInterface
import StoreModel

/// References whose destination may be missing, because the delete rule `noAction` keeps them. In every result such a reference is nil
/// (S053).
extension StorePredicate {
    /// Returns the condition with each reference to a missing object treated as nil. O(parts). Returns the condition unchanged if
    /// the model has no such relationships.
    func withoutDangling(on entity: EntityIndex, _ schema: StoreSchema) -> StorePredicate {
        schema.mayDangle ? rewritten(entity, schema) : self
    }

    private func rewritten(_ entity: EntityIndex, _ schema: StoreSchema) -> StorePredicate {
        switch form {
        case .constant, .string, .keys, .evaluated, .tooDeep:
            return self
        case .compare(let column, let comparison, let value):
            guard schema.mayDangle(entity, column) else { return self }
            switch comparison {
            case .equal: return Self.equal(column, value)
            case .notEqual: return .not(Self.equal(column, value))
            default: return .all([self, Self.leads(column)])
            }
        case .isIn(let column, let values):
            guard schema.mayDangle(entity, column) else { return self }
            let present = Self.all([.isIn(column, values.subtracting([.null])), Self.leads(column)])
            return values.contains(.null) ? .any([present, .not(Self.leads(column))]) : present
        case .compareColumns(let left, let comparison, let right):
            guard schema.mayDangle(entity, left) || schema.mayDangle(entity, right) else { return self }
            let both = Self.all([Self.leads(left), Self.leads(right)])
            let equal = Self.any([
                .all([both, .compareColumns(left, .equal, to: right)]), .all([.not(Self.leads(left)), .not(Self.leads(right))]),
            ])
            switch comparison {
            case .equal: return equal
            case .notEqual: return .not(equal)
            default: return .all([self, both])
            }
        case .and(let parts): return .all(parts.map { $0.rewritten(entity, schema) })
        case .or(let parts): return .any(parts.map { $0.rewritten(entity, schema) })
        case .not(let part): return .negating(part.rewritten(entity, schema))
        case .toOne(let column, let part):
            guard let destination = schema.entities[entity].columns[column].destination else { return self }
            return .toOne(column, part.rewritten(destination, schema))
        case .toMany(let relation, let quantifier, let part):
            return .toMany(relation, quantifier, where: part.rewritten(relation.entity, schema))
        case .toManyCount(let relation, let part, let comparison, let number):
            return .toManyCount(relation, where: part.rewritten(relation.entity, schema), comparison, to: number)
        }
    }

    private static func equal(_ column: ColumnIndex, _ value: Value) -> StorePredicate {
        value.isNull ? .not(leads(column)) : .all([.compare(column, .equal, to: value), leads(column)])
    }

    /// Returns a condition that the reference leads to an existing object.
    private static func leads(_ column: ColumnIndex) -> StorePredicate { .toOne(column, .constant(true)) }
}

extension StoreSchema {
    var mayDangle: Bool { relationships.contains(where: \.mayDangle) }

    /// Whether an entity has a reference to another entity, or to itself, whose destination may be missing.
    func mayDangle(_ entity: EntityIndex, to destination: EntityIndex) -> Bool {
        relationships.contains { $0.mayDangle && $0.entity == entity && $0.destination == destination }
    }

    /// Whether a column is a reference whose destination may be missing.
    func mayDangle(_ entity: EntityIndex, _ column: ColumnIndex) -> Bool {
        relationships.contains { $0.mayDangle && $0.entity == entity && $0.column == column }
    }
}

extension ObjectReader {
    /// Returns a value as properties show it: null for a reference to a missing object.
    func shown(_ value: Value, entity: EntityIndex, column: ColumnIndex) throws -> Value {
        guard let key = value.referenceKey, schema.mayDangle(entity, column),
            let destination = schema.entities[entity].columns[column].destination, try !exists(destination, key)
        else { return value }
        return .null
    }
}
