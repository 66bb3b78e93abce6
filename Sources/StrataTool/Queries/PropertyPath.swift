import ObjectGraph
import StoreInterface
import StoreModel

/// The meaning of a path of names: `title`, `artist.name`, `albums`, `albums.count`.
enum PropertyPath {
    /// An attribute, or a to-one relationship.
    case column(ColumnSchema)
    /// The number of objects of a to-many relationship, by the path of the relationship.
    case count(String)
    /// A to-many relationship, with the entity of its objects.
    case collection(Entity)

    /// Returns the meaning of a path on an entity, or nil.
    static func resolve(_ path: String, on entity: Entity, in model: Model) -> PropertyPath? {
        let names = entity.names(onPath: path, in: model)
        var entity = entity
        for (place, name) in names.enumerated() {
            let isLast = place == names.count - 1
            if let number = entity.column(named: name) {
                let column = entity.columns[number]
                if isLast { return .column(column) }
                guard let destination = column.destination else { return nil }
                entity = model.entities[destination]
            } else if let relationship = entity.relationship(named: name), case .toMany = relationship.kind {
                if isLast { return .collection(model.entities[relationship.destination]) }
                let isCount = place == names.count - 2 && names[place + 1] == "count"
                return isCount ? .count(names[...place].joined(separator: ".")) : nil
            } else {
                return nil
            }
        }
        return nil
    }

    /// Returns the names of an entity's properties.
    static func names(of entity: Entity) -> [String] {
        entity.columns.map(\.name) + entity.relationships.map(\.name).filter { entity.column(named: $0) == nil }
    }
}
