import ObjectGraph

/// The types that the expansion of ``Model()`` names. Programs do not see Strata's modules, so that its names clash with none.
public enum _Strata {
    /// Strata's type of this name.
    public typealias AttributeDescription = ObjectGraph.AttributeDescription
    /// Strata's type of this name.
    public typealias DetachedEntity = ObjectGraph.DetachedEntity
    /// Strata's type of this name.
    public typealias EntityDescription = ObjectGraph.EntityDescription
    /// Strata's type of this name.
    public typealias IndexDescription = ObjectGraph.IndexDescription
    /// Strata's type of this name.
    public typealias ManagedObject = ObjectGraph.ManagedObject
    /// Strata's type of this name.
    public typealias ModelAnchor = ObjectGraph.ModelAnchor
    /// Strata's type of this name.
    public typealias ModelPlaceholder = ObjectGraph.ModelPlaceholder
    /// The protocol of models.
    public typealias PersistentModel = StrataSwiftData.PersistentModel
    /// Strata's protocol of models, which that one refines.
    public typealias StoredModel = ObjectGraph.PersistentModel
    /// Strata's type of this name.
    public typealias PropertyDescription = ObjectGraph.PropertyDescription
    /// Strata's type of this name.
    public typealias PropertyNumber = ObjectGraph.PropertyNumber
    /// Strata's type of this name.
    public typealias SubclassAnchor = ObjectGraph.SubclassAnchor
}

extension PropertyDescription {
    /// Describes a relationship by the type of its property, for the expansion of ``Model()``.
    ///
    /// The type is examined at run time. The compiler does not know yet that a class is a model while it expands another model whose
    /// `@Relationship` names a property of the class.
    public static func _relationship<T, V>(
        _ name: String, of keyPath: KeyPath<T, V>, inverse: String? = nil, deleteRule: DeleteRule = .nullify,
        renamedFrom: String? = nil, inference: InverseInference = .wanted, minimumModelCount: Int? = 0,
        maximumModelCount: Int? = 0
    ) -> PropertyDescription {
        let destination = RelationshipType(V.self)
        let isToMany = destination?.isToMany ?? false
        var relationship = RelationshipDescription(
            // No entity has the full name of a type, so the model is refused with the names of the property and the type.
            name: name, destination: destination?.model.entityName ?? String(reflecting: V.self), inverse: inverse,
            cardinality: isToMany ? .toMany : .toOne, deleteRule: deleteRule, renamedFrom: renamedFrom,
            inference: inference,
            rules: PropertyRule.counts(
                minimum: minimumModelCount, maximum: maximumModelCount, isToMany: isToMany,
                allowsNone: V.self is any OptionalType.Type))
        // SwiftData accepts two relationships of a class that name one inverse.
        relationship.yieldsInverse = true
        return .relationship(relationship)
    }
}
