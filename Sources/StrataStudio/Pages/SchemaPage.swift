import ObjectGraph
import StoreInterface
import StoreModel

/// The entities of a store with their properties.
struct SchemaPage: Encodable, Sendable {
    struct EntityText: Encodable, Sendable {
        var name: String
        /// The entity from which this one inherits.
        var superentity: String?
        var properties: [Property]
        /// Indexes over several properties.
        var indexes: [String]
    }

    struct Property: Encodable, Sendable {
        var name: String
        var type: String
        /// `attribute`, `to-one` or `to-many`.
        var kind: String
        var isOptional = false
        var isDerived = false
        /// `indexed` or `unique`.
        var index: String?
        /// The entity to which a relationship leads.
        var destination: String?
        var inverse: String?
    }

    var entities: [EntityText]

    init(_ store: StudioStore) {
        let model = store.model
        let entities = model.entities.compactMap { model.entity(named: $0.name) } + model.subentities
        self.entities = entities.map { entity in
            var properties = store.columns(of: entity).map { column in
                Property(
                    name: column.name, type: column.typeText(in: model), kind: column.destination == nil ? "attribute" : "to-one",
                    isOptional: column.isOptional, isDerived: column.derivation != nil,
                    index: column.index == .none ? nil : column.index.rawValue,
                    destination: column.destination.map { model.entities[$0].name },
                    inverse: entity.relationship(named: column.name).flatMap { Self.inverse($0, model) })
            }
            for relationship in entity.relationships {
                guard case .toMany = relationship.kind else { continue }
                let inverse = Self.inverse(relationship, model)
                let declaring = inverse.flatMap { store.entity(declaring: $0, numbered: relationship.destination) }
                let far = declaring?.name ?? model.entities[relationship.destination].name
                properties.append(
                    Property(
                        name: relationship.name, type: far, kind: "to-many", destination: far, inverse: inverse))
            }
            let indexes = entity.indexes.map { index in
                let names = index.columns.map { entity.columns[$0].name }.joined(separator: ", ")
                return index.kind == .unique ? "\(names) (unique)" : names
            }
            return EntityText(name: entity.name, superentity: entity.superentityName, properties: properties, indexes: indexes)
        }
    }

    private static func inverse(_ relationship: Relationship, _ model: Model) -> String? {
        relationship.inverse.map { model.entities[relationship.destination].relationships[$0].name }
    }
}
