import StoreInterface

/// A set of entities that fit together: what a container is opened with.
///
/// Made of model types or of descriptions known only at run time. Making it checks everything and throws ``ModelError``.
///
/// A file keeps the version of the model that wrote it last. One of a later version refuses this model with `schemaTooNew`; with
/// equal versions, so does one that was changed further from just this model on.
public struct Model: Sendable {
    public let entities: [Entity]
    public let storeSchema: StoreSchema
    /// Which of two models that differ is the newer one.
    public var version: SchemaVersion { storeSchema.version }
    private let byName: [String: Int]
    private let types: [String: any PersistentModel.Type]
    private let byType: [ObjectIdentifier: Int]

    public init(_ entities: [EntityDescription], version: SchemaVersion = SchemaVersion()) throws(ModelError) {
        try self.init(entities, version, types: [:])
    }

    public init(
        _ types: any PersistentModel.Type..., version: SchemaVersion = SchemaVersion()
    ) throws(ModelError) { try self.init(types, version: version) }

    public init(
        _ types: [any PersistentModel.Type], version: SchemaVersion = SchemaVersion()
    ) throws(ModelError) {
        try self.init(
            types.map { $0.entityDescription }, version,
            types: Dictionary(
                types.map { ($0.entityDescription.name, $0) }, uniquingKeysWith: { first, _ in first }))
    }

    private init(
        _ descriptions: [EntityDescription], _ version: SchemaVersion, types: [String: any PersistentModel.Type]
    ) throws(ModelError) {
        var resolution = try ModelResolution(descriptions)
        entities = try resolution.entities()
        var storeSchema = StoreSchema(
            entities: zip(entities, descriptions).map {
                EntitySchema(name: $0.name, columns: $0.columns, indexes: $0.indexes, renamedFrom: $1.renamedFrom)
            },
            links: resolution.links, version: version)
        storeSchema.relationships = RelationshipSchema.all(of: entities, descriptions)
        self.storeSchema = storeSchema
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
