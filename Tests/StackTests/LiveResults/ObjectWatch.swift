import Observation
import Platform
import StoreModel
import TestSupport

@testable import ObjectGraph

/// Objects of a ``Gallery`` that a program retains, with observers of their properties, and a copy of the content that only notices change.
///
/// Unchecked, because it is used on its context's executor only.
final class ObjectWatch: ContextWatch, @unchecked Sendable {
    /// Whether an observer was notified since it began.
    private final class Flag: Sendable {
        private let value = Mutex(false)

        var isSet: Bool { value.withLock { $0 } }

        func set() { value.withLock { $0 = true } }
    }

    /// The value of a property, or the keys of the objects to which it leads.
    private enum Seen: Hashable {
        case gone
        case value(Value)
        case keys([ObjectKey])
    }

    private struct Tracking {
        var property: String
        var seen: Seen
        var flag: Flag
    }

    private struct Held {
        let id: ObjectID
        let object: ManagedObject
        var trackings: [Tracking] = []
    }

    private typealias Content = [ObjectID: [String: Value]]

    private static let entities = ["Artist", "Album", "Track", "Playlist"]
    private static let toMany = ["Artist": "albums", "Album": "tracks", "Track": "playlists", "Playlist": "tracks"]
    private static let deletion = "isDeleted"

    let controller: FetchedResultsController<ManagedObject>? = nil
    private var random: SeededGenerator
    private var held: [Held] = []
    private var token: ObservationToken?
    /// The content at the last comparison, and the objects that notices have named since.
    private var content: Content = [:]
    private var named: Set<ObjectID> = []
    /// Whether a notice has said since that anything may have changed.
    private var isUnknown = false
    private var results: Results<ManagedObject>?
    private var shown: (ids: [ObjectID], flag: Flag) = ([], Flag())

    init(random: SeededGenerator) { self.random = random }

    func start(in context: ManagedObjectContext) throws {
        context.isObservable = true
        token = context.observe { [weak self] in self?.note($0, context.storeIdentity) }
        results = try Results(
            EntityFetchRequest("Track", matching: .compare("plays", .greater, to: .int(3)), sortBy: [.init("title")]),
            context: context)
        try restart(in: context)
    }

    func restart(in context: ManagedObjectContext) throws {
        context.processPendingChanges()
        (content, named, isUnknown) = (try Self.content(of: context), [], false)
        held = []
        try hold(in: context)
        observeResults()
    }

    func stop() { (held, token, results) = ([], nil, nil) }

    private func note(_ notice: ContextNotice, _ store: StoreIdentity) {
        if notice.kind == .willSave { return }
        if notice.changes.isEmpty { isUnknown = true }
        let changes = notice.changes
        named.formUnion(changes.insertedIDs(in: store) + changes.updatedIDs(in: store) + changes.deletedIDs(in: store))
        named.formUnion(notice.refreshed)
    }

    func difference(in context: ManagedObjectContext) throws -> String? {
        if random.chance(25) { return nil }
        if random.chance(70) { context.processPendingChanges() }
        if let difference = missedByObservers(in: context) { return difference }
        context.processPendingChanges()
        let now = try Self.content(of: context)
        if let difference = missedByNotices(now, in: context) { return difference }
        if let difference = try wrongObject(now, in: context) { return difference }
        if let difference = try missedByResults(in: context) { return difference }
        try hold(in: context)
        return nil
    }

    /// Returns the values of all objects that fetches return.
    private static func content(of context: ManagedObjectContext) throws -> Content {
        var content: Content = [:]
        for entity in entities {
            let columns = Gallery.columns[entity, default: []].map(ResultColumn.property)
            for row in try context.fetch(EntityValueRequest(entity, fetching: [.objectID] + columns)) {
                guard let id = row.objectID("objectID") else { continue }
                var values = row.dictionary
                values["objectID"] = nil
                content[id] = values
            }
        }
        return content
    }
}

// MARK: - Observers

extension ObjectWatch {
    /// Retains further objects, and observes some of their properties.
    private func hold(in context: ManagedObjectContext) throws {
        held.removeAll { $0.object.managedObjectContext == nil || $0.object.isDeleted && random.chance(10) }
        let known = Set(held.map(\.id))
        for entity in Self.entities {
            for object in try context.fetch(EntityFetchRequest(entity)) where !known.contains(object.objectID) {
                guard random.chance(80) else { continue }
                var new = Held(id: object.objectID, object: object)
                let lists = [Self.toMany[entity], Self.deletion].compactMap(\.self)
                for property in Gallery.columns[entity, default: []] + lists where random.chance(60) {
                    new.trackings.append(Self.track(property, of: object))
                }
                held.append(new)
            }
        }
    }

    private static func track(_ property: String, of object: ManagedObject) -> Tracking {
        let flag = Flag()
        let seen = withObservationTracking {
            read(property, of: object)
        } onChange: {
            flag.set()
        }
        return Tracking(property: property, seen: seen, flag: flag)
    }

    private static func read(_ property: String, of object: ManagedObject) -> Seen {
        let seen: Seen =
            if property == deletion {
                .value(.bool(object.isDeleted))
            } else if property == toMany[object.entityName] {
                .keys(object.relatedObjects(property).map(\.objectID.key))
            } else {
                .value(object[property])
            }
        if property == deletion { return seen }
        // An object with unsaved changes that was deleted elsewhere keeps its values, but no list refers to it (S106).
        let isGone =
            property == toMany[object.entityName]
            && (try? object.managedObjectContext?.existingObject(with: object.objectID)) == nil
        return isGone || object.isDeletedHere ? .gone : seen
    }

    private func missedByObservers(in context: ManagedObjectContext) -> String? {
        for index in held.indices where held[index].object.managedObjectContext != nil {
            let object = held[index].object
            for (number, tracking) in held[index].trackings.enumerated() {
                let now = Self.read(tracking.property, of: object)
                if tracking.flag.isSet {
                    held[index].trackings[number] = Self.track(tracking.property, of: object)
                } else if now != tracking.seen {
                    let name = "\(object.entityName) \(object.objectID.key).\(tracking.property)"
                    return "\(name) has changed unobserved from \(tracking.seen) to \(now)"
                }
            }
        }
        return nil
    }

    private func observeResults() {
        guard let results else { return }
        let flag = Flag()
        let ids = withObservationTracking {
            results.snapshot.ids
        } onChange: {
            flag.set()
        }
        shown = (ids, flag)
    }

    private func missedByResults(in context: ManagedObjectContext) throws -> String? {
        guard let results else { return nil }
        let now = results.snapshot.ids
        if now != shown.ids, !shown.flag.isSet {
            return "the collection has changed unobserved from \(shown.ids.map(\.key)) to \(now.map(\.key))"
        }
        if shown.flag.isSet { observeResults() }
        return nil
    }
}

// MARK: - Notices and objects

extension ObjectWatch {
    private func missedByNotices(_ now: Content, in context: ManagedObjectContext) -> String? {
        // A move to an unknown state names the registered objects.
        let registered = Set(held.filter { $0.object.managedObjectContext != nil }.map(\.id))
        defer { (content, named, isUnknown) = (now, [], false) }
        for id in Set(content.keys).union(now.keys) where content[id] != now[id] && !named.contains(id) {
            if isUnknown, !registered.contains(id) { continue }
            let (old, new) = (content[id].map { "\($0)" }, now[id].map { "\($0)" })
            return "no notice of \(context.model.entities[id.entity].name) \(id.key), \(old ?? "none") to \(new ?? "none")"
        }
        return nil
    }

    /// Returns how a retained object differs from what fetches return.
    private func wrongObject(_ content: Content, in context: ManagedObjectContext) throws -> String? {
        var lists: [ObjectID: Set<ObjectKey>] = [:]
        for (id, values) in content {
            for property in ["artist", "album"] {
                guard let key = values[property]?.referenceKey else { continue }
                let owner = property == "artist" ? "Artist" : "Album"
                guard let entity = context.model.entity(named: owner)?.number else { continue }
                lists[ObjectID(store: id.store, entity: entity, key: key), default: []].insert(id.key)
            }
        }
        for held in held where held.object.managedObjectContext != nil {
            guard let problem = try problem(of: held, content[held.id], lists[held.id] ?? [], in: context) else { continue }
            return "\(held.object.entityName) \(held.id.key) \(problem)"
        }
        return nil
    }

    private func problem(
        of held: Held, _ values: [String: Value]?, _ members: Set<ObjectKey>, in context: ManagedObjectContext
    ) throws -> String? {
        let object = held.object
        let found = try? context.existingObject(with: held.id)
        if (found == nil) != (values == nil) { return "is found by its id, or by a fetch, but not both" }
        if let found, found !== object { return "is registered twice" }
        if values != nil, object.row !== context.newestOwnRow(held.id.entity, held.id.key) {
            return "does not have its newest row"
        }
        let (isInserted, isUpdated) = (object.isInserted, object.isUpdated)
        if object.hasChanges != (context.changeKind(held.id.entity, held.id.key) != nil) { return "has a wrong state" }
        if isInserted, isUpdated { return "is inserted and updated" }
        if isInserted != context.insertedObjects.contains(object) { return "is inserted: \(isInserted), unlike its context" }
        if isUpdated != context.updatedObjects.contains(object) { return "is updated: \(isUpdated), unlike its context" }
        // An object with unsaved changes that was deleted elsewhere keeps them until a save settles the conflict (S106).
        if values == nil, isUpdated, !object.isDeleted { return nil }
        if object.isDeleted != (values == nil) {
            return "counts as deleted: \(object.isDeleted), but a fetch says \(values == nil)"
        }
        guard let values else { return nil }
        for (name, value) in values where object[name] != value { return "has \(name) \(object[name]), a fetch has \(value)" }
        if let list = Self.toMany[object.entityName] {
            let related = object.relatedObjects(list)
            let keys = related.map(\.objectID.key)
            if ["Artist", "Album"].contains(object.entityName), Set(keys) != members {
                return "has \(list) \(keys), a fetch has \(members.sorted())"
            }
            let back = ["Playlist": "playlists", "Track": "tracks"][object.entityName]
            if let back, let wrong = related.first(where: { !$0.relatedObjects(back).contains(object) }) {
                return "has \(wrong.objectID.key) in \(list), but not back"
            }
            if Set(keys).count != keys.count { return "has \(list) \(keys)" }
        }
        return nil
    }
}
