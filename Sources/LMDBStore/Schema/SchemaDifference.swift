import StoreInterface
import StoreModel

/// A description of the difference between two schemas.
enum SchemaDifference {
    /// Returns the first difference, as seen from the wanted schema, or nil if the schemas are equal.
    static func first(of wanted: StoreSchema, from found: StoreSchema) -> String? {
        let wanted = wanted.withoutHints
        let found = found.withoutHints
        if wanted == found { return nil }
        for (number, entity) in wanted.entities.enumerated(as: EntityIndex.self) {
            guard found.entityIndices.contains(number) else { return "entity \(entity.name) is new" }
            if let difference = difference(entity, found.entities[number]) { return difference }
        }
        if found.entities.count > wanted.entities.count {
            return "entity \(found.entities[wanted.entities.count].name) is missing in the model"
        }
        for (number, link) in wanted.links.enumerated(as: LinkIndex.self) {
            guard found.linkIndices.contains(number) else { return "relationship \(link.name) is new" }
            if link != found.links[number] {
                return "relationship \(link.name) was \(found.links[number].name) or had other ends"
            }
        }
        if found.links.count > wanted.links.count {
            return "relationship \(found.links[wanted.links.count].name) is missing in the model"
        }
        return "the schemas differ"
    }

    private static func difference(_ wanted: EntitySchema, _ found: EntitySchema) -> String? {
        if wanted == found { return nil }
        if wanted.name != found.name { return "the file has entity \(found.name) where the model has \(wanted.name)" }
        for (number, column) in wanted.columns.enumerated(as: ColumnIndex.self) {
            guard found.columnIndices.contains(number) else { return "\(wanted.name).\(column.name) is new" }
            let other = found.columns[number]
            if column == other { continue }
            if column.name != other.name { return "the file has \(wanted.name).\(other.name) where the model has \(column.name)" }
            if column.type != other.type {
                return "\(wanted.name).\(column.name) was \(other.type.rawValue) and is \(column.type.rawValue)"
            }
            return "\(wanted.name).\(column.name) has another index, destination or optionality"
        }
        if wanted.subentities != found.subentities { return "other entities inherit from \(found.name)" }
        if wanted.columns.count == found.columns.count { return "\(found.name) has other indexes over several columns" }
        return "\(found.name).\(found.columns[wanted.columns.count].name) is missing in the model"
    }
}
