import StoreInterface

/// A set of entities that fit together: what a container is opened with.
///
/// Made of model types or of descriptions known only at run time. Making it checks everything and throws ``ModelError``.
public struct Model: Sendable {
    public let entities: [Entity]
    public let storeSchema: StoreSchema
    private let byName: [String: Int]
    private let types: [String: any PersistentModel.Type]
    private let byType: [ObjectIdentifier: Int]

    public init(_ entities: [EntityDescription]) throws(ModelError) {
        try self.init(entities, types: [:])
    }

    public init(_ types: any PersistentModel.Type...) throws(ModelError) { try self.init(types) }

    public init(_ types: [any PersistentModel.Type]) throws(ModelError) {
        try self.init(
            types.map { $0.entityDescription },
            types: Dictionary(
                types.map { ($0.entityDescription.name, $0) }, uniquingKeysWith: { first, _ in first }))
    }

    private init(_ descriptions: [EntityDescription], types: [String: any PersistentModel.Type]) throws(ModelError) {
        var resolution = try ModelResolution(descriptions)
        entities = try resolution.entities()
        storeSchema = StoreSchema(
            entities: entities.map { EntitySchema(name: $0.name, columns: $0.columns, indexes: $0.indexes) },
            links: resolution.links)
        byName = Dictionary(uniqueKeysWithValues: entities.map { ($0.name, $0.number) })
        self.types = types
        var byType: [ObjectIdentifier: Int] = [:]
        for entity in entities {
            if let type = types[entity.name] { byType[ObjectIdentifier(type)] = entity.number }
        }
        self.byType = byType
    }

    public func entity(named name: String) -> Entity? { byName[name].map { entities[$0] } }

    public func entity(for type: any PersistentModel.Type) -> Entity? {
        byType[ObjectIdentifier(type)].map { entities[$0] }
    }

    /// The model type of an entity; nil in a model made at run time.
    public func type(of entity: Entity) -> (any PersistentModel.Type)? { types[entity.name] }
}
