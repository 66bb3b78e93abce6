import StoreInterface
import StoreModel

extension RelationshipSchema {
    /// Returns the relationships of all entities, in order.
    ///
    /// - Parameter schema: The schema of these entities, which lists the members of their hierarchies in the same order.
    static func all(
        of entities: [Entity], _ descriptions: [EntityDescription], in schema: StoreSchema
    ) -> [RelationshipSchema] {
        var first = [0]
        for entity in entities.dropLast() { first.append(first[first.count - 1] + entity.relationships.count) }
        return zip(entities, descriptions).flatMap { entity, description in
            zip(entity.relationships, description.relationships).map { relationship, described in
                var column: ColumnIndex?
                if case .toOne(let own) = relationship.kind { column = own }
                var made = RelationshipSchema(
                    entity: entity.number, name: relationship.name, renamedFrom: described.renamedFrom,
                    destination: relationship.destination, column: column,
                    inverse: relationship.inverse.map { first[relationship.destination] + $0 },
                    mayDangle: relationship.leavesReferences(entities))
                if relationship.member > 0 {
                    let head = schema.entities[relationship.destination]
                    made.destinationTypes = head.types(ofSubentity: head.subentities[relationship.member - 1].name)
                }
                return made
            }
        }
    }
}

extension Relationship {
    /// Whether this is a to-one relationship whose references stay when their destination is deleted.
    ///
    /// The rule belongs to the end that is deleted. Without an inverse, references are nullified unless the relationship has another
    /// rule.
    func leavesReferences(_ entities: [Entity]) -> Bool {
        guard case .toOne = kind else { return false }
        let back = inverse.map { entities[destination].relationships[$0] }
        return (back?.deleteRule ?? deleteRule) == .noAction
    }
}
