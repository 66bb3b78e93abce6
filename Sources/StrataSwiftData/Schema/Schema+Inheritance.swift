import ObjectGraph

/// The place of an entity among those of superclasses and subclasses.
extension Schema.Entity {
    /// The entity of the superclass; nil if the class has no superclass that is a model.
    public var superentity: Schema.Entity? {
        place.superclass.map { place.schema.entity(of: $0) }
    }

    /// The name of ``superentity``.
    public var superentityName: String? { place.type.entityDescription.superentity }

    /// The entities of the schema whose ``superentity`` is this one.
    public var subentities: Set<Schema.Entity> {
        let subclasses = place.schema.types.filter { subclass in
            let superclass = EntityPlace(schema: place.schema, type: subclass).superclass
            return superclass.map { ObjectIdentifier($0) } == ObjectIdentifier(place.type)
        }
        return Set(subclasses.map { place.schema.entity(of: $0) })
    }

    /// The attributes and relationships of all superclasses, by name.
    public var inheritedPropertiesByName: [String: any SchemaProperty] {
        guard let superentity else { return [:] }
        return superentity.storedPropertiesByName.merging(superentity.inheritedPropertiesByName) { first, _ in first }
    }

    /// The attributes and relationships of all superclasses, in the order of their names.
    public var inheritedProperties: [any SchemaProperty] {
        inheritedPropertiesByName.sorted { $0.key < $1.key }.map(\.value)
    }
}

/// The class that an entity describes, and the schema that contains it. Places are compared by the class.
struct EntityPlace: Sendable, Hashable {
    let schema: Schema
    let type: any PersistentModel.Type

    /// The superclass, if it is a model.
    var superclass: (any PersistentModel.Type)? {
        type.entityDescription.superentity == nil ? nil : _getSuperclass(type) as? any PersistentModel.Type
    }

    static func == (a: EntityPlace, b: EntityPlace) -> Bool { ObjectIdentifier(a.type) == ObjectIdentifier(b.type) }
    func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(type)) }
}
