import NIOHTTP1
import ObjectGraph
import StoreInterface
import StoreModel

/// One object with its values, the objects that it is related to, and the saves that changed it.
struct ObjectPages: Sendable {
    struct Page: Encodable, Sendable {
        var entity: String
        var key: String
        var id: String
        var label: String?
        /// The newest save that the shown state contains.
        var save: Generation
        var properties: [Property]
        var relationships: [Related]
        /// The newest saves that changed the object, newest first.
        var history: [Change]
    }

    struct Property: Encodable, Sendable {
        var name: String
        var type: String
        var destination: String?
        var cell: Cell
    }

    /// The objects of a to-many relationship.
    struct Related: Encodable, Sendable {
        struct Member: Encodable, Sendable {
            var key: String
            var label: String?
        }

        var name: String
        var destination: String
        /// Whether the objects are listed in the order that the program gave them.
        var isOrdered = false
        /// nil if the relationship has no name at the other end, by which its objects are found.
        var total: Int?
        var offset: Int
        var members: [Member]
        /// The filter of a table with the same objects.
        var filter: String?
    }

    struct Change: Encodable, Sendable {
        var save: Generation
        var date: String
        var author: String?
        var kind: String
    }

    private static let shownCharacters = 20_000
    /// The number of related objects that are listed at once, and of saves that are read to find those of the object.
    private static let (listed, readSaves, listedSaves) = (50, 500, 10)

    private let store: StudioStore

    init(_ store: StudioStore) { self.store = store }

    func page(_ query: [String: String]) async throws -> Page {
        let asked = try store.entity(query["entity"])
        let key = try store.key(query["key"])
        let id = store.id(asked, key)
        let snapshot = try store.coordinator.snapshot(owner: "studio")
        let store = store
        let (entity, values, labels, related) = try await store.read(snapshot) { context in
            let entity = try store.entity(of: id, asked: asked, in: context)
            let values = try Self.values(id, entity: entity, store: store, in: context)
            let labels = try zip(store.columns(of: entity), values).map { column, value -> String? in
                guard let key = value.referenceKey, let far = column.destination.flatMap({ store.entity(numbered: $0) }) else {
                    return nil
                }
                return try Self.label(key, entity: far, store: store, in: context)
            }
            let related = try entity.relationships.compactMap {
                try Self.related(id, relationship: $0, offset: 0, store: store, in: context)
            }
            return (entity, values, labels, related)
        }
        let columns = store.columns(of: entity)
        var properties = zip(columns, values).map { column, value in
            Property(
                name: column.name, type: column.typeText(in: store.model),
                destination: column.destination.map { store.model.entities[$0].name },
                cell: store.cell(value, column.type, limit: Self.shownCharacters))
        }
        for (column, label) in labels.enumerated() { properties[column].cell.label = label }
        let label = store.label(of: entity)
        let name = properties.first { $0.name == label }?.cell.text
        return Page(
            entity: entity.name, key: "\(key)", id: id.description, label: name.map { String($0.prefix(200)) },
            save: snapshot.generation, properties: properties, relationships: related, history: await changes(of: id))
    }

    /// Returns further objects of a to-many relationship.
    func related(_ query: [String: String]) async throws -> Related {
        let entity = try store.entity(query["entity"])
        let id = store.id(entity, try store.key(query["key"]))
        let offset = max(query["offset"].flatMap(Int.init) ?? 0, 0)
        let store = store
        guard let relationship = entity.relationship(named: query["name"] ?? ""),
            let found = try await store.read({
                try Self.related(id, relationship: relationship, offset: offset, store: store, in: $0)
            })
        else { throw PageError(.notFound, "\(entity.name) has no to-many relationship \(query["name"] ?? ""). Reload the page") }
        return found
    }

    /// Returns the values of an object by requests, whose errors do not stop the program if a page of the store is damaged.
    static func values(
        _ id: ObjectID, entity: Entity, store: StudioStore, in context: ManagedObjectContext
    ) throws -> [Value] {
        let columns = store.columns(of: entity).map { ResultColumn.property($0.name) }
        let request = EntityValueRequest(entity.name, fetching: [.objectID] + columns, matching: .ids([id]))
        guard let row = try context.fetch(request).first else {
            throw PageError(.notFound, "the store has no \(entity.name) with the key \(id.key): it was deleted, or never saved")
        }
        return Array(row.values.dropFirst())
    }

    private static func label(
        _ key: ObjectKey, entity: Entity, store: StudioStore, in context: ManagedObjectContext
    ) throws -> String? {
        guard let name = store.label(of: entity) else { return nil }
        let request = EntityValueRequest(
            entity.name, fetching: [.property(name)], matching: .ids([store.id(entity, key)]))
        return try context.fetch(request).first.flatMap { store.cell($0.values[0], .string, limit: 200).text }
    }

    private static func related(
        _ id: ObjectID, relationship: Relationship, offset: Int, store: StudioStore, in context: ManagedObjectContext
    ) throws -> Related? {
        guard case .toMany = relationship.kind else { return nil }
        guard let inverse = store.inverse(of: relationship) else {
            let head = store.model.entities[relationship.destination]
            return Related(name: relationship.name, destination: head.name, total: nil, offset: offset, members: [], filter: nil)
        }
        let far = store.destination(of: relationship)
        var found = Related(name: relationship.name, destination: far.name, total: nil, offset: offset, members: [], filter: nil)
        let condition = Self.condition(inverse, id)
        if case .toOne = inverse.kind { found.filter = "`\(inverse.name)` = \(id.key)" }
        found.total = try context.count(EntityFetchRequest(far.name, matching: condition))
        found.isOrdered = relationship.isOrdered
        if relationship.isOrdered {
            let keys = try context.existingObject(with: id).relatedObjects(relationship.name).map(\.objectID.key)
            found.members = try members(Array(keys.dropFirst(offset).prefix(listed)), of: far, store: store, in: context)
        } else {
            found.members = try members(matching: condition, of: far, offset: offset, store: store, in: context)
        }
        return found
    }

    /// Returns the condition that objects are related to an object by the inverse of a relationship.
    static func condition(_ inverse: Relationship, _ id: ObjectID) -> Condition {
        if case .toOne = inverse.kind { return .compare(inverse.name, .equal, to: .reference(id.key)) }
        return .related(inverse.name, .any, where: .ids([id]))
    }

    /// Returns objects with their labels, in the order of these keys.
    static func members(
        _ keys: [ObjectKey], of entity: Entity, store: StudioStore, in context: ManagedObjectContext
    ) throws -> [Related.Member] {
        guard !keys.isEmpty else { return [] }
        let condition = Condition.ids(keys.map { store.id(entity, $0) })
        let found = try members(matching: condition, of: entity, limit: keys.count, store: store, in: context)
        let known = Dictionary(found.map { ($0.key, $0) }, uniquingKeysWith: { first, _ in first })
        return keys.map { known["\($0)"] ?? Related.Member(key: "\($0)") }
    }

    private static func members(
        matching condition: Condition, of entity: Entity, limit: Int = listed, offset: Int = 0, store: StudioStore,
        in context: ManagedObjectContext
    ) throws -> [Related.Member] {
        let label = store.label(of: entity)
        let request = EntityValueRequest(
            entity.name, fetching: [.objectID] + (label.map { [.property($0)] } ?? []), matching: condition, limit: limit,
            offset: offset)
        return try context.fetch(request).map { row in
            Related.Member(
                key: "\(row.values[0].referenceKey ?? 0)",
                label: label == nil ? nil : store.cell(row.values[1], .string, limit: 200).text)
        }
    }

    /// The newest saves that changed an object, among the last saves of the store.
    private func changes(of id: ObjectID) async -> [Change] {
        let newest = store.coordinator.currentHistoryToken
        let start = newest.generation.earlier(by: Self.readSaves)
        let token = HistoryToken(store: newest.store, incarnation: newest.incarnation, generation: start)
        var request = HistoryRequest(after: start == 0 ? nil : token)
        var saves = try? await store.coordinator.history(request)
        if saves == nil {
            // The kept history begins after the position.
            request.after = nil
            saves = try? await store.coordinator.history(request)
        }
        let bit: UInt64 = 1 << UInt64(id.key.slot)
        let found = (saves ?? []).reversed().lazy.compactMap { save -> Change? in
            let pages = save.changeSet.change(of: id.entity)?.pages
            guard let page = pages?.first(where: { $0.number == id.key.page }) else { return nil }
            let kinds = [("insert", page.inserted), ("update", page.updated), ("delete", page.deleted)]
            guard let kind = kinds.first(where: { $0.1 & bit != 0 })?.0 else { return nil }
            return Change(save: save.id, date: store.dateText(save.date), author: save.author, kind: kind)
        }
        return Array(found.prefix(Self.listedSaves))
    }
}
