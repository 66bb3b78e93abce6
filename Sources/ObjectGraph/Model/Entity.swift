import StoreInterface

/// An entity of a model, with everything resolved to numbers.
public final class Entity: Sendable {
    public let name: String
    /// Its number in the store's schema.
    public let number: Int
    /// Attributes and to-one relationships in declaration order: a column's number is its position.
    public let columns: [ColumnSchema]
    /// By column: what a new object has.
    public let defaults: [Value]
    public let attributes: [Attribute]
    /// In declaration order: a relationship's number is its position.
    public let relationships: [Relationship]
    /// Those over several properties.
    public let indexes: [IndexSchema]
    private let columnsByName: [String: Int]
    /// Of ``columns``.
    private let names: [String]

    init(
        name: String, number: Int, columns: [ColumnSchema], defaults: [Value], attributes: [Attribute],
        relationships: [Relationship], indexes: [IndexSchema]
    ) {
        self.name = name
        self.number = number
        self.columns = columns
        self.defaults = defaults
        self.attributes = attributes
        self.relationships = relationships
        self.indexes = indexes
        names = columns.map(\.name)
        columnsByName = Dictionary(
            columns.enumerated().map { ($1.name, $0) }, uniquingKeysWith: { first, _ in first })
    }

    public func attribute(named name: String) -> Attribute? { attributes.first { $0.name == name } }
    public func relationship(named name: String) -> Relationship? { relationships.first { $0.name == name } }
    /// The column of an attribute or a to-one relationship.
    public func column(named name: String) -> Int? {
        // Few names are compared faster than one is hashed.
        names.count <= 16 ? names.firstIndex(of: name) : columnsByName[name]
    }
}

/// An attribute of an entity.
public struct Attribute: Sendable, Hashable {
    public let name: String
    public let column: Int
    public let type: ColumnType
    public let isOptional: Bool
    public let index: IndexKind
    /// Whether the history keeps the value of a deleted object.
    public let preservesValueOnDeletion: Bool
}

/// A relationship of an entity.
public struct Relationship: Sendable, Hashable {
    public let name: String
    /// Its number among the entity's relationships.
    public let number: Int
    /// The number of the entity at the far end.
    public let destination: Int
    public let deleteRule: DeleteRule
    /// The number of the relationship at the far end that leads back.
    public let inverse: Int?
    public let kind: Kind

    public enum Kind: Sendable, Hashable {
        case toOne(column: Int)
        /// Found through the inverse's column, or through a link.
        case toMany(Relation)
    }
}
