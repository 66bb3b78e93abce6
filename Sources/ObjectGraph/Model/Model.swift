import StoreInterface

/// A consistent set of entities, with which a container is opened.
///
/// Create a model from model types, or from descriptions known only at run time. Creating it checks everything and throws
/// ``ModelError``.
///
/// A file records the version of the model that last wrote it. If that version is later than this model's, opening the file throws
/// `schemaTooNew`. If the versions are equal, opening also throws it if the file's model was derived from exactly this model.
///
/// ```swift
/// let model = try Model([track, album], version: SchemaVersion(2, 0, 0))
/// ```
public struct Model: Sendable {
    /// The entities in the order of their numbers.
    public let entities: [Entity]
    /// The schema that a store is opened with.
    public let storeSchema: StoreSchema
    /// The version of the model, which determines the newer of two different models.
    public var version: SchemaVersion { storeSchema.version }
    /// The hidden entities with the orders of many-to-many relationships, as contexts see them after ``entities``.
    private let orders: [OrderEntity]
    private let byName: [String: Int]
    private let types: [String: any PersistentModel.Type]
    private let byType: [ObjectIdentifier: Int]

    /// Creates a model from descriptions. Throws ``ModelError`` if they are inconsistent.
    public init(_ entities: [EntityDescription], version: SchemaVersion = SchemaVersion()) throws(ModelError) {
        try self.init(entities, version, types: [:])
    }

    /// Creates a model from model types. Throws ``ModelError`` if they are inconsistent.
    public init(
        _ types: any PersistentModel.Type..., version: SchemaVersion = SchemaVersion()
    ) throws(ModelError) { try self.init(types, version: version) }

    /// Creates a model from a list of model types. Throws ``ModelError`` if they are inconsistent.
    public init(
        _ types: [any PersistentModel.Type], version: SchemaVersion = SchemaVersion()
    ) throws(ModelError) {
        try self.init(
            types.map { $0.entityDescription }, version,
            types: Dictionary(
                types.map { ($0.entityDescription.name, $0) }, uniquingKeysWith: { first, _ in first }))
    }

    /// Creates a model from descriptions, with the classes of the entities that have one, by entity name. Throws ``ModelError`` if the
    /// descriptions are inconsistent.
    package init(
        _ entities: [EntityDescription], types: [String: any PersistentModel.Type], version: SchemaVersion = SchemaVersion()
    ) throws(ModelError) {
        try self.init(entities, version, types: types)
    }

    /// A model without entities, for a container that holds only keyed collections.
    static let empty = Model(entities: [], storeSchema: StoreSchema(entities: []), types: [:], orders: [])

    /// The model with its hidden entities, as contexts of a store see it. The numbers of the other entities stay.
    func withHiddenEntities(of store: StoreSchema) -> Model {
        let whole = Model(
            entities: entities + orders.map(\.entity), storeSchema: storeSchema, types: types, orders: orders)
        return store.keyedValues == nil ? whole : whole.withKeyedValues
    }

    /// The hidden entities with the orders of a link, one per ordered end.
    func orders(of link: Int) -> [OrderEntity] { orders.filter { $0.link == link } }

    /// The model with the hidden entity of keyed values, as contexts see it. The numbers of the other entities stay.
    var withKeyedValues: Model {
        guard storeSchema.keyedValues == nil else { return self }
        let schema = EntitySchema.keyedValues
        let entity = Entity(
            name: schema.name, number: entities.count, columns: schema.columns, defaults: schema.columns.map(\.initialValue),
            attributes: schema.columns.enumerated().map { column, definition in
                Attribute(
                    name: definition.name, column: column, type: definition.type, isOptional: definition.isOptional,
                    index: definition.index, preservesValueOnDeletion: false)
            }, relationships: [], indexes: [])
        return Model(entities: entities + [entity], storeSchema: storeSchema.withKeyedValues, types: types, orders: orders)
    }

    private init(
        entities: [Entity], storeSchema: StoreSchema, types: [String: any PersistentModel.Type], orders: [OrderEntity]
    ) {
        self.orders = orders
        self.entities = entities
        self.storeSchema = storeSchema
        self.types = types
        byName = Dictionary(uniqueKeysWithValues: entities.map { ($0.name, $0.number) })
        var byType: [ObjectIdentifier: Int] = [:]
        for entity in entities {
            if let type = types[entity.name] { byType[ObjectIdentifier(type)] = entity.number }
        }
        self.byType = byType
    }

    private init(
        _ descriptions: [EntityDescription], _ version: SchemaVersion, types: [String: any PersistentModel.Type]
    ) throws(ModelError) {
        let descriptions = descriptions.withInferredInverses()
        var resolution = try ModelResolution(descriptions)
        let entities = try DerivationResolution.resolved(resolution.entities(), descriptions)
        var storeSchema = StoreSchema(
            entities: zip(entities, descriptions).map {
                EntitySchema(name: $0.name, columns: $0.columns, indexes: $0.indexes, renamedFrom: $1.renamedFrom)
            } + resolution.orders.map(\.schema),
            links: resolution.links, version: version)
        storeSchema.relationships = RelationshipSchema.all(of: entities, descriptions)
        self.init(entities: entities, storeSchema: storeSchema, types: types, orders: resolution.orders)
    }

    /// Returns the entity with this name, or nil.
    public func entity(named name: String) -> Entity? { byName[name].map { entities[$0] } }

    /// Returns the entity of a model type, or nil.
    public func entity(for type: any PersistentModel.Type) -> Entity? {
        byType[ObjectIdentifier(type)].map { entities[$0] }
    }

    /// Returns the model type of an entity; nil in a model created from descriptions.
    public func type(of entity: Entity) -> (any PersistentModel.Type)? { types[entity.name] }
}

extension Model: CustomStringConvertible {
    /// The version and the entities of the model.
    public var description: String { "model \(version): " + entities.map(\.description).joined(separator: ", ") }
}
