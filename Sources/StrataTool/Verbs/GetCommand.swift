import ArgumentParser
import Foundation
import ObjectGraph
import StoreInterface
import StoreModel

/// `strata get`: one object with its relationships.
struct GetCommand: StoreVerb {
    static let configuration = CommandConfiguration(
        commandName: "get", abstract: "Shows one object with its relationships, or the entries of a keyed collection.",
        discussion: """
            A collection's name alone lists its entries in the order of the keys. With a key, one value is shown; the parts of a key are \
            separate words. If an entity has the same name, its objects are meant.
            """)

    @Argument(help: "The store.", completion: .file())
    var file: String

    // A negative number is a key. All other words that begin like options are refused.
    @Argument(
        parsing: .allUnrecognized,
        help:
            "The entity and the key, as in `Track 12`, an id, as in strata://…/3/12, or a keyed collection, as in `drafts spring`."
    )
    var object: [String]

    @OptionGroup var output: OutputOptions

    mutating func validate() throws {
        // All words after two dashes are parts of the key.
        let end = object.firstIndex(of: "--") ?? object.count
        if let option = object[..<end].first(where: { $0.hasPrefix("-") && Double($0) == nil }) {
            throw ValidationError("Unknown option '\(option)'")
        }
        if end < object.count { object.remove(at: end) }
        guard !object.isEmpty else { throw ValidationError("Missing expected argument '<object> ...'") }
    }

    /// The number of objects of a to-many relationship that are shown as text.
    private static let shown = 20

    mutating func run() async throws {
        let (words, json) = (object, output.json)
        try await OpenedStore.with(file) { store in
            if let collection = try await CollectionEntries.collection(words[0], in: store) {
                return try await CollectionEntries(store: store, collection: collection, isJSON: json).show(
                    Array(words.dropFirst()))
            }
            let id = try Self.id(words, in: store)
            let model = store.model
            let found = try await store.read { context -> Found? in
                let object: ManagedObject
                do {
                    object = try context.existingObject(with: id)
                } catch let error as StoreError {
                    throw error
                } catch {
                    return nil
                }
                guard let entity = model.entity(named: object.entityName) else { return nil }
                let related = entity.relationships.compactMap { relationship -> (name: String, keys: [ObjectKey])? in
                    guard case .toMany = relationship.kind else { return nil }
                    return (relationship.name, object.relatedObjects(relationship.name).map(\.objectID.key))
                }
                let columns = entity.declaredColumns.map { entity.columns[$0] }
                return Found(id: id, entity: entity.name, values: columns.map { ($0, object[$0.name]) }, related: related)
            }
            guard let found else {
                throw ToolError.failed(
                    "\(store.path) has no \(model.entities[id.entity].name) with the key \(id.key). List keys with `strata query`"
                )
            }
            try Self.show(found, model, asJSON: json)
        }
    }

    private static func id(_ words: [String], in store: OpenedStore) throws -> ObjectID {
        let identity = store.container.coordinator.storeIdentity
        if words.count == 1, let id = ObjectID(words[0]) {
            guard id.store == identity else {
                throw ToolError.wrongInput("\(words[0]): the id of an object of another store. Check the file")
            }
            guard store.model.entities.indices().contains(id.entity) else {
                throw ToolError.wrongInput("\(words[0]): the store has no entity with the number \(id.entity). Check the id")
            }
            return id
        }
        guard words.count == 2, let key = ObjectKey(words[1]) else {
            throw ToolError.wrongInput(
                "\(words.joined(separator: " ")): no object. Write an entity and a key, such as Track 12, or an id")
        }
        return ObjectID(store: identity, entity: try store.entity(words[0]).number, key: key)
    }

    private static func show(_ found: Found, _ model: Model, asJSON: Bool) throws {
        let (id, related) = (found.id, found.related)
        if asJSON {
            var members = [
                JSON.Member(name: "$entity", value: .string(found.entity)),
                JSON.Member(name: "$key", value: .number(id.key.rawValue)),
                JSON.Member(name: "$id", value: .string(id.description)),
            ]
            members += found.values.map { JSON.Member(name: $0.name, value: ValueText.json($1, $0.type)) }
            members += related.map { JSON.Member(name: $0.name, value: .array($0.keys.map { .number($0.rawValue) })) }
            return try Console.print(JSON.object(members).text)
        }
        try Console.show("\(found.entity) \(id.key)   \(id)")
        let width = ((found.values.map(\.column.name) + related.map(\.name)).map(\.count).max() ?? 0) + 2
        func line(_ name: String, _ text: String) throws {
            try Console.print(
                "  " + name.withoutControls() + String(repeating: " ", count: width - name.count)
                    + text.withoutControls(keepingLines: true))
        }
        for (column, value) in found.values {
            let shown = ValueText.shown(value, column.type)
            try line(
                column.name, column.destination.map { value.isNull ? shown : "\(model.entities[$0].name) \(shown)" } ?? shown)
        }
        let entity = model.entity(named: found.entity)
        for (name, keys) in related {
            let destination = entity?.relationship(named: name).map { model.entities[$0.destination].name } ?? ""
            let list = keys.prefix(Self.shown).map { "\($0)" }.joined(separator: ", ")
            try line(
                name, keys.isEmpty ? "none" : "\(keys.count) of \(destination): \(list)\(keys.count > Self.shown ? ", …" : "")")
        }
    }
}

/// An object as it is shown.
private struct Found: Sendable {
    var id: ObjectID
    /// The entity of the object, which may inherit from the one that was asked for.
    var entity: String
    var values: [(column: ColumnSchema, value: Value)]
    var related: [(name: String, keys: [ObjectKey])]
}

/// The entries of a keyed collection, as `get` shows them.
private struct CollectionEntries {
    let store: OpenedStore
    let collection: StoredCollection
    let isJSON: Bool

    /// The number of entries that are read at once.
    private static let part = 500

    /// Returns the collection with a name; nil if there is none, or if an entity has the name.
    static func collection(_ name: String, in store: OpenedStore) async throws -> StoredCollection? {
        let wanted = CollectionName(name)
        if let entity = store.model.entity(named: name), CollectionName(entity.name) == wanted { return nil }
        return try await store.read { context in
            try context.storedCollections().first { CollectionName($0.name) == wanted }
        }
    }

    /// Shows the entry with the key of these parts, or all entries.
    func show(_ parts: [String]) async throws {
        let (collection, store) = (collection, store)
        guard parts.isEmpty else {
            guard let key = CollectionText.key(parts, of: collection, naming: store.names) else {
                throw ToolError.wrongInput(
                    "\(parts.joined(separator: " ")): no key of \(collection.name), whose keys are of type \(collection.keyType)."
                        + CollectionText.formOfData(in: collection)
                        + " List them with `strata get \(store.path) \(collection.name)`")
            }
            guard let value = try await store.read({ try $0.storedValue(forKey: key, of: collection) }) else {
                throw ToolError.failed(
                    "\(collection.name) has no key \(parts.joined(separator: ", ")). List the keys with "
                        + "`strata get \(store.path) \(collection.name)`")
            }
            if isJSON { return try Console.print(json(StoredCollection.Entry(key: key, value: value)).text) }
            return try Console.print(CollectionText.shown(value: value, of: collection).withoutControls(keepingLines: true))
        }
        let state = try store.container.coordinator.snapshot(owner: "get")
        let context = store.container.coordinator.newBackgroundContext(name: "get", reading: state)
        if isJSON { try Console.current.write("[") }
        var last: Data?
        while true {
            let after = last
            let entries = try await context.perform { try $0.storedEntries(of: collection, after: after, limit: Self.part) }
            for (number, entry) in entries.enumerated() {
                guard isJSON else {
                    let key = CollectionText.shown(key: entry.key, of: collection, naming: store.names)
                    let text = "\(key)  \(CollectionText.shown(value: entry.value, of: collection))"
                    try Console.show(text)
                    continue
                }
                try Console.current.write((after == nil && number == 0 ? "" : ",\n") + json(entry).text)
            }
            guard entries.count == Self.part else { break }
            last = entries.last?.key
        }
        if isJSON { try Console.print("]") }
    }

    private func json(_ entry: StoredCollection.Entry) -> JSON { .object(CollectionText.members(entry, of: collection)) }
}
