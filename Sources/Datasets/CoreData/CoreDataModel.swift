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
    }

    /// The names of an entity: its own, and the one that it had in older models.
    struct EntityNames {
        var name: String
        var renamingIdentifier: String?
    }

    private(set) var entities: [EntityNames] = []
    private(set) var properties: [Property] = []

    /// The largest model that is read, in bytes.
    private static let limit = 1 << 25

    /// Creates a model from the content of the table `Z_MODELCACHE`. Returns nil if it cannot be read.
    init?(cache: Data) {
        guard let bytes = Inflate.bytes([UInt8](cache), limit: Self.limit), let archive = KeyedArchive(bytes) else { return nil }
        for case .members(let members) in archive.objects {
            if members["NSProperties"] != nil, let name = archive.text(members, "NSEntityName") {
                entities.append(EntityNames(name: name, renamingIdentifier: archive.text(members, "NSRenamingIdentifier")))
            } else if let property = Self.property(members, archive) {
                properties.append(property)
            }
        }
        if entities.isEmpty { return nil }
    }

    private static func property(_ members: [String: KeyedArchive.Object], _ archive: KeyedArchive) -> Property? {
        guard let name = archive.text(members, "NSPropertyName"),
            case .members(let owner)? = archive.target(members, "NSEntity"), let entity = archive.text(owner, "NSEntityName")
        else { return nil }
        var isOptional = false
        if case .bool(true)? = members["NSIsOptional"] { isOptional = true }
        if case .bool(true)? = members["NSIsTransient"] { return nil }
        if case .integer(let type)? = members["NSAttributeType"] {
            return Property(entity: entity, name: name, isOptional: isOptional, kind: .attribute(type: type))
        }
        guard case .integer(let most)? = members["NSMaxCount"],
            let destination = archive.text(members, "_NSDestinationEntityName")
        else { return nil }
        let inverse = archive.text(members, "_NSInverseRelationshipName")
        return Property(
            entity: entity, name: name, isOptional: isOptional,
            kind: most == 1
                ? .toOne(destination: destination, inverse: inverse) : .toMany(destination: destination, inverse: inverse))
    }

    /// Returns the model's name of an entity of the file, which may have been renamed since.
    func name(ofEntity name: String) -> String? {
        if entities.contains(where: { $0.name == name }) { return name }
        return entities.first { $0.renamingIdentifier == name }?.name
    }

    /// Returns the property of a column, without its first letter. Of two properties of one name in sub-entities, the column of the
    /// second ends in a digit.
    func property(column: String, of entities: Set<String>) -> Property? {
        func find(_ column: some StringProtocol) -> Property? {
            let wanted = column.uppercased()
            return properties.first { entities.contains($0.entity) && $0.name.uppercased() == wanted }
        }
        if let found = find(column) { return found }
        guard let last = column.last, last.isNumber else { return nil }
        return find(column.dropLast())
    }
}
