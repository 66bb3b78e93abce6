/// An entity that inherits from another one. Its objects are objects of the entity at the head of the hierarchy, where a column says to
/// which of the entities each object belongs.
public struct SubentitySchema: Sendable, Hashable, Codable {
    /// The name of the entity.
    public var name: String
    /// The name of the entity from which it inherits directly.
    public var superentity: String
    /// The value in the column of types of the entity's objects. It never changes.
    public var type: Int64
    /// Whether each object belongs to an entity that inherits from this one.
    public var isAbstract: Bool
    /// The names of the properties that the entity adds to the inherited ones.
    public var properties: [String]
    /// The names of the added attributes that need a value. Their columns can be null, because other objects have none.
    public var requiredAttributes: [String]
    /// The names of those required attributes for which the developer specified no default.
    package var attributesWithoutDefault: [String] = []
    /// Whether the work of a custom stage sets the required attributes for which older objects get no value.
    package var isFilledByWork = false
    /// The first name of the entity. A renamed entity keeps the type that this name gave it.
    public var renamedFrom: String?

    /// Creates a description of an entity that inherits from another one.
    public init(
        name: String, superentity: String, isAbstract: Bool = false, properties: [String], requiredAttributes: [String] = [],
        renamedFrom: String? = nil
    ) {
        self.name = name
        self.superentity = superentity
        self.isAbstract = isAbstract
        self.properties = properties
        self.requiredAttributes = requiredAttributes
        self.renamedFrom = renamedFrom
        type = Self.type(of: renamedFrom ?? name)
    }

    /// Files do not store the former name, nor which attributes have a default.
    private enum CodingKeys: String, CodingKey { case name, superentity, type, isAbstract, properties, requiredAttributes }

    /// Returns the type of objects of an entity by its first name: a hash of the name that is positive, so that no table is needed.
    /// Zero is the type of the entity at the head of a hierarchy.
    public static func type(of name: String) -> Int64 {
        let hash = name.utf8.reduce(UInt32(2_166_136_261)) { ($0 ^ UInt32($1)) &* 16_777_619 }
        return max(1, Int64(hash & 0x7FFF_FFFF))
    }
}

extension ColumnSchema {
    /// The name of the column of types, which no property can have.
    package static let typeName = "type of object"

    /// The column that says to which entity of a hierarchy an object belongs. Objects that are older than the hierarchy belong to the
    /// entity at its head.
    package static let typeOfObject = ColumnSchema(name: typeName, type: .int32)
}

extension EntitySchema {
    /// The column that has the ``SubentitySchema/type`` of each object; nil if no entity inherits from this one.
    ///
    /// It is the last column. Objects whose value is null or zero belong to this entity itself.
    public var typeColumn: ColumnIndex? { subentities.isEmpty ? nil : columnIndices.last }

    /// Whether all entities of the hierarchy inherit from this one, and there is a column of their types. O(entities).
    var hasSoundHierarchy: Bool {
        guard !subentities.isEmpty else { return true }
        guard let last = columns.last, last.name == ColumnSchema.typeName, last.type == .int32 else { return false }
        var parents: [String: String] = [:]
        for subentity in subentities {
            guard subentity.name != name, parents.updateValue(subentity.superentity, forKey: subentity.name) == nil else {
                return false
            }
        }
        var known: Set<String> = [name]
        for subentity in subentities {
            var passed: Set<String> = []
            var next = subentity.name
            while !known.contains(next) {
                guard passed.insert(next).inserted, let parent = parents[next] else { return false }
                next = parent
            }
            known.formUnion(passed)
        }
        return Set(subentities.map(\.type)).count == subentities.count
    }

    /// Returns the types of the objects of a subentity: its own, and those of the entities that inherit from it. O(subentities²).
    ///
    /// - Parameter name: The name of an entity that inherits from this one. Another name has no types.
    public func types(ofSubentity name: String) -> Set<Int64> {
        var members: Set<String> = [name]
        while true {
            let more = subentities.filter { members.contains($0.superentity) && !members.contains($0.name) }
            if more.isEmpty { return Set(subentities.filter { members.contains($0.name) }.map(\.type)) }
            members.formUnion(more.map(\.name))
        }
    }

    /// Returns the name of the entity of the hierarchy that has all of these properties and declares one of them.
    package func entity(declaring properties: [String]) -> String {
        let declaring = subentities.filter { $0.properties.contains(where: properties.contains) }
        return declaring.first { entity in !declaring.contains { $0.superentity == entity.name } }?.name ?? name
    }
}

extension EntitySchema {
    /// Returns whether a column may be null in an object of one of these types, none of which is the type of this entity itself.
    fileprivate func canLack(_ column: ColumnIndex, types: Set<Int64>) -> Bool {
        guard columns[column].isOptional else { return false }
        let requiring = subentities.filter { $0.requiredAttributes.contains(columns[column].name) }
        let having = requiring.reduce(into: Set()) { $0.formUnion(self.types(ofSubentity: $1.name)) }
        return subentities.contains { !$0.isAbstract && types.contains($0.type) && !having.contains($0.type) }
    }

    /// Returns the types of the objects that have all of these columns; nil if all objects do. Other objects may have values from before an
    /// attribute moved to the entity that declares it now.
    package func types(having columns: [ColumnIndex]) -> Set<Int64>? {
        var types: Set<Int64>?
        for column in columns {
            guard let own = self.types(havingProperty: self.columns[column].name) else { continue }
            types = types?.intersection(own) ?? own
        }
        return types
    }

    /// Returns the types of the objects that have a property of the hierarchy; nil if all objects do.
    func types(havingProperty name: String) -> Set<Int64>? {
        let declaring = subentities.filter { $0.properties.contains(name) }
        return declaring.isEmpty ? nil : declaring.reduce(into: Set()) { $0.formUnion(types(ofSubentity: $1.name)) }
    }
}

extension SchemaEvolution {
    /// Fills the columns of attributes that are required now in an entity which inherits from another one. Objects without the attribute
    /// have no use for the value.
    mutating func fillRequiredAttributes(_ old: StoreSchema, _ new: StoreSchema) throws {
        for (number, entity) in new.entities.enumerated(as: EntityIndex.self) {
            guard let source = entities[number].source else { continue }
            for subentity in entity.subentities {
                let types = entity.types(ofSubentity: subentity.name)
                for name in subentity.requiredAttributes {
                    guard let column = entity.columnIndices.first(where: { entity.columns[$0].name == name }),
                        entity.columns[column].isOptional
                    else { continue }
                    guard let before = entities[number].columns[column].source else {
                        // If entities declare the attribute with different defaults, older objects have no value in common.
                        let isShared = entity.subentities.contains { $0.name != subentity.name && $0.properties.contains(name) }
                        let hasObjects = old.entities[source].subentities.contains { !$0.isAbstract && types.contains($0.type) }
                        if isShared, hasObjects, entities[number].columns[column].fill?.isNull == true,
                            let value = try Self.fill(subentity, column, in: entity, isNew: true)
                        {
                            entities[number].columns[column].fill = value
                        }
                        continue
                    }
                    guard old.entities[source].canLack(before, types: types) else { continue }
                    let isNew = old.entities[source].types(having: [before])?.isDisjoint(with: types) == true
                    entities[number].columns[column].fill = try Self.fill(subentity, column, in: entity, isNew: isNew)
                }
            }
        }
    }

    /// Returns the value of older objects of a subentity, which may lack an attribute that is required now; nil if it stays null.
    private static func fill(
        _ subentity: SubentitySchema, _ column: ColumnIndex, in entity: EntitySchema, isNew: Bool
    ) throws -> Value? {
        let name = entity.columns[column].name
        let fill = entity.columns[column].defaultValue
        let others = entity.subentities.filter { $0.name != subentity.name && $0.properties.contains(name) }
        let isShared = others.contains { !$0.requiredAttributes.contains(name) } || !others.isEmpty && fill.isNull
        guard !isShared else {
            if subentity.isFilledByWork { return nil }
            throw StoreError(
                .schemaMismatch,
                "\(subentity.name).\(name) is required now, but \(others[0].name) has an attribute of this name that is optional or has "
                    + "another default. Give one of them another name, or fill the attribute in a custom stage of a MigrationPlan"
            )
        }
        guard !fill.isNull, isNew || !subentity.attributesWithoutDefault.contains(name) else {
            if subentity.isFilledByWork { return nil }
            throw withoutDefault("\(subentity.name).\(name)")
        }
        return fill
    }

    /// Checks that each object stays in its hierarchy, because keys of different hierarchies are independent of each other.
    func checkInheritance(_ old: StoreSchema, _ new: StoreSchema) throws {
        for (number, entity) in new.entities.enumerated() {
            let before = entities[number].source.map { old.entities[$0] }
            if before == nil, let head = old.entities.first(where: { $0.hasSubentity(named: entity.name) }) {
                throw Self.independent(entity.name, "inherited from \(head.name) and inherits from no entity")
            }
            for subentity in entity.subentities where before?.subentities.contains(where: { $0.type == subentity.type }) != true {
                let names = [subentity.name, subentity.renamedFrom].compactMap(\.self)
                if let known = before?.subentities.first(where: { names.contains($0.name) }) {
                    throw StoreError(
                        .schemaMismatch,
                        "\(subentity.name) was \(known.name), which had another name before. Set renamedFrom to the first name that the "
                            + "entity had in this file")
                }
                if let head = old.entities.first(where: { names.contains($0.name) }) {
                    throw Self.independent(head.name, "inherited from no entity and inherits from \(entity.name)")
                }
                if let head = old.entities.first(where: { head in names.contains(where: head.hasSubentity) }) {
                    throw Self.independent(subentity.name, "inherited from \(head.name) and inherits from \(entity.name)")
                }
            }
        }
    }

    private static func independent(_ name: String, _ change: String) -> StoreError {
        StoreError(
            .schemaMismatch,
            "\(name) \(change), but its objects cannot move to keys of another hierarchy. Give the entity another name, and move its "
                + "objects in a custom stage of a MigrationPlan")
    }
}

extension EntitySchema {
    fileprivate func hasSubentity(named name: String) -> Bool { subentities.contains { $0.name == name } }
}
