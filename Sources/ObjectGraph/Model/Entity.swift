import StoreInterface
import StoreModel

/// An entity of a model, with all names resolved to numbers.
///
/// ```swift
/// if let track = model.entity(named: "Track") {
///     print(track.attributes.map(\.name), track.relationships.map(\.name))
/// }
/// ```
public final class Entity: Sendable {
    /// The name of the entity.
    public let name: String
    /// The position in the store's schema. The entities of a hierarchy have that of its head.
    public let number: EntityIndex
    /// The attributes and to-one relationships in declaration order, then the positions in ordered relationships. See ``columnIndices``.
    public let columns: [ColumnSchema]
    /// The values of a new object, by column.
    public let defaults: [Value]
    /// The attributes in declaration order.
    public let attributes: [Attribute]
    /// The relationships in declaration order. A relationship's number is its position, unless the entity is in a hierarchy, whose
    /// relationships are numbered together.
    public let relationships: [Relationship]
    /// The indexes over several properties.
    public let indexes: [IndexSchema]
    /// Whether every object of the entity belongs to an entity that inherits from it.
    public let isAbstract: Bool
    /// The rules of the properties; nil if they have none.
    let rules: EntityRules?
    /// The place of the entity in its hierarchy; nil if no entity inherits from it and it inherits from none. The entities of
    /// ``Model/entities`` stand for whole hierarchies, and have none.
    let inheritance: Inheritance?
    /// The to-one relationships whose inverse is ordered, with the columns of the positions.
    let orderedReferences: [OrderedReference]
    /// Whether the last column is that of types, because the entity stands for a hierarchy.
    let hasTypes: Bool
    /// The columns that any value is written to as it is: they are not derived, no references, and not of type float.
    let plainColumns: ColumnSet
    private let columnsByName: [String: ColumnIndex]
    /// The names of ``columns``.
    private let names: [String]

    init(
        name: String, number: EntityIndex, columns: [ColumnSchema], defaults: [Value], attributes: [Attribute],
        relationships: [Relationship], indexes: [IndexSchema], rules: EntityRules? = nil, isAbstract: Bool = false,
        hasTypes: Bool = false, inheritance: Inheritance? = nil
    ) {
        self.name = name
        self.number = number
        self.columns = columns
        self.defaults = defaults
        self.attributes = attributes
        self.relationships = relationships
        self.indexes = indexes
        self.rules = rules
        self.isAbstract = isAbstract
        self.hasTypes = hasTypes
        self.inheritance = inheritance
        orderedReferences = relationships.compactMap { relationship in
            guard case .toOne(let column) = relationship.kind, let position = relationship.position else { return nil }
            return OrderedReference(column: column, position: position)
        }
        plainColumns = ColumnSet(
            columns.indices(as: ColumnIndex.self).filter {
                columns[$0].derivation == nil && columns[$0].destination == nil && columns[$0].type != .float
            })
        names = columns.map(\.name)
        columnsByName = Dictionary(
            columns.enumerated(as: ColumnIndex.self).map { ($1.name, $0) }, uniquingKeysWith: { first, _ in first })
    }

    /// Returns a copy with other columns, derived or not, with other relationships, or with other rules.
    func copy(columns: [ColumnSchema]? = nil, relationships: [Relationship]? = nil, rules: EntityRules?) -> Entity {
        let columns = columns ?? self.columns
        return Entity(
            name: name, number: number, columns: columns, defaults: defaults,
            attributes: attributes.map { attribute in
                var attribute = attribute
                attribute.isDerived = columns[attribute.column].derivation != nil
                return attribute
            }, relationships: relationships ?? self.relationships, indexes: indexes, rules: rules, isAbstract: isAbstract,
            hasTypes: hasTypes, inheritance: inheritance)
    }

    /// The number of columns of attributes and to-one relationships, which come first.
    var declaredColumnCount: Int {
        inheritance?.properties.count ?? columns.count - orderedReferences.count - (hasTypes ? 1 : 0)
    }

    /// The positions of all columns.
    public var columnIndices: Range<ColumnIndex> { columns.indices() }

    /// The columns of attributes and to-one relationships in declaration order, inherited ones first.
    ///
    /// The other columns are for positions in ordered relationships, for the types of objects in a hierarchy, and for properties of other
    /// entities of it.
    public var declaredColumns: [ColumnIndex] {
        inheritance?.properties ?? Array(columnIndices.prefix(declaredColumnCount))
    }

    /// Returns the way in which people read the values of a column.
    func form(of column: ColumnIndex, in model: Model) -> ValueForm {
        let schema = columns[column]
        if orderedReferences.contains(where: { $0.position == column }) {
            return ValueForm(type: schema.type, content: .place(of: nil))
        }
        let content = attributes.first { $0.column == column && $0.content != .plain }?.content
        return ValueForm(
            type: schema.type, content: content ?? .plain,
            destination: schema.destination.map { model.entities[$0].name })
    }

    /// Returns the attribute with this name, or nil.
    public func attribute(named name: String) -> Attribute? { attributes.first { $0.name == name } }
    /// Returns the relationship with this name, or nil.
    public func relationship(named name: String) -> Relationship? { relationships.first { $0.name == name } }
    /// Returns the column of an attribute or a to-one relationship, or nil.
    public func column(named name: String) -> ColumnIndex? {
        // Comparing a few names is faster than hashing one.
        let column = names.count <= 16 ? names.indices().first { names[$0] == name } : columnsByName[name]
        guard let inheritance, let column, !inheritance.columns.contains(column) else { return column }
        return nil
    }
}

/// An attribute of an entity.
///
/// ```swift
/// for attribute in entity.attributes where attribute.index == .unique { print(attribute.name, attribute.type) }
/// ```
public struct Attribute: Sendable, Hashable {
    /// The name of the attribute.
    public let name: String
    /// The attribute's column.
    public let column: ColumnIndex
    /// The type of the stored values.
    public let type: ColumnType
    /// A Boolean value that indicates whether the value can be null.
    public let isOptional: Bool
    /// The kind of index over the attribute.
    public let index: IndexKind
    /// A Boolean value that indicates whether the history keeps the value of a deleted object.
    public let preservesValueOnDeletion: Bool
    /// The rules that values must follow when they are saved.
    public internal(set) var rules: [PropertyRule] = []
    /// A Boolean value that indicates whether saves derive the value from other values, so that programs cannot set it.
    public internal(set) var isDerived = false
    var content = AttributeContent.plain
}

/// A relationship of an entity.
///
/// ```swift
/// for relationship in entity.relationships where relationship.deleteRule == .cascade {
///     print(relationship.name, model.entities[relationship.destination].name)
/// }
/// ```
public struct Relationship: Sendable, Hashable {
    /// The name of the relationship.
    public let name: String
    /// The relationship's number among the entity's relationships.
    public let number: Int
    /// The destination entity.
    public let destination: EntityIndex
    /// The delete rule of the relationship.
    public let deleteRule: DeleteRule
    /// The number of the inverse relationship in the destination entity; nil if there is none.
    public let inverse: Int?
    /// The cardinality of the relationship and its storage.
    public let kind: Kind
    /// The column of the positions, in the entity of the members; nil unless this relationship or its inverse is ordered.
    let position: ColumnIndex?
    /// The hidden entity with the positions of pairs; nil unless this is an ordered relationship over a link.
    package internal(set) var order: EntityIndex?
    /// The rules that the relationship must follow when it is saved.
    public internal(set) var rules: [PropertyRule] = []
    /// The number of the destination in its hierarchy; 0 for the head of one, and for an entity without inheritance.
    var member = 0

    /// A Boolean value that indicates whether the members of a to-many relationship are read in the order that the program gave them.
    public var isOrdered: Bool {
        if case .toMany = kind { position != nil || order != nil } else { false }
    }

    /// The cardinality of a relationship and its storage.
    public enum Kind: Sendable, Hashable {
        /// To-one, stored in a column.
        case toOne(column: ColumnIndex)
        /// To-many, found through the inverse's column or through a link.
        case toMany(Relation)
    }
}

extension Entity: CustomStringConvertible {
    /// The name of the entity, its attributes with their types, and its relationships.
    public var description: String {
        let properties = attributes.map(\.description) + relationships.map(\.description)
        return "\(name)(\(properties.joined(separator: ", ")))"
    }
}

extension Attribute: CustomStringConvertible {
    /// The name and the type: `title: string`.
    public var description: String { "\(name): \(type.rawValue)\(isOptional ? " or nil" : "")" }
}

extension Relationship: CustomStringConvertible {
    /// The name and the cardinality: `album: to-one`.
    public var description: String {
        switch kind {
        case .toOne: "\(name): to-one"
        case .toMany: "\(name): \(isOrdered ? "ordered " : "")to-many"
        }
    }
}
