import Dispatch
import Platform
import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

/// An object that a context has merged, or whose changes it has dropped, is in no conflict with its next save.
@Suite struct UnmergedMergesTests {
    /// Catches: the partner's change is dropped with the object's, and its conflict is not.
    @Test func `S055: an object whose change is dropped with that of its partner is in no conflict afterwards`() async throws {
        let store = FaultyStore(schema: Music.model.storeSchema)
        let container = try await PersistentContainer(model: Music.model, store: StoreDescription(name: "faulty") { _ in store })
        let root = container.coordinator.newBackgroundContext(name: "root")
        let (artist, profile) = try await root.perform(andSave: .durable) { context in
            let profile = context.insert("Profile")
            profile["text"] = .string("old")
            return (context.makeArtist("a").objectID, profile.objectID)
        }
        let child = await root.newBackgroundChild(name: "child")
        try await child.perform { context in
            try context.existingObject(with: artist)["profile"] = .reference(profile.key)
        }
        try await container.suspend()
        try store.updateElsewhere(profile, entity: "Profile", property: "text", to: .string("theirs"))
        await container.resume()
        try await child.perform { context in
            context.refresh(try context.existingObject(with: artist), mergeChanges: false)
            #expect(!context.hasChanges)
            let profile = try context.existingObject(with: profile)
            #expect(profile["text"] == "theirs")
            profile["text"] = .string("ours")
        }
        try await child.save(through: .store)
        try await container.close()
    }

    /// Catches: the version of a save in memory is compared with the generation that it is going to have.
    @Test(arguments: StoreKind.allCases, [Durability.durable, .deferred(within: .seconds(600))])
    func `S091: a save in memory that a context has read during its own save is no conflict once it is merged`(
        _ kind: StoreKind, _ durability: Durability
    ) async throws {
        let held = try await HeldSaves(kind)
        let a = await held.container.makeBackgroundContext(name: "a")
        await a.perform { $0.automaticallyMergesChanges = false }
        let other = await held.container.makeBackgroundContext(name: "other")
        let saves = Mutex<[ChangeSet]>([])
        await other.perform { context in
            _ = context.addObserver { notice in if notice.kind == .didSave { saves.withLock { $0.append(notice.changes) } } }
        }
        for plays in [Int64(1), 2] {
            try await other.perform(andSave: durability) { context in
                context.refreshAllObjects()
                try context.existingObject(with: held.track)["plays"] = .int(plays)
            }
        }
        held.block()
        let saving = Task { try await a.perform(andSave: durability) { _ = $0.makeTrack("y") } }
        try await held.queued(1)
        try await a.perform { try $0.existingObject(with: held.track)["plays"] = .int(3) }
        held.release()
        try await saving.value
        let merged = saves.withLock { $0 }
        await a.perform { $0.mergeChanges(from: merged[0]) }
        await #expect(throws: SaveError.self) { try await a.save(durability) }
        await a.perform { $0.mergeChanges(from: merged[1]) }
        try await a.save(durability)
    }

    /// Catches: a main context that follows the store and merges from now on keeps the conflicts from before.
    @MainActor @Test(arguments: [ContextStack.siblings, .nested, .hybrid], [StoreKind.lmdb, .sqlite])
    func `S093: an object that a main context has merged automatically is in no conflict`(
        _ stack: ContextStack, _ kind: StoreKind
    ) async throws {
        let held = try await HeldSaves(kind, stack)
        let main = held.container.mainContext
        main.automaticallyMergesChanges = false
        main.refreshAllObjects()
        let track = try main.existingObject(with: held.track)
        #expect(track["plays"] == .int(0))
        try await held.setPlays(1)
        main.makeTrack("y")
        held.block()
        let saving = Task { try await main.save(through: .store) }
        try await held.queued(1)
        track["plays"] = .int(3)
        held.release()
        try await saving.value
        await #expect(throws: SaveError.self) { try await main.save(through: .store) }
        main.automaticallyMergesChanges = true
        try await held.setPlays(2)
        let newest = held.container.coordinator.currentHistoryToken.generation
        try await until("main has merged") { await MainActor.run { main.snapshot.generation } == newest }
        try await main.save(through: .store)
    }

    /// Catches: a child that merges from now on keeps the conflicts from before.
    @Test func `S072: an object that a child has merged automatically is in no conflict`() async throws {
        let store = FaultyStore(schema: Music.model.storeSchema)
        let container = try await PersistentContainer(model: Music.model, store: StoreDescription(name: "faulty") { _ in store })
        let root = container.coordinator.newBackgroundContext(name: "root")
        let track = try await root.perform(andSave: .durable) { $0.makeTrack("a").objectID }
        let child = await root.newBackgroundChild(name: "child")
        try await child.perform { try $0.existingObject(with: track)["plays"] = .int(1) }
        try await container.suspend()
        try store.updateElsewhere(track, entity: "Track", property: "plays", to: .int(7))
        await container.resume()
        await child.perform { $0.automaticallyMergesChanges = true }
        try await root.perform(andSave: .durable) { _ = $0.makeTrack("b") }
        try await until("the child has merged") { try await child.perform { try $0.trackTitles() } == ["a", "b"] }
        try await child.save(through: .store)
        try await container.close()
    }
}
