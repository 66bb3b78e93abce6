import StoreInterface

/// Data to import, independent of any store: tables of typed columns, references between rows, and pairs of rows.
public struct Dataset: Sendable {
    public var name: String
    public var tables: [Table]
    public var links: [Link]
    /// Descriptions of what was inferred, for display, one line each.
    public var notes: [String]
    /// The number of references to rows that do not exist. They were read as null.
    public var lostReferences: Int

    public init(name: String, tables: [Table], links: [Link] = [], notes: [String] = [], lostReferences: Int = 0) {
        self.name = name
        self.tables = tables
        self.links = links
        self.notes = notes
        self.lostReferences = lostReferences
    }

    public var objectCount: Int { tables.reduce(0) { $0 + $1.rowCount } }
    public var linkCount: Int { links.reduce(0) { $0 + $1.pairs.count } }
    /// The number of objects and links, which is the number of rows in the source.
    public var rowCount: Int { objectCount + linkCount }

    /// The index of the table with the most rows.
    public var largestTable: Int { tables.indices.max { tables[$0].rowCount < tables[$1].rowCount } ?? 0 }
}

/// The objects of one entity.
public struct Table: Sendable {
    public var name: String
    public var attributes: [TableAttribute]
    public var references: [TableReference]
    public var rowCount: Int

    public init(name: String, attributes: [TableAttribute], references: [TableReference] = [], rowCount: Int) {
        self.name = name
        self.attributes = attributes
        self.references = references
        self.rowCount = rowCount
    }

    public func attribute(named name: String) -> TableAttribute? { attributes.first { $0.name == name } }
}

/// One column of values.
public struct TableAttribute: Sendable {
    public var name: String
    public var type: ColumnType
    public var isOptional: Bool
    /// The value of each row: null, or a value of the storage class of `type`.
    public var values: [Value]

    public init(name: String, type: ColumnType, isOptional: Bool, values: [Value]) {
        self.name = name
        self.type = type
        self.isOptional = isOptional
        self.values = values
    }
}

/// A to-one relationship.
public struct TableReference: Sendable {
    public static let nobody: Int32 = -1

    public var name: String
    /// The name of the inverse to-many relationship.
    public var inverse: String
    /// The index of the referenced table.
    public var destination: Int
    /// For each row the referenced row, or ``nobody``.
    public var rows: [Int32]

    public init(name: String, inverse: String, destination: Int, rows: [Int32]) {
        self.name = name
        self.inverse = inverse
        self.destination = destination
        self.rows = rows
    }
}

/// A many-to-many relationship.
public struct Link: Sendable {
    /// The relationship's name in the source entity. `inverse` is its name in the destination entity.
    public var name: String
    public var inverse: String
    public var source: Int
    public var destination: Int
    public var pairs: [Pair]

    public struct Pair: Sendable, Hashable {
        public var source: Int32
        public var destination: Int32

        public init(source: Int32, destination: Int32) {
            self.source = source
            self.destination = destination
        }
    }

    public init(name: String, inverse: String, source: Int, destination: Int, pairs: [Pair]) {
        self.name = name
        self.inverse = inverse
        self.source = source
        self.destination = destination
        self.pairs = pairs
    }
}

/// The reason why an input cannot be imported, as one line.
public struct DatasetError: Error, Sendable, CustomStringConvertible {
    public var description: String

    public init(_ description: String) { self.description = description }
}
