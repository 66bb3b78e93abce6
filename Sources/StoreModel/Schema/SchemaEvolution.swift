/// The mapping of records from one schema to another, which opening a store applies when the model has changed (S163).
///
/// It is computed from the schemas alone, in O(schema), and is shared by all stores. Positions refer to the two schemas.
public struct SchemaEvolution: Sendable, Hashable {
    /// The change of one column.
    public struct Column: Sendable, Hashable {
        /// The column in the old schema; nil if it is new.
        public var source: ColumnIndex?
        /// The value of older objects in a new column, or their replacement for null in a column that became required.
        public var fill: Value?
        /// A Boolean value that indicates whether older values have another type, and therefore other index keys.
        public var isWidened = false
    }

    /// The change of one entity.
    public struct Entity: Sendable, Hashable {
        /// The entity in the old schema; nil if it is new.
        public var source: EntityIndex?
        /// The changes per column of the new entity.
        public var columns: [Column]
    }

    /// The change of one link that exists in both schemas.
    public struct Link: Sendable, Hashable {
        /// The link in the old schema.
        public var source: LinkIndex
        /// A Boolean value that indicates whether the link's source was its destination in the old schema.
        public var isReversed: Bool
    }

    /// The changes per entity of the new schema.
    public internal(set) var entities: [Entity] = []
    /// The links per link of the new schema; nil for a new link.
    public private(set) var links: [Link?] = []
    /// Descriptions of the names that were exchanged.
    public private(set) var exchanges: [String] = []

    /// Computes the mapping between two schemas.
    /// - Parameters:
    ///   - old: The schema of the file.
    ///   - new: The schema to read the file with.
    ///   - exchanging: The exchanges of names that the old schema has not recorded.
    /// - Throws: `StoreError` `.schemaMismatch`, which names entity, property and remedy, if the change needs more than
    ///   another way of reading.
    public init(from old: StoreSchema, to new: StoreSchema, exchanging: ExchangedNames = ExchangedNames()) throws {
        var sources: [EntityIndex?] = try match(
            new.entities.map { ($0.name, $0.isOrder ? [] : [$0.renamedFrom].compactMap(\.self)) },
            with: old.entities.map(\.name), exchanging, scope: "")
        try matchOrders(of: new, in: old, sources: &sources, exchanging)
        for (entity, source) in zip(new.entities, sources) {
            guard let source else {
                entities.append(Entity(source: nil, columns: entity.columns.map { _ in Column() }))
                continue
            }
            let before = old.entities[source]
            let columns = try columnSources(of: entity, in: before, exchanging)
            entities.append(
                Entity(
                    source: source,
                    columns: try zip(entity.columns, columns).map { column, source in
                        guard let source else { return Column(fill: column.initialValue) }
                        return try Self.change(of: before.columns[source], source, to: column, entity.name)
                    }))
        }
        try checkInheritance(old, new)
        try fillRequiredAttributes(old, new)
        try checkDestinations(old, new)
        try matchLinks(old, with: new, exchanging: exchanging)
    }

    /// Returns, per new name, the position of the same thing among the old names.
    private mutating func match<Index: SchemaIndex>(
        _ names: [(name: String, former: [String])], with old: [String], _ exchanging: ExchangedNames, scope: String
    ) throws -> [Index?] {
        func index(of name: String) -> Index? { old.firstIndex(of: name).map { Index(rawValue: $0) } }
        var found: [Index?] = names.map { name, formerNames in
            for former in formerNames where exchanging.contains(name, former, in: scope) && old.contains(name) {
                guard let source = index(of: former) else { continue }
                exchanges.append("\(scope)\(name) was \(former)")
                return source
            }
            return index(of: name)
        }
        var taken: Set<Index> = []
        func take(_ source: Index, _ name: String) throws {
            guard !taken.insert(source).inserted else { return }
            throw Self.mismatch(
                "\(scope.isEmpty ? "entity " : scope)\(name) has the former name \(old[source]), which another name has too",
                "Correct renamedFrom")
        }
        for (position, name) in names.enumerated() { if let source = found[position] { try take(source, name.name) } }
        for (position, name) in names.enumerated() where found[position] == nil {
            // Where only one of two exchanged names exists, it stays, and the other one is new.
            let candidates = name.former.compactMap { former in
                index(of: former).flatMap { taken.contains($0) && exchanging.contains(name.name, former, in: scope) ? nil : $0 }
            }
            guard let source = candidates.first(where: { !taken.contains($0) }) ?? candidates.first else { continue }
            try take(source, name.name)
            found[position] = source
        }
        return found
    }

    /// Returns, per column of an entity, its position in the old entity; nil for a new column.
    private mutating func columnSources(
        of entity: EntitySchema, in before: EntitySchema, _ exchanging: ExchangedNames
    ) throws -> [ColumnIndex?] {
        let columns = entity.columnIndices.filter { !entity.isPosition($0) }
        let found: [ColumnIndex?] = try match(
            columns.map { entity.columns[$0] }.map { ($0.name, [$0.renamedFrom].compactMap(\.self)) },
            with: before.columns.map(\.name), exchanging, scope: entity.name + ".")
        var sources: [ColumnIndex?] = entity.columns.map { _ in nil }
        for (column, source) in zip(columns, found) {
            sources[column] = source.flatMap { before.isPosition($0) ? nil : $0 }
        }
        // Positions stay with their reference. If only one of two exchanged lists has an order, the name of its column shows no exchange.
        for column in entity.columnIndices {
            guard let reference = entity.reference(ofPosition: column), let source = sources[reference] else { continue }
            sources[column] = before.columnIndices.first { before.reference(ofPosition: $0) == source }
        }
        return sources
    }

    /// Finds the orders of relationships, whose entities have been found.
    private mutating func matchOrders(
        of new: StoreSchema, in old: StoreSchema, sources: inout [EntityIndex?], _ exchanging: ExchangedNames
    ) throws {
        let names = old.entities.map(\.name)
        var taken: Set<String> = []
        for (number, order) in new.entities.enumerated() where order.isOrder {
            let owner = order.columns[EntitySchema.orderColumns.owner].destination
            sources[number] = nil
            guard let owner, let source = sources[owner.rawValue] else { continue }
            let entities = (new: new.entities[owner].name, old: old.entities[source].name)
            let former = formerName(
                of: order.name, among: order.otherFormerNames + [order.renamedFrom].compactMap(\.self),
                scope: (EntitySchema.orderName(of: entities.new), EntitySchema.orderName(of: entities.old)), in: names, exchanging
            )
            guard let former else { continue }
            guard taken.insert(former).inserted else {
                throw Self.mismatch(
                    "\(order.name) has the former name \(former), which another name has too", "Correct renamedFrom")
            }
            sources[number] = names.firstIndex(of: former).map { EntityIndex(rawValue: $0) }
        }
    }

    /// Returns the old name of a link or an order, which begins with the name of its entity; nil if it is new.
    ///
    /// The entity may have another name in the old schema, and the relationship may have exchanged its own name with another one of the
    /// same entity.
    ///
    /// - Parameter scope: The beginning of such names in both schemas.
    private mutating func formerName(
        of name: String, among formerNames: [String], scope: (new: String, old: String), in old: [String],
        _ exchanging: ExchangedNames
    ) -> String? {
        func renamed(_ name: String) -> String? {
            guard name.hasPrefix(scope.new + ".") else { return nil }
            let renamed = scope.old + name.dropFirst(scope.new.count)
            return old.contains(renamed) ? renamed : nil
        }
        guard let same = renamed(name) else {
            // The name that an exchanged entity has now belonged to the other one. Where only one of two exchanged names exists, it stays.
            let names =
                [name] + formerNames.filter { !$0.hasPrefix(scope.new + ".") || !exchanging.contains(name, $0) }
            return (names.filter { $0.hasPrefix(scope.old + ".") } + names).first(where: old.contains)
        }
        // The order of a relationship goes where its link goes.
        func relationship(_ name: String) -> String { EntitySchema.relationship(ofOrder: name) ?? name }
        for former in formerNames {
            guard exchanging.contains(name, former) || exchanging.contains(relationship(name), relationship(former)),
                let found = renamed(former)
            else { continue }
            exchanges.append("\(name) was \(found)")
            return found
        }
        return same
    }

    private static func change(
        of old: ColumnSchema, _ source: ColumnIndex, to new: ColumnSchema, _ entity: String
    ) throws -> Column {
        var change = Column(source: source)
        if old.type != new.type {
            guard old.type.widens(to: new.type) else {
                let verb = new.type.widens(to: old.type) ? "would be narrowed" : "would change its type"
                throw mismatch(
                    "\(entity).\(new.name) \(verb) from \(old.type.rawValue) to \(new.type.rawValue)",
                    "Convert its values in a custom stage of a MigrationPlan, or give the attribute another name")
            }
            change.isWidened = true
        }
        if old.isOptional, !new.isOptional {
            guard !new.defaultValue.isNull else { throw withoutDefault("\(entity).\(new.name)") }
            change.fill = new.defaultValue
        }
        return change
    }

    private func checkDestinations(_ old: StoreSchema, _ new: StoreSchema) throws {
        for (number, entity) in entities.enumerated(as: EntityIndex.self) {
            guard let source = entity.source else { continue }
            for (column, change) in entity.columns.enumerated(as: ColumnIndex.self) {
                guard let before = change.source, let destination = new.entities[number].columns[column].destination,
                    let oldDestination = old.entities[source].columns[before].destination,
                    entities[destination].source != oldDestination
                else { continue }
                throw Self.mismatch(
                    "\(new.entities[number].name).\(new.entities[number].columns[column].name) led to "
                        + "\(old.entities[oldDestination].name) and leads to \(new.entities[destination].name)",
                    "Give the relationship another name, and move its objects in a custom stage of a MigrationPlan")
            }
        }
    }

    // MARK: Links

    private mutating func matchLinks(_ old: StoreSchema, with new: StoreSchema, exchanging: ExchangedNames) throws {
        var taken: Set<LinkIndex> = []
        for link in new.links {
            let found = source(of: link, from: new, in: old, exchanging)
            if let found {
                let before = old.links[found.source]
                let ends = found.isReversed ? (before.destination, before.source) : (before.source, before.destination)
                guard entities[link.source].source == ends.0, entities[link.destination].source == ends.1 else {
                    throw Self.mismatch(
                        "relationship \(link.name) had other ends",
                        "Give it another name, and move its objects in a custom stage of a MigrationPlan")
                }
                guard taken.insert(found.source).inserted else {
                    throw Self.mismatch(
                        "relationship \(link.name) has the same former name as another relationship", "Correct renamedFrom")
                }
            } else {
                try checkCardinality(link, old)
            }
            links.append(found)
        }
        let gone = Set(old.linkIndices.filter { !taken.contains($0) }.map { old.links[$0].name })
        guard !gone.isEmpty else { return }
        for (number, entity) in entities.enumerated(as: EntityIndex.self) {
            guard let source = entity.source else { continue }
            for (column, change) in entity.columns.enumerated(as: ColumnIndex.self) where change.source == nil {
                let definition = new.entities[number].columns[column]
                let names = [definition.name, definition.renamedFrom].compactMap(\.self)
                guard definition.type == .reference,
                    names.contains(where: { gone.contains("\(old.entities[source].name).\($0)") })
                else { continue }
                throw Self.changedCardinality("\(new.entities[number].name).\(definition.name)", from: "to many", to: "to one")
            }
        }
    }

    /// Returns the old position of a link; nil if it is new.
    private mutating func source(
        of link: LinkSchema, from new: StoreSchema, in old: StoreSchema, _ exchanging: ExchangedNames
    ) -> Link? {
        let names = old.links.map(\.name)
        func find(_ name: String) -> LinkIndex? { names.firstIndex(of: name).map { LinkIndex(rawValue: $0) } }
        if let source = entities[link.source].source {
            let scope = (new: new.entities[link.source].name, old: old.entities[source].name)
            let former = formerName(of: link.name, among: link.formerNames, scope: scope, in: names, exchanging)
            if let found = former.flatMap(find) {
                let isReversed = link.reversedNames.contains(link.name) && exchanging.contains(link.name, link.name)
                if isReversed { exchanges.append("\(link.name) had its ends reversed") }
                return Link(source: found, isReversed: isReversed)
            }
        }
        return link.reversedNames.lazy.compactMap(find).first.map { Link(source: $0, isReversed: true) }
    }

    /// A to-one relationship is a column. A new link of the same name would silently lose its objects.
    private func checkCardinality(_ link: LinkSchema, _ old: StoreSchema) throws {
        let names = Set([link.name] + link.formerNames + link.reversedNames)
        for entity in old.entities {
            for column in entity.columns where column.type == .reference && names.contains("\(entity.name).\(column.name)") {
                throw Self.changedCardinality("\(entity.name).\(column.name)", from: "to one", to: "to many")
            }
        }
    }

    private static func changedCardinality(_ name: String, from before: String, to after: String) -> StoreError {
        mismatch(
            "relationship \(name) led \(before) and leads \(after)",
            "Give it another name, and move its objects in a custom stage of a MigrationPlan")
    }

    /// Returns the error for an attribute that became required.
    static func withoutDefault(_ name: String) -> StoreError {
        mismatch(
            "\(name) was optional and is required, but has no default for objects without a value",
            "Give it a default, or fill it in a custom stage of a MigrationPlan")
    }

    private static func mismatch(_ what: String, _ remedy: String) -> StoreError {
        StoreError(.schemaMismatch, "\(what). \(remedy)")
    }
}

extension ColumnType {
    /// Returns whether every value of this type is also a value of a wider type.
    public func widens(to wider: ColumnType) -> Bool {
        let signed: [ColumnType] = [.int8, .int16, .int32, .int64]
        let unsigned: [ColumnType] = [.uint8, .uint16, .uint32, .uint64]
        if let from = signed.firstIndex(of: self) { return signed.firstIndex(of: wider).map { $0 > from } ?? false }
        if let from = unsigned.firstIndex(of: self) {
            if let to = unsigned.firstIndex(of: wider) { return to > from }
            return signed.firstIndex(of: wider).map { $0 > from } ?? false
        }
        return self == .float && wider == .double
    }

    /// Returns a value of a narrower type as this type stores it.
    public func widened(_ value: Value) -> Value {
        if self == .uint64, case .int(let number) = value { return .uint(UInt64(truncatingIfNeeded: number)) }
        return value
    }
}

/// The progress of work that opening a store has deferred, such as building an index over existing objects.
///
/// ```swift
/// let container = try await PersistentContainer(model: model, store: .lmdb(file), migrationPlan: plan) { progress in
///     print(progress.activity, progress.completed, progress.total)
/// }
/// ```
public struct MigrationProgress: Sendable, Hashable, CustomStringConvertible {
    /// A description of the current work.
    public var activity: String
    /// The number of units of the current work that are done, such as pages or steps.
    public var completed: Int
    /// The number of units of the current work.
    public var total: Int

    /// Creates the progress of some work.
    public init(activity: String, completed: Int, total: Int) {
        self.activity = activity
        self.completed = completed
        self.total = total
    }

    /// The activity with both numbers, for messages.
    public var description: String { "\(activity): \(completed) of \(total)" }
}
