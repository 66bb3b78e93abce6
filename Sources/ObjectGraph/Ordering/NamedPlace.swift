import StoreInterface
import StoreModel

/// A pair of an ordered many-to-many relationship, which has a position beside it.
struct PlacedPair: Sendable, Hashable {
    /// The object that has the list.
    var owner: ObjectKey
    var member: ObjectKey
}

extension LayeredView {
    /// Returns the pair to which a position belongs; nil if the object with the position does not exist.
    func placedPair(of key: ObjectKey, _ order: EntityIndex) throws -> PlacedPair? {
        guard let owner = try value(order, key: key, column: OrderEntity.owner)?.referenceKey,
            let member = try value(order, key: key, column: OrderEntity.member)?.referenceKey
        else { return nil }
        return PlacedPair(owner: owner, member: member)
    }
}

/// A place in an ordered many-to-many relationship as conflicts name it (S172): by the object that has the list, the relationship and the
/// member. The object with the position belongs to a hidden entity.
struct NamedPlace {
    var list: ObjectAddress
    /// The name of the list's entity.
    var entityName: String
    var relationship: String
    /// The form of the position, which names the member.
    var form: ValueForm

    /// Returns nil if the entity is not the hidden entity of an order.
    init?(_ pair: PlacedPair, order: EntityIndex, in schema: StoreSchema) {
        let order = schema.entities[order]
        guard let relationship = order.orderedRelationship, let list = order.columns[OrderEntity.owner].destination,
            let member = order.columns[OrderEntity.member].destination
        else { return nil }
        self.list = ObjectAddress(entity: list, key: pair.owner)
        entityName = schema.entities[list].name
        self.relationship = relationship
        form = ValueForm(type: .data, content: .place(of: "\(schema.entities[member].name)(id: \(pair.member))"))
    }
}
