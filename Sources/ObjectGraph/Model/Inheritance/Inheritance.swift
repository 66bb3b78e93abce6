import StoreInterface
import StoreModel

/// The place of an entity in its hierarchy, with all names resolved to numbers.
struct Inheritance: Sendable {
    /// The name of the entity from which the entity inherits directly; nil for the head of a hierarchy.
    var superentity: String?
    /// The number of the entity among the members of its hierarchy.
    var member: Int
    /// The column of types.
    var typeColumn: ColumnIndex
    /// The types of the entity's objects: its own, and those of the entities that inherit from it. Abstract entities have no own type.
    var types: Set<Value>
    /// The members that inherit from the entity, and the entity.
    var kinds: Set<Int>
    /// All columns that objects of the entity have, positions and the type among them.
    var columns: ColumnSet
    /// The columns of attributes and to-one relationships: inherited ones first, each entity's in declaration order.
    var properties: [ColumnIndex]
    /// The columns and relationships that the entity declares itself, in declaration order.
    var ownColumns: [ColumnIndex]
    var ownRelationships: [Int]

    var isHead: Bool { superentity == nil }
}

/// The entities that have the keys and columns of one entity of a store in common.
final class Hierarchy: Sendable {
    /// The entities as users see them, the head first. A member's number is its position.
    let members: [Entity]
    let typeColumn: ColumnIndex
    private let numbers: [Int64: Int]

    init(members: [Entity], types: [Int64], typeColumn: ColumnIndex) {
        self.members = members
        self.typeColumn = typeColumn
        numbers = Dictionary(zip(types, members.indices), uniquingKeysWith: { first, _ in first })
    }

    /// Returns the number of the member to which objects with a type belong.
    func member(ofType type: Value?) -> Int? {
        guard case .int(let type) = type else { return nil }
        return numbers[type]
    }
}

extension Entity {
    /// The name of the entity from which this entity inherits directly; nil if it inherits from none.
    public var superentityName: String? { inheritance?.superentity }

    /// The condition that objects of the hierarchy belong to this entity or to one that inherits from it; nil if all do.
    var selection: StorePredicate? { inheritance.flatMap { $0.isHead ? nil : $0.selection } }

    /// Returns whether objects of another entity are objects of this entity too.
    func includes(_ other: Entity) -> Bool {
        guard number == other.number else { return false }
        guard let inheritance, let place = other.inheritance else { return true }
        return inheritance.kinds.contains(place.member)
    }

    /// Returns the entity, into which objects can be inserted.
    ///
    /// - Precondition: The entity is not abstract.
    func concrete() -> Entity {
        precondition(!isAbstract, "cannot insert \(name): it is abstract. Insert an entity that inherits from it")
        return self
    }

    /// Returns the values of a new object's columns.
    ///
    /// - Parameter values: The values of attributes and to-one relationships, in declaration order.
    func row(of values: [Value]) -> [Value] {
        guard inheritance != nil else { return values + defaults[values.count...] }
        var row = defaults
        for (column, value) in zip(declaredColumns, values) { row[column] = value }
        return row
    }

    /// Returns the relationship with a number in the store's entity.
    func relationship(numbered number: Int) -> Relationship? {
        inheritance == nil ? relationships[number] : relationships.first { $0.number == number }
    }
}

extension ColumnSet {
    init(_ columns: some Sequence<ColumnIndex>) { self = columns.reduce(into: ColumnSet()) { $0.insert($1) } }
}

extension Inheritance {
    /// The condition that an object has one of the types.
    var selection: StorePredicate {
        guard let first = types.first else { return .constant(false) }
        return types.count == 1 ? .compare(typeColumn, .equal, to: first) : .isIn(typeColumn, types)
    }
}

extension [any PersistentModel.Type] {
    /// The types with the superclasses that are missing among them, each before its subclasses.
    package var withSuperclasses: [any PersistentModel.Type] {
        var known: Set<ObjectIdentifier> = []
        return flatMap { type in type.hierarchy }.filter { known.insert(ObjectIdentifier($0)).inserted }
    }
}

extension PersistentModel {
    /// The class with its superclasses that are models, the head of the hierarchy first.
    static var hierarchy: [any PersistentModel.Type] {
        guard entityDescription.superentity != nil else { return [self] }
        var types: [any PersistentModel.Type] = [self]
        while let next = _getSuperclass(types[0]) as? any PersistentModel.Type { types.insert(next, at: 0) }
        return types
    }
}
