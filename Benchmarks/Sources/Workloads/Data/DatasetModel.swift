import Datasets
import ObjectGraph
import StoreInterface

/// The run-time model of a data set. Each table is an entity. No attribute has an index, and every reference has one.
public struct DatasetModel: Sendable {
    public let model: Model
    /// The entity of each table.
    let entities: [Entity]

    public init(_ dataset: Dataset) throws {
        var descriptions = dataset.tables.map { table in
            EntityDescription(
                name: table.name,
                properties: table.attributes.map {
                    .attribute(AttributeDescription(name: $0.name, type: $0.type, isOptional: $0.isOptional))
                }
                    + table.references.map { reference in
                        .relationship(
                            RelationshipDescription(
                                name: reference.name, destination: dataset.tables[reference.destination].name,
                                inverse: reference.inverse, cardinality: .toOne))
                    })
        }
        for table in dataset.tables {
            for reference in table.references {
                descriptions[reference.destination].properties.append(
                    .relationship(
                        RelationshipDescription(
                            name: reference.inverse, destination: table.name, inverse: reference.name, cardinality: .toMany)))
            }
        }
        for link in dataset.links {
            descriptions[link.source].properties.append(
                .relationship(
                    RelationshipDescription(
                        name: link.name, destination: dataset.tables[link.destination].name, inverse: link.inverse,
                        cardinality: .toMany)))
            descriptions[link.destination].properties.append(
                .relationship(
                    RelationshipDescription(
                        name: link.inverse, destination: dataset.tables[link.source].name, inverse: link.name,
                        cardinality: .toMany)))
        }
        let model = try Model(descriptions)
        self.model = model
        entities = model.entities
    }
}
