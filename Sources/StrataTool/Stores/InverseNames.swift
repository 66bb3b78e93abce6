import ObjectGraph
import StoreInterface
import StoreModel

/// The model of a file as a program would write it: with the far ends of relationships, and with ordered relationships instead of columns
/// and hidden entities of positions.
///
/// Files do not store the names of far ends. They are the plural of the entity that refers, such as `tracks`. If an entity refers to another
/// by several relationships, the name ends with the relationship: `flightsAsOrigin`.
struct InverseNames {
    /// An ordered many-to-many relationship, from its hidden entity.
    private struct Order: Equatable {
        /// The hidden entity.
        var entity: EntityIndex
        var name: String
        var owner: EntityIndex
        var member: EntityIndex
    }

    private let stored: Model
    private let schema: StoreSchema
    private var descriptions: [EntityDescription]
    private var taken: [Set<String>]
    /// The orders for which no relationship has been found yet.
    private var orders: [Order] = []
    /// The orders of the far ends of links.
    private var farOrders: [LinkIndex: Order] = [:]
    /// The hidden entities by the names of ordered relationships, per description.
    private var numbers: [[String: EntityIndex]] = []

    /// Returns a model of the same schema with inverses and orders, or the stored model if there is none.
    /// - Parameter pairs: The pairs of the store, which tell several links between two entities apart.
    static func model(over stored: Model, pairs: OrderPairs? = nil) -> Model {
        // A crafted file may have a hidden entity before others, whose numbers would not be those of the descriptions.
        guard stored.storeSchema.entities.drop(while: { !$0.isOrder }).allSatisfy(\.isOrder) else { return stored }
        var names = InverseNames(stored)
        guard !names.descriptions.isEmpty else { return stored }
        names.findFarOrders(pairs)
        names.addInverses()
        names.sortFarEnds()
        guard names.orders.isEmpty, let model = try? Model(names.descriptions, version: stored.version),
            model.storeSchema.withoutHints == stored.storeSchema.withoutHints
        else { return stored }
        return model.keepingInverses
    }

    private init(_ stored: Model) {
        self.stored = stored
        schema = stored.storeSchema
        descriptions = EntityDescription.all(in: schema)
        let hidden = Set(schema.entities.filter(\.isOrder).map(\.name))
        descriptions.removeAll { hidden.contains($0.name) }
        for (number, entity) in schema.entities.enumerated(as: EntityIndex.self) {
            let columns = EntitySchema.orderColumns
            if let name = entity.orderedRelationship, let owner = entity.columns[columns.owner].destination,
                let member = entity.columns[columns.member].destination
            {
                orders.append(Order(entity: number, name: name, owner: owner, member: member))
            } else {
                let positions = Set(entity.columnIndices.filter(entity.isPosition).map { entity.columns[$0].name })
                descriptions[number].properties.removeAll { positions.contains($0.name) }
            }
        }
        numbers = descriptions.map { _ in [:] }
        taken = descriptions.map { Set($0.properties.map { $0.name.lowercased() }) }
    }

    private mutating func addInverses() {
        for (number, entity) in stored.entities.enumerated(as: EntityIndex.self) where !schema.entities[number].isOrder {
            for relationship in entity.relationships {
                let far = relationship.destination
                let isOnly = entity.relationships.count { $0.destination == far } == 1
                let name = Self.plural(entity.name) + (isOnly ? "" : "As" + Self.capitalized(relationship.name))
                switch relationship.kind {
                case .toOne(let column):
                    let isOrdered = schema.entities[number].position(in: column) != nil
                    add(name, to: far, inverse: relationship, of: entity, isOrdered: isOrdered)
                case .toMany(let relation):
                    takeOrder(of: relationship, entity)
                    // A link is named after the end that comes first in the model.
                    guard far >= number, case .link(let link, _, _) = relation else { continue }
                    let order = farOrders[link]
                    add(order?.name ?? name, to: far, inverse: relationship, of: entity, isOrdered: order != nil)
                }
            }
        }
    }

    private mutating func add(
        _ name: String, to destination: EntityIndex, inverse: Relationship, of entity: Entity, isOrdered: Bool
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
        let found = orders.firstIndex {
            $0.name == relationship.name && $0.owner == entity.number && $0.member == relationship.destination
        }
        guard let found else { return }
        let order = orders.remove(at: found)
        let members = Set([entity.name] + stored.subentities.filter { $0.number == entity.number }.map(\.name))
        for (number, description) in descriptions.enumerated() where members.contains(description.name) {
            for (position, property) in description.properties.enumerated() where property.name == relationship.name {
                guard case .relationship(var ordered) = property else { continue }
                ordered.isOrdered = true
                descriptions[number].properties[position] = .relationship(ordered)
                numbers[number][ordered.name] = order.entity
            }
        }
    }

    /// Puts the ordered far ends among the other ordered relationships, so that the hidden entities have the same numbers as in the file.
    private mutating func sortFarEnds() {
        for (link, order) in farOrders.sorted(by: { $0.value.entity < $1.value.entity }) {
            let far = schema.links[link].destination
            numbers[far][order.name] = order.entity
            guard let place = descriptions[far].properties.lastIndex(where: { $0.name == order.name }) else { continue }
            let property = descriptions[far].properties.remove(at: place)
            let next = descriptions[far].properties.firstIndex { (numbers[far][$0.name] ?? 0) > order.entity }
            descriptions[far].properties.insert(property, at: next ?? descriptions[far].properties.count)
        }
    }

    /// Finds the links of the orders of far ends, which have a name in the file: the only link between the entities, or the one that has the
    /// pairs of the order.
    private mutating func findFarOrders(_ pairs: OrderPairs?) {
        var open = orders.filter { order in !stored.entities[order.owner].relationships.contains { $0.name == order.name } }
        // Links that are found reduce the choice for the orders before them.
        for _ in 0..<2 {
            open.removeAll { order in
                let links = schema.linkIndices.filter { link in
                    schema.links[link].source == order.member && schema.links[link].destination == order.owner
                        && farOrders[link] == nil
                }
                let found = links.count == 1 ? links[0] : pairs?.link(of: order.entity, among: links)
                guard let found else { return false }
                farOrders[found] = order
                orders.removeAll { $0 == order }
                return true
            }
        }
    }

    private static func plural(_ name: String) -> String {
        let start = name.prefix(1).lowercased() + name.dropFirst()
        return start.hasSuffix("s") ? start : start + "s"
    }

    private static func capitalized(_ name: String) -> String { name.prefix(1).uppercased() + name.dropFirst() }
}
