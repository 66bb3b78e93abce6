/// The migration of a file from its schema to a model's schema, in one or several steps, and the data that would be lost
/// (S163, S165).
///
/// Shared by the stores in files. Computing it takes O(schema) and does not read the file.
public struct SchemaPath: Sendable {
    /// A schema on the path, and the mapping to it from the previous schema.
    public struct Step: Sendable {
        /// The schema after the step.
        public var schema: StoreSchema
        /// The mapping to the schema from the schema before the step.
        public var evolution: SchemaEvolution
    }

    /// The steps of the migration. Empty if columns, links and indexes stay as they are, even if the version differs.
    public private(set) var steps: [Step] = []
    /// The losses that are not allowed. Before the first step, a store counts the data of each loss:
    /// ``Swift/Array/check(path:counting:)``.
    public private(set) var losses: [SchemaLoss] = []
    /// The inverses that the file records after the steps.
    package private(set) var inverses: InversePairs?
    /// The narrowed destinations that the file records after the steps.
    package private(set) var destinations: NarrowedDestinations?

    /// Computes the migration.
    /// - Parameters:
    ///   - file: The schema of the file.
    ///   - exchanged: The exchanges of names that the file has recorded.
    ///   - model: The schema of the program.
    ///   - path: The file's path, for messages.
    /// - Throws: `StoreError` `.schemaTooNew` if the file belongs to a model of a higher version. `.schemaMismatch` if the
    ///   model has nothing in common with the file, or if a step needs more than another way of reading.
    public init(
        from file: StoreSchema, exchanged: ExchangedNames = ExchangedNames(), to model: StoreSchema, path: String
    ) throws {
        try self.init(from: RecordedSchemas(file, exchanged: exchanged), to: model, path: path)
    }

    /// Computes the migration of a file with all schemas that it has recorded, of which an older model may have one.
    /// - Throws: `StoreError` as above, and `.schemaTooNew` if the file's schema was derived from the model's, at the same version.
    package init(from recorded: RecordedSchemas, to model: StoreSchema, path: String) throws {
        let file = recorded.current
        let wanted = model.withoutHints
        let pending = ExchangedNames(of: model).subtracting(recorded.exchanged)
        let stated = InversePairs(of: model)
        inverses = recorded.inverses
        destinations = recorded.destinations
        let isStated = stated == nil || stated == inverses && NarrowedDestinations(of: model) == destinations
        if wanted == file, pending.isEmpty, isStated { return }
        let complete = wanted.withoutPendingDerivations
        if complete != wanted, complete.withoutKeyedValues == file.withoutKeyedValues {
            throw StoreError(.schemaMismatch, "\(path) has all derived values, which another process has computed. Open it again")
        }
        let schemas = Self.schemas(from: file, to: model)
        if schemas.count == 1 { try Self.checkKinship(recorded, with: model, at: path) }
        guard wanted.version >= file.version else {
            throw StoreError(
                .schemaTooNew,
                "\(path) was written by version \(file.version) of the model; this program has \(wanted.version). Update the program"
            )
        }
        do {
            try walk(schemas, from: recorded, migration: model.migration)
        } catch let error as StoreError where error.code == .schemaMismatch && !error.message.contains(path) {
            throw StoreError(error.code, "\(path) was written with another model: \(error.message)", cause: error)
        }
        if !steps.isEmpty, !model.migration.isIntermediate, recorded.isAfter(model) { throw StoreError.olderModel(path) }
    }

    private mutating func walk(
        _ schemas: [StoreSchema], from file: RecordedSchemas, migration: SchemaMigration
    ) throws {
        var metadata = SchemaPositions(file.current)
        var current = file.current
        var recorded = file.exchanged
        for (number, next) in schemas.enumerated() {
            let pending = ExchangedNames(of: next).subtracting(recorded.renamed(from: current, to: next))
            let evolution = try SchemaEvolution(from: current, to: next, exchanging: pending)
            if !evolution.exchanges.isEmpty, next.version <= current.version {
                throw StoreError(
                    .schemaMismatch,
                    "names are exchanged (\(evolution.exchanges.joined(separator: ", "))), but the model's version is not higher, so that nothing "
                        + "shows whether the file has the old names. Give the model a higher version than \(current.version)")
            }
            var unversioned = next.withoutHints
            unversioned.version = current.version
            recorded = ExchangedNames(of: next)
            let isStep = unversioned != current || !evolution.exchanges.isEmpty
            // A version between the two whose inverses are others changes no object.
            let isLast = number == schemas.count - 1
            var found = isLast ? InverseLosses(recorded: inverses, from: current, to: next, evolution).all : []
            inverses = inverses?.renamed(from: current, to: next, evolution)
            destinations = destinations?.renamed(from: current, to: next, evolution)
            if isLast { found += DestinationLosses(recorded: destinations, from: current, to: next, evolution).all }
            if isStep {
                let schemas = SchemaLosses(from: current, to: next, evolution) { entity, column in
                    file.hidesValues(of: current.entities[entity], column: column)
                }
                // The pairs of a relationship that moves may be among both.
                found = schemas.all + found.filter { loss in !schemas.all.contains { $0.subject == loss.subject } }
            }
            for var loss in found where !migration.allows(loss) {
                guard let subject = metadata.place(loss.subject) else { continue }
                loss.subject = subject
                losses.append(loss)
            }
            guard isStep else { continue }
            metadata.advance(evolution)
            current = next.withoutHints
            steps.append(Step(schema: next, evolution: evolution))
        }
        guard let last = schemas.last, let stated = InversePairs(of: last) else { return }
        inverses = stated
        destinations = NarrowedDestinations(of: last)
    }

    /// Returns the schemas that the file still has to be migrated to.
    private static func schemas(from file: StoreSchema, to model: StoreSchema) -> [StoreSchema] {
        let way = file.keyedValues == nil ? model.migration.way : model.migration.way.map(\.withKeyedValues)
        guard let place = way.lastIndex(where: { $0.withoutHints == file }), place < way.count - 1 else { return [model] }
        return way[(place + 1)..<(way.count - 1)] + [model]
    }

    /// Checks that the file belongs to this model. Another program's model is not a newer version of this one, whatever its
    /// number. A file that once had entities of an older model is newer than it.
    private static func checkKinship(_ recorded: RecordedSchemas, with model: StoreSchema, at path: String) throws {
        let file = recorded.current.withoutKeyedValues
        let model = model.withoutKeyedValues
        guard !file.entities.isEmpty else { return }
        // No program knows the hidden entities of orders.
        func names(_ schema: StoreSchema) -> [String] { schema.entities.filter { !$0.isOrder }.map(\.name) }
        switch model.migration.allowedLoss {
        case .everything: return
        case .named(let allowed): if allowed.isSuperset(of: names(file)) { return }
        }
        func isKin(_ schema: StoreSchema) -> Bool {
            let known = Set(names(schema))
            return model.entities.contains { known.contains($0.name) || $0.renamedFrom.map(known.contains) == true }
        }
        let mayBeNewer = file.version > model.version
        if isKin(file) || mayBeNewer && recorded.earlier.contains(where: isKin) { return }
        func list(_ schema: StoreSchema) -> String { names(schema).sorted().joined(separator: ", ") }
        let remedy =
            mayBeNewer
            ? "If version \(file.version) of the file's model is a newer version of this one, update the program. Otherwise, choose another file"
            : "Open it with the model that it was written with, or choose another file"
        throw StoreError(
            .schemaMismatch,
            "cannot open \(path) with this model: they have no entity in common. The file has \(list(file)); the model has "
                + "\(list(model)). \(remedy)")
    }
}

extension SchemaMigration {
    func allows(_ loss: SchemaLoss) -> Bool {
        switch allowedLoss {
        case .everything: !loss.isContradiction
        case .named(let names): !names.isDisjoint(with: loss.allowedBy)
        }
    }
}

extension RecordedSchemas {
    /// Returns whether a column may have values in objects that do not have its attribute, because an earlier schema of the file has the
    /// attribute in another entity of the hierarchy. Schemas are compared by names.
    ///
    /// - Parameters:
    ///   - head: The entity at the head of the hierarchy.
    ///   - column: The column of the attribute.
    fileprivate func hidesValues(of head: EntitySchema, column: ColumnIndex) -> Bool {
        guard let types = head.types(having: [column]) else { return false }
        let present = Set([0] + head.subentities.map(\.type))
        return earlier.lazy.flatMap(\.entities).contains { known in
            known.name == head.name
                && known.columnIndices.contains { place in
                    known.columns[place].name == head.columns[column].name
                        && !(known.types(having: [place]) ?? present).intersection(present).isSubset(of: types)
                }
        }
    }
}

/// The numbers that the entities, columns and links of a schema have in an older schema.
struct SchemaPositions {
    private(set) var entities: [EntityIndex?]
    private(set) var columns: [[ColumnIndex?]]
    private(set) var links: [LinkIndex?]
    /// The links whose source was their destination in the older schema.
    private(set) var reversedLinks: Set<LinkIndex> = []
    /// The columns, per entity, in which the migration replaces the nulls of the older schema.
    private(set) var filledColumns: [ColumnSet]

    /// Creates the numbers of a schema in itself.
    init(_ schema: StoreSchema) {
        entities = Array(schema.entityIndices)
        columns = schema.entities.map { Array($0.columnIndices) }
        links = Array(schema.linkIndices)
        filledColumns = schema.entities.map { _ in ColumnSet() }
    }

    /// Moves on to the next schema.
    mutating func advance(_ evolution: SchemaEvolution) {
        let before = self
        entities = evolution.entities.map { change in change.source.flatMap { before.entities[$0] } }
        columns = evolution.entities.map { change in
            change.columns.map { column in
                guard let entity = change.source, let source = column.source else { return nil }
                return before.columns[entity][source]
            }
        }
        filledColumns = evolution.entities.map { change in
            var filled = ColumnSet()
            for (column, part) in change.columns.enumerated(as: ColumnIndex.self) {
                guard let entity = change.source, let source = part.source else { continue }
                if part.fill != nil || before.filledColumns[entity].contains(source) { filled.insert(column) }
            }
            return filled
        }
        links = evolution.links.map { change in change.flatMap { before.links[$0.source] } }
        reversedLinks = Set(
            evolution.links.indices().filter { number in
                evolution.links[number].map { $0.isReversed != before.reversedLinks.contains($0.source) } ?? false
            })
    }

    /// Returns the subject in the numbers of the older schema; nil if that schema does not have it.
    func place(_ subject: SchemaLoss.Subject) -> SchemaLoss.Subject? {
        switch subject {
        case .objects(let entity):
            return entities[entity].map { .objects(entity: $0) }
        case .objectsOfType(let entity, let column, let type):
            guard let place = entities[entity] else { return nil }
            // Objects that are older than the column of types are of the entity at the head of the hierarchy.
            guard let source = columns[entity][column] else { return type == 0 ? .objects(entity: place) : nil }
            return .objectsOfType(entity: place, column: source, type: type)
        case .values(let entity, let column):
            guard let place = entities[entity], let source = columns[entity][column] else { return nil }
            return .values(entity: place, column: source)
        case .valuesOfTypes(let entity, let column, let typeColumn, let types):
            guard let place = entities[entity], let source = columns[entity][column] else { return nil }
            guard let type = columns[entity][typeColumn] else {
                return types.contains(0) ? .values(entity: place, column: source) : nil
            }
            return .valuesOfTypes(entity: place, column: source, typeColumn: type, types: types)
        case .unanswered(let entity, let column, let backEntity, let backColumn):
            guard let place = entities[entity], let source = columns[entity][column] else { return nil }
            guard let far = entities[backEntity], let back = columns[backEntity][backColumn] else {
                return .values(entity: place, column: source)
            }
            return .unanswered(entity: place, column: source, backEntity: far, backColumn: back)
        case .pairs(let link):
            return links[link].map { .pairs(link: $0) }
        case .pairsOfTypes(let link, let entity, let typeColumn, let types):
            guard let number = links[link], let place = entities[entity] else { return nil }
            let type = columns[entity][typeColumn]
            guard type != nil || types.contains(0) else { return nil }
            // An earlier step has reversed the link, so that these objects are at its destination in the file.
            if reversedLinks.contains(link) {
                return .pairsToTypes(link: number, entity: place, typeColumn: type, types: types)
            }
            return type.map { .pairsOfTypes(link: number, entity: place, typeColumn: $0, types: types) } ?? .pairs(link: number)
        case .referencesToTypes(let entity, let column, let farEntity, let typeColumn, let types):
            guard let place = entities[entity], let source = columns[entity][column], let far = entities[farEntity] else {
                return nil
            }
            let type = typeColumn.flatMap { columns[farEntity][$0] }
            guard type != nil || types.contains(0) else { return nil }
            return .referencesToTypes(entity: place, column: source, farEntity: far, typeColumn: type, types: types)
        case .pairsToTypes(let link, let entity, let typeColumn, let types):
            guard let number = links[link], let place = entities[entity] else { return nil }
            let type = typeColumn.flatMap { columns[entity][$0] }
            guard type != nil || types.contains(0) else { return nil }
            guard reversedLinks.contains(link) else {
                return .pairsToTypes(link: number, entity: place, typeColumn: type, types: types)
            }
            // An earlier step has reversed the link, so that these objects are at its source in the file.
            return type.map { .pairsOfTypes(link: number, entity: place, typeColumn: $0, types: types) } ?? .pairs(link: number)
        }
    }
}
