import LMDB
import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// All versions of a file's schema in `meta`, and the step to the next version.
struct StoredSchemas {
    /// The changes needed to make a new schema current.
    struct Change {
        /// The number under which the schema is written: the next number, or the last number if only the model's version
        /// differs.
        var number: Int
        /// The number of the previous schema.
        var formerNumber: Int
        /// The data that would be lost, to be counted first.
        var losses: [SchemaLoss] = []
        /// The indexes to build over existing objects.
        var builds: [StoredTables.Index] = []
        /// The indexes in which no two objects may have the same values.
        var unique: [StoredTables.Index] = []
        /// The sub-databases that are no longer used.
        var drops: [String: Database.Kind] = [:]
        /// Whether the model's inverses and destinations are recorded, and nothing else changes.
        var isRecordOnly = false
        /// Whether columns, links or indexes change.
        var hasSteps = true
    }

    /// The versions, of which the last is current. Their numbers begin with 1.
    private(set) var versions: [StoredSchema]
    private let meta: Database
    private let path: String
    private let generation: Generation

    var current: StoredSchema { versions[versions.count - 1] }

    init(_ meta: Database, in transaction: some ByteReading, path: String) throws {
        self.meta = meta
        self.path = path
        let damaged = StoreError(.damaged, "\(path): the schema in its meta table cannot be read. Restore a copy")
        guard let number = try transaction.metaNumber(MetaTable.Key.schemaNumber, meta), number >= 1, number < 1 << 24,
            let generation = try transaction.metaGeneration(meta)
        else { throw damaged }
        self.generation = generation
        versions = []
        for version in 1...Int(number) {
            if let json = try transaction.metaBytes(MetaTable.Key.schema(version), meta) {
                guard let schema = StoredSchema(json: json) else { throw damaged }
                versions.append(schema)
            } else if version == 1, let json = try transaction.metaBytes(MetaTable.Key.firstSchema, meta),
                let schema = StoredSchema(firstJSON: json)
            {
                versions.append(schema)
            } else {
                throw damaged
            }
        }
        guard versions.fitTogether else { throw damaged }
    }

    static func put(_ schema: StoredSchema, number: Int, meta: Database, in transaction: WriteTransaction) throws {
        try schema.json().withUnsafeBytes {
            try MetaTable.put($0, key: MetaTable.Key.schema(number), meta: meta, in: transaction)
        }
    }

    // MARK: The next version

    /// Makes the model's schema current, by way of the schemas that lead to it. Returns nil if it is already current.
    ///
    /// - Throws: `StoreError` `.schemaTooNew` if the file belongs to a model of a later version, or to a model of the same
    ///   version that was derived from this one. `.schemaMismatch` if the change is not a lightweight one.
    mutating func adopt(_ model: StoreSchema) throws -> Change? {
        let wanted = model.withoutHints
        let found = current
        let number = versions.count
        let way = try SchemaPath(from: StoredSchema.recorded(versions), to: model, path: path)
        if way.steps.isEmpty {
            let isNewer = wanted.version != found.schema.version
            let isRecorded = way.inverses == found.inverses && way.destinations == found.destinations
            guard isNewer || !isRecorded else { return nil }
            var next = found
            next.schema.version = wanted.version
            if isNewer { next.exchanges = StoredSchema.exchanges(of: model) }
            next.inverses = way.inverses
            next.destinations = way.destinations
            guard !way.losses.isEmpty || found.destinations?.isWidened(by: way.destinations) == true else {
                versions[number - 1] = next
                return Change(number: number, formerNumber: number, isRecordOnly: !isNewer)
            }
            // Other processes go on with the former inverses and destinations, and would contradict the new ones, until they notice
            // another number.
            next.generation = generation
            versions.append(next)
            return Change(number: number + 1, formerNumber: number, losses: way.losses, hasSteps: false)
        }
        for step in way.steps {
            let next = current.evolved(to: step.schema, step.evolution, number: versions.count + 1, generation: generation)
            versions.append(next)
        }
        versions[versions.count - 1].inverses = way.inverses
        versions[versions.count - 1].destinations = way.destinations
        var change = Self.change(from: found, to: current, since: number, number: versions.count)
        change.losses = way.losses
        return change
    }

    /// Returns the changes from the version with number `former` to a later version with `number`.
    static func change(from old: StoredSchema, to new: StoredSchema, since former: Int, number: Int) -> Change {
        var change = Change(number: number, formerNumber: former)
        let before = StoredTables(old)
        let after = StoredTables(new)
        let known = Dictionary(before.indexes.joined().map { ($0.name, $0) }) { first, _ in first }
        for index in after.indexes.joined() {
            let numbers = new.entities[index.entity]
            guard let source = old.entity(number: numbers.number) else { continue }
            let isRekeyed = index.columns.contains { column in
                guard let place = old.entities[source].column(number: numbers.columns[column].number) else { return false }
                return numbers.columns[column].fills.contains { $0.schemaNumber > former }
                    || old.schema.entities[source].columns[place].type != new.schema.entities[index.entity].columns[column].type
            }
            // Objects that did not have the attributes may have values from before these moved to a subentity.
            let isWider = index.isUnique && Self.isWider(index.columns, of: index.entity, in: new, than: source, in: old)
            let old = known[index.name]
            if old == nil || isRekeyed { change.builds.append(index) }
            if index.isUnique, old?.isUnique != true || isRekeyed || isWider { change.unique.append(index) }
        }
        let used = after.all
        change.drops = before.all.filter { used[$0.key] == nil }
        return change
    }

    /// Returns whether objects have the columns of an index now that did not have them before.
    private static func isWider(
        _ columns: [ColumnIndex], of entity: EntityIndex, in new: StoredSchema, than source: EntityIndex, in old: StoredSchema
    ) -> Bool {
        let places = columns.compactMap { old.entities[source].column(number: new.entities[entity].columns[$0].number) }
        let former = old.schema.entities[source]
        guard places.count == columns.count, let counted = former.types(having: places) else { return false }
        guard let types = new.schema.entities[entity].types(having: columns) else { return true }
        return !types.intersection(former.subentities.map(\.type)).isSubset(of: counted)
    }

    /// Writes the current version. An index of an entity without pages need not be built.
    func write(_ change: Change, tables: Tables, in transaction: WriteTransaction) throws {
        for number in min(change.formerNumber + 1, change.number)...change.number {
            try Self.put(versions[number - 1], number: number, meta: meta, in: transaction)
        }
        try MetaTable.put(UInt64(change.number), key: MetaTable.Key.schemaNumber, meta: meta, in: transaction)
        for index in change.builds {
            let pages = try transaction.statistics(tables.pages[index.entity]).entries
            let old = tables.indexes[index.entity].first { $0.name == index.name }
            let entries = try old.map { try transaction.statistics($0.database).entries } ?? 0
            try MetaTable.remove(MetaTable.Key.drop + index.name, meta, in: transaction)
            if pages == 0, entries == 0 { continue }
            try MetaTable.put(entries == 0 ? 1 : 0, key: MetaTable.Key.build + index.name, meta: meta, in: transaction)
        }
        for (name, kind) in change.drops {
            try MetaTable.remove(MetaTable.Key.build + name, meta, in: transaction)
            try withUnsafeBytes(of: kind.code) {
                try MetaTable.put($0, key: MetaTable.Key.drop + name, meta: meta, in: transaction)
            }
        }
    }

    // MARK: Deferred work

    /// Returns the indexes with these names, which are not complete yet.
    static func builds(_ names: [String], _ tables: Tables) -> [PendingIndexBuilds.Item] {
        names.flatMap { name in
            tables.indexes.enumerated(as: EntityIndex.self).compactMap { entity, indexes in
                indexes.firstIndex { $0.name == name }.map {
                    .init(name: name, database: indexes[$0].database, kind: .build(entity: entity, index: $0))
                }
            }
        }
    }

    static func unfinished(_ tables: Tables, in transaction: WriteTransaction) throws -> [PendingIndexBuilds.Item] {
        var items = builds(try MetaTable.entries(MetaTable.Key.build, tables.meta, in: transaction).map(\.name), tables)
        for (name, value) in try MetaTable.entries(MetaTable.Key.drop, tables.meta, in: transaction).prefix(64) {
            guard let kind = value.first.flatMap(Database.Kind.init(code:)) else { continue }
            items.append(.init(name: name, database: try transaction.open(name, kind), kind: .drop))
        }
        return items
    }
}

extension StoredSchema {
    /// Decodes a version. Returns nil for bytes that are not a sound schema.
    init?(json: UnsafeRawBufferPointer) {
        guard let schema = try? JSONDecoder().decode(StoredSchema.self, from: Data(json)), schema.isSound else { return nil }
        self = schema
    }

    /// Decodes the schema of a file from before schemas had versions.
    init?(firstJSON json: UnsafeRawBufferPointer) {
        guard let schema = try? JSONDecoder().decode(StoreSchema.self, from: Data(json)) else { return nil }
        self.init(first: schema)
        guard isSound else { return nil }
    }

    func json() throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys]
        return try encoder.encode(self)
    }

    /// Whether numbers and schema have the same shape, and no number is used twice. The JSON of a file may contain anything.
    fileprivate var isSound: Bool {
        entities.count == schema.entities.count && links.count == schema.links.count
            && zip(entities, schema.entities).allSatisfy { $0.isSound(in: $1) }
            && inverses.map { $0.pairs.count <= links.count + entities.map(\.columns.count).reduce(0, +) } ?? true
            && destinations.map { $0.types.count <= 2 * (links.count + entities.map(\.columns.count).reduce(0, +)) } ?? true
            && Self.areNumbers(entities.map(\.number), below: nextEntity) && Self.areNumbers(links.map(\.number), below: nextLink)
            && schema.isSound
    }

    /// Returns whether numbers are unique and below the next number.
    fileprivate static func areNumbers(_ numbers: [Int], below next: Int) -> Bool {
        0...(1 << 24) ~= next && numbers.allSatisfy((0..<next).contains) && Set(numbers).count == numbers.count
    }
}

extension [StoredSchema] {
    /// Whether pages of all versions can be read as pages of the last one: its columns have the types that they had before, or wider ones.
    /// Reading such pages does not check the types again.
    var fitTogether: Bool {
        guard let current = last else { return false }
        let types = Dictionary(zip(current.entities, current.schema.entities).map { ($0.number, $0.types(in: $1)) }) { $1 }
        return dropLast().allSatisfy { version in
            zip(version.entities, version.schema.entities).allSatisfy { entity, definition in
                guard let types = types[entity.number] else { return true }
                return entity.types(in: definition).allSatisfy { number, former in
                    types[number].map { former == $0 || former.widens(to: $0) } ?? true
                }
            }
        }
    }
}

extension StoredSchema.Entity {
    /// Returns the types of the columns by their numbers.
    fileprivate func types(in entity: EntitySchema) -> [Int: ColumnType] {
        Dictionary(zip(columns, entity.columns).map { ($0.number, $1.type) }) { $1 }
    }

    fileprivate func isSound(in entity: EntitySchema) -> Bool {
        columns.count == entity.columns.count
            && zip(columns, entity.columns).allSatisfy { $0.isSound(in: $1) }
            && StoredSchema.areNumbers(columns.map(\.number), below: nextColumn)
    }
}

extension StoredSchema.Column {
    /// Returns whether the values that replace missing values are of the column's type.
    fileprivate func isSound(in column: ColumnSchema) -> Bool {
        let holder = ColumnSchema(name: column.name, type: column.type, isOptional: true)
        return ([initial] + fills.map(\.value)).allSatisfy { holder.accepts(column.type.widened($0)) }
    }
}

extension Database.Kind {
    /// The kind's code in `meta`.
    fileprivate var code: UInt8 {
        switch self {
        case .bytes: 0
        case .integers: 1
        case .bytesToIntegers: 2
        case .integersToIntegers: 3
        }
    }

    fileprivate init?(code: UInt8) {
        switch code {
        case 0: self = .bytes
        case 1: self = .integers
        case 2: self = .bytesToIntegers
        case 3: self = .integersToIntegers
        default: return nil
        }
    }
}
