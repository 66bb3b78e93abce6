import StoreInterface
import StoreModel

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
    /// The parts behind one reference, because requests copy the model.
    private let parts: Parts

    private final class Parts: Sendable {
        let entities: [Entity]
        let storeSchema: StoreSchema
        let orders: [OrderEntity]
        let hierarchies: [Hierarchy?]
        let inverseWarnings: [String]
        let byName: [String: Entity]
        let types: [String: any PersistentModel.Type]
        let byType: [ObjectIdentifier: Entity]

        init(
            _ entities: [Entity], _ storeSchema: StoreSchema, types: [String: any PersistentModel.Type], orders: [OrderEntity],
            hierarchies: [Hierarchy?], inverseWarnings: [String]
        ) {
            self.entities = entities
            self.storeSchema = storeSchema
            self.types = types
            self.orders = orders
            self.hierarchies = hierarchies
            self.inverseWarnings = inverseWarnings
            var byName: [String: Entity] = [:]
            for entity in entities { byName[entity.name] = entity }
            for member in hierarchies.compactMap(\.self).flatMap(\.members) { byName[member.name] = member }
            var byType: [ObjectIdentifier: Entity] = [:]
            for (name, entity) in byName {
                if let type = types[name] { byType[ObjectIdentifier(type)] = entity }
            }
            self.byName = byName
            self.byType = byType
        }
    }

    /// The entities that stores have, in the order of their numbers. The entity at the head of a hierarchy stands for all entities that
    /// inherit from it, and has their properties too (S180). ``entity(named:)`` returns it without them.
    public var entities: [Entity] { parts.entities }
    /// The schema that a store is opened with.
    public var storeSchema: StoreSchema { parts.storeSchema }
    /// The version of the model, which determines the newer of two different models.
    public var version: SchemaVersion { storeSchema.version }
    /// The hidden entities with the orders of many-to-many relationships, as contexts see them after ``entities``.
    var orders: [OrderEntity] { parts.orders }
    /// The hierarchy of each entity; empty if no entity inherits from another.
    var hierarchies: [Hierarchy?] { parts.hierarchies }
    /// Whether an entity inherits from another.
    var hasInheritance: Bool { !parts.hierarchies.isEmpty }
    /// A message per pair of entities whose relationships look like inverses, but are not, and per relationship that yields its inverse to
    /// another. Opening a container logs them.
    package var inverseWarnings: [String] { parts.inverseWarnings }

    /// Creates a model from descriptions. Throws ``ModelError`` if they are inconsistent.
    public init(_ entities: [EntityDescription], version: SchemaVersion = SchemaVersion()) throws(ModelError) {
        try self.init(entities, version, types: [:])
    }

    /// Creates a model from model types, and the superclasses of these types. Throws ``ModelError`` if they are inconsistent.
    public init(
        _ types: any PersistentModel.Type..., version: SchemaVersion = SchemaVersion()
    ) throws(ModelError) { try self.init(types, version: version) }

    /// Creates a model from a list of model types, and the superclasses of these types. Throws ``ModelError`` if they are inconsistent.
    public init(
        _ types: [any PersistentModel.Type], version: SchemaVersion = SchemaVersion()
    ) throws(ModelError) {
        let types = types.withSuperclasses
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
            entities: entities + orders.map(\.entity), storeSchema: storeSchema, types: parts.types, orders: orders,
            hierarchies: hasInheritance ? hierarchies + orders.map { _ in nil } : [])
        return store.keyedValues == nil ? whole : whole.withKeyedValues
    }

    /// The model for a file from whose description it was made. The file keeps the inverses of the model that wrote it, and opening does
    /// not compare them. Models that were read from a file do so already: ``init(storedIn:)``.
    public var keepingInverses: Model {
        var schema = storeSchema
        schema.migration.keepsInverses = true
        return Model(
            entities: entities, storeSchema: schema, types: parts.types, orders: orders, hierarchies: hierarchies,
            inverseWarnings: inverseWarnings)
    }

    /// The hidden entities with the orders of a link, one per ordered end.
    func orders(of link: LinkIndex) -> [OrderEntity] { orders.filter { $0.link == link } }

    /// The model with the hidden entity of keyed values, as contexts see it. The numbers of the other entities stay.
    var withKeyedValues: Model {
        guard storeSchema.keyedValues == nil else { return self }
        let schema = EntitySchema.keyedValues
        let entity = Entity(
            name: schema.name, number: EntityIndex(rawValue: entities.count), columns: schema.columns,
            defaults: schema.columns.map(\.initialValue),
            attributes: schema.columns.enumerated(as: ColumnIndex.self).map { column, definition in
                Attribute(
                    name: definition.name, column: column, type: definition.type, isOptional: definition.isOptional,
                    index: definition.index,
                    // Otherwise a removed entry would have no name in the history.
                    preservesValueOnDeletion: column == KeyedColumn.key)
            }, relationships: [], indexes: [])
        return Model(
            entities: entities + [entity], storeSchema: storeSchema.withKeyedValues, types: parts.types, orders: orders,
            hierarchies: hasInheritance ? hierarchies + [nil] : [])
    }

    private init(
        entities: [Entity], storeSchema: StoreSchema, types: [String: any PersistentModel.Type], orders: [OrderEntity],
        hierarchies: [Hierarchy?] = [], inverseWarnings: [String] = []
    ) {
        parts = Parts(
            entities, storeSchema, types: types, orders: orders, hierarchies: hierarchies, inverseWarnings: inverseWarnings)
    }

    private init(
        _ descriptions: [EntityDescription], _ version: SchemaVersion, types: [String: any PersistentModel.Type]
    ) throws(ModelError) {
        var descriptions = descriptions
        let sharedInverses = descriptions.yieldSharedInverses()
        let inverseWarnings = sharedInverses + descriptions.inverseWarnings(classes: Set(types.keys))
        descriptions = descriptions.withInferredInverses()
        try ModelResolution.checkNames(descriptions)
        let flattened = try FlattenedModel(descriptions)
        var resolution = try ModelResolution(flattened.stored)
        var entities = try DerivationResolution.resolved(resolution.entities(), flattened.stored)
        let hierarchies = try Hierarchy.resolve(&entities, in: flattened)
        var storeSchema = StoreSchema(
            entities: zip(entities, flattened.stored).map { EntitySchema($0, $1) } + resolution.orders.map(\.schema),
            links: resolution.links, version: version)
        storeSchema.relationships = RelationshipSchema.all(of: entities, flattened.stored, in: storeSchema)
        self.init(
            entities: entities, storeSchema: storeSchema, types: types, orders: resolution.orders, hierarchies: hierarchies,
            inverseWarnings: inverseWarnings)
    }

    /// Returns the entity with this name, or nil.
    public func entity(named name: String) -> Entity? { parts.byName[name] }

    /// Returns the entity of a model type, or nil.
    public func entity(for type: any PersistentModel.Type) -> Entity? { parts.byType[ObjectIdentifier(type)] }

    /// Returns the entity to whose objects a relationship leads.
    func destination(of relationship: Relationship) -> Entity {
        let members = hasInheritance ? hierarchies[relationship.destination]?.members : nil
        return members?[relationship.member] ?? entities[relationship.destination]
    }

    /// The classes of an entity of stores, with those of the entities that inherit from it.
    func types(of entity: Entity) -> [any PersistentModel.Type] {
        let members = hasInheritance ? hierarchies[entity.number]?.members : nil
        return (members ?? [entity]).compactMap { parts.types[$0.name] }
    }

    /// The entities that inherit from others, in the order of the hierarchies.
    public var subentities: [Entity] { hierarchies.compactMap(\.self).flatMap { $0.members.dropFirst() } }

    /// Returns the model type of an entity; nil in a model created from descriptions.
    public func type(of entity: Entity) -> (any PersistentModel.Type)? { parts.types[entity.name] }
}

extension Model: CustomStringConvertible {
    /// The version and the entities of the model.
    public var description: String {
        let shown = hasInheritance ? entities.map { parts.byName[$0.name] ?? $0 } + subentities : entities
        return "model \(version): " + shown.map(\.description).joined(separator: ", ")
    }
}
