import Dispatch
import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

/// Deferred saves that are checked again, because an earlier one cannot be written.
@Suite struct RecheckedSavesTests {
    private let clock = SteppedClock()

    private static let tooLarge = StoreError(.valueTooLarge, "a value is too large. Change it")
    private static let diskFull = StoreError(.full, "the disk is full. Make room")

    /// A merge policy, and what becomes of the later of two saves of one track if the earlier one is left out.
    struct Case: Sendable, CustomStringConvertible {
        var description: String
        var policy: MergePolicy
        var isReported = false
        var plays: Int64 = 0
        var saves = 1
    }

    static let cases = [
        Case(description: "error", policy: .error, isReported: true),
        Case(description: "storeTrump", policy: .storeTrump, plays: 7, saves: 2),
        Case(description: "objectTrump", policy: .objectTrump, plays: 7, saves: 2),
        Case(description: "rollback", policy: .rollback),
        // The whole object has the value that cannot be written.
        Case(description: "overwrite", policy: .overwrite, isReported: true),
        Case(
            description: "custom", policy: .custom { $0.reduce(into: [:]) { $0[$1.objectID] = .objectTrump } }, plays: 7,
            saves: 2),
    ]

    /// Refuses every layer with a value of a text.
    private static func refuse(_ text: String, of entity: String, in model: Model, _ store: FaultyStore) throws {
        let number = try #require(model.entity(named: entity)).number
        store.refuse { layer in
            var isRefused = false
            layer.forEachRow(of: number, \.touched) { _, row in
                row.set.forEach { if row[$0] == .string(text) { isRefused = true } }
            }
            return isRefused ? tooLarge : nil
        }
    }

    private func failures(_ coordinator: PersistentStoreCoordinator) async throws -> [String] {
        let error = try #require(await #expect(throws: SaveError.self) { try await coordinator.flush() })
        guard case .deferredSavesFailed(let failures) = error else {
            Issue.record("another error: \(error)")
            return []
        }
        return failures.map(\.metadata.contextName)
    }

    /// Saves a track, then makes two deferred saves of it, of which the store refuses the first. Returns the track.
    private func saveTwice(_ policy: MergePolicy, _ coordinator: PersistentStoreCoordinator) async throws -> ObjectID {
        let first = coordinator.newBackgroundContext(name: "bad")
        let id = try await first.perform(andSave: .durable) { $0.makeTrack("t").objectID }
        try await first.perform(andSave: .deferred(within: .seconds(600))) {
            try $0.existingObject(with: id)["title"] = "bad"
        }
        let second = coordinator.newBackgroundContext(name: "update")
        try await second.perform(andSave: .deferred(within: .seconds(600))) { context in
            context.mergePolicy = policy
            try context.existingObject(with: id)["plays"] = .int(7)
        }
        return id
    }

    /// Catches: a save that is rechecked under the policy `error`, whatever its context's policy is.
    @Test(arguments: cases)
    func `S105, S067: a save that follows one that was left out is settled by its own merge policy`(_ test: Case) async throws {
        let store = FaultyStore(schema: Music.model.storeSchema)
        let coordinator = try PersistentStoreCoordinator.music(store, clock)
        let id = try await saveTwice(test.policy, coordinator)
        try Self.refuse("bad", of: "Track", in: Music.model, store)
        #expect(try await failures(coordinator) == (test.isReported ? ["bad", "update"] : ["bad"]))
        store.refuse(nil)
        let shown = try await coordinator.newBackgroundContext().perform { context in
            let track = try context.existingObject(with: id)
            return [track["title"], track["plays"]]
        }
        #expect(shown == ["t", .int(test.plays)])
        let snapshot = try store.snapshot()
        #expect(try snapshot.value(id.entity, key: id.key, column: Music.column("Track", "plays")) == .int(test.plays))
        #expect(try store.history(after: 0, limit: 100)?.count == test.saves)
        try await coordinator.flush()
        #expect(try store.verify() == [])
    }

    /// Catches: contexts that go on showing a save as it was accepted, although the flush wrote it differently and reported no failure.
    @Test func `S093: contexts merge what a flush wrote otherwise than it was accepted`() async throws {
        let store = FaultyStore(schema: Music.model.storeSchema)
        let coordinator = try PersistentStoreCoordinator.music(store, clock)
        let id = try await saveTwice(.rollback, coordinator)
        let reader = coordinator.newBackgroundContext()
        await reader.perform { $0.automaticallyMergesChanges = true }
        func plays() async throws -> Value { try await reader.perform { try $0.existingObject(with: id)["plays"] } }
        #expect(try await plays() == .int(7))
        try Self.refuse("bad", of: "Track", in: Music.model, store)
        store.fail { call, _ in call == .commit ? Self.diskFull : nil }
        await #expect(throws: StoreError.self) { try await coordinator.flush() }
        store.fail(nil)
        #expect(try await failures(coordinator) == ["bad"])
        clock.advance(by: .seconds(10))
        try await until("the reader has merged") { try await plays() == .int(0) }
    }

    /// A list of at least one item, without an inverse.
    private static let lists: Model = {
        do {
            return try Model([
                EntityDescription(name: "Item", properties: [.attribute(.init(name: "title", type: .string))]),
                EntityDescription(
                    name: "List",
                    properties: [
                        .relationship(
                            .init(
                                name: "items", destination: "Item", inverse: nil, cardinality: .toMany, inference: .refused,
                                rules: [.count(1...)]))
                    ]),
            ])
        } catch { preconditionFailure("the model is wrong: \(error)") }
    }()

    /// Catches: a list that is empty in the file, because the save that filled it was left out.
    @Test func `S061: a save that follows one that was left out keeps to the rules of counts`() async throws {
        let store = FaultyStore(schema: Self.lists.storeSchema)
        let coordinator = try PersistentStoreCoordinator(
            model: Self.lists, store: store, name: "test", clock: clock.source)
        let first = coordinator.newBackgroundContext(name: "bad")
        let (list, item) = try await first.perform(andSave: .durable) { context in
            let (list, item) = (context.insert("List"), context.insert("Item"))
            item["title"] = "a"
            list.add(item, to: "items")
            return (list.objectID, item.objectID)
        }
        try await first.perform(andSave: .deferred(within: .seconds(600))) { context in
            let item = context.insert("Item")
            item["title"] = "bad"
            try context.existingObject(with: list).add(item, to: "items")
        }
        let second = coordinator.newBackgroundContext(name: "remove")
        try await second.perform(andSave: .deferred(within: .seconds(600))) { context in
            try context.existingObject(with: list).remove(try context.existingObject(with: item), from: "items")
        }
        try Self.refuse("bad", of: "Item", in: Self.lists, store)
        #expect(try await failures(coordinator) == ["bad", "remove"])
        store.refuse(nil)
        let items = try await coordinator.newBackgroundContext().perform { context in
            try context.existingObject(with: list).relatedObjects("items").map(\.objectID)
        }
        #expect(items == [item])
        #expect(try store.verify() == [])
    }

    /// Catches: a coordinator on the same file that takes the accepted changes of the other one for those in the file.
    @Test func `S094: a save that a running flush has rewritten is read from the file by another coordinator`() async throws {
        let store = FaultyStore(schema: Music.model.storeSchema)
        let coordinator = try PersistentStoreCoordinator.music(store, clock)
        let reader = try PersistentStoreCoordinator.music(FaultyStore(sharing: store), clock)
        let writer = coordinator.writer
        reader.writer.shared.withLock { $0.sibling = writer }
        let first = coordinator.newBackgroundContext(name: "bad")
        let id = try await first.perform(andSave: .durable) { $0.makeTrack("t").objectID }
        try await first.perform(andSave: .deferred(within: .seconds(600))) {
            try $0.existingObject(with: id)["title"] = "bad"
        }
        try await coordinator.newBackgroundContext(name: "update").perform(andSave: .deferred(within: .seconds(600))) { context in
            context.mergePolicy = .storeTrump
            let track = try context.existingObject(with: id)
            track["title"] = "dropped"
            track["plays"] = .int(7)
        }
        try Self.refuse("bad", of: "Track", in: Music.model, store)
        let gate = DispatchSemaphore(value: 0)
        writer.queue.async {
            writer.startFlush()
            gate.wait()
        }
        try await until("the flush has written") { try store.snapshot().generation == 2 }
        // The flush has noted its numbers, and waits for the writer's queue.
        writer.disk.sync {}
        let written = try #require(try store.history(after: 1, limit: 10))
        #expect(reader.writer.stored(after: 1, through: 2) == written)
        gate.signal()
        #expect(try await failures(coordinator) == ["bad"])
        #expect(reader.writer.stored(after: 1, through: 2) == written)
    }

    // MARK: Saves that are accepted while earlier ones are flushed

    private static let later = Durability.deferred(within: .seconds(600))

    /// Runs `body` while a flush of the saves so far is held before it writes, and returns after the flush.
    private func duringFlush(
        _ coordinator: PersistentStoreCoordinator, _ store: FaultyStore, _ body: () async throws -> Void
    ) async throws {
        let (isHeld, mayGo) = (Flag(), Flag())
        store.hold(.write, isHeld, until: mayGo)
        try await coordinator.writer.onQueue { $0.startFlush() }
        try await until("the flush is held") { isHeld.wait(atMost: .zero) }
        try await body()
        mayGo.set()
        try await coordinator.writer.onQueue { $0.finishFlush() }
        store.fail(nil)
    }

    private func save(
        _ name: String, _ coordinator: PersistentStoreCoordinator, policy: MergePolicy = .error,
        _ change: @escaping @Sendable (ManagedObjectContext) throws -> Void
    ) async throws {
        try await coordinator.newBackgroundContext(name: name).perform(andSave: Self.later) { context in
            context.mergePolicy = policy
            try change(context)
        }
    }

    /// Catches: the deletion of an album that is not empty, because the save that emptied it was dropped one flush before.
    @Test func `S051, S067: a save is checked again if the flush during which it was accepted wrote something else`() async throws
    {
        let store = FaultyStore(schema: Music.model.storeSchema)
        let coordinator = try PersistentStoreCoordinator.music(store, clock)
        let (track, album) = try await coordinator.newBackgroundContext().perform(andSave: .durable) { context in
            let (track, album) = (context.makeTrack("t"), context.insert("Album"))
            track.setRelatedObject("album", to: album)
            return (track.objectID, album.objectID)
        }
        try Self.refuse("bad", of: "Track", in: Music.model, store)
        try await save("bad", coordinator) { try $0.existingObject(with: track)["title"] = "bad" }
        try await duringFlush(coordinator, store) {
            try await save("move", coordinator, policy: .rollback) {
                try $0.existingObject(with: track).setRelatedObject("album", to: nil)
            }
        }
        try await duringFlush(coordinator, store) {
            try await save("delete", coordinator) { $0.delete(try $0.existingObject(with: album)) }
        }
        store.refuse(nil)
        #expect(try await failures(coordinator) == ["bad", "delete"])
        let shown = try await coordinator.newBackgroundContext().perform { context in
            try context.existingObject(with: track).relatedObject("album")?.objectID
        }
        #expect(shown == album)
        #expect(try store.verify() == [])
    }

    /// Catches: an update that is lost without a report, because the running flush drops the insertion of its object.
    @Test func `S067: an update of an object that the running flush drops is reported`() async throws {
        let store = FaultyStore(schema: Music.model.storeSchema)
        let coordinator = try PersistentStoreCoordinator.music(store, clock)
        let old = try await coordinator.newBackgroundContext().perform(andSave: .durable) { context in
            let track = context.makeTrack("t")
            track["isrc"] = "u"
            return track.objectID
        }
        try Self.refuse("bad", of: "Track", in: Music.model, store)
        try await save("bad", coordinator) { context in
            context.delete(try context.existingObject(with: old))
            context.makeTrack("bad")
        }
        let inserting = coordinator.newBackgroundContext(name: "insert")
        let new = try await inserting.perform(andSave: Self.later) { context in
            context.mergePolicy = .storeTrump
            let track = context.makeTrack("x")
            track["isrc"] = "u"
            return track.objectID
        }
        try await duringFlush(coordinator, store) {
            try await save("update", coordinator) { try $0.existingObject(with: new)["plays"] = .int(8) }
        }
        #expect(try await failures(coordinator) == ["bad", "update"])
        #expect(try await coordinator.titles() == ["t"])
        #expect(try store.verify() == [])
    }

    /// Catches: a save that is refused or dropped although no other save has changed its object. The check read the values of an older
    /// save that was left out, not those of the newer save that was written.
    @Test(arguments: [MergePolicy.error, .storeTrump])
    func `S102, S067: a save that saw a later one of its predecessors is checked against that one`(_ policy: MergePolicy)
        async throws
    {
        let store = FaultyStore(schema: Music.model.storeSchema)
        let coordinator = try PersistentStoreCoordinator.music(store, clock)
        let track = try await coordinator.newBackgroundContext().perform(andSave: .durable) { $0.makeTrack("t").objectID }
        try Self.refuse("bad", of: "Track", in: Music.model, store)
        try await save("bad", coordinator) { context in
            let track = try context.existingObject(with: track)
            (track["title"], track["plays"]) = ("bad", .int(1))
        }
        try await save("written", coordinator, policy: .objectTrump) { try $0.existingObject(with: track)["plays"] = .int(2) }
        try await duringFlush(coordinator, store) {
            try await save("third", coordinator, policy: policy) { try $0.existingObject(with: track)["plays"] = .int(3) }
        }
        #expect(try await failures(coordinator) == ["bad"])
        let snapshot = try store.snapshot()
        #expect(try snapshot.value(track.entity, key: track.key, column: Music.column("Track", "plays")) == .int(3))
        #expect(try store.verify() == [])
    }

    /// Catches: a conflict that a custom policy settles twice, and adds to the sum that it has given.
    @Test func `S109, S067: a custom policy is not asked again about what it has settled`() async throws {
        let store = FaultyStore(schema: Music.model.storeSchema)
        let coordinator = try PersistentStoreCoordinator.music(store, clock)
        let context = coordinator.newBackgroundContext(name: "sum")
        let id = try await context.perform(andSave: .durable) { $0.makeTrack("t").objectID }
        try await context.perform { _ = try $0.existingObject(with: id)["plays"] }
        try await coordinator.newBackgroundContext().perform(andSave: .durable) { try $0.incrementPlays(of: id) }
        let (isHeld, mayGo) = (Flag(), Flag())
        coordinator.writer.queue.async {
            isHeld.set()
            _ = mayGo.wait(atMost: .seconds(600))
        }
        try await until("the writer is held") { isHeld.wait(atMost: .zero) }
        let saving = Task { try await context.perform(andSave: .durable) { _ = $0.makeTrack("other") } }
        try await until("the save waits") { coordinator.writer.shared.withLock { !$0.waiting.isEmpty } }
        try await context.perform { try $0.incrementPlays(of: id) }
        mayGo.set()
        try await saving.value
        try Self.refuse("bad", of: "Track", in: Music.model, store)
        try await save("bad", coordinator) { $0.makeTrack("bad") }
        await context.perform { context in
            context.mergePolicy = .custom { conflicts in
                conflicts.reduce(into: [:]) { $0[$1.objectID] = .values(["plays": Self.sum($1)]) }
            }
        }
        try await context.save(Self.later)
        #expect(try await failures(coordinator) == ["bad"])
        let snapshot = try store.snapshot()
        #expect(try snapshot.value(id.entity, key: id.key, column: Music.column("Track", "plays")) == .int(2))
    }

    /// Returns the plays with the increments of both sides.
    @Sendable private static func sum(_ conflict: MergeConflict) -> Value {
        guard let plays = conflict.properties.first(where: { $0.name == "plays" }), case .int(let base) = plays.base,
            case .int(let ours) = plays.ours, case .int(let theirs) = plays.theirs
        else { return .null }
        return .int(ours + theirs - base)
    }

    // MARK: Changes that a check has added

    /// Folders whose notes are deleted with them. Notes have tags.
    private static let folders: Model = {
        func relationship(
            _ name: String, _ destination: String, inverse: String, _ cardinality: Cardinality,
            _ rule: DeleteRule = .nullify
        ) -> PropertyDescription {
            .relationship(
                .init(name: name, destination: destination, inverse: inverse, cardinality: cardinality, deleteRule: rule))
        }
        let title = PropertyDescription.attribute(.init(name: "title", type: .string))
        do {
            return try Model([
                EntityDescription(
                    name: "Folder", properties: [title, relationship("notes", "Note", inverse: "folder", .toMany, .cascade)]),
                EntityDescription(
                    name: "Note",
                    properties: [
                        title, relationship("folder", "Folder", inverse: "notes", .toOne),
                        relationship("tags", "Tag", inverse: "notes", .toMany),
                    ]),
                EntityDescription(name: "Tag", properties: [title, relationship("notes", "Note", inverse: "tags", .toMany)]),
            ])
        } catch { preconditionFailure("the model is wrong: \(error)") }
    }()

    /// Catches: a note that is deleted with a folder, or loses its tag, although the save that put it there was left out.
    @Test(arguments: [MergePolicy.error, .objectTrump])
    func `S051, S067: delete rules are applied again without a save that was left out`(_ policy: MergePolicy) async throws {
        let store = FaultyStore(schema: Self.folders.storeSchema)
        let coordinator = try PersistentStoreCoordinator(
            model: Self.folders, store: store, name: "test", clock: clock.source)
        let deleting = coordinator.newBackgroundContext(name: "delete")
        let (folder, note) = try await deleting.perform(andSave: .durable) { context in
            let (folder, note, tag) = (context.insert("Folder"), context.insert("Note"), context.insert("Tag"))
            for object in [folder, note, tag] { object["title"] = "t" }
            note.add(tag, to: "tags")
            return (folder.objectID, note.objectID)
        }
        try await deleting.perform { _ = try $0.existingObject(with: folder)["title"] }
        try Self.refuse("bad", of: "Tag", in: Self.folders, store)
        try await save("bad", coordinator) { context in
            try context.existingObject(with: note).setRelatedObject("folder", to: try context.existingObject(with: folder))
            context.insert("Tag")["title"] = "bad"
        }
        try await deleting.perform(andSave: Self.later) { context in
            context.mergePolicy = policy
            context.delete(try context.existingObject(with: folder))
        }
        #expect(try await failures(coordinator) == ["bad"])
        store.refuse(nil)
        try await coordinator.newBackgroundContext().perform { context in
            let hasFolder = try !context.keys(matching: StoreQuery(entity: folder.entity, predicate: .constant(true))).isEmpty
            let tags = try context.existingObject(with: note).relatedObjects("tags").map { $0["title"] }
            #expect(!hasFolder && tags == ["t"])
        }
        #expect(try store.verify() == [])
    }

    /// Catches: an artist who loses a profile, because the save that would have given another one to the artist was left out.
    @Test func `S052, S067: one-to-one ends follow without a save that was left out`() async throws {
        let store = FaultyStore(schema: Music.model.storeSchema)
        let coordinator = try PersistentStoreCoordinator.music(store, clock)
        let relating = coordinator.newBackgroundContext(name: "relate")
        let (artists, profiles) = try await relating.perform(andSave: .durable) { context in
            let artists = ["a", "b"].map { context.makeArtist($0) }
            let profiles = ["own", "wanted"].map { text in
                let profile = context.insert("Profile")
                profile["text"] = .string(text)
                return profile
            }
            artists[0].setRelatedObject("profile", to: profiles[0])
            return (artists.map(\.objectID), profiles.map(\.objectID))
        }
        try await relating.perform { _ = try $0.existingObject(with: profiles[1])["text"] }
        try Self.refuse("bad", of: "Artist", in: Music.model, store)
        try await save("bad", coordinator) { context in
            let wanted = try context.existingObject(with: profiles[1])
            try context.existingObject(with: artists[0]).setRelatedObject("profile", to: wanted)
            context.makeArtist("bad")
        }
        try await relating.perform(andSave: Self.later) { context in
            context.mergePolicy = .objectTrump
            let wanted = try context.existingObject(with: profiles[1])
            try context.existingObject(with: artists[1]).setRelatedObject("profile", to: wanted)
        }
        #expect(try await failures(coordinator) == ["bad"])
        store.refuse(nil)
        let shown = try await coordinator.newBackgroundContext().perform { context in
            try artists.map { try context.existingObject(with: $0).relatedObject("profile")?.objectID }
        }
        #expect(shown == profiles)
        #expect(try store.verify() == [])
    }

    /// Policies that write an object again that others have deleted.
    private static let writingAgain: [MergePolicy] = [
        .objectTrump, .custom { $0.reduce(into: [:]) { $0[$1.objectID] = .objectTrump } },
        .custom { $0.reduce(into: [:]) { $0[$1.objectID] = .values(["born": .int(7)]) } },
    ]

    /// Saves an artist with a profile, renames it in another context, and deletes both in a deferred save that the store leaves out. The
    /// context that has read the first name then changes another property.
    private func writeAgain(
        _ policy: MergePolicy, in coordinator: PersistentStoreCoordinator, on store: FaultyStore
    ) async throws -> (artist: ObjectID, profile: ObjectID) {
        let updating = coordinator.newBackgroundContext(name: "update")
        let (artist, profile) = try await updating.perform(andSave: .durable) { context in
            let (artist, profile) = (context.makeArtist("a"), context.insert("Profile"))
            artist.setRelatedObject("profile", to: profile)
            return (artist.objectID, profile.objectID)
        }
        try await updating.perform { _ = try $0.existingObject(with: artist)["name"] }
        try await coordinator.newBackgroundContext().perform(andSave: .durable) {
            try $0.existingObject(with: artist)["name"] = "b"
        }
        try Self.refuse("bad", of: "Track", in: Music.model, store)
        try await save("bad", coordinator) { context in
            context.delete(try context.existingObject(with: artist))
            context.makeTrack("bad")
        }
        try await updating.perform(andSave: Self.later) { context in
            context.mergePolicy = policy
            try context.existingObject(with: artist)["born"] = .int(7)
        }
        #expect(try await failures(coordinator) == ["bad"])
        store.refuse(nil)
        return (artist, profile)
    }

    /// Catches: values and references that are lost, because the save after a deletion writes the whole object, although the deletion was
    /// left out.
    @Test(arguments: writingAgain)
    func `S106, S067: an object whose deletion was left out keeps what the save after it has not changed`(_ policy: MergePolicy)
        async throws
    {
        let store = FaultyStore(schema: Music.model.storeSchema)
        let coordinator = try PersistentStoreCoordinator.music(store, clock)
        let (artist, profile) = try await writeAgain(policy, in: coordinator, on: store)
        let (values, related) = try await coordinator.newBackgroundContext().perform { context in
            let artist = try context.existingObject(with: artist)
            return ([artist["name"], artist["born"]], artist.relatedObject("profile")?.objectID)
        }
        #expect(values == ["b", .int(7)] && related == profile)
        #expect(try store.verify() == [])
    }

    /// Policies that write an object as their context read it.
    private static let overwriting: [MergePolicy] = [
        .overwrite, .custom { $0.reduce(into: [:]) { $0[$1.objectID] = .overwrite } },
    ]

    /// Catches: an insertion over an object whose deletion was left out, and the loss of a partner that was deleted with it.
    @Test(arguments: overwriting)
    func `S106, S067: an object whose deletion was left out is overwritten with all that the context read`(_ policy: MergePolicy)
        async throws
    {
        let store = FaultyStore(schema: Music.model.storeSchema)
        let coordinator = try PersistentStoreCoordinator.music(store, clock)
        let (artist, profile) = try await writeAgain(policy, in: coordinator, on: store)
        let (values, related, back) = try await coordinator.newBackgroundContext().perform { context in
            let (artist, profile) = (try context.existingObject(with: artist), try context.existingObject(with: profile))
            let (related, back) = (artist.relatedObject("profile")?.objectID, profile.relatedObject("artist")?.objectID)
            return ([artist["name"], artist["born"]], related, back)
        }
        #expect(values == ["a", .int(7)] && related == profile && back == artist)
        #expect(try await coordinator.newBackgroundContext().perform { try $0.count(EntityFetchRequest("Artist")) } == 1)
        #expect(try store.verify() == [])
    }

    /// Catches: a lost update of another process, which committed although saves were pending, if the disk became full meanwhile.
    @Test func `S101: what remains of an overtaken flush is checked again by the next one`() async throws {
        let store = FaultyStore(schema: Music.model.storeSchema)
        let coordinator = try PersistentStoreCoordinator.music(store, clock)
        let track = try await coordinator.newBackgroundContext().perform(andSave: .durable) { $0.makeTrack("t").objectID }
        try await save("a", coordinator) { $0.makeTrack("a") }
        try await save("b", coordinator) { try $0.existingObject(with: track)["plays"] = .int(8) }
        let column = Music.column("Track", "plays")
        let elsewhere = Layer(schema: Music.model.storeSchema)
        let row = Row.make(
            kind: .update, layer: elsewhere.id, columnCount: Music.model.storeSchema.entities[track.entity].columns.count)
        row[column] = .int(7)
        elsewhere.put(row, entity: track.entity, key: track.key)
        try store.saveElsewhere(elsewhere)
        let writes = store.count(.write)
        // Two that find the other commit; then "a"; then "b", for which there is no room.
        store.fail { call, number in call == .write && number > writes + 3 ? Self.diskFull : nil }
        await #expect(throws: Self.diskFull) { try await coordinator.flush() }
        store.fail(nil)
        #expect(try await coordinator.titles() == ["a", "t"])
        #expect(coordinator.writer.state.pendingSaves == 1)
        #expect(try await failures(coordinator) == ["b"])
        #expect(try store.snapshot().value(track.entity, key: track.key, column: column) == .int(7))
        #expect(try await coordinator.titles() == ["a", "t"])
    }
}
