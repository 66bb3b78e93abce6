import StoreModel

extension StoreSchema {
    /// Returns whether two schemas store the same, whatever their versions and the order of their parts.
    package func storesTheSame(as other: StoreSchema) -> Bool { isSound && other.isSound && parts == other.parts }

    private var parts: Set<String> {
        var parts: Set<String> = []
        for entity in entities {
            parts.insert("\(entity.name), abstract: \(entity.isAbstract)")
            for subentity in entity.subentities {
                parts.insert(
                    "\(subentity.name): \(subentity.superentity) in \(entity.name), abstract: \(subentity.isAbstract), "
                        + "required: \(subentity.requiredAttributes.sorted())")
                for property in subentity.properties { parts.insert("\(property) of \(subentity.name)") }
            }
            for column in entity.columns {
                let destination = column.destination.map { entities[$0].name } ?? ""
                parts.insert(
                    "\(entity.name).\(column.name): \(column.type) \(destination), optional: \(column.isOptional), \(column.index)"
                )
            }
            for index in entity.indexes {
                parts.insert("\(entity.name) \(index.columns.map { entity.columns[$0].name }): \(index.kind)")
            }
        }
        for link in links { parts.insert("\(link.name): \(entities[link.source].name) to \(entities[link.destination].name)") }
        return parts
    }
}
