import StoreInterface
import StoreModel

/// The descriptions of a model as stores need them: one per hierarchy, with the properties of all its entities.
///
/// A column of a subentity can be null, because other objects of the hierarchy have no value. Entities that inherit from one entity
/// may declare an attribute of the same name and type, and share its column.
struct FlattenedModel {
    /// The descriptions of the stores' entities, in order.
    private(set) var stored: [EntityDescription] = []
    /// The descriptions of the entities of each hierarchy, its head first; empty for an entity without inheritance.
    private(set) var members: [[EntityDescription]] = []
    private let byName: [String: EntityDescription]

    init(_ descriptions: [EntityDescription]) throws(ModelError) {
        byName = Dictionary(descriptions.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        guard descriptions.contains(where: { $0.superentity != nil }) else {
            stored = descriptions
            members = descriptions.map { _ in [] }
            return
        }
        var heads: [String: String] = [:]
        for entity in descriptions { heads[entity.name] = try head(of: entity).name }
        for entity in descriptions where entity.superentity == nil {
            let inheriting = descriptions.filter { $0.superentity != nil && heads[$0.name] == entity.name }
            stored.append(inheriting.isEmpty ? entity : try flattened(entity, inheriting))
            members.append(inheriting.isEmpty ? [] : [entity] + inheriting)
        }
        for entity in descriptions {
            for relationship in entity.relationships { try checkInverse(of: relationship, entity, heads) }
        }
        for position in stored.indices { redirect(position, to: heads) }
    }

    private func head(of entity: EntityDescription) throws(ModelError) -> EntityDescription {
        var entity = entity
        var passed: Set<String> = []
        while let name = entity.superentity {
            guard passed.insert(entity.name).inserted else {
                throw ModelError(
                    .circularInheritance, entity: entity.name, remedy: "give one of the entities no superentity, or another one")
            }
            guard let next = byName[name] else {
                throw ModelError(
                    .noSuchSuperentity, entity: entity.name, remedy: "add \(name) to the model, or correct the name")
            }
            entity = next
        }
        return entity
    }

    /// Returns the entity and those from which it inherits, the head first.
    func chain(of entity: EntityDescription) -> [EntityDescription] {
        var chain = [entity]
        while let next = chain[0].superentity.flatMap({ byName[$0] }) { chain.insert(next, at: 0) }
        return chain
    }

    /// Returns the description of an entity whose relationships still lead to subentities.
    func described(_ stored: EntityDescription) -> EntityDescription { byName[stored.name] ?? stored }

    private func flattened(
        _ head: EntityDescription, _ inheriting: [EntityDescription]
    ) throws(ModelError) -> EntityDescription {
        var whole = head
        // Positions of a stored model come after all other columns.
        let positions = head.properties.filter { $0.name.hasPrefix(ColumnSchema.positionName(in: "")) }
        whole.properties.removeAll { positions.contains($0) }
        let shared = Self.sharedNames(inheriting)
        for entity in inheriting {
            try checkInherited(entity)
            for property in entity.properties { try whole.add(property, of: entity) }
            for index in entity.indexes { whole.indexes.append(try checked(index, of: entity, shared)) }
            var subentity = SubentitySchema(
                name: entity.name, superentity: entity.superentity ?? "", isAbstract: entity.isAbstract,
                properties: entity.properties.map(\.name),
                requiredAttributes: entity.requiredAttributes.map(\.name), renamedFrom: entity.renamedFrom)
            subentity.attributesWithoutDefault = entity.requiredAttributes.filter(\.defaultValue.isNull).map(\.name)
            subentity.type = entity.storedType ?? subentity.type
            whole.subentities.append(subentity)
        }
        whole.properties += positions
        if Set(whole.subentities.map(\.type)).count < inheriting.count {
            throw ModelError(
                .duplicateEntity, entity: head.name,
                remedy: "two entities that inherit from it have one former name; correct renamedFrom")
        }
        if whole.properties.contains(where: { $0.name == ColumnSchema.typeName }) {
            throw ModelError(
                .reservedName, entity: head.name, property: ColumnSchema.typeName,
                remedy: "inheritance uses this name; choose another")
        }
        return whole
    }

    private func checkInherited(_ entity: EntityDescription) throws(ModelError) {
        let inherited = Set(chain(of: entity).dropLast().flatMap(\.properties).map { $0.name.lowercased() })
        for property in entity.properties where inherited.contains(property.name.lowercased()) {
            throw ModelError(
                .duplicateProperty, entity: entity.name, property: property.name,
                remedy: "the entity inherits it; remove the second declaration or rename it")
        }
    }

    /// Refuses a relationship whose destination inherits its inverse. Objects of other entities have that inverse too, and would be in the
    /// relationship.
    private func checkInverse(
        of relationship: RelationshipDescription, _ entity: EntityDescription, _ heads: [String: String]
    ) throws(ModelError) {
        guard let destination = byName[relationship.destination] else { return }
        for superentity in chain(of: destination).dropLast() {
            for inverse in superentity.relationships
            where heads[inverse.destination] == heads[entity.name]
                && (relationship.inverse == inverse.name || inverse.inverse == relationship.name)
            {
                throw ModelError(
                    .inverseDoesNotPointBack, entity: entity.name, property: relationship.name,
                    remedy:
                        "\(superentity.name).\(inverse.name) also belongs to objects that are no \(destination.name); declare "
                        + "\(inverse.name) in \(destination.name), or make \(relationship.name) lead to \(superentity.name)")
            }
        }
    }

    /// Returns the names of properties that several entities declare, in lowercase.
    private static func sharedNames(_ entities: [EntityDescription]) -> Set<String> {
        var known: Set<String> = []
        return Set(entities.flatMap(\.properties).map { $0.name.lowercased() }.filter { !known.insert($0).inserted })
    }

    /// Returns an index that, if it is unique, contains a property which only the entity and its subentities have. Values of other objects
    /// are null there, so that they do not count.
    private func checked(
        _ index: IndexDescription, of entity: EntityDescription, _ shared: Set<String>
    ) throws(ModelError) -> IndexDescription {
        guard index.kind == .unique else { return index }
        let own = entity.properties.map(\.name).filter { !shared.contains($0.lowercased()) }
        guard index.properties.contains(where: own.contains) else {
            throw ModelError(
                .wrongIndex, entity: entity.name, property: index.properties.first,
                remedy:
                    "a unique constraint needs a property that \(entity.name) declares and that no entity beside it declares; or "
                    + "declare the constraint in the superentity")
        }
        return index
    }

    /// Makes relationships lead to the heads of hierarchies, which stand for all their entities.
    private mutating func redirect(_ position: Int, to heads: [String: String]) {
        for (number, property) in stored[position].properties.enumerated() {
            guard case .relationship(var relationship) = property, let head = heads[relationship.destination] else { continue }
            relationship.destination = head
            stored[position].properties[number] = .relationship(relationship)
        }
    }
}

extension EntityDescription {
    /// The attributes that need a value.
    fileprivate var requiredAttributes: [AttributeDescription] {
        properties.compactMap { property in
            guard case .attribute(let attribute) = property, !attribute.isOptional else { return nil }
            return attribute
        }
    }

    /// Adds a property of an entity that inherits from this one.
    fileprivate mutating func add(_ property: PropertyDescription, of entity: EntityDescription) throws(ModelError) {
        let known = properties.firstIndex { $0.name.lowercased() == property.name.lowercased() }
        guard case .attribute(var attribute) = property else {
            guard known == nil else { throw conflict(property, entity: entity, remedy: "rename one of them") }
            return properties.append(property)
        }
        try attribute.makeNullable(isUnique: entity.isUnique(attribute))
        guard let known else { return properties.append(.attribute(attribute)) }
        guard case .attribute(let other) = properties[known], other.name == attribute.name, other.type == attribute.type,
            other.index != .unique, attribute.index != .unique
        else {
            throw conflict(
                property, entity: entity,
                remedy: "give both the same name and type and no unique constraint, rename one, or declare it in a superentity")
        }
        if other.index != .none { attribute.index = other.index }
        if other.content != attribute.content { attribute.content = .plain }
        attribute.preservesValueOnDeletion = attribute.preservesValueOnDeletion || other.preservesValueOnDeletion
        if other.defaultValue != attribute.defaultValue {
            // Enums without defaults may have different first cases.
            let haveDefaults = [other, attribute].contains { $0.defaultValue != $0.missingValue }
            attribute.valueInsteadOfZero = .null
            attribute.defaultValue = haveDefaults ? .null : attribute.missingValue
        }
        attribute.renamedFrom = other.renamedFrom ?? attribute.renamedFrom
        // Only the head may derive attributes. The derivation stays, so that it is refused.
        attribute.derivation = other.derivation ?? attribute.derivation
        properties[known] = .attribute(attribute)
    }

    private func conflict(_ property: PropertyDescription, entity: EntityDescription, remedy: String) -> ModelError {
        ModelError(.conflictingProperty, entity: entity.name, property: property.name, remedy: remedy)
    }

    private func isUnique(_ attribute: AttributeDescription) -> Bool {
        attribute.index == .unique || indexes.contains { $0.kind == .unique && $0.properties.contains(attribute.name) }
    }
}

extension AttributeDescription {
    /// Makes the attribute a column that is null in objects without it. Objects that are older than the column get its default, unless
    /// they would all have the same unique value. Its rules are kept apart, because they apply to some objects only.
    fileprivate mutating func makeNullable(isUnique: Bool) throws(ModelError) {
        if isUnique { defaultValue = .null } else if !isOptional, defaultValue.isNull { defaultValue = missingValue }
        isOptional = true
        rules = []
    }
}
