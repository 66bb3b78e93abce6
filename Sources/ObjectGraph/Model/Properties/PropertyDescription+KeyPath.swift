import StoreInterface
import StoreModel

/// Descriptions of properties whose kind the compiler chooses by their type. For the `@Model` macro.
///
/// The order of preference is that of the accessors: see ``ManagedObject/property(_:_:)``.
extension PropertyDescription {
    private static func attribute<A: AttributeValue>(
        _ name: String, as type: A.Type, index: IndexKind, defaultValue: A?, renamedFrom: String?, isPreserved: Bool,
        rules: [PropertyRule]
    ) -> PropertyDescription {
        var attribute = AttributeDescription(
            name: name, type: A.columnType, isOptional: A.isOptional, index: index,
            defaultValue: defaultValue?.storeValue ?? .null, renamedFrom: renamedFrom,
            preservesValueOnDeletion: isPreserved, rules: rules)
        attribute.content = AttributeContent(of: A.self)
        attribute.valueInsteadOfZero = A.valueInsteadOfZero
        return .attribute(attribute)
    }

    // MARK: Attributes

    /// Describes an attribute.
    public static func property<T: PersistentModel, V: AttributeValue>(
        _ name: String, of keyPath: KeyPath<T, V>, index: IndexKind = .none, default value: V? = nil,
        renamedFrom: String? = nil, preservesValueOnDeletion: Bool = false, rules: [PropertyRule] = []
    ) -> PropertyDescription {
        attribute(
            name, as: V.self, index: index, defaultValue: value, renamedFrom: renamedFrom, isPreserved: preservesValueOnDeletion,
            rules: rules)
    }

    /// Describes an attribute of a raw-value type.
    @_disfavoredOverload
    public static func property<T: PersistentModel, V: RawRepresentable>(
        _ name: String, of keyPath: KeyPath<T, V>, index: IndexKind = .none, default value: V? = nil,
        renamedFrom: String? = nil, preservesValueOnDeletion: Bool = false, rules: [PropertyRule] = []
    ) -> PropertyDescription where V.RawValue: AttributeValue {
        attribute(
            name, as: RawAttribute<V>.self, index: index, defaultValue: RawAttribute(ifPresent: value), renamedFrom: renamedFrom,
            isPreserved: preservesValueOnDeletion, rules: rules)
    }

    /// Describes an attribute of an optional raw-value type.
    @_disfavoredOverload
    public static func property<T: PersistentModel, V: RawRepresentable>(
        _ name: String, of keyPath: KeyPath<T, V?>, index: IndexKind = .none, default value: V? = nil,
        renamedFrom: String? = nil, preservesValueOnDeletion: Bool = false, rules: [PropertyRule] = []
    ) -> PropertyDescription where V.RawValue: AttributeValue {
        attribute(
            name, as: RawAttribute<V>?.self, index: index, defaultValue: RawAttribute(ifPresent: value), renamedFrom: renamedFrom,
            isPreserved: preservesValueOnDeletion, rules: rules)
    }

    /// Describes an attribute of a raw-value type that is also `Codable`.
    @_disfavoredOverload
    public static func property<T: PersistentModel, V: RawRepresentable & Codable>(
        _ name: String, of keyPath: KeyPath<T, V>, index: IndexKind = .none, default value: V? = nil,
        renamedFrom: String? = nil, preservesValueOnDeletion: Bool = false, rules: [PropertyRule] = []
    ) -> PropertyDescription where V.RawValue: AttributeValue {
        attribute(
            name, as: RawAttribute<V>.self, index: index, defaultValue: RawAttribute(ifPresent: value), renamedFrom: renamedFrom,
            isPreserved: preservesValueOnDeletion, rules: rules)
    }

    /// Describes an attribute of an optional raw-value type that is also `Codable`.
    @_disfavoredOverload
    public static func property<T: PersistentModel, V: RawRepresentable & Codable>(
        _ name: String, of keyPath: KeyPath<T, V?>, index: IndexKind = .none, default value: V? = nil,
        renamedFrom: String? = nil, preservesValueOnDeletion: Bool = false, rules: [PropertyRule] = []
    ) -> PropertyDescription where V.RawValue: AttributeValue {
        attribute(
            name, as: RawAttribute<V>?.self, index: index, defaultValue: RawAttribute(ifPresent: value), renamedFrom: renamedFrom,
            isPreserved: preservesValueOnDeletion, rules: rules)
    }

    /// Describes an attribute of a `Codable` type, which may be optional.
    @_disfavoredOverload
    public static func property<T: PersistentModel, V: Codable>(
        _ name: String, of keyPath: KeyPath<T, V>, index: IndexKind = .none, default value: V? = nil,
        renamedFrom: String? = nil, preservesValueOnDeletion: Bool = false, rules: [PropertyRule] = []
    ) -> PropertyDescription {
        attribute(
            name, as: EncodedAttribute<V>.self, index: index, defaultValue: EncodedAttribute(ifPresent: value),
            renamedFrom: renamedFrom, isPreserved: preservesValueOnDeletion,
            rules: rules)
    }

    /// Selected for a type that cannot be stored, which the property's getter reports to the compiler.
    @_disfavoredOverload
    public static func property<T: PersistentModel, V>(
        _ name: String, of keyPath: KeyPath<T, V>, index: IndexKind = .none, default value: V? = nil,
        renamedFrom: String? = nil, preservesValueOnDeletion: Bool = false, rules: [PropertyRule] = []
    ) -> PropertyDescription {
        preconditionFailure("\(V.self) cannot be stored. Make it Codable, or mark the property @Transient.")
    }

    // MARK: Relationships without @Relationship, whose inverse is inferred. Initial values are objects, which are not evaluated.

    /// Describes a relationship to one object.
    public static func property<T: PersistentModel, M: PersistentModel>(
        _ name: String, of keyPath: KeyPath<T, M?>, default value: @autoclosure () -> M? = nil
    ) -> PropertyDescription {
        related(name, of: keyPath, inference: .wanted)
    }

    /// Describes a relationship to one object, which is not optional.
    public static func property<T: PersistentModel, M: PersistentModel>(
        _ name: String, of keyPath: KeyPath<T, M>, default value: @autoclosure () -> M? = nil
    ) -> PropertyDescription {
        related(name, of: keyPath, inference: .wanted)
    }

    /// Describes a relationship to many objects.
    public static func property<T: PersistentModel, M: PersistentModel>(
        _ name: String, of keyPath: KeyPath<T, [M]>, default value: @autoclosure () -> [M]? = nil
    ) -> PropertyDescription {
        related(name, of: keyPath, inference: .wanted)
    }

    /// Describes a relationship to many objects.
    public static func property<T: PersistentModel, M: PersistentModel>(
        _ name: String, of keyPath: KeyPath<T, [M]?>, default value: @autoclosure () -> [M]? = nil
    ) -> PropertyDescription {
        related(name, of: keyPath, inference: .wanted)
    }

    /// Describes a relationship to many objects.
    public static func property<T: PersistentModel, M: PersistentModel>(
        _ name: String, of keyPath: KeyPath<T, Set<M>>, default value: @autoclosure () -> Set<M>? = nil
    ) -> PropertyDescription {
        related(name, of: keyPath, inference: .wanted)
    }

    /// Describes a relationship to many objects.
    public static func property<T: PersistentModel, M: PersistentModel>(
        _ name: String, of keyPath: KeyPath<T, Set<M>?>, default value: @autoclosure () -> Set<M>? = nil
    ) -> PropertyDescription {
        related(name, of: keyPath, inference: .wanted)
    }

    // MARK: Relationships with @Relationship

    private static func relationship<M: PersistentModel>(
        _ name: String, of _: M.Type, cardinality: Cardinality, inverse: String?,
        deleteRule: DeleteRule, renamedFrom: String?, inference: InverseInference, isOrdered: Bool,
        rules: [PropertyRule]
    ) -> PropertyDescription {
        .relationship(
            RelationshipDescription(
                name: name, destination: M.entityName, inverse: inverse, cardinality: cardinality, deleteRule: deleteRule,
                renamedFrom: renamedFrom, inference: inference, isOrdered: isOrdered, rules: rules))
    }

    /// Describes a relationship to one object.
    public static func related<T: PersistentModel, M: PersistentModel>(
        _ name: String, of keyPath: KeyPath<T, M?>, inverse: String? = nil, deleteRule: DeleteRule = .nullify,
        renamedFrom: String? = nil, inference: InverseInference = .accepted, isOrdered: Bool = false, rules: [PropertyRule] = []
    ) -> PropertyDescription {
        relationship(
            name, of: M.self, cardinality: .toOne, inverse: inverse, deleteRule: deleteRule, renamedFrom: renamedFrom,
            inference: inference, isOrdered: isOrdered, rules: rules)
    }

    /// Describes a relationship to one object, which is not optional. Saves require the object, as if the property had the rule `.required`.
    public static func related<T: PersistentModel, M: PersistentModel>(
        _ name: String, of keyPath: KeyPath<T, M>, inverse: String? = nil, deleteRule: DeleteRule = .nullify,
        renamedFrom: String? = nil, inference: InverseInference = .accepted, isOrdered: Bool = false, rules: [PropertyRule] = []
    ) -> PropertyDescription {
        relationship(
            name, of: M.self, cardinality: .toOne, inverse: inverse, deleteRule: deleteRule, renamedFrom: renamedFrom,
            inference: inference, isOrdered: isOrdered, rules: rules.contains(.required) ? rules : rules + [.required])
    }

    /// Describes a relationship to many objects.
    public static func related<T: PersistentModel, M: PersistentModel>(
        _ name: String, of keyPath: KeyPath<T, [M]>, inverse: String? = nil, deleteRule: DeleteRule = .nullify,
        renamedFrom: String? = nil, inference: InverseInference = .accepted, isOrdered: Bool = false, rules: [PropertyRule] = []
    ) -> PropertyDescription {
        relationship(
            name, of: M.self, cardinality: .toMany, inverse: inverse, deleteRule: deleteRule, renamedFrom: renamedFrom,
            inference: inference, isOrdered: isOrdered, rules: rules)
    }

    /// Describes a relationship to many objects.
    public static func related<T: PersistentModel, M: PersistentModel>(
        _ name: String, of keyPath: KeyPath<T, [M]?>, inverse: String? = nil, deleteRule: DeleteRule = .nullify,
        renamedFrom: String? = nil, inference: InverseInference = .accepted, isOrdered: Bool = false, rules: [PropertyRule] = []
    ) -> PropertyDescription {
        relationship(
            name, of: M.self, cardinality: .toMany, inverse: inverse, deleteRule: deleteRule, renamedFrom: renamedFrom,
            inference: inference, isOrdered: isOrdered, rules: rules)
    }

    /// Describes a relationship to many objects.
    public static func related<T: PersistentModel, M: PersistentModel>(
        _ name: String, of keyPath: KeyPath<T, Set<M>>, inverse: String? = nil, deleteRule: DeleteRule = .nullify,
        renamedFrom: String? = nil, inference: InverseInference = .accepted, isOrdered: Bool = false, rules: [PropertyRule] = []
    ) -> PropertyDescription {
        precondition(
            !isOrdered, "cannot order \(T.self).\(name): a set has no order. Make the property an array.")
        return relationship(
            name, of: M.self, cardinality: .toMany, inverse: inverse, deleteRule: deleteRule, renamedFrom: renamedFrom,
            inference: inference, isOrdered: isOrdered, rules: rules)
    }

    /// Describes a relationship to many objects.
    public static func related<T: PersistentModel, M: PersistentModel>(
        _ name: String, of keyPath: KeyPath<T, Set<M>?>, inverse: String? = nil, deleteRule: DeleteRule = .nullify,
        renamedFrom: String? = nil, inference: InverseInference = .accepted, isOrdered: Bool = false, rules: [PropertyRule] = []
    ) -> PropertyDescription {
        precondition(
            !isOrdered, "cannot order \(T.self).\(name): a set has no order. Make the property an array.")
        return relationship(
            name, of: M.self, cardinality: .toMany, inverse: inverse, deleteRule: deleteRule, renamedFrom: renamedFrom,
            inference: inference, isOrdered: isOrdered, rules: rules)
    }

    /// Unavailable. The compiler selects it for a type that is no model.
    @available(*, unavailable, message: "a relationship leads to a model; a value is stored without '@Relationship'")
    @_disfavoredOverload
    public static func related<T: PersistentModel, V>(
        _ name: String, of keyPath: KeyPath<T, V>, inverse: String? = nil, deleteRule: DeleteRule = .nullify,
        renamedFrom: String? = nil, inference: InverseInference = .accepted, isOrdered: Bool = false, rules: [PropertyRule] = []
    ) -> PropertyDescription {
        preconditionFailure("not a model")
    }
}
