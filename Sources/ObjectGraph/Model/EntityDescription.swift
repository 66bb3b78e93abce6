import StoreInterface
import StoreModel

/// The effect of deleting an object on the destinations of a relationship.
///
/// ```swift
/// let tracks = RelationshipDescription(
///     name: "tracks", destination: "Track", inverse: "album", cardinality: .toMany, deleteRule: .deny)
/// ```
public enum DeleteRule: String, Sendable, Hashable {
    /// Removes the references of the destinations to the object.
    case nullify
    /// Deletes the destinations too.
    case cascade
    /// Fails the save if there are destinations.
    case deny
    /// Has no effect. Destinations keep a reference to the missing object, which `verify` reports.
    case noAction
}

/// The number of destinations that a relationship can have.
///
/// ```swift
/// let composer = RelationshipDescription(name: "composer", destination: "Artist", cardinality: .toOne)
/// ```
public enum Cardinality: String, Sendable, Hashable {
    /// At most one destination, or any number of destinations, which are read in the order of their keys unless the relationship is
    /// ordered.
    case toOne, toMany
}

/// The description of an attribute, from which a model is created.
///
/// ```swift
/// let playCount = AttributeDescription(name: "playCount", type: .int64, index: .indexed, defaultValue: 0)
/// ```
public struct AttributeDescription: Sendable, Hashable {
    /// The name of the attribute.
    public var name: String
    /// The type of the stored values.
    public var type: ColumnType
    /// A Boolean value that indicates whether the value can be null.
    public var isOptional: Bool
    /// The kind of index over the attribute.
    public var index: IndexKind
    /// The value of a new object. If it is `.null`, a new object has zero, an empty value or the first case of an enum, or
    /// null if the attribute is optional.
    public var defaultValue: Value
    /// The name of the attribute in older versions of the model.
    public var renamedFrom: String?
    /// A Boolean value that indicates whether the history keeps the value of a deleted object, as its tombstone.
    public var preservesValueOnDeletion: Bool
    /// The rules that values must follow when they are saved. They are no part of the file.
    public var rules: [PropertyRule]
    /// The computation of the value if each save derives it from other values; nil for an attribute that programs set.
    public var derivation: Derivation?
    var content = AttributeContent.plain
    /// The value of a required attribute without a default if its type has another one than zero of the column: the first case of an enum,
    /// or the bytes of decimal zero. Null for others.
    var valueInsteadOfZero = Value.null

    /// The value of objects without one, if the attribute is required and has no default.
    var missingValue: Value { valueInsteadOfZero.isNull ? .zero(of: type) : valueInsteadOfZero }

    /// Creates the description of an attribute. To derive the type from a property of a class, use the initializer with a key
    /// path.
    public init(
        name: String, type: ColumnType, isOptional: Bool = false, index: IndexKind = .none, defaultValue: Value = .null,
        renamedFrom: String? = nil, preservesValueOnDeletion: Bool = false, rules: [PropertyRule] = [],
        derivation: Derivation? = nil
    ) {
        self.name = name
        self.type = type
        self.isOptional = isOptional
        self.index = index
        self.defaultValue = defaultValue
        self.renamedFrom = renamedFrom
        self.preservesValueOnDeletion = preservesValueOnDeletion
        self.rules = rules
        self.derivation = derivation
    }
}

/// The description of a relationship, from which a model is created. It is enough to name the inverse on one side.
///
/// ```swift
/// let tracks = RelationshipDescription(
///     name: "tracks", destination: "Track", inverse: "album", cardinality: .toMany, deleteRule: .cascade)
/// ```
public struct RelationshipDescription: Sendable, Hashable {
    /// The name of the relationship.
    public var name: String
    /// The name of the destination entity.
    public var destination: String
    /// The name of the inverse relationship.
    public var inverse: String?
    /// The number of destinations that an object can have.
    public var cardinality: Cardinality
    /// The delete rule of the relationship.
    public var deleteRule: DeleteRule
    /// The name of the relationship in older versions of the model.
    public var renamedFrom: String?
    /// Whether the relationship gets an inverse if it names none.
    public var inference: InverseInference
    /// The rules that the relationship must follow when it is saved. They are no part of the file.
    public var rules: [PropertyRule]
    /// Whether the members of a to-many relationship keep the order in which the program sets them (S046). Without it, they are read in
    /// the order of their keys.
    public var isOrdered: Bool
    /// Whether the relationship has no inverse if an earlier relationship of its entity names the same one, as in SwiftData. If false, such
    /// a model is not valid.
    package var yieldsInverse = false

    /// Creates the description of a relationship. Entities and inverses are checked when the model is created.
    public init(
        name: String, destination: String, inverse: String? = nil, cardinality: Cardinality,
        deleteRule: DeleteRule = .nullify, renamedFrom: String? = nil, inference: InverseInference = .accepted,
        isOrdered: Bool = false, rules: [PropertyRule] = []
    ) {
        self.name = name
        self.isOrdered = isOrdered
        self.inference = inference
        self.destination = destination
        self.inverse = inverse
        self.cardinality = cardinality
        self.deleteRule = deleteRule
        self.renamedFrom = renamedFrom
        self.rules = rules
    }
}

/// The description of an attribute or a relationship.
///
/// ```swift
/// let properties: [PropertyDescription] = [
///     .attribute(AttributeDescription(name: "title", type: .string)),
///     .relationship(RelationshipDescription(name: "album", destination: "Album", cardinality: .toOne)),
/// ]
/// ```
public enum PropertyDescription: Sendable, Hashable {
    /// An attribute, which is a column of the entity.
    case attribute(AttributeDescription)
    /// A relationship: a column if it is to-one, and otherwise a set of pairs or the inverse of a column.
    case relationship(RelationshipDescription)

    /// The name of the property.
    public var name: String {
        switch self {
        case .attribute(let attribute): attribute.name
        case .relationship(let relationship): relationship.name
        }
    }

    /// Whether the property has a column. Attributes and to-one relationships have one.
    var hasColumn: Bool {
        switch self {
        case .attribute: true
        case .relationship(let relationship): relationship.cardinality == .toOne
        }
    }
}

/// An index over properties of an entity, in order. The properties are attributes and to-one relationships.
///
/// An index over one property is equivalent to that attribute's own ``AttributeDescription/index``.
///
/// ```swift
/// let indexes: [IndexDescription] = [.index("album", "title"), .unique("isrc")]
/// ```
public struct IndexDescription: Sendable, Hashable {
    /// The names of the properties, in order.
    public var properties: [String]
    /// The kind of the index.
    public var kind: IndexKind

    /// Returns an index for fetches and sorts by the first property, by the first and second, and so on.
    public static func index(_ properties: String...) -> IndexDescription {
        IndexDescription(properties: properties, kind: .indexed)
    }

    /// Returns a unique constraint: no two objects have the same values of all properties. nil differs from nil (S108). Implies an
    /// index.
    public static func unique(_ properties: String...) -> IndexDescription {
        IndexDescription(properties: properties, kind: .unique)
    }

    /// Creates an index over properties, in order.
    public init(properties: [String], kind: IndexKind = .indexed) {
        self.properties = properties
        self.kind = kind
    }
}

/// The description of an entity, from which a model is created. The order of properties determines the numbers of columns and
/// relationships.
///
/// ```swift
/// let track = EntityDescription(
///     name: "Track",
///     properties: [
///         .attribute(AttributeDescription(name: "title", type: .string)),
///         .relationship(
///             RelationshipDescription(name: "album", destination: "Album", inverse: "tracks", cardinality: .toOne)),
///     ],
///     indexes: [.index("album", "title")])
/// ```
public struct EntityDescription: Sendable, Hashable {
    /// The name of the entity.
    public var name: String
    /// The attributes and relationships, in order.
    public var properties: [PropertyDescription]
    /// The indexes over several properties.
    public var indexes: [IndexDescription]
    /// The name of the entity in older versions of the model. An entity that inherits needs the first name that it had, in every later
    /// version, because that name marks its objects.
    public var renamedFrom: String?
    /// The name of the entity from which this one inherits its properties; nil if it inherits from none (S180).
    public var superentity: String?
    /// Whether every object of the entity belongs to an entity that inherits from it (S184).
    public var isAbstract: Bool
    /// The entities that inherit from this one, if it describes a whole hierarchy.
    var subentities: [SubentitySchema] = []
    /// The type of the entity's objects in a file, if its names do not show it.
    var storedType: Int64?

    /// Creates the description of an entity. It is checked when the model is created.
    public init(
        name: String, properties: [PropertyDescription], indexes: [IndexDescription] = [], renamedFrom: String? = nil,
        superentity: String? = nil, isAbstract: Bool = false
    ) {
        self.name = name
        self.properties = properties
        self.indexes = indexes
        self.renamedFrom = renamedFrom
        self.superentity = superentity
        self.isAbstract = isAbstract
    }

    var relationships: [RelationshipDescription] {
        properties.compactMap { if case .relationship(let relationship) = $0 { relationship } else { nil } }
    }

    /// Returns the position of a property among those with a column.
    func column(named name: String) -> ColumnIndex? {
        let columns = properties.filter(\.hasColumn)
        return columns.indices().first { columns[$0].name == name }
    }
}
