import Foundation
import LMDBStore
import ObjectGraph
import SQLiteStore
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// The history that a store should have, and the objects in it.
struct HistoryExpectation {
    /// The change of an object, by its entity and key.
    struct Change: Equatable {
        var kind: HistoryChange.Kind
        var properties: Set<String> = []
        var tombstone: [String: Value] = [:]
    }

    struct Object: Hashable, Comparable {
        var entity: String
        var key: ObjectKey

        static func < (a: Object, b: Object) -> Bool { (a.entity, a.key) < (b.entity, b.key) }
    }

    struct Save {
        /// A number that no other save has, also not one of another copy.
        var identity: Int
        var author: String?
        var changes: [Object: Change] = [:]
    }

    /// Save 1 is first.
    var saves: [Save] = []
    /// The number of the oldest saves that were deleted.
    var deleted = 0
    /// The tracks, with their playlists.
    var tracks: [Object: Set<Object>] = [:]
    var remotes: [Object: String] = [:]
    var playlists: Set<Object> = []
}

/// Random saves, batches, deletions of history, copies and migrations against a ``HistoryExpectation``.
@MainActor struct HistoryExplorer {
    private let bed: TestBed
    private let kind: StoreKind
    private var random: SeededGenerator
    private var containers: [PersistentContainer] = []
    private var expected = HistoryExpectation()
    private var model: Model
    private var version = 1
    /// Positions, with the identity of the save before each.
    private var tokens: [(token: HistoryToken, save: Int)] = []
    private var lastIdentity = 0
    private var backups: [(url: URL, content: HistoryExpectation)] = []
    private(set) var log: [String] = []

    init(_ kind: StoreKind, seed: UInt64) async throws {
        self.kind = kind
        bed = try TestBed(kind)
        random = SeededGenerator(seed: seed)
        model = try Self.model(1)
        try await open()
    }

    /// The model of every second version has more properties, and its entities and properties in another order.
    private static func model(_ version: Int) throws -> Model {
        let track: [PropertyDescription] = [
            .attribute(.init(name: "title", type: .string)),
            .attribute(.init(name: "remote", type: .string, isOptional: true, preservesValueOnDeletion: true)),
            .attribute(.init(name: "plays", type: .int64, index: .indexed, defaultValue: .int(0))),
            toMany("playlists", "Playlist", inverse: "tracks"),
        ]
        let playlist = [
            PropertyDescription.attribute(.init(name: "name", type: .string)), toMany("tracks", "Track", inverse: "playlists"),
        ]
        let extra = PropertyDescription.attribute(.init(name: "extra", type: .string, isOptional: true))
        let entities =
            version % 2 == 1
            ? [EntityDescription(name: "Track", properties: track), EntityDescription(name: "Playlist", properties: playlist)]
            : [
                EntityDescription(name: "Other", properties: [extra]),
                EntityDescription(name: "Playlist", properties: [extra] + playlist),
                EntityDescription(name: "Track", properties: [extra] + track.reversed()),
            ]
        return try Model(entities, version: SchemaVersion(version, 0, 0))
    }

    private static func toMany(_ name: String, _ destination: String, inverse: String) -> PropertyDescription {
        .relationship(
            .init(name: name, destination: destination, inverse: inverse, cardinality: .toMany, deleteRule: .nullify))
    }

    // MARK: Opening

    private mutating func open() async throws {
        for stack in [ContextStack.siblings, .split] {
            containers.append(
                try await PersistentContainer(
                    model: model, store: bed.description, stack: stack,
                    allowsDataLoss: ["Other", "Playlist.extra", "Track.extra"]))
        }
    }

    private mutating func close() async throws {
        for container in containers { try await container.close() }
        containers = []
    }

    private mutating func flush() async throws {
        for container in containers { try await container.flush() }
    }

    // MARK: Steps

    mutating func step() async throws {
        let step = random.below(18)
        log.append("\(step)")
        switch step {
        case 0..<7: try await save()
        case 7: try await batch()
        case 8: try await deleteHistory()
        case 9: try await deleteAll()
        case 10: try await backup()
        case 11: try await restore()
        case 12: try await reopen()
        case 13: try await suspend()
        case 14: try await maintain()
        case 15: try await flush()
        default: try await check(flushed: random.chance(70))
        }
    }

    func describe(_ text: String) -> Comment { "\(text): steps \(log.suffix(40).joined(separator: " ")), \(kind)" }

    /// Whether a position is after a save that the store does not have.
    private func isForeign(_ position: (token: HistoryToken, save: Int)) -> Bool {
        let number = Int(position.token.generation.rawValue)
        return number > 0 && (number > expected.saves.count || expected.saves[number - 1].identity != position.save)
    }

    private mutating func note(_ token: HistoryToken) { tokens.append((token, expected.saves.last?.identity ?? 0)) }

    private mutating func newSave(by author: String?) -> HistoryExpectation.Save {
        lastIdentity += 1
        return HistoryExpectation.Save(identity: lastIdentity, author: author)
    }

    private mutating func pick(_ objects: some Collection<HistoryExpectation.Object>) -> HistoryExpectation.Object? {
        objects.isEmpty ? nil : objects.sorted()[random.below(objects.count)]
    }

    private func entity(_ name: String) -> EntityIndex { model.entity(named: name)?.number ?? 0 }

    private mutating func newContext() -> BackgroundContext {
        let container = containers[random.below(containers.count)]
        return random.chance(50)
            ? container.coordinator.newBackgroundContext() : container.backgroundCoordinator.newBackgroundContext()
    }

    /// The changes of one save, chosen before it.
    private struct Plan: Sendable {
        var tracks = 0
        var playlists = 0
        var played: HistoryExpectation.Object?
        var deleted: HistoryExpectation.Object?
        var linked: (HistoryExpectation.Object, HistoryExpectation.Object)?
        var isLinking = false
        var author: String?
        var remote = ""
    }

    private mutating func plan() -> Plan {
        var plan = Plan(author: [nil, "a", "b"][random.below(3)], remote: "r\(expected.saves.count)")
        plan.tracks = random.below(3)
        plan.playlists = random.chance(25) ? 1 : 0
        if random.chance(50) { plan.played = pick(expected.tracks.keys) }
        if random.chance(25) { plan.deleted = pick(expected.tracks.keys) }
        if random.chance(50), let track = pick(expected.tracks.keys), let list = pick(expected.playlists), track != plan.deleted {
            plan.linked = (track, list)
            plan.isLinking = expected.tracks[track]?.contains(list) == false
        }
        if plan.played == plan.deleted { plan.played = nil }
        return plan
    }

    private mutating func save() async throws {
        let plan = plan()
        let (track, playlist) = (entity("Track"), entity("Playlist"))
        let plays = Int64(expected.saves.count + 1)
        let context = newContext()
        let made = try await context.perform { context in
            context.transactionAuthor = plan.author
            func find(_ object: HistoryExpectation.Object) throws -> ManagedObject {
                let number = object.entity == "Track" ? track : playlist
                return try context.existingObject(with: ObjectID(store: context.storeIdentity, entity: number, key: object.key))
            }
            var made: [HistoryExpectation.Object] = []
            for number in 0..<plan.tracks {
                let object = context.insert("Track")
                object["title"] = .string("t\(number)")
                object["remote"] = .string(plan.remote)
                made.append(.init(entity: "Track", key: object.objectID.key))
            }
            for _ in 0..<plan.playlists {
                let object = context.insert("Playlist")
                object["name"] = .string("p")
                made.append(.init(entity: "Playlist", key: object.objectID.key))
            }
            if let played = plan.played { try find(played)["plays"] = .int(plays) }
            if let deleted = plan.deleted { context.delete(try find(deleted)) }
            if let (track, list) = plan.linked {
                let (track, list) = (try find(track), try find(list))
                if plan.isLinking { list.add(track, to: "tracks") } else { list.remove(track, from: "tracks") }
            }
            return made
        }
        try await context.save(random.chance(50) ? .durable : .deferred(within: .seconds(600)))
        note(plan, made: made)
    }

    private mutating func note(_ plan: Plan, made: [HistoryExpectation.Object]) {
        var save = newSave(by: plan.author)
        for object in made {
            save.changes[object] = .init(kind: .insert)
            if object.entity == "Track" {
                expected.tracks[object] = []
                expected.remotes[object] = plan.remote
            } else {
                expected.playlists.insert(object)
            }
        }
        func update(_ object: HistoryExpectation.Object, _ property: String) {
            save.changes[object, default: .init(kind: .update)].properties.insert(property)
        }
        if let played = plan.played { update(played, "plays") }
        if let (track, list) = plan.linked {
            if plan.isLinking { expected.tracks[track]?.insert(list) } else { expected.tracks[track]?.remove(list) }
            update(track, "playlists")
            update(list, "tracks")
        }
        if let deleted = plan.deleted {
            for list in expected.tracks.removeValue(forKey: deleted) ?? [] { update(list, "tracks") }
            save.changes[deleted] = .init(kind: .delete, tombstone: ["remote": .string(expected.remotes[deleted] ?? "")])
        }
        if !save.changes.isEmpty { expected.saves.append(save) }
    }

    private mutating func batch() async throws {
        let coordinator = containers[random.below(containers.count)].backgroundCoordinator
        var options = BatchOptions()
        options.author = "batch"
        options.durability = random.chance(50) ? .durable : .deferred(within: .seconds(600))
        let plays = Int64(expected.saves.count + 1)
        var save = newSave(by: "batch")
        if random.chance(50) || expected.tracks.isEmpty {
            let rows = (0..<random.below(70) + 1).map { [Value.string("b\($0)"), .string("batch"), .int(plays)] }
            let result = try await coordinator.insert(into: "Track", ["title", "remote", "plays"], rows: rows, options: options)
            for id in result.insertedIDs {
                let object = HistoryExpectation.Object(entity: "Track", key: id.key)
                (expected.tracks[object], expected.remotes[object]) = ([], "batch")
                save.changes[object] = .init(kind: .insert)
            }
        } else {
            _ = try await coordinator.batchUpdate(EntityFetchRequest("Track"), set: ["plays": .int(plays)], options: options)
            for object in expected.tracks.keys { save.changes[object] = .init(kind: .update, properties: ["plays"]) }
        }
        expected.saves.append(save)
    }

    private mutating func deleteHistory() async throws {
        guard let position = tokens.randomElement(using: &random) else { return }
        let (token, coordinator) = (position.token, containers[random.below(containers.count)].coordinator)
        if isForeign(position) {
            await #expect(throws: HistoryError.tokenOfAnotherCopy(token), describe("a deletion by a foreign token")) {
                try await coordinator.deleteHistory(before: token)
            }
            return
        }
        let count = try await coordinator.deleteHistory(before: token)
        #expect(
            count == max(0, Int(token.generation.rawValue) - expected.deleted), describe("deleted before \(token.generation)"))
        expected.deleted = max(expected.deleted, Int(token.generation.rawValue))
    }

    private mutating func deleteAll() async throws {
        let coordinator = containers[random.below(containers.count)].backgroundCoordinator
        if random.chance(70) {
            #expect(try await coordinator.deleteHistory(before: .distantPast) == 0, describe("deleted nothing"))
            return
        }
        try await flush()
        let count = try await coordinator.deleteHistory(before: .distantFuture)
        #expect(count == expected.saves.count - expected.deleted, describe("deleted everything"))
        expected.deleted = expected.saves.count
    }

    // MARK: Files

    private mutating func backup() async throws {
        guard kind != .memory else { return }
        let url = bed.folder.appendingPathComponent("backup \(backups.count)")
        let container = containers[random.below(containers.count)]
        if kind == .lmdb, random.chance(30) {
            try await container.compactCopy(to: url)
        } else {
            let token = try await container.coordinator.backup(to: url)
            #expect(token.generation.rawValue == expected.saves.count, describe("the backup has every save"))
            note(token)
        }
        backups.append((url, expected))
    }

    private mutating func restore() async throws {
        guard let (url, content) = backups.randomElement(using: &random) else { return }
        try await close()
        try await PersistentContainer.restore(bed.description, from: url)
        expected = content
        try await open()
    }

    private mutating func reopen() async throws {
        guard kind != .memory else { return }
        try await close()
        version += random.below(2)
        model = try Self.model(version)
        try await open()
    }

    private mutating func suspend() async throws {
        for container in containers { try await container.suspend() }
        for container in containers.reversed() { await container.resume() }
    }

    private mutating func maintain() async throws {
        try await containers[0].compact()
        #expect(try await containers[1].coordinator.verify() == [], describe("verified"))
    }

    // MARK: Checking

    private mutating func check(flushed: Bool) async throws {
        let coordinator = containers[random.below(containers.count)].coordinator
        if flushed {
            try await flush()
            try await coordinator.refresh()
            let newest = coordinator.currentHistoryToken
            #expect(newest.generation.rawValue == expected.saves.count, describe("the newest save"))
            note(newest)
        }
        var request = HistoryRequest()
        let start = tokens.randomElement(using: &random)
        if random.chance(75) { request.after = start?.token }
        if random.chance(30) { request.authors = Set([["a"], ["b", ""], ["batch"]][random.below(3)]) }
        if random.chance(30) { request.excludedAuthors = ["a"] }
        if random.chance(40) { request.entities = Set([["Track"], ["Playlist"], ["Track", "Playlist"]][random.below(3)]) }
        if random.chance(30) { request.limit = random.below(6) }
        if let token = request.after, start.map(isForeign) == true {
            await #expect(throws: HistoryError.tokenOfAnotherCopy(token), describe("a foreign token")) {
                try await coordinator.history(request)
            }
            return
        }
        let first = request.after.map { Int($0.generation.rawValue) } ?? expected.deleted
        if let token = request.after, first < expected.deleted, request.limit != 0 {
            await #expect(throws: HistoryError.tokenExpired(token), describe("an expired token")) {
                try await coordinator.history(request)
            }
            return
        }
        let found = try await coordinator.history(request)
        let wanted = wanted(request, after: first)
        guard flushed || request.limit != nil || found.count == wanted.count else {
            return compare(found, Array(wanted.prefix(found.count)))
        }
        compare(found, flushed ? wanted : Array(wanted.prefix(found.count)))
    }

    private func wanted(_ request: HistoryRequest, after first: Int) -> [(id: Int, save: HistoryExpectation.Save)] {
        var wanted: [(id: Int, save: HistoryExpectation.Save)] = []
        for number in expected.saves.indices where number >= max(first, expected.deleted) {
            var save = expected.saves[number]
            let author = save.author ?? ""
            if let authors = request.authors, !authors.contains(author) { continue }
            if request.excludedAuthors.contains(author) { continue }
            if let entities = request.entities { save.changes = save.changes.filter { entities.contains($0.key.entity) } }
            if !save.changes.isEmpty { wanted.append((number + 1, save)) }
        }
        return request.limit.map { Array(wanted.prefix($0)) } ?? wanted
    }

    private func compare(_ found: [HistoryTransaction], _ wanted: [(id: Int, save: HistoryExpectation.Save)]) {
        #expect(found.map { Int($0.id.rawValue) } == wanted.map(\.id), describe("the saves"))
        for (transaction, (id, save)) in zip(found, wanted) {
            #expect(transaction.author == save.author, describe("the author of save \(id)"))
            var changes: [HistoryExpectation.Object: HistoryExpectation.Change] = [:]
            for change in transaction.changes {
                changes[.init(entity: change.entityName, key: change.objectID.key)] = .init(
                    kind: change.kind, properties: change.updatedProperties, tombstone: change.tombstone)
            }
            #expect(transaction.changes.count == changes.count, describe("save \(id) lists an object twice"))
            #expect(changes == save.changes, describe("the changes of save \(id)"))
        }
    }

    mutating func finish() async throws {
        try await check(flushed: true)
        for container in containers { #expect(try await container.coordinator.verify() == [], describe("verified")) }
        try await close()
    }
}
