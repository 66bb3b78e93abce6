import StoreInterface
import StoreModel

extension Hierarchy {
    /// Resolves the hierarchies of a model, and gives the stores' entities the rules of all their properties.
    ///
    /// - Returns: The hierarchy of each entity of stores; an empty list if no entity inherits from another.
    static func resolve(_ entities: inout [Entity], in model: FlattenedModel) throws(ModelError) -> [Hierarchy?] {
        guard model.members.contains(where: { !$0.isEmpty }) else { return [] }
        var places: [String: Int] = [:]
        for members in model.members {
            for (place, member) in members.enumerated() { places[member.name] = place }
        }
        var hierarchies: [Hierarchy?] = []
        for (number, descriptions) in model.members.enumerated(as: EntityIndex.self) {
            let own = descriptions.isEmpty ? [model.described(model.stored[number])] : descriptions
            let whole = entities[number].withMembers(of: own, places)
            entities[number] = whole
            guard !descriptions.isEmpty else {
                hierarchies.append(nil)
                continue
            }
            let hierarchy = try Hierarchy(descriptions, of: whole, in: model)
            entities[number] = whole.copy(rules: try EntityRules.rules(of: descriptions, hierarchy, whole: whole))
            hierarchies.append(hierarchy)
        }
        return hierarchies
    }

    /// Resolves the entities of a hierarchy.
    ///
    /// - Parameters:
    ///   - descriptions: The descriptions of its entities, the head first.
    ///   - whole: The store's entity, which has the properties of all of them.
    ///   - model: The descriptions of the model.
    convenience init(_ descriptions: [EntityDescription], of whole: Entity, in model: FlattenedModel) throws(ModelError) {
        let typeColumn = ColumnIndex(rawValue: whole.columns.count - 1)
        let types = descriptions.map { description in
            description.superentity == nil
                ? 0 : description.storedType ?? SubentitySchema.type(of: description.renamedFrom ?? description.name)
        }
        let chains = descriptions.map { model.chain(of: $0) }
        var members: [Entity] = []
        for (number, chain) in chains.enumerated() {
            let kinds = chains.indices.filter { chains[$0].contains { $0.name == descriptions[number].name } }
            var draft = MemberDraft(whole, typeColumn: typeColumn, type: types[number])
            for description in chain { try draft.add(description, isOwn: description.name == descriptions[number].name) }
            let inheritance = Inheritance(
                superentity: descriptions[number].superentity, member: number, typeColumn: typeColumn,
                types: Set(kinds.filter { !descriptions[$0].isAbstract }.map { .int(types[$0]) }), kinds: Set(kinds),
                columns: draft.columns, properties: draft.properties, ownColumns: draft.ownColumns,
                ownRelationships: draft.ownRelationships)
            members.append(
                Entity(
                    name: descriptions[number].name, number: whole.number, columns: whole.columns, defaults: draft.defaults,
                    attributes: draft.attributes, relationships: draft.relationships,
                    indexes: whole.indexes.filter { $0.columns.allSatisfy(draft.columns.contains) },
                    isAbstract: descriptions[number].isAbstract, inheritance: inheritance))
        }
        self.init(members: members, types: types, typeColumn: typeColumn)
    }
}

extension Entity {
    /// Returns the entity with relationships that lead to members of hierarchies.
    fileprivate func withMembers(of descriptions: [EntityDescription], _ places: [String: Int]) -> Entity {
        let destinations = Dictionary(
            descriptions.flatMap(\.relationships).map { ($0.name, $0.destination) }, uniquingKeysWith: { first, _ in first })
        let relationships = relationships.map { relationship in
            var relationship = relationship
            relationship.member = destinations[relationship.name].flatMap { places[$0] } ?? 0
            return relationship
        }
        return copy(relationships: relationships, rules: rules)
    }
}

/// An entity of a hierarchy while its properties are collected.
private struct MemberDraft {
    let whole: Entity
    var columns = ColumnSet()
    var properties: [ColumnIndex] = []
    var ownColumns: [ColumnIndex] = []
    var ownRelationships: [Int] = []
    var attributes: [Attribute] = []
    var relationships: [Relationship] = []
    var defaults: [Value]

    init(_ whole: Entity, typeColumn: ColumnIndex, type: Int64) {
        self.whole = whole
        defaults = Array(repeating: .null, count: whole.columns.count)
        defaults[typeColumn] = .int(type)
        columns.insert(typeColumn)
    }

    mutating func add(_ description: EntityDescription, isOwn: Bool) throws(ModelError) {
        for property in description.properties {
            switch property {
            case .attribute(let attribute): try add(attribute, of: description, isOwn)
            case .relationship(let relationship): add(relationship, isOwn)
            }
        }
    }

    private mutating func add(
        _ attribute: AttributeDescription, of entity: EntityDescription, _ isOwn: Bool
    ) throws(ModelError) {
        guard let column = whole.columnIndices.first(where: { whole.columns[$0].name == attribute.name }) else { return }
        add(column, isOwn)
        defaults[column] = try ModelResolution.defaultValue(attribute, entity.name)
        var resolved = Attribute(
            name: attribute.name, column: column, type: attribute.type, isOptional: attribute.isOptional,
            index: whole.columns[column].index, preservesValueOnDeletion: attribute.preservesValueOnDeletion,
            rules: attribute.rules, content: attribute.content)
        resolved.isDerived = whole.columns[column].derivation != nil
        attributes.append(resolved)
    }

    private mutating func add(_ described: RelationshipDescription, _ isOwn: Bool) {
        guard let relationship = whole.relationship(named: described.name) else { return }
        relationships.append(relationship)
        if isOwn { ownRelationships.append(relationship.number) }
        guard case .toOne(let column) = relationship.kind else { return }
        add(column, isOwn)
        if let position = relationship.position { columns.insert(position) }
    }

    private mutating func add(_ column: ColumnIndex, _ isOwn: Bool) {
        columns.insert(column)
        properties.append(column)
        if isOwn { ownColumns.append(column) }
    }
}

extension EntityRules {
    /// Returns the rules of all entities of a hierarchy; nil if they have none.
    ///
    /// Attributes of subentities that are not optional get the rule `.required`, because their columns can be null.
    static func rules(
        of descriptions: [EntityDescription], _ hierarchy: Hierarchy, whole: Entity
    ) throws(ModelError) -> EntityRules? {
        var draft = Draft()
        for (description, member) in zip(descriptions, hierarchy.members) {
            let place = member.inheritance
            let owner = Owner(
                entity: member.name, typeColumn: hierarchy.typeColumn,
                types: place?.isHead == true ? nil : place?.types)
            for property in description.properties {
                let column = whole.columnIndices.first { whole.columns[$0].name == property.name } ?? 0
                let relationship = whole.relationship(named: property.name)?.number ?? 0
                try draft.add(property, of: description.name, column: column, relationship: relationship, owner)
            }
        }
        return EntityRules(draft, entity: whole.name)
    }
}
