import StoreInterface

extension RelationshipSchema {
    /// The relationships of all entities, in their order.
    static func all(of entities: [Entity], _ descriptions: [EntityDescription]) -> [RelationshipSchema] {
        var first = [0]
        for entity in entities.dropLast() { first.append(first[first.count - 1] + entity.relationships.count) }
        return zip(entities, descriptions).flatMap { entity, description in
            zip(entity.relationships, description.relationships).map { relationship, described in
                var column: Int?
                if case .toOne(let own) = relationship.kind { column = own }
                return RelationshipSchema(
                    entity: entity.number, name: relationship.name, renamedFrom: described.renamedFrom,
                    destination: relationship.destination, column: column,
                    inverse: relationship.inverse.map { first[relationship.destination] + $0 })
            }
        }
    }
}
