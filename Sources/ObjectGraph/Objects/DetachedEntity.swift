import StoreInterface

/// What an object must know before it is in a context: made once per model type.
public struct DetachedEntity: Sendable {
    let name: String
    let columnCount: Int
    /// By column: the declared default, or nil.
    let defaults: [Value]

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

/// Relationships set before the object is in a context: kept by object, since there are no keys yet.
final class DetachedState {
    let entity: DetachedEntity
    /// By relationship number.
    var toOne: [Int: Partner] = [:]
    var toMany: [Int: [Partner]] = [:]

    /// A related object, and its model so that it lives as long as it is wanted here.
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
