import StoreInterface
import StoreModel

extension EntitySchema {
    init(_ entity: Entity, _ description: EntityDescription) {
        self.init(
            name: entity.name, columns: entity.columns, indexes: entity.indexes, renamedFrom: description.renamedFrom)
        subentities = description.subentities.map { subentity in
            var stored = subentity
            stored.properties.removeAll { !entity.stores($0) }
            return stored
        }
        isAbstract = description.isAbstract
    }
}

extension Entity {
    /// Returns whether files have a name: that of a column, or of a link at the end that comes first.
    fileprivate func stores(_ name: String) -> Bool {
        if case .toMany(let relation)? = relationship(named: name)?.kind {
            if case .link(_, .forward, _) = relation { return true }
            return false
        }
        return true
    }
}

extension EntityDescription {
    /// Returns the descriptions of the entities that are stored as one: the head of the hierarchy, then those that inherit from it.
    static func members(of whole: EntityDescription, _ schema: EntitySchema) -> [EntityDescription] {
        let inherited = Set(schema.subentities.flatMap(\.properties))
        var head = whole
        head.properties.removeAll { inherited.contains($0.name) }
        head.indexes.removeAll { !$0.properties.allSatisfy { name in head.properties.contains { $0.name == name } } }
        var known = head.indexes
        var members = [head]
        for subentity in schema.subentities {
            var member = EntityDescription(
                name: subentity.name,
                properties: subentity.properties.compactMap { name in whole.properties.first { $0.name == name } },
                superentity: subentity.superentity, isAbstract: subentity.isAbstract)
            member.storedType = subentity.type
            for (position, property) in member.properties.enumerated() {
                guard case .attribute(var attribute) = property else { continue }
                attribute.isOptional = !subentity.requiredAttributes.contains(attribute.name)
                member.properties[position] = .attribute(attribute)
            }
            members.append(member)
        }
        // An index belongs to the first entity that has all of its properties.
        for (position, member) in members.enumerated() {
            var chain = [member]
            while let next = members.first(where: { $0.name == chain[0].superentity }) { chain.insert(next, at: 0) }
            let names = Set(chain.flatMap(\.properties).map(\.name))
            for index in whole.indexes where !known.contains(index) && names.isSuperset(of: index.properties) {
                members[position].indexes.append(index)
                known.append(index)
            }
        }
        return members
    }
}
