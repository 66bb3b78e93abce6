import StoreInterface

/// The entity data that an object needs before it is inserted into a context. Created once per model type.
public struct DetachedEntity: Sendable {
    let name: String
    let columnCount: Int
    /// The declared default of each column, or null.
    let defaults: [Value]

    /// Reads the number of columns and their defaults from a description.
    public init(_ description: EntityDescription) {
        name = description.name
        var defaults: [Value] = []
        for property in description.properties {
            switch property {
            case .attribute(let attribute):
                defaults.append(attribute.defaultValue)
            case .relationship(let relationship):
                if relationship.cardinality == .toOne { defaults.append(.null) }
            }
        }
        self.defaults = defaults
        columnCount = defaults.count
    }
}

/// Relationships set before an object is inserted into a context. They refer to objects, because detached objects have no keys.
final class DetachedState {
    let entity: DetachedEntity
    /// To-one relationships by relationship number.
    var toOne: [Int: Partner] = [:]
    var toMany: [Int: [Partner]] = [:]

    /// A related object, and its model, which is retained as long as the relationship refers to it.
    struct Partner {
        var object: ManagedObject
        var model: (any PersistentModel)?

        init(_ object: ManagedObject) {
            self.object = object
            model = object.model
        }
    }

    init(entity: DetachedEntity) { self.entity = entity }
}
