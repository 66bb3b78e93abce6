/// The storage type of a column's values.
///
/// ```swift
/// let released = AttributeDescription(name: "released", type: .date, isOptional: true)
/// ```
@frozen
public enum ColumnType: String, Sendable, Hashable, Codable, CaseIterable {
    /// A number or a Boolean value, with the width of the Swift type of the same name.
    case bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float, double
    /// Seconds since the reference date, as a double.
    case date
    case string, data, uuid
    /// The key of an object of the entity in ``ColumnSchema/destination``.
    case reference
}

/// The kind of index that a column has, if any.
///
/// ```swift
/// let isrc = AttributeDescription(name: "isrc", type: .string, index: .unique)
/// ```
@frozen
public enum IndexKind: String, Sendable, Hashable, Codable {
    /// No index, an index that speeds up look-ups and sorts, or such an index that also forbids two equal values other than
    /// null.
    case none, indexed, unique
}

/// One column of an entity: an attribute, or a to-one relationship.
public struct ColumnSchema: Sendable, Hashable, Codable {
    /// The name of the attribute or relationship.
    public var name: String
    /// The storage type of the values.
    public var type: ColumnType
    /// A Boolean value that indicates whether the column can be null.
    public var isOptional: Bool
    /// The kind of index over this column alone.
    public var index: IndexKind
    /// The entity that the keys of a `.reference` column belong to.
    public var destination: EntityIndex?
    /// The default value that the developer specified; null if none was given. It replaces null in older objects when the
    /// column becomes required. When the column is new, older objects get this value.
    public var defaultValue: Value = .null
    /// The value of older objects instead of zero if the column is required and has no default; null stands for zero.
    package var missingValue: Value = .null
    /// The name that the column had in older models.
    public var renamedFrom: String?
    /// The computation of the values if the layer above keeps them; nil for a column that programs set.
    public var derivation: ColumnDerivation?

    /// Creates a column. A column of type `.reference` needs a destination.
    public init(
        name: String, type: ColumnType, isOptional: Bool = false, index: IndexKind = .none, destination: EntityIndex? = nil,
        defaultValue: Value = .null, renamedFrom: String? = nil, derivation: ColumnDerivation? = nil
    ) {
        self.name = name
        self.type = type
        self.isOptional = isOptional
        self.index = index
        self.destination = destination
        self.defaultValue = defaultValue
        self.renamedFrom = renamedFrom
        self.derivation = derivation
    }

    /// Files do not store the hints for migrating from older models.
    private enum CodingKeys: String, CodingKey { case name, type, isOptional, index, destination, derivation }

    /// The value of the column in objects that are older than the column.
    public var initialValue: Value {
        guard defaultValue.isNull, !isOptional else { return defaultValue }
        return missingValue.isNull ? .zero(of: type) : missingValue
    }
}

/// An index over two or more columns of an entity. It orders by the first column, then by the second, and so on.
///
/// Its columns identify it: no two indexes of an entity have the same columns in the same order.
public struct IndexSchema: Sendable, Hashable, Codable {
    /// The columns, in the order of the index.
    public var columns: [ColumnIndex]
    /// The kind of the index. With `.unique`, no two objects have the same values in all columns, where null differs from
    /// null. Saves check this.
    public var kind: IndexKind

    /// Creates an index over columns of an entity.
    public init(columns: [ColumnIndex], kind: IndexKind = .indexed) {
        self.columns = columns
        self.kind = kind
    }
}

/// One kind of record. An entity is given by its position in ``StoreSchema/entities``, an ``EntityIndex``. A column is given by its
/// position in ``columns``, a ``ColumnIndex``.
public struct EntitySchema: Sendable, Hashable, Codable {
    /// The name of the entity.
    public var name: String
    /// The columns. See ``columnIndices``.
    public var columns: [ColumnSchema]
    /// The indexes over several columns. For indexes over one column, see ``ColumnSchema/index``.
    public var indexes: [IndexSchema]
    /// The name that the entity had in older models.
    public var renamedFrom: String?
    /// Further names that the entity may have in older models. The name of a hidden entity has several parts, each of which may have been
    /// renamed before the others.
    package var otherFormerNames: [String] = []
    /// The entities that inherit from this one, directly or indirectly. Their objects are objects of this entity, which therefore has
    /// their columns too. Stores only keep this list.
    public var subentities: [SubentitySchema] = []
    /// Whether each object belongs to one of the subentities.
    public var isAbstract = false

    /// Creates an entity. It must have at most ``maximumColumns`` columns.
    public init(name: String, columns: [ColumnSchema], indexes: [IndexSchema] = [], renamedFrom: String? = nil) {
        self.name = name
        self.columns = columns
        self.indexes = indexes
        self.renamedFrom = renamedFrom
    }

    private enum CodingKeys: String, CodingKey { case name, columns, indexes, subentities, isAbstract }

    /// Decodes an entity. Files of models without compound indexes or inheritance do not contain their keys.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        name = try container.decode(String.self, forKey: .name)
        columns = try container.decode([ColumnSchema].self, forKey: .columns)
        indexes = try container.decodeIfPresent([IndexSchema].self, forKey: .indexes) ?? []
        subentities = try container.decodeIfPresent([SubentitySchema].self, forKey: .subentities) ?? []
        isAbstract = try container.decodeIfPresent(Bool.self, forKey: .isAbstract) ?? false
    }

    /// Encodes the entity without the hints for migrating from older models.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(name, forKey: .name)
        try container.encode(columns, forKey: .columns)
        if !indexes.isEmpty { try container.encode(indexes, forKey: .indexes) }
        if !subentities.isEmpty { try container.encode(subentities, forKey: .subentities) }
        if isAbstract { try container.encode(isAbstract, forKey: .isAbstract) }
    }

    /// The maximum number of columns per entity, which is the capacity of a ``ColumnSet``.
    public static let maximumColumns = 128
}

/// A set of pairs (source key, destination key): a many-to-many relationship, or a to-many relationship without an inverse.
public struct LinkSchema: Sendable, Hashable, Codable {
    /// The name of the link.
    public var name: String
    /// The entity at the source end.
    public var source: EntityIndex
    /// The entity at the destination end.
    public var destination: EntityIndex
    /// Other names that the link may have in older models.
    public var formerNames: [String] = []
    /// Names that the link may have in older models with its ends reversed.
    public var reversedNames: [String] = []

    /// Creates a link between two entities.
    public init(name: String, source: EntityIndex, destination: EntityIndex) {
        self.name = name
        self.source = source
        self.destination = destination
    }

    private enum CodingKeys: String, CodingKey { case name, source, destination }
}

/// A model as a store sees it: columns and links by position. Names of properties, delete rules and inverses belong to the
/// object layer.
public struct StoreSchema: Sendable, Hashable, Codable {
    /// The entities. See ``entityIndices``.
    public var entities: [EntitySchema]
    /// The links. See ``linkIndices``.
    public var links: [LinkSchema]
    /// The version, which decides which of two differing models is newer.
    public var version: SchemaVersion
    /// The relationships of the model that this schema was made from; empty in a schema read from a file.
    public var relationships: [RelationshipSchema] = []
    /// The instructions for migrating a file to this schema.
    public var migration = SchemaMigration()

    /// Creates a schema.
    public init(entities: [EntitySchema], links: [LinkSchema] = [], version: SchemaVersion = SchemaVersion()) {
        self.entities = entities
        self.links = links
        self.version = version
    }

    private enum CodingKeys: String, CodingKey { case entities, links, version }

    /// Decodes a schema. A file may have been created before models had versions.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        entities = try container.decode([EntitySchema].self, forKey: .entities)
        links = try container.decode([LinkSchema].self, forKey: .links)
        version = try container.decodeIfPresent(SchemaVersion.self, forKey: .version) ?? SchemaVersion()
    }

    /// The schema without the hints for migrations, as a file stores it.
    public var withoutHints: StoreSchema {
        var plain = self
        plain.relationships = []
        plain.migration = SchemaMigration()
        for entity in plain.entities.indices {
            plain.entities[entity].renamedFrom = nil
            plain.entities[entity].otherFormerNames = []
            for subentity in plain.entities[entity].subentities.indices {
                plain.entities[entity].subentities[subentity].renamedFrom = nil
                plain.entities[entity].subentities[subentity].attributesWithoutDefault = []
                plain.entities[entity].subentities[subentity].isFilledByWork = false
            }
            for column in plain.entities[entity].columns.indices {
                plain.entities[entity].columns[column].defaultValue = .null
                plain.entities[entity].columns[column].missingValue = .null
                plain.entities[entity].columns[column].renamedFrom = nil
            }
        }
        for link in plain.links.indices {
            plain.links[link].formerNames = []
            plain.links[link].reversedNames = []
        }
        return plain
    }
}

/// A set of columns below 128.
@frozen
public struct ColumnSet: Sendable, Hashable, Codable {
    /// The columns 0 to 63, one bit per column.
    public var low: UInt64
    /// The columns 64 to 127, one bit per column.
    public var high: UInt64

    /// Creates a set from its bits. Without arguments, creates the empty set.
    @inlinable public init(low: UInt64 = 0, high: UInt64 = 0) {
        self.low = low
        self.high = high
    }

    /// Creates the set of the columns 0 ..< count.
    @inlinable public init(first count: Int) {
        low = count >= 64 ? ~0 : (1 << UInt64(count)) - 1
        high = count <= 64 ? 0 : (count >= 128 ? ~0 : (1 << UInt64(count - 64)) - 1)
    }

    /// A Boolean value that indicates whether the set has no columns.
    @inlinable public var isEmpty: Bool { low | high == 0 }
    /// The number of columns in the set.
    @inlinable public var count: Int { low.nonzeroBitCount + high.nonzeroBitCount }

    /// Returns whether the set contains a column. Precondition: the column is from 0 to 127.
    @inlinable @inline(__always) public func contains(_ column: ColumnIndex) -> Bool {
        let bit = column.rawValue
        return bit < 64 ? low >> UInt64(bit) & 1 != 0 : high >> UInt64(bit - 64) & 1 != 0
    }

    /// Inserts a column. Precondition: the column is from 0 to 127.
    @inlinable public mutating func insert(_ column: ColumnIndex) {
        let bit = column.rawValue
        if bit < 64 { low |= 1 << UInt64(bit) } else { high |= 1 << UInt64(bit - 64) }
    }

    /// Removes a column. Precondition: the column is from 0 to 127.
    @inlinable public mutating func remove(_ column: ColumnIndex) {
        let bit = column.rawValue
        if bit < 64 { low &= ~(1 << UInt64(bit)) } else { high &= ~(1 << UInt64(bit - 64)) }
    }

    /// Inserts all columns of another set.
    @inlinable public mutating func formUnion(_ other: ColumnSet) {
        low |= other.low
        high |= other.high
    }

    /// Returns the columns that are in both sets.
    @inlinable public func intersection(_ other: ColumnSet) -> ColumnSet {
        ColumnSet(low: low & other.low, high: high & other.high)
    }

    /// Calls `body` with each column in ascending order.
    @inlinable public func forEach(_ body: (ColumnIndex) throws -> Void) rethrows {
        var rest = low
        while rest != 0 {
            try body(ColumnIndex(rawValue: rest.trailingZeroBitCount))
            rest &= rest - 1
        }
        rest = high
        while rest != 0 {
            try body(ColumnIndex(rawValue: rest.trailingZeroBitCount + 64))
            rest &= rest - 1
        }
    }
}

extension ColumnSchema {
    /// Returns whether the column can store a value: the storage class matches, the value is in range, and null requires an
    /// optional column.
    public func accepts(_ value: Value) -> Bool { type.accepts(value, isOptional: isOptional) }
}

extension ColumnType {
    /// Returns whether a column of this type can store a value: the storage class matches, the value is in range, and null
    /// requires an optional column.
    @inlinable public func accepts(_ value: Value, isOptional: Bool) -> Bool {
        switch (value, self) {
        case (.null, _): isOptional
        case (.bool, .bool), (.double, .float), (.double, .double), (.double, .date), (.string, .string), (.data, .data),
            (.uuid, .uuid), (.uint, .uint64), (.int, .int64), (.reference, .reference):
            true
        case (.int(let number), .int8): Int8(exactly: number) != nil
        case (.int(let number), .int16): Int16(exactly: number) != nil
        case (.int(let number), .int32): Int32(exactly: number) != nil
        case (.int(let number), .uint8): UInt8(exactly: number) != nil
        case (.int(let number), .uint16): UInt16(exactly: number) != nil
        case (.int(let number), .uint32): UInt32(exactly: number) != nil
        default: false
        }
    }
}

extension StoreSchema {
    /// Whether all positions lead to entities and columns of the schema. The schema in a file may contain any numbers.
    package var isSound: Bool {
        links.allSatisfy { entityIndices.contains($0.source) && entityIndices.contains($0.destination) }
            && entities.enumerated(as: EntityIndex.self).allSatisfy { number, entity in
                entity.columns.allSatisfy { $0.destination.map(entityIndices.contains) ?? true }
                    && entity.columns.allSatisfy { $0.derivation?.isSound(in: number, of: self) ?? true }
                    && entity.indexes.allSatisfy { index in
                        !index.columns.isEmpty && index.columns.allSatisfy(entity.columnIndices.contains)
                    } && entity.hasSoundHierarchy
            }
    }
}
