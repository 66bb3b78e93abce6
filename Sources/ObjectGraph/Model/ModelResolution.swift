import StoreInterface
import StoreModel

/// Resolves descriptions to entities with numbers and checks that they are consistent.
struct ModelResolution {
    private let descriptions: [EntityDescription]
    private let numbers: [String: EntityIndex]
    private(set) var links: [LinkSchema] = []
    /// The hidden entities of ordered many-to-many relationships. Their numbers follow those of the model.
    private(set) var orders: [OrderEntity] = []
    /// The link and direction of each many-to-many relationship.
    private var linkOfRelationship: [LinkEnd: (number: LinkIndex, direction: LinkDirection)] = [:]

    private struct LinkEnd: Hashable {
        var entity: EntityIndex
        var relationship: String
    }

    init(_ descriptions: [EntityDescription]) throws(ModelError) {
        var numbers: [String: EntityIndex] = [:]
        for (number, entity) in descriptions.enumerated(as: EntityIndex.self) { numbers[entity.name] = number }
        self.descriptions = descriptions
        self.numbers = numbers
        for entity in descriptions { try Self.checkNames(entity) }
    }

    /// Checks that each entity has a name that no other entity has.
    static func checkNames(_ descriptions: [EntityDescription]) throws(ModelError) {
        guard !descriptions.isEmpty else {
            throw ModelError(.noEntities, entity: "", remedy: "give at least one entity")
        }
        var seen: Set<String> = []
        for entity in descriptions {
            guard seen.insert(entity.name.lowercased()).inserted else {
                throw ModelError(
                    .duplicateEntity, entity: entity.name, remedy: "give each entity a name that differs by more than case")
            }
            try checkNames(entity)
        }
    }

    private static func checkNames(_ entity: EntityDescription) throws(ModelError) {
        if entity.name.isEmpty { throw ModelError(.emptyName, entity: "", remedy: "an entity needs a name") }
        if entity.name.lowercased() == EntitySchema.keyedValues.name {
            throw ModelError(.reservedName, entity: entity.name, remedy: "keyed collections use this name; choose another")
        }
        var seen: Set<String> = []
        for property in entity.properties {
            if property.name.isEmpty {
                throw ModelError(.emptyName, entity: entity.name, remedy: "each property needs a name")
            }
            if !seen.insert(property.name.lowercased()).inserted {
                throw ModelError(
                    .duplicateProperty, entity: entity.name, property: property.name,
                    remedy: "give each property a name that differs by more than case")
            }
        }
        let columns = entity.properties.filter(\.hasColumn).count
        if columns > EntitySchema.maximumColumns { throw tooManyColumns(entity, columns) }
    }

    private static func tooManyColumns(_ entity: EntityDescription, _ count: Int) -> ModelError {
        ModelError(
            .tooManyColumns, entity: entity.name,
            remedy: "split the entity: \(count) attributes, to-one relationships and positions, at most "
                + "\(EntitySchema.maximumColumns)")
    }

    mutating func entities() throws(ModelError) -> [Entity] {
        var entities: [Entity] = []
        for (number, description) in descriptions.enumerated(as: EntityIndex.self) {
            entities.append(try entity(description, number))
        }
        try checkInverses(entities)
        return entities
    }

    /// Checks that each inverse leads back, so that no relationship is the inverse of two others.
    private func checkInverses(_ entities: [Entity]) throws(ModelError) {
        for entity in entities {
            for relationship in entity.relationships {
                guard let inverse = relationship.inverse else { continue }
                let far = entities[relationship.destination]
                let back = far.relationships[inverse]
                guard back.destination == entity.number, back.inverse == relationship.number else {
                    throw ModelError(
                        .inverseDoesNotPointBack, entity: entity.name, property: relationship.name,
                        remedy: "\(far.name).\(back.name) has another inverse; give each relationship one")
                }
            }
        }
    }

    private mutating func entity(_ description: EntityDescription, _ number: EntityIndex) throws(ModelError) -> Entity {
        var columns: [ColumnSchema] = []
        var defaults: [Value] = []
        var attributes: [Attribute] = []
        var relationships: [Relationship] = []
        for property in description.properties {
            switch property {
            case .attribute(let attribute):
                defaults.append(try Self.defaultValue(attribute, description.name))
                attributes.append(
                    Attribute(
                        name: attribute.name, column: columns.indices().upperBound, type: attribute.type,
                        isOptional: attribute.isOptional, index: attribute.index,
                        preservesValueOnDeletion: attribute.preservesValueOnDeletion, rules: attribute.rules,
                        content: attribute.content))
                columns.append(
                    ColumnSchema(
                        name: attribute.name, type: attribute.type, isOptional: attribute.isOptional,
                        index: attribute.index, defaultValue: attribute.defaultValue, renamedFrom: attribute.renamedFrom))
                columns[columns.count - 1].missingValue = attribute.valueInsteadOfZero
            case .relationship(let relationship):
                let resolved = try resolve(
                    relationship, entity: description, number: number, column: columns.indices().upperBound,
                    position: relationships.count)
                relationships.append(resolved)
                guard relationship.cardinality == .toOne else { continue }
                columns.append(
                    ColumnSchema(
                        name: relationship.name, type: .reference, isOptional: true, index: .indexed,
                        destination: resolved.destination, renamedFrom: relationship.renamedFrom))
                defaults.append(.null)
            }
        }
        for reference in try orderedReferences(of: description) {
            let name = ColumnSchema.positionName(in: reference.name)
            guard !description.properties.contains(where: { $0.name.lowercased() == name.lowercased() }) else {
                throw ModelError(
                    .reservedName, entity: description.name, property: name,
                    remedy: "the ordered relationship to \(description.name) uses this name; choose another")
            }
            columns.append(.position(in: reference.name, renamedFrom: reference.renamedFrom))
            defaults.append(.null)
        }
        if !description.subentities.isEmpty {
            columns.append(.typeOfObject)
            defaults.append(.int(0))
        }
        guard columns.count <= EntitySchema.maximumColumns else { throw Self.tooManyColumns(description, columns.count) }
        let indexes = try Self.indexes(description, &columns)
        attributes = attributes.map {
            Attribute(
                name: $0.name, column: $0.column, type: $0.type, isOptional: $0.isOptional, index: columns[$0.column].index,
                preservesValueOnDeletion: $0.preservesValueOnDeletion, rules: $0.rules, content: $0.content)
        }
        return Entity(
            name: description.name, number: number, columns: columns, defaults: defaults, attributes: attributes,
            relationships: relationships, indexes: indexes,
            rules: description.subentities.isEmpty ? try EntityRules(description) : nil, isAbstract: description.isAbstract,
            hasTypes: !description.subentities.isEmpty)
    }

    /// Returns the indexes over several properties. An index over one property is recorded in its column. Indexes over the same
    /// properties are combined.
    private static func indexes(
        _ description: EntityDescription, _ columns: inout [ColumnSchema]
    ) throws(ModelError) -> [IndexSchema] {
        var indexes: [IndexSchema] = []
        for index in description.indexes where index.kind != .none {
            var numbers: [ColumnIndex] = []
            for name in index.properties {
                guard let column = description.column(named: name) else {
                    throw ModelError(
                        .noSuchIndexedProperty, entity: description.name, property: name,
                        remedy: "name attributes and to-one relationships of \(description.name)")
                }
                numbers.append(column)
            }
            guard !numbers.isEmpty, Set(numbers).count == numbers.count else {
                throw ModelError(.wrongIndex, entity: description.name, remedy: "name each property once, and at least one")
            }
            if numbers.count == 1 {
                if columns[numbers[0]].index != .unique { columns[numbers[0]].index = index.kind }
            } else if let known = indexes.firstIndex(where: { $0.columns == numbers }) {
                if index.kind == .unique { indexes[known].kind = .unique }
            } else {
                indexes.append(IndexSchema(columns: numbers, kind: index.kind))
            }
        }
        return indexes
    }

    // MARK: Relationships

    private mutating func resolve(
        _ relationship: RelationshipDescription, entity: EntityDescription, number: EntityIndex, column: ColumnIndex,
        position: Int
    ) throws(ModelError) -> Relationship {
        guard let destination = numbers[relationship.destination] else {
            throw ModelError(
                .noSuchDestination, entity: entity.name, property: relationship.name,
                remedy:
                    "add \(relationship.destination) to the model, correct the name, or make it an attribute if it is no model")
        }
        let inverse = try inverse(of: relationship, entity, descriptions[destination])
        if relationship.cardinality == .toMany, destination == number, inverse == position {
            throw ModelError(
                .inverseDoesNotPointBack, entity: entity.name, property: relationship.name,
                remedy: "describe two relationships: one to many cannot be its own inverse")
        }
        let kind: Relationship.Kind
        switch relationship.cardinality {
        case .toOne:
            kind = .toOne(column: column)
        case .toMany:
            let back = inverse.map { descriptions[destination].relationships[$0] }
            if let back, back.cardinality == .toOne, let far = descriptions[destination].column(named: back.name) {
                kind = .toMany(.referrers(entity: destination, column: far))
            } else {
                let link = try link(relationship, entity: entity, number: number, destination: destination, back: back)
                kind = .toMany(.link(link.number, link.direction, destination: destination))
            }
        }
        return Relationship(
            name: relationship.name, number: position, destination: destination, deleteRule: relationship.deleteRule,
            inverse: inverse, kind: kind, position: try positionColumn(of: relationship, entity, kind),
            order: try order(of: relationship, entity: entity, number: number, kind: kind), rules: relationship.rules)
    }

    // MARK: Order

    /// Returns the to-one relationships of an entity whose inverse is ordered. Each has a column of positions, after all other columns.
    private func orderedReferences(of entity: EntityDescription) throws(ModelError) -> [RelationshipDescription] {
        var references: [RelationshipDescription] = []
        for relationship in entity.relationships where relationship.cardinality == .toOne {
            guard let number = numbers[relationship.destination] else { continue }
            let destination = descriptions[number]
            guard let inverse = try inverse(of: relationship, entity, destination),
                destination.relationships[inverse].isOrdered
            else { continue }
            references.append(relationship)
        }
        return references
    }

    /// Returns the column of the positions of an ordered relationship or its inverse.
    private func positionColumn(
        of relationship: RelationshipDescription, _ entity: EntityDescription, _ kind: Relationship.Kind
    ) throws(ModelError) -> ColumnIndex? {
        let isOrdered = relationship.isOrdered
        switch kind {
        case .toOne:
            if isOrdered {
                throw ModelError(
                    .cannotBeOrdered, entity: entity.name, property: relationship.name,
                    remedy: "remove the order, because the relationship leads to one object")
            }
            return try positionColumn(beside: relationship.name, of: entity)
        case .toMany(.link): return nil
        case .toMany(.referrers(let number, let column)):
            let referrer = descriptions[number]
            return isOrdered
                ? try positionColumn(beside: referrer.properties.filter(\.hasColumn)[column].name, of: referrer) : nil
        }
    }

    /// Returns the hidden entity with the order of a relationship over a link; nil if it has no order.
    private mutating func order(
        of relationship: RelationshipDescription, entity: EntityDescription, number: EntityIndex, kind: Relationship.Kind
    ) throws(ModelError) -> EntityIndex? {
        guard relationship.isOrdered, case .toMany(.link(let link, let direction, let destination)) = kind else { return nil }
        let names = Self.names(entity, relationship)
        let schema = EntitySchema.order(
            of: names[0], formerNames: names.filter { $0 != names[0] }, owner: number, member: destination)
        guard numbers[schema.name] == nil, !orders.contains(where: { $0.schema.name == schema.name }) else {
            throw ModelError(
                .reservedName, entity: schema.name, remedy: "the order of \(names[0]) uses this name; choose another")
        }
        orders.append(
            OrderEntity(
                number: EntityIndex(rawValue: descriptions.count + orders.count), schema: schema, link: link, direction: direction
            ))
        return orders.last?.number
    }

    private func positionColumn(beside reference: String, of entity: EntityDescription) throws(ModelError) -> ColumnIndex? {
        guard let index = try orderedReferences(of: entity).firstIndex(where: { $0.name == reference }) else { return nil }
        return ColumnIndex(rawValue: entity.properties.filter(\.hasColumn).count + index)
    }

    /// Returns the position of the inverse relationship, which either side may name.
    private func inverse(
        of relationship: RelationshipDescription, _ entity: EntityDescription, _ destination: EntityDescription
    ) throws(ModelError) -> Int? {
        if let name = relationship.inverse {
            guard let position = destination.relationships.firstIndex(where: { $0.name == name }) else {
                throw ModelError(
                    .noSuchInverse, entity: entity.name, property: relationship.name,
                    remedy: "add a relationship \(name) to \(destination.name), or correct the name")
            }
            let back = destination.relationships[position]
            guard back.destination == entity.name, back.inverse == nil || back.inverse == relationship.name else {
                throw ModelError(
                    .inverseDoesNotPointBack, entity: entity.name, property: relationship.name,
                    remedy: "make \(destination.name).\(name) lead to \(entity.name) with \(relationship.name) as its inverse")
            }
            return position
        }
        return destination.relationships.firstIndex {
            $0.destination == entity.name && $0.inverse == relationship.name
        }
    }

    /// Returns the link of a many-to-many relationship, shared by both ends, or of a to-many relationship without an inverse.
    private mutating func link(
        _ relationship: RelationshipDescription, entity: EntityDescription, number: EntityIndex, destination: EntityIndex,
        back: RelationshipDescription?
    ) throws(ModelError) -> (number: LinkIndex, direction: LinkDirection) {
        let end = LinkEnd(entity: number, relationship: relationship.name)
        if let known = linkOfRelationship[end] { return known }
        let name = "\(entity.name).\(relationship.name)"
        // For example, A.b with c, and A with b.c.
        guard !links.contains(where: { $0.name == name }) else {
            throw ModelError(
                .duplicateProperty, entity: entity.name, property: relationship.name,
                remedy: "another entity and its relationship make the same name; rename one of them")
        }
        let made = (number: links.indices(as: LinkIndex.self).upperBound, direction: LinkDirection.forward)
        var link = LinkSchema(name: name, source: number, destination: destination)
        link.formerNames = Self.names(entity, relationship).filter { $0 != name }
        link.reversedNames = back.map { Self.names(descriptions[destination], $0) } ?? []
        // A relationship that is its own inverse has no reverse direction.
        link.reversedNames.removeAll { $0 == name || link.formerNames.contains($0) }
        // If the two ends exchange their names, the directions of the link are reversed.
        if let back, destination == number, back.name != relationship.name, back.renamedFrom == relationship.name,
            relationship.renamedFrom == back.name
        {
            link.formerNames = []
            link.reversedNames = [name]
        }
        links.append(link)
        linkOfRelationship[end] = made
        if let back {
            let far = LinkEnd(entity: destination, relationship: back.name)
            if far != end { linkOfRelationship[far] = (made.number, .backward) }
        }
        return made
    }

    /// Returns the names of a relationship in this model and, from `renamedFrom`, in older models.
    private static func names(_ entity: EntityDescription, _ relationship: RelationshipDescription) -> [String] {
        [entity.name, entity.renamedFrom].compactMap(\.self).flatMap { entity in
            [relationship.name, relationship.renamedFrom].compactMap(\.self).map { "\(entity).\($0)" }
        }
    }

    // MARK: Defaults

    static func defaultValue(_ attribute: AttributeDescription, _ entity: String) throws(ModelError) -> Value {
        if attribute.type == .reference {
            throw ModelError(
                .unsupportedType, entity: entity, property: attribute.name,
                remedy: "describe a reference as a relationship")
        }
        let value = attribute.defaultValue
        if value.isNull { return attribute.isOptional ? .null : attribute.type.stored(attribute.missingValue) }
        guard ColumnSchema(name: attribute.name, type: attribute.type).accepts(value) else {
            throw ModelError(
                .wrongDefault, entity: entity, property: attribute.name,
                remedy: "give a default that a column of type \(attribute.type.rawValue) can hold, not \(value)")
        }
        return attribute.type.stored(value)
    }
}
