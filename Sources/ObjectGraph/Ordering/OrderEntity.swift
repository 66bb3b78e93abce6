import StoreInterface
import StoreModel

/// The hidden entity with the order of a many-to-many relationship: one object per pair, with the object that has the list, the member and
/// the position. A relationship that is ordered at both ends has two.
///
/// The link alone tells which objects are related. A member without an object here precedes the others, and an object here without a pair has
/// no effect.
struct OrderEntity: Sendable {
    static let owner = EntitySchema.orderColumns.owner
    static let member = EntitySchema.orderColumns.member
    static let position = EntitySchema.orderColumns.position

    let number: EntityIndex
    let schema: EntitySchema
    let link: LinkIndex
    /// The direction of the link as seen from the ordered end.
    let direction: LinkDirection

    /// The owner as the reference to a list, and the column of positions beside it.
    static let reference = OrderedReference(column: owner, position: position)

    /// Returns whether an entity of a context's model is of this kind.
    static func contains(_ entity: Entity) -> Bool {
        entity.orderedReferences == [reference] && entity.relationships.count == 2
            && EntitySchema(name: entity.name, columns: entity.columns).isOrder
    }

    /// The entity as contexts see it.
    var entity: Entity {
        let relationships = [Self.owner, Self.member].map { column in
            Relationship(
                name: schema.columns[column].name, number: column.rawValue, destination: schema.columns[column].destination ?? 0,
                deleteRule: .nullify, inverse: nil, kind: .toOne(column: column),
                position: column == Self.owner ? Self.position : nil)
        }
        return Entity(
            name: schema.name, number: number, columns: schema.columns, defaults: schema.columns.map { _ in .null },
            attributes: [],
            relationships: relationships, indexes: [])
    }

    var ownerEntity: EntityIndex { schema.columns[Self.owner].destination ?? 0 }
    var memberEntity: EntityIndex { schema.columns[Self.member].destination ?? 0 }

    func pair(owner: ObjectKey, member: ObjectKey) -> ChangeLog.ChangedPair {
        direction == .forward
            ? .init(link: link, source: owner, destination: member) : .init(link: link, source: member, destination: owner)
    }
}
