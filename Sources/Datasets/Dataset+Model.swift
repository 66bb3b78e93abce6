import ObjectGraph

extension Dataset {
    /// Returns the model of the data. Each table is an entity, with its attributes and then its references as columns. No attribute has
    /// an index, and every reference has one.
    ///
    /// - Throws: `ModelError` for names that a model cannot have.
    public func model() throws(ModelError) -> Model {
        var descriptions = tables.map { table in
            EntityDescription(
                name: table.name,
                properties: table.attributes.map {
                    .attribute(AttributeDescription(name: $0.name, type: $0.type, isOptional: $0.isOptional))
                } + table.references.map { relationship($0.name, to: $0.destination, inverse: $0.inverse, .toOne) })
        }
        for (number, table) in tables.enumerated() {
            for reference in table.references where !isOneToOne(reference, of: number) {
                descriptions[reference.destination].properties.append(
                    relationship(reference.inverse, to: number, inverse: reference.name, .toMany))
            }
        }
        for link in links {
            descriptions[link.source].properties.append(
                relationship(link.name, to: link.destination, inverse: link.inverse, .toMany))
            descriptions[link.destination].properties.append(
                relationship(link.inverse, to: link.source, inverse: link.name, .toMany))
        }
        return try Model(descriptions)
    }

    /// Whether the inverse of a reference is a reference of the other table.
    private func isOneToOne(_ reference: TableReference, of table: Int) -> Bool {
        tables[reference.destination].references.contains {
            $0.name == reference.inverse && $0.inverse == reference.name && $0.destination == table
        }
    }

    private func relationship(
        _ name: String, to destination: Int, inverse: String, _ cardinality: Cardinality
    ) -> PropertyDescription {
        .relationship(
            RelationshipDescription(
                name: name, destination: tables[destination].name, inverse: inverse, cardinality: cardinality))
    }
}
