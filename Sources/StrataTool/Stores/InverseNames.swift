import ObjectGraph
import StoreInterface

/// The model of a file as a program would write it: with the far ends of relationships, and with ordered relationships instead of columns
/// and hidden entities of positions.
///
/// Files do not store the names of far ends. They are the plural of the entity that refers, such as `tracks`. If an entity refers to another
/// by several relationships, the name ends with the relationship: `flightsAsOrigin`.
struct InverseNames {
    /// An ordered many-to-many relationship, from its hidden entity.
    private struct Order: Equatable {
        var name: String
        var owner: Int
        var member: Int
    }

    private let stored: Model
    private let schema: StoreSchema
    private var descriptions: [EntityDescription]
    private var taken: [Set<String>]
    /// The orders for which no relationship has been found yet.
    private var orders: [Order] = []

    /// Returns a model of the same schema with inverses and orders, or the stored model if there is none.
    static func model(over stored: Model) -> Model {
        var names = InverseNames(stored)
        guard !names.descriptions.isEmpty else { return stored }
        names.addInverses()
        guard names.orders.isEmpty, let model = try? Model(names.descriptions, version: stored.version),
            model.storeSchema.withoutHints == stored.storeSchema.withoutHints
        else { return stored }
        return model
    }

    private init(_ stored: Model) {
        self.stored = stored
        schema = stored.storeSchema
        descriptions = EntityDescription.all(in: schema)
        let hidden = Set(schema.entities.filter(\.isOrder).map(\.name))
        descriptions.removeAll { hidden.contains($0.name) }
        for (number, entity) in schema.entities.enumerated() {
            if let name = entity.orderedRelationship, let owner = entity.columns[0].destination,
                let member = entity.columns[1].destination
            {
                orders.append(Order(name: name, owner: owner, member: member))
            } else {
                let positions = Set(entity.columns.indices.filter(entity.isPosition).map { entity.columns[$0].name })
                descriptions[number].properties.removeAll { positions.contains($0.name) }
            }
        }
        taken = descriptions.map { Set($0.properties.map { $0.name.lowercased() }) }
    }

    private mutating func addInverses() {
        for (number, entity) in stored.entities.enumerated() where !schema.entities[number].isOrder {
            for relationship in entity.relationships {
                let far = relationship.destination
                let isOnly = entity.relationships.count { $0.destination == far } == 1
                let name = Self.plural(entity.name) + (isOnly ? "" : "As" + Self.capitalized(relationship.name))
                switch relationship.kind {
                case .toOne(let column):
                    let isOrdered = schema.entities[number].position(in: column) != nil
                    add(name, to: far, inverse: relationship, of: entity, isOrdered: isOrdered)
                case .toMany:
                    takeOrder(of: relationship, entity)
                    // A link is named after the end that comes first in the model.
                    guard far >= number else { continue }
                    let order = takeOrder(ofFarEnd: relationship, entity, isOnly: isOnly)
                    add(order?.name ?? name, to: far, inverse: relationship, of: entity, isOrdered: order != nil)
                }
            }
        }
    }

    private mutating func add(
        _ name: String, to destination: Int, inverse: Relationship, of entity: Entity, isOrdered: Bool
    ) {
        guard taken[destination].insert(name.lowercased()).inserted else { return }
        descriptions[destination].properties.append(
            .relationship(
                RelationshipDescription(
                    name: name, destination: entity.name, inverse: inverse.name, cardinality: .toMany, inference: .refused,
                    isOrdered: isOrdered)))
    }

    /// Marks a relationship over a link as ordered if it has a hidden entity.
    private mutating func takeOrder(of relationship: Relationship, _ entity: Entity) {
        let order = Order(name: relationship.name, owner: entity.number, member: relationship.destination)
        guard let found = orders.firstIndex(of: order) else { return }
        orders.remove(at: found)
        let members = Set([entity.name] + stored.subentities.filter { $0.number == entity.number }.map(\.name))
        for (number, description) in descriptions.enumerated() where members.contains(description.name) {
            for (position, property) in description.properties.enumerated() where property.name == relationship.name {
                guard case .relationship(var ordered) = property else { continue }
                ordered.isOrdered = true
                descriptions[number].properties[position] = .relationship(ordered)
            }
        }
    }

    /// Returns the order of the far end of a link, which has a name in the file. If there are several links between the entities, none is
    /// found.
    private mutating func takeOrder(ofFarEnd relationship: Relationship, _ entity: Entity, isOnly: Bool) -> Order? {
        let names = Set(stored.entities[relationship.destination].relationships.map(\.name))
        guard isOnly || relationship.destination == entity.number,
            let found = orders.firstIndex(where: {
                $0.owner == relationship.destination && $0.member == entity.number && !names.contains($0.name)
            })
        else { return nil }
        return orders.remove(at: found)
    }

    private static func plural(_ name: String) -> String {
        let start = name.prefix(1).lowercased() + name.dropFirst()
        return start.hasSuffix("s") ? start : start + "s"
    }

    private static func capitalized(_ name: String) -> String { name.prefix(1).uppercased() + name.dropFirst() }
}
