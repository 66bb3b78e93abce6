import ObjectGraph

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The model that Core Data keeps in its files: names in their spelling, types, and the destinations of relationships.
struct CoreDataModel {
    struct Property {
        enum Kind {
            /// The number of the type in Core Data's headers, such as 700 for strings.
            case attribute(type: Int)
            case toOne(destination: String, inverse: String?)
            case toMany(destination: String, inverse: String?)
        }

        /// The entity that has the property, which may inherit it.
        var entity: String
        var name: String
        var isOptional: Bool
        var kind: Kind
        /// Whether large values may be in separate files.
        var isExternal = false
        /// Whether a to-many relationship keeps the order of its objects.
        var isOrdered = false
        /// The effect of deleting the object on the other end of a relationship.
        var deleteRule = DeleteRule.nullify
        /// The value of an attribute of a new object.
        var defaultValue: KeyedArchive.Object?

        var isAttribute: Bool { if case .attribute = kind { true } else { false } }
    }

    /// The names of an entity: its own, and the one that it had in older models.
    struct EntityNames {
        var name: String
        var renamingIdentifier: String?
        /// Whether every object belongs to a sub-entity.
        var isAbstract: Bool
        /// The names of the properties of each unique constraint.
        var uniqueProperties: [[String]] = []
        /// The names of the properties of each index over several of them.
        var indexedProperties: [[String]] = []
    }

    private(set) var entities: [EntityNames] = []
    private(set) var properties: [Property] = []

    /// The bit among the flags of an attribute that allows external storage.
    private static let externalFlag = 4
    /// The bit among the flags of a property that says that a relationship is ordered. Older archives have a member for it.
    private static let orderedFlag = 0x400
    /// The delete rules by their numbers in Core Data's headers.
    private static let deleteRules: [DeleteRule] = [.noAction, .nullify, .cascade, .deny]
    /// The largest model that is read, in bytes.
    private static let limit = 1 << 25
    /// More names than the constraints and indexes of a model have.
    private static let nameLimit = 1 << 17

    /// Creates a model from the content of the table `Z_MODELCACHE`. Returns nil if it cannot be read.
    init?(cache: Data) {
        guard let bytes = Inflate.bytes([UInt8](cache), limit: Self.limit), let archive = KeyedArchive(bytes) else { return nil }
        // Many entities can refer to one large list.
        var left = Self.nameLimit
        for case .members(let members) in archive.objects {
            if members["NSProperties"] != nil, let name = archive.text(members, "NSEntityName") {
                var isAbstract = false
                if case .bool(true)? = members["NSIsAbstract"] { isAbstract = true }
                guard let unique = Self.names(members, of: "NSUniqueTuples", in: archive, left: &left),
                    let indexed = Self.names(members, of: "NSCompoundIndexes", in: archive, left: &left)
                else { return nil }
                entities.append(
                    EntityNames(
                        name: name, renamingIdentifier: archive.text(members, "NSRenamingIdentifier"), isAbstract: isAbstract,
                        uniqueProperties: unique, indexedProperties: indexed))
            } else if let property = Self.property(members, archive) {
                properties.append(property)
            }
        }
        if entities.isEmpty { return nil }
    }

    /// Returns the names of properties in a list of lists, which contain names or properties.
    ///
    /// - Parameter left: The number of names that may still be read. If there are more, the result is nil.
    private static func names(
        _ members: [String: KeyedArchive.Object], of member: String, in archive: KeyedArchive, left: inout Int
    ) -> [[String]]? {
        let lists = archive.elements(members, member)
        left -= lists.count
        var found: [[String]] = []
        for case .members(let list) in lists {
            let elements = archive.elements(of: list)
            left -= elements.count
            if left < 0 { return nil }
            let names = elements.compactMap { object -> String? in
                switch object {
                case .string(let name): name
                case .members(let property): archive.text(property, "NSPropertyName")
                default: nil
                }
            }
            if !names.isEmpty { found.append(names) }
        }
        return left < 0 ? nil : found
    }

    private static func property(_ members: [String: KeyedArchive.Object], _ archive: KeyedArchive) -> Property? {
        guard let name = archive.text(members, "NSPropertyName"),
            case .members(let owner)? = archive.target(members, "NSEntity"), let entity = archive.text(owner, "NSEntityName")
        else { return nil }
        var isOptional = false
        if case .bool(true)? = members["NSIsOptional"] { isOptional = true }
        if case .bool(true)? = members["NSIsTransient"] { return nil }
        if case .integer(let type)? = members["NSAttributeType"] {
            var property = Property(entity: entity, name: name, isOptional: isOptional, kind: .attribute(type: type))
            if case .integer(let flags)? = members["NSFlagsKey"] { property.isExternal = flags & Self.externalFlag != 0 }
            property.defaultValue = archive.target(members, "NSDefaultValue")
            return property
        }
        guard case .integer(let most)? = members["NSMaxCount"],
            let destination = archive.text(members, "_NSDestinationEntityName")
        else { return nil }
        let inverse = archive.text(members, "_NSInverseRelationshipName")
        var property = Property(
            entity: entity, name: name, isOptional: isOptional,
            kind: most == 1
                ? .toOne(destination: destination, inverse: inverse) : .toMany(destination: destination, inverse: inverse))
        if case .integer(let rule)? = members["NSDeleteRule"], Self.deleteRules.indices.contains(rule) {
            property.deleteRule = Self.deleteRules[rule]
        }
        if case .bool(true)? = members["NSIsOrdered"] { property.isOrdered = true }
        if case .integer(let flags)? = members["_P"], flags & Self.orderedFlag != 0 { property.isOrdered = true }
        return property
    }

    /// Returns the model's name of an entity of the file, which may have been renamed since.
    func name(ofEntity name: String) -> String? { entity(name)?.name }

    /// Returns whether an entity of the file has no objects itself.
    func isAbstract(_ name: String) -> Bool { entity(name)?.isAbstract ?? false }

    private func entity(_ name: String) -> EntityNames? {
        entities.first { $0.name == name } ?? entities.first { $0.renamingIdentifier == name }
    }

    /// Returns the names of the properties of the constraints and indexes of an entity of the file.
    func constraints(ofEntity name: String) -> (unique: [[String]], indexed: [[String]]) {
        entity(name).map { ($0.uniqueProperties, $0.indexedProperties) } ?? ([], [])
    }

    /// Returns the properties that the entities of a family declare, by name in capitals. The archive has inherited properties once per
    /// sub-entity; they count as those of the superentity.
    func declarations(in family: CoreDataEntities.Family) -> [String: [CoreDataDeclaration]] {
        let byEntity = Dictionary(grouping: properties, by: \.entity)
        var declarations: [String: [CoreDataDeclaration]] = [:]
        for (number, member) in family.members.enumerated() {
            for property in byEntity[member.name] ?? [] {
                let name = property.name.uppercased()
                let isInherited = (declarations[name] ?? []).contains { known in
                    known.property.name == property.name && family.inherits(number, from: known.member)
                }
                if !isInherited { declarations[name, default: []].append(.init(member: number, property: property)) }
            }
        }
        return declarations
    }
}

/// A property, and the member of a family that declares it.
struct CoreDataDeclaration {
    var member: Int
    var property: CoreDataModel.Property
}
