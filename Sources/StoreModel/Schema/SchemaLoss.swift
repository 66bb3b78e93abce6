/// Data of a file that a newer schema does not have or cannot represent.
///
/// Positions refer to the file's schema, in which a store counts what would be lost.
public struct SchemaLoss: Sendable, Hashable {
    /// The part of a file that would be lost, in the positions of the file's schema.
    public enum Subject: Sendable, Hashable {
        /// All objects of an entity.
        case objects(entity: EntityIndex)
        /// All objects of an entity that inherits from another one: those with its type in the column of types.
        case objectsOfType(entity: EntityIndex, column: ColumnIndex, type: Int64)
        /// The values of a column that are not null.
        case values(entity: EntityIndex, column: ColumnIndex)
        /// The values of a column in objects of some types of a hierarchy.
        case valuesOfTypes(entity: EntityIndex, column: ColumnIndex, typeColumn: ColumnIndex, types: Set<Int64>)
        /// The references in a column to objects whose own column does not refer back.
        case unanswered(entity: EntityIndex, column: ColumnIndex, backEntity: EntityIndex, backColumn: ColumnIndex)
        /// The pairs of a link.
        case pairs(link: LinkIndex)
        /// The pairs of a link whose sources are objects of some types of a hierarchy.
        case pairsOfTypes(link: LinkIndex, entity: EntityIndex, typeColumn: ColumnIndex, types: Set<Int64>)
        /// The references in a column to objects of some types of a hierarchy. Without a column of types, all objects have the type 0.
        case referencesToTypes(
            entity: EntityIndex, column: ColumnIndex, farEntity: EntityIndex, typeColumn: ColumnIndex?, types: Set<Int64>)
        /// The pairs of a link whose destinations are objects of some types of a hierarchy, to which `entity` belongs.
        case pairsToTypes(link: LinkIndex, entity: EntityIndex, typeColumn: ColumnIndex?, types: Set<Int64>)

        /// Whether the objects at the far end decide, while columns and links stay as they are.
        package var isOfDestinations: Bool {
            switch self {
            case .referencesToTypes, .pairsToTypes: true
            default: false
            }
        }
    }

    /// The part of the file that would be lost.
    public var subject: Subject
    /// The name in the file, such as `Playlist` or `Track.rating`.
    public var name: String
    /// The names that allow this loss.
    var allowedBy: Set<String>
    /// The change that loses the data, if its name does not say so.
    var reason: String?
    /// Whether the data is kept although it contradicts the model. No permission allows this.
    var isContradiction = false
    /// The change that removes the contradiction.
    var remedy = "Set both ends of the relationship in a custom stage of a MigrationPlan"

    private var unit: String {
        switch subject {
        case .objects, .objectsOfType: "object"
        case .values: "value"
        case .valuesOfTypes: isContradiction ? "reference" : "value"
        case .unanswered, .referencesToTypes: "reference"
        case .pairs, .pairsOfTypes, .pairsToTypes: "pair"
        }
    }

    func text(_ count: Int) -> String {
        "\(name) (\(count) \(unit)\(count == 1 ? "" : "s")\(reason.map { "; \($0)" } ?? ""))"
    }
}

extension [SchemaLoss] {
    /// Throws unless the file has no data that would be lost.
    /// - Parameters:
    ///   - path: The path of the file, for the message.
    ///   - count: A closure that returns the number of values that a subject has in the file. It reads as much of the file as
    ///     that takes.
    /// - Throws: `StoreError` `.schemaMismatch`, which names each loss with its count.
    public func check(path: String, counting count: (SchemaLoss.Subject) throws -> Int) throws {
        let counted = try map { ($0, try count($0.subject)) }.filter { $0.1 > 0 }
        let contradictions = counted.filter(\.0.isContradiction)
        if let first = contradictions.first {
            throw StoreError(
                .schemaMismatch,
                "cannot open \(path) with this model: \(contradictions.map { $0.0.text($0.1) }.joined(separator: ", ")). "
                    + first.0.remedy)
        }
        guard !counted.isEmpty else { return }
        let names = counted.map { "\"\($0.0.name)\"" }.joined(separator: ", ")
        throw StoreError(
            .schemaMismatch,
            "cannot open \(path) with this model: it would drop \(counted.map { $0.0.text($0.1) }.joined(separator: ", ")). "
                + "To keep what they hold, move it in a custom stage of a MigrationPlan; to drop it, pass allowsDataLoss: [\(names)]"
        )
    }
}

extension SubentitySchema {
    fileprivate func isNewlyAbstract(in entity: EntitySchema) -> Bool {
        !isAbstract && entity.subentities.contains { $0.type == type && $0.isAbstract }
    }
}

extension EntitySchema {
    /// The types of all objects of the hierarchy.
    fileprivate var allTypes: Set<Int64> { Set([0] + subentities.map(\.type)) }

    /// Returns the values of a column in the objects of some types. Without inheritance, all objects have the same type.
    fileprivate func values(of column: ColumnIndex, types: Set<Int64>, entity: EntityIndex) -> SchemaLoss.Subject {
        typeColumn.map { .valuesOfTypes(entity: entity, column: column, typeColumn: $0, types: types) }
            ?? .values(entity: entity, column: column)
    }
}

/// The losses of one step from a schema to the next, in the positions of the older schema.
struct SchemaLosses {
    private let old: StoreSchema
    private let new: StoreSchema
    private let evolution: SchemaEvolution
    private(set) var all: [SchemaLoss] = []

    /// - Parameter hidesValues: Returns whether a column of the older schema may have values that the file shows, or has shown, in objects
    ///   that do not have the attribute in that schema.
    init(
        from old: StoreSchema, to new: StoreSchema, _ evolution: SchemaEvolution,
        hidesValues: (EntityIndex, ColumnIndex) -> Bool
    ) {
        self.old = old
        self.new = new
        self.evolution = evolution
        addEntities()
        addColumns(hidesValues)
        addDerivedColumns(hidesValues)
        addMovedAttributes()
        addLinks()
        addContradictions()
        addMovedReferences()
        addMovedPairs()
    }

    /// The position in the new schema, per entity of the old schema.
    private var successors: [EntityIndex: EntityIndex] {
        Dictionary(
            evolution.entities.enumerated(as: EntityIndex.self).compactMap { number, change in change.source.map { ($0, number) }
            },
            uniquingKeysWith: { first, _ in first })
    }

    private mutating func addEntities() {
        let successors = successors
        // Without its order, a relationship keeps its members.
        for (number, entity) in old.entities.enumerated(as: EntityIndex.self) where successors[number] == nil && !entity.isOrder {
            all.append(SchemaLoss(subject: .objects(entity: number), name: entity.name, allowedBy: [entity.name]))
        }
        for (number, entity) in old.entities.enumerated(as: EntityIndex.self) {
            guard let successor = successors[number], let column = entity.typeColumn else { continue }
            let kept = Set(new.entities[successor].subentities.map(\.type))
            for gone in entity.subentities where !kept.contains(gone.type) {
                addSubentity(gone.name, .objectsOfType(entity: number, column: column, type: gone.type))
            }
            for gone in entity.subentities where gone.isNewlyAbstract(in: new.entities[successor]) {
                addSubentity(gone.name, .objectsOfType(entity: number, column: column, type: gone.type))
            }
        }
        for (number, entity) in old.entities.enumerated(as: EntityIndex.self) where !entity.isAbstract {
            guard let successor = successors[number], new.entities[successor].isAbstract else { continue }
            let subject: SchemaLoss.Subject =
                entity.typeColumn.map { .objectsOfType(entity: number, column: $0, type: 0) } ?? .objects(entity: number)
            addSubentity(entity.name, subject)
        }
    }

    /// Adds the objects of an entity that the new model cannot have any more. Objects of the other entities in its hierarchy stay.
    private mutating func addSubentity(_ name: String, _ subject: SchemaLoss.Subject) {
        var loss = SchemaLoss(subject: subject, name: name, allowedBy: [])
        loss.reason = "the model has no such entity, or it is abstract"
        loss.isContradiction = true
        loss.remedy = "Delete these objects first, with the model of the file"
        all.append(loss)
    }

    private mutating func addColumns(_ hidesValues: (EntityIndex, ColumnIndex) -> Bool) {
        let successors = successors
        for (number, entity) in old.entities.enumerated(as: EntityIndex.self) {
            guard let successor = successors[number] else { continue }
            let kept = Set(evolution.entities[successor].columns.compactMap(\.source))
            // Without its order, a relationship keeps its members.
            for (column, definition) in entity.columns.enumerated(as: ColumnIndex.self)
            where !kept.contains(column) && !entity.isPosition(column) && column != entity.typeColumn {
                let name = "\(entity.name).\(definition.name)"
                var loss = SchemaLoss(
                    subject: .values(entity: number, column: column), name: name,
                    allowedBy: [name, "\(new.entities[successor].name).\(definition.name)"])
                if let destination = definition.destination {
                    // Dropping an entity on purpose also drops the references to it.
                    if successors[destination] == nil { loss.allowedBy.insert(old.entities[destination].name) }
                    changeKind(&loss, successor: successor, entity: number, column: column, definition: definition)
                    all.append(loss)
                } else {
                    addValues(loss, of: column, entity: number, hidesValues)
                }
            }
        }
    }

    /// Adds the values of attributes that become derived: opening the file replaces them with computed values (S201).
    private mutating func addDerivedColumns(_ hidesValues: (EntityIndex, ColumnIndex) -> Bool) {
        for (number, change) in evolution.entities.enumerated(as: EntityIndex.self) {
            guard let source = change.source else { continue }
            let (before, after) = (old.entities[source], new.entities[number])
            for (column, part) in change.columns.enumerated(as: ColumnIndex.self) where after.columns[column].derivation != nil {
                guard let place = part.source, before.columns[place].derivation == nil else { continue }
                let name = "\(before.name).\(before.columns[place].name)"
                var loss = SchemaLoss(
                    subject: .values(entity: source, column: place), name: name,
                    allowedBy: [name, "\(after.name).\(after.columns[column].name)"])
                loss.reason = "saves derive it now"
                addValues(loss, of: place, entity: source, hidesValues)
            }
        }
    }

    /// Adds the loss of an attribute's values, as one loss per subentity that declares the attribute.
    private mutating func addValues(
        _ loss: SchemaLoss, of column: ColumnIndex, entity: EntityIndex, _ hidesValues: (EntityIndex, ColumnIndex) -> Bool
    ) {
        var inherited: [SchemaLoss] = []
        if let typeColumn = old.entities[entity].typeColumn, !hidesValues(entity, column) {
            inherited = inheritedLosses(loss, of: column, in: old.entities[entity], entity, typeColumn: typeColumn)
        }
        all += inherited.isEmpty ? [loss] : inherited
    }

    /// Returns the loss of an attribute's column as one loss per subentity that declares the attribute; empty if none does. Other objects of
    /// the hierarchy may have the default in this column, which nothing shows.
    private func inheritedLosses(
        _ loss: SchemaLoss, of column: ColumnIndex, in entity: EntitySchema, _ number: EntityIndex, typeColumn: ColumnIndex
    ) -> [SchemaLoss] {
        let property = entity.columns[column].name
        return entity.subentities.filter { $0.properties.contains(property) }.map { subentity in
            var own = loss
            own.name = "\(subentity.name).\(property)"
            own.allowedBy.insert(own.name)
            own.subject = .valuesOfTypes(
                entity: number, column: column, typeColumn: typeColumn, types: entity.types(ofSubentity: subentity.name))
            return own
        }
    }

    /// Adds the values of attributes that stay in their hierarchy, in the objects that do not have the attribute any more.
    private mutating func addMovedAttributes() {
        for (number, change) in evolution.entities.enumerated(as: EntityIndex.self) {
            guard let source = change.source else { continue }
            let (before, after) = (old.entities[source], new.entities[number])
            let present = Set([0] + after.subentities.map(\.type))
            for (column, part) in change.columns.enumerated(as: ColumnIndex.self) {
                guard let place = part.source, before.columns[place].destination == nil, let kept = after.types(having: [column])
                else { continue }
                let property = before.columns[place].name
                let declaring = before.subentities.filter { $0.properties.contains(property) }.map(\.name)
                for entity in declaring.isEmpty ? [before.name] : declaring {
                    let types = entity == before.name ? before.allTypes : before.types(ofSubentity: entity)
                    let lost = types.intersection(present).subtracting(kept)
                    guard !lost.isEmpty else { continue }
                    let name = "\(entity).\(property)"
                    let subject = before.values(of: place, types: lost, entity: source)
                    all.append(SchemaLoss(subject: subject, name: name, allowedBy: [name]))
                }
            }
        }
    }

    /// Describes the loss of a to-one relationship whose name now denotes a to-many relationship.
    private func changeKind(
        _ loss: inout SchemaLoss, successor: EntityIndex, entity: EntityIndex, column: ColumnIndex, definition: ColumnSchema
    ) {
        let found = new.relationships.first { relationship in
            relationship.entity == successor && relationship.column == nil
                && (relationship.name == definition.name || relationship.renamedFrom == definition.name)
        }
        guard let found else { return }
        loss.reason = "it led to one object and leads to many"
        guard let inverse = found.inverse.map({ new.relationships[$0] }), let back = inverse.column,
            let source = evolution.entities[inverse.entity].columns[back].source,
            let destination = definition.destination, evolution.entities[inverse.entity].source == destination
        else { return }
        loss.subject = .unanswered(entity: entity, column: column, backEntity: destination, backColumn: source)
    }

    private mutating func addLinks() {
        let kept = Set(evolution.links.compactMap { $0?.source })
        let successors = successors
        for (number, link) in old.links.enumerated(as: LinkIndex.self) where !kept.contains(number) {
            var loss = SchemaLoss(subject: .pairs(link: number), name: link.name, allowedBy: [link.name])
            for end in [link.source, link.destination] where successors[end] == nil {
                loss.allowedBy.insert(old.entities[end].name)
            }
            let isThere = new.relationships.contains { relationship in
                let entity = new.entities[relationship.entity]
                return [entity.name, entity.renamedFrom].compactMap(\.self).contains { entity in
                    [relationship.name, relationship.renamedFrom].contains { $0.map { "\(entity).\($0)" } == link.name }
                }
            }
            if isThere { loss.reason = "its inverse led to many objects and leads to one" }
            all.append(loss)
        }
    }

    /// Adds the references of objects that lose a relationship, because it moves to an entity which inherits from theirs.
    private mutating func addMovedReferences() {
        for (number, change) in evolution.entities.enumerated(as: EntityIndex.self) {
            guard let source = change.source else { continue }
            let (before, after) = (old.entities[source], new.entities[number])
            for (column, part) in change.columns.enumerated(as: ColumnIndex.self) where after.columns[column].destination != nil {
                guard let place = part.source, let kept = after.types(having: [column]) else { continue }
                let lost = (before.types(having: [place]) ?? before.allTypes).subtracting(kept)
                guard !lost.isEmpty else { continue }
                addMoved(before.values(of: place, types: lost, entity: source), "\(before.name).\(before.columns[place].name)")
            }
        }
    }

    /// Adds the pairs of objects that lose a relationship, because it moves to an entity which inherits from theirs. Of a link, files have
    /// the name of the relationship at its source only.
    private mutating func addMovedPairs() {
        func types(_ entity: EntitySchema, _ link: LinkSchema) -> Set<Int64>? {
            entity.types(havingProperty: String(link.name.dropFirst(entity.name.count + 1)))
        }
        for (link, change) in zip(new.links, evolution.links) {
            guard let change, !change.isReversed, let kept = types(new.entities[link.source], link) else { continue }
            let known = old.links[change.source]
            let before = old.entities[known.source]
            let lost = (types(before, known) ?? before.allTypes).subtracting(kept)
            guard !lost.isEmpty else { continue }
            let subject = before.typeColumn.map {
                SchemaLoss.Subject.pairsOfTypes(link: change.source, entity: known.source, typeColumn: $0, types: lost)
            }
            addMoved(subject ?? .pairs(link: change.source), known.name)
        }
    }

    private mutating func addMoved(_ subject: SchemaLoss.Subject, _ name: String) {
        var loss = SchemaLoss(subject: subject, name: name, allowedBy: [])
        loss.reason = "these objects do not have the relationship any more"
        loss.isContradiction = true
        loss.remedy =
            "Empty the relationship of these objects or delete them first, with the model of the file or in willMigrate of a custom stage"
        all.append(loss)
    }

    /// Adds each new to-one relationship whose inverse is an existing to-one relationship. The objects that its existing
    /// references lead to do not refer back.
    private mutating func addContradictions() {
        for relationship in new.relationships {
            guard let column = relationship.column, let inverse = relationship.inverse.map({ new.relationships[$0] }),
                let back = inverse.column, evolution.entities[relationship.entity].source != nil,
                evolution.entities[relationship.entity].columns[column].source == nil,
                let entity = evolution.entities[inverse.entity].source,
                let source = evolution.entities[inverse.entity].columns[back].source
            else { continue }
            let name = "\(old.entities[entity].name).\(old.entities[entity].columns[source].name)"
            var loss = SchemaLoss(subject: .values(entity: entity, column: source), name: name, allowedBy: [])
            loss.reason =
                "\(new.entities[relationship.entity].name).\(relationship.name) leads to one object now, and leads back from none of them"
            loss.isContradiction = true
            all.append(loss)
        }
    }
}
