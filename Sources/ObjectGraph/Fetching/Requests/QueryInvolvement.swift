import StoreInterface
import StoreModel

/// The entities and links that a predicate reads besides the object that it tests.
struct QueryInvolvement: Sendable, Equatable {
    /// Entities reached through relationships, including the tested object's entity if a path leads back to it.
    var entities: Set<EntityIndex> = []
    var links: Set<LinkIndex> = []

    init() {}

    init(of predicate: StorePredicate, on entity: EntityIndex, schema: StoreSchema) {
        add(predicate, entity: entity, schema: schema)
    }

    var isEmpty: Bool { entities.isEmpty && links.isEmpty }

    private mutating func add(_ predicate: StorePredicate, entity: EntityIndex, schema: StoreSchema) {
        switch predicate.form {
        case .constant, .compare, .compareColumns, .isIn, .string, .keys, .tooDeep:
            break
        case .and(let parts), .or(let parts):
            for part in parts { add(part, entity: entity, schema: schema) }
        case .not(let part):
            add(part, entity: entity, schema: schema)
        case .evaluated(let condition):
            for part in condition.follows { add(part, entity: entity, schema: schema) }
        case .toOne(let column, let part):
            guard let destination = schema.entities[entity].columns[column].destination else { return }
            entities.insert(destination)
            add(part, entity: destination, schema: schema)
        case .toMany(let relation, _, let part), .toManyCount(let relation, let part, _, _):
            entities.insert(relation.entity)
            if case .link(let link, _, _) = relation { links.insert(link) }
            add(part, entity: relation.entity, schema: schema)
        }
    }
}
