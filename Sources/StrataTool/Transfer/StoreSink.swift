import Foundation
import LMDBStore
import ObjectGraph
import SQLiteStore
import StoreFiles
import StoreInterface
import StoreModel

/// Fills a new store with the objects of a source. The file gets its name when it is complete.
struct StoreSink {
    /// The kind of the new store.
    enum Kind: String, CaseIterable { case lmdb, sqlite }

    let path: String
    let kind: Kind
    let existing: ExistingFile

    /// The most objects per save.
    private static let batch = 2000

    /// - Parameters:
    ///   - source: The objects.
    ///   - file: The file or folder of the source, which the new store must not replace. Copies of a store get its mode.
    func fill(from source: any ObjectSource, in file: String) async throws -> TransferSummary {
        try InputFiles.refuseStandardOutput(path)
        try InputFiles.refuseToReplace(file, by: path)
        let partial = try PartialFile(
            for: URL(fileURLWithPath: path, isDirectory: false), existing: existing,
            withDataOf: source is StoreSource ? file : nil)
        // The temporary name with its lock and signal.
        defer { partial.discard() }
        do {
            let summary = try await fill(partial, from: source, in: file)
            try name(partial)
            return summary
        } catch let error as StoreError {
            // The temporary name says nothing to the user.
            throw StoreError(error.code, error.message.replacing(partial.path, with: partial.target))
        }
    }

    /// Gives the new store its name. A store of either kind that is open elsewhere is not replaced.
    private func name(_ partial: PartialFile) throws {
        let replaced = (try? FileKind(ofFile: partial.target)) ?? .other
        switch (replaced, kind) {
        case (.sqlite, _), (.other, .sqlite): try partial.finishDatabase()
        case (.lmdb, _), (.other, .lmdb): try partial.finishLMDB()
        }
    }

    private func fill(_ partial: PartialFile, from source: any ObjectSource, in file: String) async throws -> TransferSummary {
        let url = URL(fileURLWithPath: partial.path, isDirectory: false)
        let store: StoreDescription = kind == .lmdb ? .lmdb(url) : .sqlite(url)
        // Without inverses. Those of the source's model are properties of classes and change nothing in the file.
        let model = try Model(stored: source.model.storeSchema)
        let container = try await PersistentContainer(model: model, store: store)
        do {
            var filling = StoreFilling(container)
            let summary: TransferSummary
            do { summary = try await filling.run(source, batch: Self.batch) } catch let error as SaveError {
                throw filling.refusal(error, of: file)
            }
            try await container.close()
            return summary
        } catch {
            // Removed first, because a container whose deferred saves cannot be written is not closed. Without its file, they are given up.
            partial.discard()
            try? await container.close()
            throw error
        }
    }
}

/// The work of filling a store: objects first, with the references to objects that exist by then, and then all other references and links.
private struct StoreFilling {
    /// The keys of the new objects by the ids of the source.
    private struct Keys {
        /// The keys of the ids 1, 2, 3…
        private var sequential: [ObjectKey] = []
        private var others: [UInt64: ObjectKey] = [:]

        subscript(id: UInt64) -> ObjectKey? {
            id > 0 && id <= UInt64(sequential.count) ? sequential[Int(id) - 1] : others[id]
        }

        /// Returns the id of an object of the source, by its key. O(objects).
        func id(of key: ObjectKey) -> UInt64? {
            sequential.firstIndex(of: key).map { UInt64($0) + 1 } ?? others.first { $0.value == key }?.key
        }

        mutating func insert(_ id: UInt64, _ key: ObjectKey) {
            if id == UInt64(sequential.count) + 1 { sequential.append(key) } else { others[id] = key }
        }
    }

    /// A reference or a pair whose destination did not exist when its object was inserted.
    private struct Pending: Sendable {
        var entity: EntityIndex
        /// The id of the object that gets the reference.
        var source: UInt64
        /// The column of a reference, or a link.
        var target: Target
        var id: UInt64

        enum Target: Sendable { case column(ColumnIndex), link(LinkIndex) }
    }

    /// A reference or a pair whose destination is known.
    private struct Resolved: Sendable {
        var object: ObjectID
        var destination: ObjectID
        var name: String
        var isToMany: Bool
    }

    private let context: BackgroundContext
    private let model: Model
    private let store: StoreIdentity
    /// The types that the objects of each entity can have.
    private let types: [Set<Int64>]
    private var keys: [Keys]
    private var pending: [Pending] = []
    private var summary: TransferSummary
    private let progress = ProgressBar("objects")

    /// The number of bytes of values after which a save is written.
    private static let batchBytes = 16 << 20

    init(_ container: PersistentContainer) {
        context = container.newBatchOperationContext(name: "strata import")
        model = container.model
        store = container.coordinator.storeIdentity
        types = model.storeSchema.entities.map(\.typesOfObjects)
        keys = model.entities.map { _ in Keys() }
        summary = TransferSummary(objects: model.entities.map { _ in 0 })
    }

    mutating func run(_ source: any ObjectSource, batch size: Int) async throws -> TransferSummary {
        await context.perform { $0.transactionAuthor = "strata import" }
        defer { progress.finish() }
        let total = source.objectCount
        while true {
            var batch: [TransferObject] = []
            var bytes = 0
            while batch.count < size, bytes < Self.batchBytes, let object = try source.next() {
                try checkType(of: object, from: source)
                batch.append(object)
                bytes += object.byteCount
            }
            if batch.isEmpty { break }
            try Task.checkCancellation()
            try await insert(batch)
            if let total { progress.update(summary.objectCount, of: total) } else { progress.update(summary.objectCount) }
        }
        try await relate(batch: size)
        try await copyCollections(source, batch: size)
        return summary
    }

    // MARK: Objects

    /// An object to insert, and the destinations that it gets later.
    private struct Row: Sendable {
        var entity: EntityIndex
        var values: [Value]
        var later: [(target: Pending.Target, id: UInt64)]
    }

    private mutating func insert(_ batch: [TransferObject]) async throws {
        try checkIDs(batch)
        let rows = batch.map(row)
        let model = model
        let made = await context.perform { context in
            rows.map { context.insert(model.entities[$0.entity], values: $0.values).objectID.key }
        }
        for (place, object) in batch.enumerated() {
            keys[object.entity].insert(object.id, made[place])
            summary.objects[object.entity] += 1
            for (target, id) in rows[place].later {
                pending.append(Pending(entity: object.entity, source: object.id, target: target, id: id))
            }
        }
        // The keys are known by then, so that an error can name the objects.
        try await context.save(.deferred)
    }

    /// Returns the error of a save with the file and the ids of its objects, instead of the keys of a store that is thrown away.
    func refusal(_ error: SaveError, of file: String) -> any Error {
        guard case .uniqueConstraint(let name, let properties, let values, let objects) = error,
            let entity = model.entity(named: name)
        else { return error }
        let names = objects.map { object in
            "\(model.entities[object.entity].name) \(keys[object.entity].id(of: object.key).map { "\($0)" } ?? "?")"
        }
        let texts = zip(properties, values).map { property, value in
            guard let column = entity.column(named: property) else { return property }
            return "\(property): \(shown(value, entity.columns[column]))"
        }
        return ToolError.wrongInput(
            "\(file): \(names.joined(separator: " and ")) have the same \(texts.joined(separator: ", ")), which must be unique. "
                + "Give each its own")
    }

    /// Returns the text of a value. A reference is the id of its object.
    private func shown(_ value: Value, _ column: ColumnSchema) -> String {
        guard let key = value.referenceKey, let destination = column.destination else {
            return ValueText.shown(value, column.type)
        }
        return "\(model.entities[destination].name) \(keys[destination].id(of: key).map { "\($0)" } ?? "?")"
    }

    /// Throws if an object belongs to no entity, or to an abstract one. A context inserts whole rows without this check.
    private func checkType(of object: TransferObject, from source: any ObjectSource) throws {
        let schema = model.storeSchema.entities[object.entity]
        // The object of an entity that no entity inherits from has the type of the entity itself.
        var type: Int64 = 0
        if let column = schema.typeColumn, case .int(let stored) = object.values[column] { type = stored }
        guard !types[object.entity].contains(type) else { return }
        let known = schema.subentities.first { $0.type == type }
        let reason =
            type == 0 || known != nil
            ? "\(known?.name ?? schema.name) is abstract" : "no entity has the \(schema.typeName) \(type)"
        var possible = schema.subentities.filter { !$0.isAbstract }.map { "\($0.type) for \($0.name)" }
        if !schema.isAbstract { possible.insert("0 for \(schema.name)", at: 0) }
        let remedy =
            if source is StoreSource {
                "Copy the other objects with `strata repair`"
            } else if possible.isEmpty {
                "Remove the object"
            } else {
                "Give it another \(schema.typeName), such as \(possible.prefix(5).joined(separator: ", ")), or remove it"
            }
        throw ToolError.wrongInput(
            "\(source.place.map { "\($0): " } ?? "")\(schema.name) \(object.id) cannot be stored: \(reason). \(remedy)")
    }

    private func checkIDs(_ batch: [TransferObject]) throws {
        var seen = Array(repeating: Set<UInt64>(), count: keys.count)
        for object in batch {
            guard keys[object.entity][object.id] == nil, seen[object.entity].insert(object.id).inserted else {
                throw ToolError.wrongInput(
                    "\(model.entities[object.entity].name) \(object.id) occurs twice. Give each object of an entity its own id")
            }
        }
    }

    /// Returns an object with references to objects that exist already. All other references and links are set later.
    private func row(_ object: TransferObject) -> Row {
        let columns = model.entities[object.entity].columns
        var row = Row(entity: object.entity, values: object.values, later: [])
        for (number, value) in object.values.enumerated(as: ColumnIndex.self) {
            if let id = value.referenceKey, let destination = columns[number].destination {
                let key = keys[destination][id.rawValue]
                row.values[number] = key.map { .reference($0) } ?? .null
                if key == nil { row.later.append((.column(number), id.rawValue)) }
            } else if columns[number].type == .float, case .double(let digits) = value {
                // A column of this type stores fewer digits.
                row.values[number] = .double(Double(Float(digits)))
            }
        }
        for links in object.links { row.later += links.destinations.map { (.link(links.link), $0) } }
        return row
    }

    // MARK: Keyed collections

    private mutating func copyCollections(_ source: any ObjectSource, batch size: Int) async throws {
        var known: [CollectionName: StoredCollection] = [:]
        var greatest: [CollectionName: Data] = [:]
        let names = TransferIDs.names(in: model)
        var isAtEnd = false
        while !isAtEnd {
            try Task.checkCancellation()
            // The entries with their keys in the input. Exports have ascending keys, so that few keys are looked up.
            var batch: [(collection: StoredCollection, entry: StoredCollection.Entry?, original: Data, mayBeKnown: Bool)] = []
            var bytes = 0
            while batch.count < size, bytes < Self.batchBytes {
                guard let record = try source.nextRecord() else {
                    isAtEnd = true
                    break
                }
                summary.count(record)
                switch record {
                case .collection(let collection):
                    known[CollectionName(collection.name)] = collection
                    batch.append((collection, nil, Data(), false))
                case .entry(let name, var entry):
                    guard let collection = known[CollectionName(name)] else {
                        throw ToolError.wrongInput("the input has no types of the collection \(name). Export the store again")
                    }
                    let original = entry.key
                    entry.key = try newKey(original, of: collection)
                    let mayBeKnown = greatest[CollectionName(name)].map { !$0.lexicographicallyPrecedes(entry.key) } ?? false
                    if !mayBeKnown { greatest[CollectionName(name)] = entry.key }
                    batch.append((collection, entry, original, mayBeKnown))
                    bytes += entry.value.count
                }
            }
            if batch.isEmpty { return }
            try await context.perform(andSave: .deferred) { [batch] context in
                for (collection, entry, original, mayBeKnown) in batch {
                    if let entry {
                        if mayBeKnown, let other = try context.storedValue(forKey: entry.key, of: collection),
                            other != entry.value
                        {
                            let key = CollectionText.shown(key: original, of: collection, naming: names)
                            throw ToolError.wrongInput("\(collection.name) has two values for the key \(key). Remove one of them")
                        }
                        try context.setStoredValue(entry.value, forKey: entry.key, of: collection)
                    } else {
                        try context.addStoredCollection(collection)
                    }
                }
            }
        }
    }

    /// Returns a key with the ids of the new objects. Counts the entries with other ids.
    private mutating func newKey(_ key: Data, of collection: StoredCollection) throws -> Data {
        let ids = TransferIDs.ids(in: key, of: collection)
        guard !ids.isEmpty else { return key }
        for id in ids where id.store == TransferIDs.store {
            guard keys.indices().contains(id.entity), keys[id.entity][id.key.rawValue] != nil else {
                throw ToolError.wrongInput(
                    "\(collection.name) has a key of \(TransferIDs.names(in: model).text(id)), which is not in the input. Add that object, "
                        + "or remove the entry")
            }
        }
        if ids.contains(where: { $0.store != TransferIDs.store }) {
            summary.keptIDs[CollectionName(collection.name), default: 0] += 1
        }
        return TransferIDs.replace(in: key, of: collection) { [keys, store] id in
            guard id.store == TransferIDs.store, let key = keys[id.entity][id.key.rawValue] else { return id }
            return ObjectID(store: store, entity: id.entity, key: key)
        }
    }

    // MARK: Relationships

    private mutating func relate(batch size: Int) async throws {
        for start in stride(from: 0, to: pending.count, by: size) {
            try Task.checkCancellation()
            let resolved = try pending[start..<min(start + size, pending.count)].map(resolve)
            summary.pairs += resolved.count { $0.isToMany }
            try await context.perform(andSave: .deferred) { context in
                for pair in resolved {
                    let object = context.object(with: pair.object)
                    let destination = context.object(with: pair.destination)
                    if pair.isToMany {
                        object.add(destination, to: pair.name)
                    } else {
                        object.setRelatedObject(pair.name, to: destination)
                    }
                }
            }
            progress.update(start, of: pending.count)
        }
    }

    private func resolve(_ pending: Pending) throws -> Resolved {
        let entity = model.entities[pending.entity]
        let (name, destination, isToMany) =
            switch pending.target {
            case .column(let column): (entity.columns[column].name, entity.columns[column].destination ?? 0, false)
            case .link(let link): (linkName(link, entity), model.storeSchema.links[link].destination, true)
            }
        guard let source = keys[pending.entity][pending.source], let target = keys[destination][pending.id] else {
            throw ToolError.wrongInput(
                "\(entity.name) \(pending.source) refers by \(name) to \(model.entities[destination].name) \(pending.id), which is not in "
                    + "the input. Add that object, or remove the reference")
        }
        return Resolved(
            object: ObjectID(store: store, entity: pending.entity, key: source),
            destination: ObjectID(store: store, entity: destination, key: target), name: name, isToMany: isToMany)
    }

    private func linkName(_ link: LinkIndex, _ entity: Entity) -> String {
        let relationship = entity.relationships.first {
            if case .toMany(.link(link, .forward, _)) = $0.kind { true } else { false }
        }
        return relationship?.name ?? model.storeSchema.links[link].name
    }
}
