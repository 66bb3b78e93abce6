import ObjectGraph

extension Dataset {
    /// Returns the model of the data. Each table is an entity, with its attributes and then its references as columns. Attributes have the
    /// indexes of ``Table/indexes``, and every reference has one.
    ///
    /// - Throws: `ModelError` for names that a model cannot have.
    public func model() throws(ModelError) -> Model {
        var draft = ModelDraft(tables)
        for (number, table) in tables.enumerated() {
            for attribute in table.attributes {
                let property = AttributeDescription(
                    name: attribute.name, type: attribute.type, isOptional: attribute.isOptional,
                    defaultValue: attribute.defaultValue)
                for owner in attribute.owners { draft.add(.attribute(property), to: (number, owner)) }
            }
            for reference in table.references {
                draft.add(
                    reference.name, of: (number, reference.owner), to: reference.end, inverse: reference.inverse,
                    cardinality: .toOne,
                    deleteRule: reference.deleteRule)
            }
            draft.add(table.indexes, to: number)
        }
        for (number, table) in tables.enumerated() {
            for reference in table.references where !isOneToOne(reference, of: number) {
                draft.add(
                    reference.inverse, of: reference.end, to: (number, reference.owner), inverse: reference.name,
                    cardinality: .toMany,
                    deleteRule: reference.inverseDeleteRule, isOrdered: reference.ranks != nil)
            }
        }
        for link in links {
            let (source, destination) = ((link.source, link.sourceMember), (link.destination, link.destinationMember))
            draft.add(
                link.name, of: source, to: destination, inverse: link.inverse, cardinality: .toMany, deleteRule: link.deleteRule,
                isOrdered: link.ranks != nil)
            draft.add(
                link.inverse, of: destination, to: source, inverse: link.name, cardinality: .toMany,
                deleteRule: link.inverseDeleteRule,
                isOrdered: link.inverseRanks != nil)
        }
        return try Model(draft.descriptions.flatMap { $0.prefix(1) } + draft.descriptions.flatMap { $0.dropFirst() })
    }

    /// Whether the inverse of a reference is a reference of the other table.
    private func isOneToOne(_ reference: TableReference, of table: Int) -> Bool {
        tables[reference.destination].references.contains {
            $0.name == reference.inverse && $0.inverse == reference.name && $0.destination == table
        }
    }
}

/// An entity of a data set: the number of its table, and its position in the table's members.
private typealias EntityPosition = (table: Int, member: Int)

extension TableReference {
    fileprivate var end: EntityPosition { (destination, destinationMember) }
}

/// The descriptions of a model while properties are added.
private struct ModelDraft {
    /// The entities of each table, the table's entity first.
    private(set) var descriptions: [[EntityDescription]]

    init(_ tables: [Table]) {
        descriptions = tables.map { table in
            let names = table.members
            return [EntityDescription(name: table.name, properties: [], isAbstract: table.isAbstract)]
                + table.subentities.map { subentity in
                    EntityDescription(
                        name: subentity.name, properties: [], superentity: names[subentity.superentity],
                        isAbstract: subentity.isAbstract)
                }
        }
    }

    mutating func add(_ indexes: [IndexDescription], to table: Int) { descriptions[table][0].indexes += indexes }

    mutating func add(_ property: PropertyDescription, to entity: EntityPosition) {
        descriptions[entity.table][entity.member].properties.append(property)
    }

    mutating func add(
        _ name: String, of entity: EntityPosition, to destination: EntityPosition, inverse: String, cardinality: Cardinality,
        deleteRule: DeleteRule, isOrdered: Bool = false
    ) {
        let relationship = RelationshipDescription(
            name: name, destination: descriptions[destination.table][destination.member].name, inverse: inverse,
            cardinality: cardinality, deleteRule: deleteRule, isOrdered: isOrdered)
        add(.relationship(relationship), to: entity)
    }
}
