/// The position of something in a list of the schema: ``EntityIndex``, ``ColumnIndex``, or ``LinkIndex``.
///
/// An array of the schema takes such a position as a subscript: `schema.entities[entity].columns[column]`. In JSON and in files a
/// position is a plain number.
public protocol SchemaIndex: RawRepresentable, Sendable, BitwiseCopyable, Hashable, Codable, Strideable,
    ExpressibleByIntegerLiteral,
    CustomStringConvertible
where RawValue == Int, Stride == Int, IntegerLiteralType == Int {
    /// Creates a position from its number. The schema need not have it.
    init(rawValue: Int)
}

extension SchemaIndex {
    /// Creates a position from its number.
    @inlinable public init(integerLiteral value: Int) { self.init(rawValue: value) }

    /// The following position.
    @inlinable public var next: Self { Self(rawValue: rawValue + 1) }

    /// The digits of the number.
    @inlinable public var description: String { rawValue.description }

    /// Hashes the number as fast as an integer's hash.
    @inlinable public func _rawHashValue(seed: Int) -> Int { rawValue._rawHashValue(seed: seed) }

    /// Returns whether two positions are the same.
    @inlinable public static func == (a: Self, b: Self) -> Bool { a.rawValue == b.rawValue }

    /// Returns whether a position is before another one.
    @inlinable public static func < (a: Self, b: Self) -> Bool { a.rawValue < b.rawValue }

    /// Returns the position that is a number of positions later.
    @inlinable public func advanced(by count: Int) -> Self { Self(rawValue: rawValue + count) }

    /// Returns the number of positions from this one to another, not including the other.
    @inlinable public func distance(to other: Self) -> Int { other.rawValue - rawValue }
}

/// The position of an entity in ``StoreSchema/entities``.
@frozen
public struct EntityIndex: SchemaIndex {
    /// The position as a number, as it is in files.
    public let rawValue: Int

    /// Creates the position of an entity from its number. The schema need not have it.
    @inlinable public init(rawValue: Int) { self.rawValue = rawValue }
}

/// The position of a column in ``EntitySchema/columns``.
@frozen
public struct ColumnIndex: SchemaIndex {
    /// The position as a number, as it is in files.
    public let rawValue: Int

    /// Creates the position of a column from its number. The schema need not have it.
    @inlinable public init(rawValue: Int) { self.rawValue = rawValue }
}

/// The position of a link in ``StoreSchema/links``.
@frozen
public struct LinkIndex: SchemaIndex {
    /// The position as a number, as it is in files.
    public let rawValue: Int

    /// Creates the position of a link from its number. The schema need not have it.
    @inlinable public init(rawValue: Int) { self.rawValue = rawValue }
}

extension Array {
    /// The element at a position of the schema, in an array that has one element per entity, column, or link.
    @inlinable public subscript(index: some SchemaIndex) -> Element {
        get { self[index.rawValue] }
        _modify { yield &self[index.rawValue] }
    }
}

extension ContiguousArray {
    /// The element at a position of the schema, in an array that has one element per entity, column, or link.
    @inlinable package subscript(index: some SchemaIndex) -> Element {
        get { self[index.rawValue] }
        _modify { yield &self[index.rawValue] }
    }
}

extension Array {
    /// The positions of an array that has one element per entity, column, or link.
    @inlinable public func indices<Index: SchemaIndex>(as type: Index.Type = Index.self) -> Range<Index> {
        0..<Index(rawValue: count)
    }

    /// The elements of an array that has one element per entity, column, or link, with their positions.
    @inlinable public func enumerated<Index: SchemaIndex>(as type: Index.Type) -> Zip2Sequence<Range<Index>, [Element]> {
        zip(indices(as: type), self)
    }
}

extension StoreSchema {
    /// The positions of all entities.
    @inlinable public var entityIndices: Range<EntityIndex> { 0..<EntityIndex(rawValue: entities.count) }

    /// The positions of all links.
    @inlinable public var linkIndices: Range<LinkIndex> { 0..<LinkIndex(rawValue: links.count) }
}

extension EntitySchema {
    /// The positions of all columns.
    @inlinable public var columnIndices: Range<ColumnIndex> { 0..<ColumnIndex(rawValue: columns.count) }
}
