import ObjectGraph

extension Schema {
    /// The entities, in the order of their types.
    public var entities: [Entity] { types.map { entity(of: $0) } }

    /// The entities, by name.
    public var entitiesByName: [String: Entity] {
        Dictionary(types.map { ($0.entityName, entity(of: $0)) }, uniquingKeysWith: { first, _ in first })
    }

    /// Returns the entity of a model class; nil if the schema does not contain it.
    public func entity<T: PersistentModel>(for type: T.Type) -> Entity? {
        types.contains { $0 == type } ? entity(of: type) : nil
    }

    /// Returns the name of a model class's entity.
    public static func entityName(for type: any PersistentModel.Type) -> String { type.entityName }

    /// Returns the entity of a model class.
    func entity(of type: any PersistentModel.Type) -> Entity {
        let description = type.entityDescription
        var valueTypes: [String: Any.Type] = [:]
        for (keyPath, name) in type.columnsByKeyPath { valueTypes[name] = Swift.type(of: keyPath).valueType }
        var attributes: [String: Attribute] = [:]
        var relationships: [String: Relationship] = [:]
        for property in description.properties {
            let valueType = valueTypes[property.name] ?? Any.self
            switch property {
            case .attribute(let attribute): attributes[attribute.name] = Attribute(attribute, valueType)
            case .relationship(let relationship):
                relationships[relationship.name] = Relationship(
                    relationship, of: type, inverse: inverse(of: relationship, in: type), valueType: valueType)
            }
        }
        return Entity(
            name: description.name, attributesByName: attributes, relationshipsByName: relationships,
            uniquenessConstraints: description.indexes.filter { $0.kind == .unique }.map(\.properties),
            indices: description.indexes.filter { $0.kind == .indexed }.map(\.properties),
            place: EntityPlace(schema: self, type: type))
    }

    /// Returns the name of a relationship's inverse, named or inferred. If the model is not valid, returns the named one.
    private func inverse(of relationship: RelationshipDescription, in type: any PersistentModel.Type) -> String? {
        guard let model = try? model.get(),
            let resolved = model.entity(for: type)?.relationship(named: relationship.name)
        else { return relationship.inverse }
        return resolved.inverse.map { model.entities[resolved.destination].relationships[$0].name }
    }
}
