import StoreInterface
import StoreModel

/// Finds the changes that opening a file with a model would make.
struct ModelComparison {
    let model: Model
    let store: StoreDescription
    let plan: MigrationPlan?
    let allowsDataLoss: Set<String>

    func changes() throws -> ModelChanges {
        guard let read = store.recordedSchemas else {
            throw StoreError(
                .unsupported, "cannot compare a model with the store \(store.name): it has no file. Use a store in a file")
        }
        var changes = ModelChanges(fileVersion: nil, modelVersion: model.version, steps: [])
        guard let recorded = try read() else { return changes }
        let file = recorded.current
        changes.fileVersion = file.version
        do {
            let stages = try plan?.stages(from: file, to: model) ?? []
            try compare(recorded, with: stages, into: &changes)
        } catch let error as StoreError where [.schemaMismatch, .schemaTooNew].contains(error.code) {
            changes.refusal = error
            if changes.steps.isEmpty { addStep(recorded, to: model.storeSchema, isCustom: false, changes: &changes) }
        }
        return changes
    }

    private func compare(
        _ recorded: RecordedSchemas, with stages: ArraySlice<MigrationStage>, into changes: inout ModelChanges
    ) throws {
        let file = recorded.current
        var current = recorded
        // The stage before the others of a file without a version changes nothing.
        let isInPlan = plan?.stages.contains { $0.source.storeSchema.withoutHints == file } == true
        let changing = isInPlan ? stages : stages.dropFirst()
        for stage in changing {
            addStep(current, to: stage.target.storeSchema, isCustom: stage.isCustom, changes: &changes)
            current = RecordedSchemas(stage.target.storeSchema, exchanged: ExchangedNames(of: stage.target.storeSchema))
        }
        if changing.isEmpty { addStep(recorded, to: model.storeSchema, isCustom: false, changes: &changes) }
        try countDropped(recorded, by: changing.first?.target.storeSchema ?? model.storeSchema, &changes)
        if stages.contains(where: \.isCustom) { return try check(stages, from: recorded) }
        var wanted = stages.last?.target.storeSchema ?? model.storeSchema
        wanted.migration.allowedLoss = .named(allowsDataLoss)
        wanted.migration.way = (stages.isEmpty ? [] : [file]) + stages.map(\.target.storeSchema)
        try checkLosses(of: recorded, by: wanted)
    }

    /// Checks the stages of a plan as they run on a copy of the file, because one of them is custom.
    ///
    /// Objects are counted up to the first custom stage, because its work decides what the later stages find.
    private func check(_ stages: ArraySlice<MigrationStage>, from recorded: RecordedSchemas) throws {
        let path = store.path ?? store.name
        if recorded.isAfter(model.storeSchema) { throw StoreError.olderModel(path) }
        var current = recorded
        var way = [recorded.current]
        var isCounted = true
        for stage in stages {
            let schemas = stage.schemas(allowedLoss: .named(allowsDataLoss))
            for schema in schemas { current = try current.opened(with: schema, path: path) }
            way += schemas
            if stage.willMigrate != nil { isCounted = false }
            if isCounted, var wanted = schemas.last {
                wanted.migration.way = way
                try checkLosses(of: recorded, by: wanted)
            }
            if stage.isCustom { isCounted = false }
            // The work of a custom stage runs before its new unique constraints.
            current = try current.opened(with: stage.step, path: path)
        }
    }

    /// Throws if the file has data that opening it with a schema would drop without permission, or that contradicts the schema.
    private func checkLosses(of recorded: RecordedSchemas, by schema: StoreSchema) throws {
        let path = store.path ?? store.name
        let losses = try SchemaPath(from: recorded, to: schema, path: path).losses
        guard !losses.isEmpty else { return }
        try reading(recorded.current) { snapshot in try losses.check(path: path) { try snapshot.count($0) } }
    }

    private func addStep(_ recorded: RecordedSchemas, to new: StoreSchema, isCustom: Bool, changes: inout ModelChanges) {
        let old = recorded.current
        var found = SchemaComparison(recorded, new).changes()
        if let pending = new.pendingDerivations(in: old.withoutHints, exchanged: recorded.exchanged) {
            for entity in pending.entities {
                for column in entity.columns where column.derivation?.isPending == true {
                    found.append(.init(kind: .computed, name: "\(entity.name).\(column.name)"))
                }
            }
        }
        guard !found.isEmpty || isCustom || old.version != new.version else { return }
        changes.steps.append(.init(from: old.version, to: new.version, isCustom: isCustom, changes: found))
    }

    // MARK: Counting

    /// Counts what the file has of the parts that its first step, which leads to `target`, drops.
    private func countDropped(_ recorded: RecordedSchemas, by target: StoreSchema, _ changes: inout ModelChanges) throws {
        guard var counted = changes.steps.first?.changes else { return }
        let file = recorded.current
        // A step that needs a custom stage has no list of losses.
        let losses = (try? SchemaPath(from: recorded, to: target, path: store.name).losses) ?? []
        // Attributes that stay, but in fewer objects or with computed values.
        let shrinking = losses.filter { loss in
            guard let name = file.attribute(of: loss.subject) else { return false }
            return !counted.contains { $0.mayDrop && $0.name == name }
        }
        let renamed = Dictionary(
            counted.compactMap { change in change.kind == .renamed ? change.before.map { ($0, change.name) } : nil },
            uniquingKeysWith: { first, _ in first })
        // The new name of an attribute of the file.
        func present(_ name: String) -> String {
            if let new = renamed[name] { return new }
            let entity = String(name.prefix { $0 != "." })
            return (renamed[entity] ?? entity) + name.dropFirst(entity.count)
        }
        let dropped: [[SchemaLoss.Subject]] = counted.map { change in
            if change.mayDrop { return [file.subject(named: change.name)].compactMap(\.self) }
            guard change.kind == .changed else { return [] }
            return shrinking.map(\.subject).filter { file.attribute(of: $0).map(present) == change.name }
        }
        let others = shrinking.filter { loss in !dropped.contains { $0.contains(loss.subject) } }
        guard !others.isEmpty || dropped.contains(where: { !$0.isEmpty }) else { return }
        try reading(file) { snapshot in
            for (position, subjects) in dropped.enumerated() where !subjects.isEmpty {
                let count = try subjects.reduce(0) { try $0 + snapshot.count($1) }
                // Opening never drops these objects: it refuses to remove their entity.
                if count > 0, case .objectsOfType = subjects[0] { continue }
                if count > 0 || counted[position].mayDrop { counted[position].droppedCount = count }
            }
            for loss in others {
                let count = try snapshot.count(loss.subject)
                if count > 0 { counted.append(.init(kind: .removed, name: loss.name, droppedCount: count)) }
            }
        }
        changes.steps[0].changes = counted
    }

    /// Reads the file with its own schema, which changes nothing.
    private func reading(_ file: StoreSchema, _ body: (any StoreSnapshot) throws -> Void) throws {
        // A store that is open in this process is shared. Otherwise it is closed when this method returns.
        let opened = try (store.openForReading ?? store.open)(file)
        try withExtendedLifetime(opened) { try body(opened.snapshot()) }
    }
}

extension RecordedSchemas {
    /// Returns what the file has recorded after it was opened with another schema.
    ///
    /// - Throws: `StoreError` `.schemaMismatch`, `.schemaTooNew` if opening is refused, whatever data the file has.
    fileprivate func opened(with schema: StoreSchema, path: String) throws -> RecordedSchemas {
        let change = try SchemaPath(from: self, to: schema, path: path)
        return RecordedSchemas(
            schema.withoutHints, earlier: change.steps.isEmpty ? earlier : earlier + [current],
            exchanged: ExchangedNames(of: schema), inverses: change.inverses, destinations: change.destinations)
    }
}

extension ModelChanges.Change {
    /// Whether the change drops values of the file, if it has any.
    fileprivate var mayDrop: Bool {
        kind == .removed && !name.hasSuffix(")") || kind == .changed && before?.hasPrefix("to ") == true
    }
}

extension StoreSchema {
    /// Returns the name of the attribute whose values are a part of the file; nil for other parts.
    fileprivate func attribute(of subject: SchemaLoss.Subject) -> String? {
        switch subject {
        case .values(let entity, let column), .valuesOfTypes(let entity, let column, _, _):
            let definition = entities[entity].columns[column]
            return definition.destination == nil ? "\(entities[entity].name).\(definition.name)" : nil
        default: return nil
        }
    }

    /// Returns the objects of an entity, the values of a column or the pairs of a link by their name.
    fileprivate func subject(named name: String) -> SchemaLoss.Subject? {
        if let entity = entityIndices.first(where: { entities[$0].name == name }) { return .objects(entity: entity) }
        for (number, entity) in entities.enumerated(as: EntityIndex.self) {
            if let column = entity.typeColumn, let inheriting = entity.subentities.first(where: { $0.name == name }) {
                return .objectsOfType(entity: number, column: column, type: inheriting.type)
            }
            if let column = entity.columnIndices.first(where: { "\(entity.name).\(entity.columns[$0].name)" == name }) {
                guard let types = entity.types(having: [column]), let typeColumn = entity.typeColumn else {
                    return .values(entity: number, column: column)
                }
                // Other objects of a hierarchy may have the default of an attribute, which nothing shows.
                return .valuesOfTypes(entity: number, column: column, typeColumn: typeColumn, types: types)
            }
        }
        return linkIndices.first { links[$0].name == name }.map { .pairs(link: $0) }
    }
}

extension StoreSnapshot {
    /// Returns the number of objects, values or pairs of a part of the snapshot. O(part).
    func count(_ subject: SchemaLoss.Subject) throws -> Int {
        switch subject {
        case .objects(let entity): return try count(StoreQuery(entity: entity))
        case .objectsOfType(let entity, let column, let type):
            return try count(StoreQuery(entity: entity, predicate: .compare(column, .equal, to: .int(type))))
        case .values(let entity, let column):
            return try count(StoreQuery(entity: entity, predicate: .compare(column, .notEqual, to: .null)))
        case .valuesOfTypes(let entity, let column, let typeColumn, let types):
            return try keys(StoreQuery(entity: entity, predicate: .compare(column, .notEqual, to: .null))).count {
                try types.contains(storedType(of: $0, entity, typeColumn))
            }
        case .unanswered(let entity, let column, let backEntity, let backColumn):
            return try keys(StoreQuery(entity: entity, predicate: .compare(column, .notEqual, to: .null))).count { key in
                guard let far = try value(entity, key: key, column: column)?.referenceKey else { return false }
                return try value(backEntity, key: far, column: backColumn)?.referenceKey != key
            }
        case .pairs(let link):
            return try pairCount(link) { _ in true }
        case .pairsOfTypes(let link, let entity, let typeColumn, let types):
            return try pairCount(link) { try types.contains(storedType(of: $0, entity, typeColumn)) }
        case .referencesToTypes, .pairsToTypes: return try countByDestination(subject) ?? 0
        }
    }

    private func pairCount(_ link: LinkIndex, where isCounted: (ObjectKey) throws -> Bool) throws -> Int {
        let ends = schema.links[link]
        let relation = Relation.link(link, .forward, destination: ends.destination)
        return try keys(StoreQuery(entity: ends.source)).reduce(0) {
            try isCounted($1) ? $0 + related(relation, to: $1).count : $0
        }
    }

    /// Returns the type of an object in a hierarchy. Objects that are older than the hierarchy have none.
    private func storedType(of key: ObjectKey, _ entity: EntityIndex, _ column: ColumnIndex) throws -> Int64 {
        if case .int(let type)? = try value(entity, key: key, column: column) { type } else { 0 }
    }
}

/// The differences of two schemas, also of those that need more than a lightweight migration.
struct SchemaComparison {
    typealias Change = ModelChanges.Change

    private let old: StoreSchema
    private let new: StoreSchema
    /// The mapping that opening the file applies; nil if opening is refused. Then parts are matched by their names.
    private let evolution: SchemaEvolution?

    init(_ recorded: RecordedSchemas, _ new: StoreSchema) {
        old = recorded.current
        self.new = new
        let pending = ExchangedNames(of: new).subtracting(recorded.exchanged.renamed(from: recorded.current, to: new))
        evolution = try? SchemaEvolution(from: recorded.current, to: new, exchanging: pending)
    }

    func changes() -> [Change] {
        var changes: [Change] = []
        let sources = evolution?.entities.map(\.source) ?? new.entities.map(source)
        for (number, entity) in old.entities.enumerated(as: EntityIndex.self) where !sources.contains(number) {
            changes.append(Change(kind: .removed, name: entity.name, before: Self.summary(entity)))
        }
        for (number, source) in sources.enumerated(as: EntityIndex.self) {
            let entity = new.entities[number]
            guard let source else {
                changes.append(Change(kind: .added, name: entity.name, after: Self.summary(entity)))
                changes += entity.subentities.map { Change(kind: .added, name: $0.name, after: Self.text($0, in: entity)) }
                continue
            }
            let before = old.entities[source]
            if before.name != entity.name { changes.append(Change(kind: .renamed, name: entity.name, before: before.name)) }
            changes += Self.hierarchy(of: entity, from: before) + columns(of: number, from: before)
            let (first, second) = (before.indexes.map { Self.text($0, before) }, entity.indexes.map { Self.text($0, entity) })
            changes += first.filter { !second.contains($0) }.map { Change(kind: .removed, name: $0) }
            changes += second.filter { !first.contains($0) }.map { Change(kind: .added, name: $0) }
        }
        return changes + links()
    }

    private func source(of entity: EntitySchema) -> EntityIndex? {
        func index(of name: String) -> EntityIndex? { old.entityIndices.first { old.entities[$0].name == name } }
        return index(of: entity.name) ?? entity.renamedFrom.flatMap(index)
    }

    /// Returns the changes of the entities in a hierarchy. Those of its attributes are the changes of its columns.
    private static func hierarchy(of entity: EntitySchema, from before: EntitySchema) -> [Change] {
        var changes: [Change] = []
        if before.isAbstract != entity.isAbstract {
            let (former, present) = before.isAbstract ? ("abstract", "not abstract") : ("not abstract", "abstract")
            changes.append(Change(kind: .changed, name: entity.name, before: former, after: present))
        }
        // The new names by the former ones.
        var names = [before.name: entity.name]
        for known in before.subentities {
            guard let kept = entity.subentities.first(where: { $0.type == known.type }) else {
                changes.append(Change(kind: .removed, name: known.name, before: text(known, in: before)))
                continue
            }
            names[known.name] = kept.name
        }
        for present in entity.subentities {
            let after = text(present, in: entity)
            guard let known = before.subentities.first(where: { $0.type == present.type }) else {
                changes.append(Change(kind: .added, name: present.name, after: after))
                continue
            }
            if known.name != present.name { changes.append(Change(kind: .renamed, name: present.name, before: known.name)) }
            var renamed = known
            renamed.superentity = names[known.superentity] ?? known.superentity
            if text(renamed, in: before) == after { continue }
            changes.append(Change(kind: .changed, name: present.name, before: text(known, in: before), after: after))
        }
        return changes
    }

    private func columns(of number: EntityIndex, from before: EntitySchema) -> [Change] {
        let entity = new.entities[number]
        func index(of name: String) -> ColumnIndex? { before.columnIndices.first { before.columns[$0].name == name } }
        let sources =
            evolution?.entities[number].columns.map(\.source)
            ?? entity.columns.map { column in index(of: column.name) ?? column.renamedFrom.flatMap(index) }
        var changes: [Change] = []
        for (number, column) in before.columns.enumerated(as: ColumnIndex.self)
        where !sources.contains(number) && number != before.typeColumn {
            let name = "\(before.name).\(column.name)"
            let becomesMany = new.relationships.contains { relationship in
                new.entities[relationship.entity].name == entity.name && relationship.column == nil
                    && relationship.name == column.name
            }
            changes.append(
                becomesMany
                    ? Change(kind: .changed, name: name, before: "to one \(old.text(column))", after: "to many")
                    : Change(kind: .removed, name: name, before: old.text(column)))
        }
        for (column, source) in zip(entity.columns, sources) where column.name != ColumnSchema.typeName {
            let name = "\(entity.name).\(column.name)"
            let present = new.declarations(of: column, in: entity)
            let after = present.map(\.inFull).joined(separator: ", ")
            guard let known = source.map({ before.columns[$0] }) else {
                changes.append(Change(kind: .added, name: name, after: after))
                continue
            }
            if known.name != column.name {
                changes.append(Change(kind: .renamed, name: name, before: "\(before.name).\(known.name)"))
            }
            let former = old.declarations(of: known, in: before)
            if former.map(\.type) == present.map(\.type), former.map(\.text) == present.map(\.text) { continue }
            let text = former.map(\.inFull).joined(separator: ", ")
            changes.append(Change(kind: .changed, name: name, before: text, after: after))
        }
        return changes
    }

    private func links() -> [Change] {
        let sources =
            evolution?.links.map { $0?.source }
            ?? new.links.map { link in
                let names = [link.name] + link.formerNames + link.reversedNames
                return old.linkIndices.first { names.contains(old.links[$0].name) }
            }
        var changes = old.links.enumerated(as: LinkIndex.self).filter { !sources.contains($0.0) }.map {
            Change(kind: .removed, name: $1.name, before: old.text($1))
        }
        for (link, source) in zip(new.links, sources) {
            if let source {
                let before = old.links[source].name
                if before != link.name { changes.append(Change(kind: .renamed, name: link.name, before: before)) }
            } else {
                changes.append(Change(kind: .added, name: link.name, after: new.text(link)))
            }
        }
        return changes
    }

    private static func summary(_ entity: EntitySchema) -> String {
        let count = entity.columns.count - (entity.typeColumn == nil ? 0 : 1)
        return "with \(count) column\(count == 1 ? "" : "s")"
    }

    private static func text(_ entity: SubentitySchema, in head: EntitySchema) -> String {
        // Columns name the entities that declare them.
        let others = entity.properties.filter { name in !head.columns.contains { $0.name == name } }
        return "inherits from \(entity.superentity)" + (entity.isAbstract ? ", abstract" : "")
            + (others.isEmpty ? "" : ", with \(others.joined(separator: ", "))")
    }

    private static func text(_ index: IndexSchema, _ entity: EntitySchema) -> String {
        let names = index.columns.map { entity.columns[$0].name }.joined(separator: ", ")
        return "\(entity.name)(\(names))\(index.kind == .unique ? ", unique" : "")"
    }
}

/// A property of one entity in a hierarchy.
private struct Declaration {
    /// The type of the entity's objects.
    var type: Int64
    var text: String
    /// The text with the name of the entity if that is not the head of its hierarchy.
    var inFull: String
}

extension StoreSchema {
    /// Returns the declarations of a column: one per subentity with the property, or that of the head.
    fileprivate func declarations(of column: ColumnSchema, in head: EntitySchema) -> [Declaration] {
        let declaring = head.subentities.filter { $0.properties.contains(column.name) }.sorted { $0.type < $1.type }
        if declaring.isEmpty { return [Declaration(type: 0, text: text(column), inFull: text(column))] }
        return declaring.map { entity in
            var own = column
            own.isOptional = !entity.requiredAttributes.contains(column.name)
            return Declaration(type: entity.type, text: text(own), inFull: "\(text(own)) of \(entity.name)")
        }
    }

    fileprivate func text(_ column: ColumnSchema) -> String {
        let type = column.destination.map { entities[$0].name } ?? column.type.rawValue
        // Every reference has an index.
        let index = column.destination == nil && column.index != .none ? ", \(column.index.rawValue)" : ""
        return type + (column.isOptional ? "?" : "") + index + (column.derivation == nil ? "" : ", derived")
    }

    fileprivate func text(_ link: LinkSchema) -> String { "to many \(entities[link.destination].name)" }
}
