import StoreInterface
import StoreModel

/// Resolves the names in derivations to numbers, and checks that the values fit their attributes.
struct DerivationResolution {
    private let entities: [Entity]
    private let descriptions: [EntityDescription]

    /// Returns the entities with the numbers of their derived columns.
    ///
    /// - Throws: ``ModelError`` for a derivation that cannot be computed.
    static func resolved(_ entities: [Entity], _ descriptions: [EntityDescription]) throws(ModelError) -> [Entity] {
        let isUsed = descriptions.contains { $0.properties.contains { $0.derivation != nil } }
        guard isUsed else { return entities }
        let resolution = DerivationResolution(entities: entities, descriptions: descriptions)
        var resolved: [Entity] = []
        for (entity, description) in zip(entities, descriptions) { resolved.append(try resolution.entity(entity, description)) }
        return resolved
    }

    private func entity(_ entity: Entity, _ description: EntityDescription) throws(ModelError) -> Entity {
        var columns = entity.columns
        for case .attribute(let attribute) in description.properties {
            guard let derivation = attribute.derivation, let column = entity.column(named: attribute.name) else { continue }
            if description.subentities.contains(where: { $0.properties.contains(attribute.name) }) {
                throw wrong(
                    entity, attribute: attribute,
                    remedy: "only the entity at the head of a hierarchy can derive attributes: declare it there")
            }
            try check(attribute, column: columns[column], number: column, entity: entity)
            columns[column].derivation = try resolve(derivation, attribute: attribute, entity: entity)
        }
        return entity.copy(columns: columns, rules: entity.rules)
    }

    private func check(
        _ attribute: AttributeDescription, column: ColumnSchema, number: ColumnIndex, entity: Entity
    ) throws(ModelError) {
        let isUnique = column.index == .unique || entity.indexes.contains { $0.kind == .unique && $0.columns.contains(number) }
        if isUnique {
            throw wrong(
                entity, attribute: attribute,
                remedy: "a derived attribute cannot be unique: make the attribute unique that it is derived from")
        }
        if !attribute.rules.isEmpty {
            throw wrong(
                entity, attribute: attribute, remedy: "a derived attribute has no rules: give them to what it is derived from")
        }
    }

    private func resolve(
        _ derivation: Derivation, attribute: AttributeDescription, entity: Entity
    ) throws(ModelError) -> ColumnDerivation {
        let (function, names): (ColumnDerivation.Function, [String])
        switch derivation.source {
        case .stored(let stored): return stored
        case .path(let found, let path): (function, names) = (found, self.names(on: path, for: found, of: entity))
        }
        switch function {
        case .value: return try value(names, attribute: attribute, entity: entity)
        case .count:
            let (relation, _) = try relation(names, attribute: attribute, entity: entity, count: 1)
            guard attribute.type.isInteger else {
                throw wrong(entity, attribute: attribute, remedy: "a count needs an attribute of integers")
            }
            return ColumnDerivation(.count, relation: relation)
        case .sum, .minimum, .maximum, .average:
            let (relation, far) = try relation(names, attribute: attribute, entity: entity, count: 2)
            let source = try self.attribute(names[1], derived: attribute, entity: entity, of: far)
            try checkAggregate(function, source: source, derived: attribute, entity: entity)
            return ColumnDerivation(function, relation: relation, column: source.column)
        case .lowercased, .folded:
            guard names.count == 1 else {
                throw wrong(entity, attribute: attribute, remedy: "name one attribute of the same entity")
            }
            let source = try self.attribute(names[0], derived: attribute, entity: entity, of: entity)
            guard source.type == .string, attribute.type == .string else {
                throw wrong(entity, attribute: attribute, remedy: "only a string in lower case can be derived from a string")
            }
            return ColumnDerivation(function, column: source.column)
        }
    }

    /// Returns the names of the properties on a path. A path to another object goes through relationships, even if an entity has an
    /// attribute with the name of the rest of the path.
    private func names(on path: String, for function: ColumnDerivation.Function, of entity: Entity) -> [String] {
        switch function {
        case .value, .sum, .minimum, .maximum, .average:
            entity.names(onPathThroughRelationship: path, in: entities, isStrict: true) ?? Entity.split(path)
        case .count, .lowercased, .folded: entity.names(onPath: path, in: entities)
        }
    }

    private func value(
        _ names: [String], attribute: AttributeDescription, entity: Entity
    ) throws(ModelError) -> ColumnDerivation {
        guard names.count > 1 else {
            throw wrong(
                entity, attribute: attribute, remedy: "name a path through relationships to one object, such as artist.name")
        }
        var reached = entity
        var path: [ColumnIndex] = []
        for name in names.dropLast() {
            guard let relationship = reached.relationship(named: name), case .toOne(let column) = relationship.kind else {
                throw wrong(
                    entity, attribute: attribute,
                    remedy: "\(reached.name) has no relationship \(name) to one object: correct the path")
            }
            path.append(column)
            reached = entities[relationship.destination]
        }
        let source = try self.attribute(names[names.count - 1], derived: attribute, entity: entity, of: reached)
        guard source.type == attribute.type else {
            throw wrong(
                entity, attribute: attribute,
                remedy: "\(reached.name).\(source.name) is \(source.type.rawValue): give both the same type")
        }
        return ColumnDerivation(.value, path: path, column: source.column)
    }

    private func relation(
        _ names: [String], attribute: AttributeDescription, entity: Entity, count: Int
    ) throws(ModelError) -> (Relation, Entity) {
        guard names.count == count, let relationship = entity.relationship(named: names[0]),
            case .toMany(let relation) = relationship.kind
        else {
            let wanted = count == 1 ? "a relationship to many objects" : "a relationship to many objects and an attribute"
            throw wrong(
                entity, attribute: attribute, remedy: "name \(wanted) of \(entity.name), not \(names.joined(separator: "."))")
        }
        return (relation, entities[relationship.destination])
    }

    private func attribute(
        _ name: String, derived: AttributeDescription, entity: Entity, of far: Entity
    ) throws(ModelError) -> Attribute {
        guard let found = far.attribute(named: name) else {
            throw wrong(entity, attribute: derived, remedy: "\(far.name) has no attribute \(name): correct the name")
        }
        let isDerived = descriptions[far.number].properties.contains { $0.name == name && $0.derivation != nil }
        if isDerived {
            throw wrong(entity, attribute: derived, remedy: "\(far.name).\(name) is derived itself: name what it is derived from")
        }
        return found
    }

    private func checkAggregate(
        _ function: ColumnDerivation.Function, source: Attribute, derived: AttributeDescription, entity: Entity
    ) throws(ModelError) {
        let isFraction = source.type == .double || source.type == .float
        if function == .sum || function == .average, source.content == .decimal {
            throw wrong(
                entity, attribute: derived,
                remedy:
                    "decimals have no derived sum or mean: fetch the sum of \(source.name), or name a copy of it in whole cents")
        }
        switch function {
        case .sum:
            // Unsigned 64-bit integers do not fit a signed sum.
            guard source.type.isInteger && source.type != .uint64 || isFraction else {
                throw wrong(entity, attribute: derived, remedy: "\(source.name) has no sum: name an attribute of numbers")
            }
            let wanted: ColumnType = isFraction ? .double : .int64
            guard derived.type == wanted else {
                throw wrong(entity, attribute: derived, remedy: "this sum needs the type \(wanted.rawValue)")
            }
        case .average:
            guard source.type.isInteger || isFraction, derived.type == .double else {
                throw wrong(entity, attribute: derived, remedy: "a mean needs an attribute of numbers, and the type double")
            }
        default:
            let isOrdered = source.type.isInteger || isFraction || source.type == .date || source.type == .string
            guard isOrdered, derived.type == source.type else {
                throw wrong(
                    entity, attribute: derived,
                    remedy: "name an attribute of numbers, dates or strings, and give both the same type")
            }
        }
    }

    private func wrong(_ entity: Entity, attribute: AttributeDescription, remedy: String) -> ModelError {
        ModelError(.wrongDerivation, entity: entity.name, property: attribute.name, remedy: remedy)
    }
}

extension PropertyDescription {
    var derivation: Derivation? {
        if case .attribute(let attribute) = self { attribute.derivation } else { nil }
    }
}

extension ColumnType {
    fileprivate var isInteger: Bool {
        switch self {
        case .int8, .int16, .int32, .int64, .uint8, .uint16, .uint32, .uint64: true
        default: false
        }
    }
}
