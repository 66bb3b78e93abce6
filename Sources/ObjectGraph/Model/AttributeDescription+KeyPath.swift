import StoreInterface
import StoreModel

extension AttributeDescription {
    /// Creates the description of a model's property. The property's type determines how it is stored and whether it is optional.
    public init<M: PersistentModel, V: AttributeValue>(
        _ name: String, of keyPath: KeyPath<M, V>, index: IndexKind = .none, default defaultValue: V? = nil,
        renamedFrom: String? = nil, preservesValueOnDeletion: Bool = false, rules: [PropertyRule] = [],
        derivation: Derivation? = nil
    ) {
        self.init(
            name: name, type: V.columnType, isOptional: V.isOptional, index: index,
            defaultValue: defaultValue?.storeValue ?? .null, renamedFrom: renamedFrom,
            preservesValueOnDeletion: preservesValueOnDeletion, rules: rules, derivation: derivation)
        content = AttributeContent(of: V.self)
        valueInsteadOfZero = V.valueInsteadOfZero
    }

    /// Unavailable. The compiler selects it for a type that cannot be stored, and shows the remedy.
    @available(
        *, unavailable, message: "this type cannot be stored; conform it to CodableAttribute, or mark the property @Transient"
    )
    public init<M: PersistentModel, V>(
        _ name: String, of keyPath: KeyPath<M, V>, index: IndexKind = .none, default defaultValue: V? = nil,
        renamedFrom: String? = nil, preservesValueOnDeletion: Bool = false, rules: [PropertyRule] = []
    ) {
        self.init(name: name, type: .data)
    }

    /// Unavailable. The compiler selects it for a property that is a model, and shows the remedy.
    @available(*, unavailable, message: "a property that is a model needs @Relationship")
    public init<M: PersistentModel, N: PersistentModel>(
        _ name: String, of keyPath: KeyPath<M, N?>, index: IndexKind = .none, default defaultValue: N? = nil,
        renamedFrom: String? = nil, preservesValueOnDeletion: Bool = false, rules: [PropertyRule] = []
    ) {
        self.init(name: name, type: .reference)
    }

    /// Unavailable. The compiler selects it for a property that is a list of models, and shows the remedy.
    @available(*, unavailable, message: "a property that is a list of models needs @Relationship")
    public init<M: PersistentModel, N: PersistentModel>(
        _ name: String, of keyPath: KeyPath<M, [N]>, index: IndexKind = .none, default defaultValue: [N]? = nil,
        renamedFrom: String? = nil, preservesValueOnDeletion: Bool = false, rules: [PropertyRule] = []
    ) {
        self.init(name: name, type: .reference)
    }
}
