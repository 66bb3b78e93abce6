/// Descriptions of relationships by their properties, for the `@Model` macro. The destination is the entity of the property's type, also
/// where the source names that type by an alias.
extension RelationshipDescription {
    /// Creates the description of a model's property that leads to one object.
    public init<T: PersistentModel, M: PersistentModel>(
        _ name: String, of keyPath: KeyPath<T, M?>, inverse: String? = nil, deleteRule: DeleteRule = .nullify,
        renamedFrom: String? = nil, inference: InverseInference = .accepted, isOrdered: Bool = false, rules: [PropertyRule] = []
    ) {
        self.init(
            name: name, destination: M.entityName, inverse: inverse, cardinality: .toOne, deleteRule: deleteRule,
            renamedFrom: renamedFrom, inference: inference, isOrdered: isOrdered, rules: rules)
    }

    /// Creates the description of a model's property that leads to many objects.
    public init<T: PersistentModel, M: PersistentModel>(
        _ name: String, of keyPath: KeyPath<T, [M]>, inverse: String? = nil, deleteRule: DeleteRule = .nullify,
        renamedFrom: String? = nil, inference: InverseInference = .accepted, isOrdered: Bool = false, rules: [PropertyRule] = []
    ) {
        self.init(
            name: name, destination: M.entityName, inverse: inverse, cardinality: .toMany, deleteRule: deleteRule,
            renamedFrom: renamedFrom, inference: inference, isOrdered: isOrdered, rules: rules)
    }

    /// Selected for a type that is no model, which the property's getter reports to the compiler.
    @_disfavoredOverload
    public init<T: PersistentModel, V>(
        _ name: String, of keyPath: KeyPath<T, V>, inverse: String? = nil, deleteRule: DeleteRule = .nullify,
        renamedFrom: String? = nil, inference: InverseInference = .accepted, isOrdered: Bool = false, rules: [PropertyRule] = []
    ) {
        preconditionFailure(
            "cannot describe \(T.self).\(name) as a relationship: \(V.self) is no model. Describe it as an attribute.")
    }
}
