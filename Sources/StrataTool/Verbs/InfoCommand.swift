import ArgumentParser
import ObjectGraph
import StoreInterface
import StoreModel

/// `strata info`: what a file contains.
struct InfoCommand: StoreVerb {
    static let configuration = CommandConfiguration(
        commandName: "info", abstract: "Shows the entities, sizes, snapshots, history and model of a store.",
        discussion: "The classes of the model are those of `strata model`, without imports.")

    @Argument(help: "The store.", completion: .file())
    var file: String

    @Flag(inversion: .prefixedNo, help: "Show the model as classes in Swift after the sizes.")
    var model = true

    @OptionGroup var output: OutputOptions

    /// The facts about one entity.
    private struct EntityFacts: Sendable {
        var name: String
        var count: Int
        var properties: Int
        var bytes: Int?
        var largeBytes: Int?
        var indexBytes: Int?
        /// The entities that inherit from it, each after its superentity.
        var subentities: [(name: String, superentity: String, count: Int)] = []
    }

    /// The facts about a keyed collection.
    private struct CollectionFacts: Sendable {
        var collection: StoredCollection
        var count: Int
    }

    /// All facts that are shown.
    private struct Facts {
        var entities: [EntityFacts]
        var collections: [CollectionFacts]
        var sizes: [TableSize]
        /// The oldest and the newest save.
        var history: (oldest: HistoryTransaction, newest: Generation)?
        var snapshots: [LiveSnapshot]
    }

    mutating func run() async throws {
        let (json, model) = (output.json, model)
        try await OpenedStore.with(file) { store in
            let sizes = try await store.container.coordinator.tableSizes()
            let entities = try await Self.entities(store, sizes)
            let history = try await Self.history(store)
            let snapshots = try store.container.coordinator.snapshots().filter { !$0.owners.contains("read") }
            let collections = try await Self.collections(store)
            let facts = Facts(
                entities: entities, collections: collections, sizes: sizes, history: history, snapshots: snapshots)
            if json {
                try Console.print(try Self.json(store, facts).text)
            } else {
                try Self.show(store, facts)
                if model { try Self.showModel(store) }
            }
        }
    }

    private static func entities(_ store: OpenedStore, _ sizes: [TableSize]) async throws -> [EntityFacts] {
        let names = store.model.entities.map(\.name)
        let counts = try await store.read { context in try names.map { try context.count(EntityFetchRequest($0)) } }
        let subnames = store.model.subentities.map(\.name)
        let subcounts = try await store.read { context in try subnames.map { try context.count(EntityFetchRequest($0)) } }
        let subentities = Array(zip(store.model.subentities, subcounts))
        return zip(store.model.entities, counts).map { entity, count in
            func bytes(_ content: TableSize.Content, _ isOfEntity: (String) -> Bool) -> Int? {
                sizes.isEmpty
                    ? nil : sizes.filter { $0.content == content && isOfEntity($0.name) }.reduce(0) { $0 + $1.bytes }
            }
            return EntityFacts(
                name: entity.name, count: count, properties: PropertyPath.names(of: entity).count,
                bytes: bytes(.objects) { $0 == entity.name }, largeBytes: bytes(.largeValues) { $0 == entity.name },
                indexBytes: bytes(.index) { $0.hasPrefix(entity.name + "(") },
                subentities: subentities.filter { $0.0.number == entity.number }.map {
                    ($0.0.name, $0.0.superentityName ?? entity.name, $0.1)
                })
        }
    }

    private static func collections(_ store: OpenedStore) async throws -> [CollectionFacts] {
        try await store.read { context in
            try context.storedCollections().map { CollectionFacts(collection: $0, count: try context.storedCount(of: $0)) }
        }
    }

    /// The oldest and the newest save in the history.
    private static func history(_ store: OpenedStore) async throws -> (oldest: HistoryTransaction, newest: Generation)? {
        let coordinator = store.container.coordinator
        guard let oldest = try await coordinator.history(HistoryRequest(limit: 1)).first else { return nil }
        return (oldest, coordinator.currentHistoryToken.generation)
    }

    // MARK: Output

    private static func show(_ store: OpenedStore, _ facts: Facts) throws {
        let (entities, sizes) = (facts.entities, facts.sizes)
        let coordinator = store.container.coordinator
        try Console.show("file      \(store.path)")
        try Console.print("store     \(store.kind == .lmdb ? "LMDB" : "SQLite"), \(coordinator.storeIdentity.uuid.uuidString)")
        try Console.print("size      \(ByteText.text(try coordinator.fileBytes()))")
        try Console.print(
            "model     version \(store.model.version), \(entities.count) entities, \(entities.reduce(0) { $0 + $1.count }) objects"
        )
        if let history = facts.history {
            let date = ValueText.moment(history.oldest.date)
            try Console.print("history   saves \(history.oldest.id) to \(history.newest), from \(date)")
        } else {
            try Console.print("history   none")
        }
        for snapshot in facts.snapshots where !snapshot.isNewest { try Console.print("snapshot  \(snapshot)") }
        try Console.print("")
        var table = TextTable(header: ["entity", "objects", "properties"], numbers: [1, 2, 3, 4, 5])
        if !sizes.isEmpty { table.header += ["pages", "large values", "indexes"] }
        for entity in entities {
            let bytes = [entity.bytes, entity.largeBytes, entity.indexBytes].compactMap { $0.map(ByteText.text) }
            table.rows.append([entity.name, "\(entity.count)", "\(entity.properties)"] + bytes)
            // Their objects are in the table of the root entity, and in its number.
            table.rows += subentities(of: entity.name, entity, depth: 1).map { $0 + bytes.map { _ in "" } }
        }
        try Console.print(table.text)
        if !facts.collections.isEmpty {
            var table = TextTable(header: ["collection", "keys", "values", "entries"], numbers: [3])
            table.rows = facts.collections.map {
                [$0.collection.name, $0.collection.keyType, $0.collection.valueType, "\($0.count)"]
            }
            try Console.print("\n" + table.text)
        }
        let others = sizes.filter { [.index, .link, .history, .records].contains($0.content) && $0.entries > 0 }
        guard !others.isEmpty else { return }
        var rest = TextTable(header: ["table", "content", "entries", "size"], numbers: [2, 3])
        for size in others { rest.rows.append([size.name, size.content.rawValue, "\(size.entries)", ByteText.text(size.bytes)]) }
        try Console.print("\n" + rest.text)
    }

    /// Returns the rows of the entities that inherit from one, each followed by those that inherit from it.
    private static func subentities(of name: String, _ root: EntityFacts, depth: Int) -> [[String]] {
        root.subentities.filter { $0.superentity == name }.flatMap { entity in
            let title = String(repeating: "  ", count: depth) + "of these \(entity.name)"
            return [[title, "\(entity.count)", ""]] + subentities(of: entity.name, root, depth: depth + 1)
        }
    }

    /// Prints the classes. A name that no class can have is reported in their place, because the other facts are of use without them.
    private static func showModel(_ store: OpenedStore) throws {
        let source = SwiftSource(store.model)
        let classes: String
        do { classes = try source.entities.map { "\n" + (try source.text(of: $0)) }.joined() } catch {
            return try Console.print("\n" + "\(ToolError(error))".withoutControls())
        }
        try Console.current.write(classes)
    }

    /// Returns the class of an entity, followed by those of the entities that inherit from it.
    private static func source(_ entity: Entity, _ source: SwiftSource) throws -> String {
        try source.entities.filter { $0.number == entity.number }.map(source.text).joined(separator: "\n")
    }

    private static func json(_ store: OpenedStore, _ facts: Facts) throws -> JSON {
        let coordinator = store.container.coordinator
        let source = SwiftSource(store.model)
        func number(_ value: Int?) -> JSON { value.map { .number($0) } ?? .null }
        return .object([
            "file": .string(store.path), "store": .string(store.kind.rawValue),
            "id": .string(coordinator.storeIdentity.uuid.uuidString), "bytes": .number(try coordinator.fileBytes()),
            "version": .string(store.model.version.description),
            "entities": .array(
                facts.entities.map { entity in
                    .object([
                        "name": .string(entity.name), "objects": .number(entity.count), "pageBytes": number(entity.bytes),
                        "subentities": .array(
                            entity.subentities.map {
                                .object([
                                    "name": .string($0.name), "superentity": .string($0.superentity),
                                    "objects": .number($0.count),
                                ])
                            }),
                        "largeValueBytes": number(entity.largeBytes), "indexBytes": number(entity.indexBytes),
                        // Null for a name that no class can have. The other facts are of use without it.
                        "source": store.model.entity(named: entity.name).flatMap { try? Self.source($0, source) }
                            .map { .string($0) } ?? .null,
                    ])
                }),
            "collections": .array(
                facts.collections.map { found in
                    .object(
                        [JSON.Member(name: "name", value: .string(found.collection.name))]
                            + CollectionText.members(found.collection)
                            + [JSON.Member(name: "entries", value: .number(found.count))])
                }),
            "tables": .array(
                facts.sizes.map { size in
                    .object([
                        "name": .string(size.name), "content": .string(size.content.rawValue), "entries": .number(size.entries),
                        "bytes": .number(size.bytes),
                    ])
                }),
            "history": facts.history.map { history in
                .object([
                    "oldest": .number(history.oldest.id.rawValue), "newest": .number(history.newest.rawValue),
                    "since": .string(ValueText.moment(history.oldest.date)),
                ])
            } ?? .null,
            "snapshots": .array(facts.snapshots.filter { !$0.isNewest }.map { .string($0.description) }),
        ])
    }
}

/// Sizes for people.
enum ByteText {
    /// Returns a number of bytes with a unit: `1.5 MB`. A unit is 1,000 of the smaller one.
    static func text(_ bytes: Int) -> String {
        if bytes < 1000 { return "\(bytes) B" }
        var tenths = Double(bytes) / 100
        for unit in ["kB", "MB", "GB"] {
            if tenths < 9_999.5 { return "\(Int(tenths.rounded()) / 10).\(Int(tenths.rounded()) % 10) \(unit)" }
            tenths /= 1000
        }
        return "\(Int(tenths.rounded()) / 10).\(Int(tenths.rounded()) % 10) TB"
    }
}
