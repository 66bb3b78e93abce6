import StoreInterface

/// What becomes of the objects at the far end when an object is deleted.
public enum DeleteRule: String, Sendable, Hashable {
    /// They forget the object.
    case nullify
    /// They are deleted too.
    case cascade
    /// The save throws while there are any.
    case deny
    /// Nothing: they keep a reference to nobody, which `verify` reports.
    case noAction
}

public enum Cardinality: String, Sendable, Hashable {
    case toOne, toMany
}

/// An attribute as its owner describes it.
public struct AttributeDescription: Sendable, Hashable {
    public var name: String
    public var type: ColumnType
    public var isOptional: Bool
    public var index: IndexKind
    /// `.null`: none given; a new object then has zero, empty, or null if the attribute is optional.
    public var defaultValue: Value
    /// The name that the attribute had in older versions of the model.
    public var renamedFrom: String?
    /// Whether the history keeps the value of a deleted object, as its tombstone.
    public var preservesValueOnDeletion: Bool

    public init(
        name: String, type: ColumnType, isOptional: Bool = false, index: IndexKind = .none, defaultValue: Value = .null,
        renamedFrom: String? = nil, preservesValueOnDeletion: Bool = false
    ) {
        self.name = name
        self.type = type
        self.isOptional = isOptional
        self.index = index
        self.defaultValue = defaultValue
        self.renamedFrom = renamedFrom
        self.preservesValueOnDeletion = preservesValueOnDeletion
    }
}

/// A relationship as its owner describes it. The inverse may be named on one side only.
public struct RelationshipDescription: Sendable, Hashable {
    public var name: String
    /// The name of the entity at the far end.
    public var destination: String
    /// The name of the relationship that leads back.
    public var inverse: String?
    public var cardinality: Cardinality
    public var deleteRule: DeleteRule
    /// The name that the relationship had in older versions of the model.
    public var renamedFrom: String?

    public init(
        name: String, destination: String, inverse: String? = nil, cardinality: Cardinality,
        deleteRule: DeleteRule = .nullify, renamedFrom: String? = nil
    ) {
        self.name = name
        self.destination = destination
        self.inverse = inverse
        self.cardinality = cardinality
        self.deleteRule = deleteRule
        self.renamedFrom = renamedFrom
    }
}

public enum PropertyDescription: Sendable, Hashable {
    case attribute(AttributeDescription)
    case relationship(RelationshipDescription)

    public var name: String {
        switch self {
        case .attribute(let attribute): attribute.name
        case .relationship(let relationship): relationship.name
        }
    }

    /// Whether the property has a column of its own: attributes and to-one relationships do.
    var hasColumn: Bool {
        switch self {
        case .attribute: true
        case .relationship(let relationship): relationship.cardinality == .toOne
        }
    }
}

/// An index over some properties of an entity, in this order: attributes and to-one relationships.
///
/// Over one property it says the same as that attribute's own ``AttributeDescription/index``.
public struct IndexDescription: Sendable, Hashable {
    public var properties: [String]
    public var kind: IndexKind

    /// Fetches and sorts by the first of these, or by the first and the second, and so on, may use it.
    public static func index(_ properties: String...) -> IndexDescription {
        IndexDescription(properties: properties, kind: .indexed)
    }

    /// No two objects have the same values in all of these; nil differs from nil (S108). Implies an index.
    public static func unique(_ properties: String...) -> IndexDescription {
        IndexDescription(properties: properties, kind: .unique)
    }

    public init(properties: [String], kind: IndexKind = .indexed) {
        self.properties = properties
        self.kind = kind
    }
}

/// One entity as its owner describes it. The order of properties gives columns and relationships their numbers.
public struct EntityDescription: Sendable, Hashable {
    public var name: String
    public var properties: [PropertyDescription]
    public var indexes: [IndexDescription]
    /// The name that the entity had in older versions of the model.
    public var renamedFrom: String?

    public init(
        name: String, properties: [PropertyDescription], indexes: [IndexDescription] = [], renamedFrom: String? = nil
    ) {
        self.name = name
        self.properties = properties
        self.indexes = indexes
        self.renamedFrom = renamedFrom
    }

    var relationships: [RelationshipDescription] {
        properties.compactMap { if case .relationship(let relationship) = $0 { relationship } else { nil } }
    }

    /// The number of a property among those with a column.
    func column(named name: String) -> Int? {
        properties.filter(\.hasColumn).firstIndex { $0.name == name }
    }
}
