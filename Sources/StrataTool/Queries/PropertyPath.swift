import Datasets
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

    /// Returns the reason why a path has no meaning: the first name that the entity before it does not have, or a to-many relationship in
    /// the middle.
    /// - Parameter names: The names that the entity before the wrong name could have.
    static func problem(
        _ path: String, on entity: Entity, in model: Model, names: (Entity) -> [String] = names(of:)
    ) -> String {
        var entity = entity
        let parts = entity.names(onPath: path, in: model)
        for (place, name) in parts.enumerated() where place < parts.count - 1 {
            if let destination = entity.column(named: name).flatMap({ entity.columns[$0].destination }) {
                entity = model.entities[destination]
            } else if let relationship = entity.relationship(named: name), case .toMany = relationship.kind {
                let collection = parts[...place].joined(separator: ".")
                let rest = parts[(place + 1)...].joined(separator: ".")
                return
                    "\(name) is a to-many relationship. In a condition, write any \(collection) (\(rest) = …) or \(collection).count > 0"
            } else if entity.column(named: name) != nil {
                return "\(entity.name).\(name) is an attribute, which has no properties"
            } else {
                return "\(entity.name) has no property \(name)\(Suggestion.hint(for: name, among: names(entity)))"
            }
        }
        let last = parts.last ?? path
        if entity.column(named: last) == nil, let relationship = entity.relationship(named: last),
            case .toMany = relationship.kind
        {
            return
                "\(last) is a to-many relationship, which has no single value. Its objects can be counted in a condition: \(path).count > 0"
        }
        return "\(entity.name) has no property \(last)\(Suggestion.hint(for: last, among: names(entity)))"
    }

    /// Returns the names of an entity's properties.
    static func names(of entity: Entity) -> [String] {
        entity.columns.map(\.name) + entity.relationships.map(\.name).filter { entity.column(named: $0) == nil }
    }
}
