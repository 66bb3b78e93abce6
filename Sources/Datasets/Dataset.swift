import ObjectGraph
import StoreInterface
import StoreModel

/// Data to import, independent of any store: tables of typed columns, references between rows, and pairs of rows.
public struct Dataset: Sendable {
    /// The name of the file or folder.
    public var name: String
    /// The entities.
    public var tables: [Table]
    /// The many-to-many relationships.
    public var links: [Link]
    /// Descriptions of what was inferred, for display, one line each.
    public var notes: [String]
    /// The number of references to rows that do not exist. They were read as null, or as no pair of a many-to-many relationship. The keys
    /// of to-one relationships are in an attribute.
    public var lostReferences: Int

    /// Creates a data set.
    public init(name: String, tables: [Table], links: [Link] = [], notes: [String] = [], lostReferences: Int = 0) {
        self.name = name
        self.tables = tables
        self.links = links
        self.notes = notes
        self.lostReferences = lostReferences
    }

    /// The number of rows of all tables.
    public var objectCount: Int { tables.reduce(0) { $0 + $1.rowCount } }
    /// The number of pairs of all links.
    public var linkCount: Int { links.reduce(0) { $0 + $1.pairs.count } }
    /// The number of objects and links, which is the number of rows in the source.
    public var rowCount: Int { objectCount + linkCount }

    /// The index of the table with the most rows.
    public var largestTable: Int { tables.indices.max { tables[$0].rowCount < tables[$1].rowCount } ?? 0 }
}

/// The objects of one entity.
public struct Table: Sendable {
    /// The name of the entity.
    public var name: String
    /// The columns of values.
    public var attributes: [TableAttribute]
    /// The to-one relationships.
    public var references: [TableReference]
    /// The number of objects.
    public var rowCount: Int
    /// Whether every object belongs to a subentity.
    public var isAbstract = false
    /// The entities that inherit from the table's entity, directly or not. Each follows the one from which it inherits.
    public var subentities: [TableSubentity] = []
    /// The entity of each row, as a position in ``members``. Empty if there are no subentities.
    public var kinds: [Int32] = []
    /// The indexes and unique constraints of the table's entity, over attributes and references.
    public var indexes: [IndexDescription] = []

    /// Creates a table.
    public init(name: String, attributes: [TableAttribute], references: [TableReference] = [], rowCount: Int) {
        self.name = name
        self.attributes = attributes
        self.references = references
        self.rowCount = rowCount
    }

    /// The names of the table's entity and of its subentities.
    public var members: [String] { [name] + subentities.map(\.name) }

    /// Returns the attribute with this name, or nil.
    public func attribute(named name: String) -> TableAttribute? { attributes.first { $0.name == name } }
}

/// An entity whose objects are rows of the table of its superentity.
public struct TableSubentity: Sendable {
    /// The name of the entity.
    public var name: String
    /// The position in ``Table/members`` of the entity from which it inherits directly.
    public var superentity: Int
    /// Whether every object belongs to an entity that inherits from this one.
    public var isAbstract: Bool

    /// Creates a subentity.
    public init(name: String, superentity: Int, isAbstract: Bool = false) {
        self.name = name
        self.superentity = superentity
        self.isAbstract = isAbstract
    }
}

/// One column of values.
public struct TableAttribute: Sendable {
    /// The name of the attribute.
    public var name: String
    /// The type of the values.
    public var type: ColumnType
    /// A Boolean value that indicates whether values may be null.
    public var isOptional: Bool
    /// The value of each row: null, or a value of the storage class of `type`.
    public var values: ValueColumn
    /// The entities that declare the attribute, as positions in ``Table/members``. There are several only if none inherits from another.
    public var owners = [0]
    /// The value of a new object; null if the file has none, or none that is constant.
    public var defaultValue = Value.null

    /// Creates a column of values in memory.
    public init(name: String, type: ColumnType, isOptional: Bool, values: [Value]) {
        self.init(name: name, type: type, isOptional: isOptional, values: ValueColumn(values))
    }

    /// Creates a column of values.
    public init(name: String, type: ColumnType, isOptional: Bool, values: ValueColumn) {
        self.name = name
        self.type = type
        self.isOptional = isOptional
        self.values = values
    }
}

/// A to-one relationship.
public struct TableReference: Sendable {
    /// The value of a row that refers to no row.
    public static let nobody: Int32 = -1

    /// The name of the relationship.
    public var name: String
    /// The name of the inverse: a to-many relationship, or a reference of the other table whose inverse is this one.
    public var inverse: String
    /// The index of the referenced table.
    public var destination: Int
    /// For each row the referenced row, or ``nobody``.
    public var rows: [Int32]
    /// For each row its number in the list of the row that it refers to, from 0; nil if the inverse is not ordered.
    public var ranks: [Int32]?
    /// The effect of deleting an object on the one that it refers to.
    public var deleteRule = DeleteRule.nullify
    /// The effect of deleting an object on those that refer to it.
    public var inverseDeleteRule = DeleteRule.nullify
    /// The entity that declares the relationship, as a position in ``Table/members``.
    public var owner = 0
    /// The entity that the relationship leads to, as a position in ``Table/members`` of the referenced table. It declares the inverse.
    public var destinationMember = 0

    /// Creates a to-one relationship.
    public init(name: String, inverse: String, destination: Int, rows: [Int32]) {
        self.name = name
        self.inverse = inverse
        self.destination = destination
        self.rows = rows
    }
}

/// A many-to-many relationship.
public struct Link: Sendable {
    /// The name of the relationship in the source entity.
    public var name: String
    /// The name of the relationship in the destination entity.
    public var inverse: String
    /// The index of the source table.
    public var source: Int
    /// The index of the destination table.
    public var destination: Int
    /// The related rows, each pair once.
    public var pairs: [Pair]
    /// The effect of deleting a source on its destinations.
    public var deleteRule = DeleteRule.nullify
    /// The effect of deleting a destination on its sources.
    public var inverseDeleteRule = DeleteRule.nullify
    /// For each pair the number of its destination in the list of its source, from 0; nil if the relationship is not ordered.
    public var ranks: [Int32]?
    /// For each pair the number of its source in the list of its destination, from 0; nil if the inverse is not ordered.
    public var inverseRanks: [Int32]?
    /// The entity that declares the relationship, as a position in ``Table/members`` of the source table.
    public var sourceMember = 0
    /// The entity that declares the inverse, as a position in ``Table/members`` of the destination table.
    public var destinationMember = 0

    /// A row of the source table and a row of the destination table.
    public struct Pair: Sendable, Hashable {
        /// The row of the source table, from 0.
        public var source: Int32
        /// The row of the destination table, from 0.
        public var destination: Int32

        /// Creates a pair of rows.
        public init(source: Int32, destination: Int32) {
            self.source = source
            self.destination = destination
        }
    }

    /// Creates a many-to-many relationship.
    public init(name: String, inverse: String, source: Int, destination: Int, pairs: [Pair]) {
        self.name = name
        self.inverse = inverse
        self.source = source
        self.destination = destination
        self.pairs = pairs
    }
}
