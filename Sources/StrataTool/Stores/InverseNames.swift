import ObjectGraph
import StoreInterface

/// Names for the far ends of relationships, which files do not store: the plural of the entity that refers, such as `tracks`. If an
/// entity refers to another by several relationships, the name ends with the relationship: `flightsAsOrigin`.
enum InverseNames {
    /// Returns a model of the same schema with inverses. Relationships for which no name is free have none.
    static func model(over stored: Model) -> Model {
        let schema = stored.storeSchema
        var descriptions = EntityDescription.all(in: schema)
        if descriptions.isEmpty { return stored }
        var taken = descriptions.map { Set($0.properties.map { $0.name.lowercased() }) }
        for (number, entity) in stored.entities.enumerated() {
            for relationship in entity.relationships {
                let destination = relationship.destination
                // A link is named after the end that comes first in the model.
                if case .toMany = relationship.kind, destination < number { continue }
                let isOnly = entity.relationships.count { $0.destination == destination } == 1
                let name = plural(entity.name) + (isOnly ? "" : "As" + capitalized(relationship.name))
                guard taken[destination].insert(name.lowercased()).inserted else { continue }
                descriptions[destination].properties.append(
                    .relationship(
                        RelationshipDescription(
                            name: name, destination: entity.name, inverse: relationship.name, cardinality: .toMany,
                            inference: .refused)))
            }
        }
        guard let model = try? Model(descriptions, version: stored.version),
            model.storeSchema.withoutHints == schema.withoutHints
        else { return stored }
        return model
    }

    private static func plural(_ name: String) -> String {
        let start = name.prefix(1).lowercased() + name.dropFirst()
        return start.hasSuffix("s") ? start : start + "s"
    }

    private static func capitalized(_ name: String) -> String { name.prefix(1).uppercased() + name.dropFirst() }
}
