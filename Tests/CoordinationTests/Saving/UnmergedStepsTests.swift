import Platform
import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

/// A child that reads an older state than its parent is in conflict with every save that its parent has not merged, also if the writer
/// cannot tell those saves any more.
@Suite struct UnmergedStepsTests {
    private static func plays(_ id: ObjectID, _ context: ManagedObjectContext) throws -> Value? {
        try context.existingObject(with: id)["plays"]
    }

    /// Makes the writer forget its steps, as after some thousand saves.
    private static func forgetSteps(_ held: HeldSaves) {
        held.container.coordinator.writer.shared.withLock { $0.recent.forgetSteps() }
    }

    // MARK: Forgotten steps

    /// Catches: saves that the writer has forgotten count as merged.
    @MainActor @Test(arguments: [ContextStack.nested, .masterMainWorker], StoreKind.allCases)
    func `S100: a save that the writer has forgotten is a conflict with an older child`(
        _ stack: ContextStack, _ kind: StoreKind
    ) async throws {
        let held = try await HeldSaves(kind, stack)
        let main = held.container.mainContext
        main.automaticallyMergesChanges = false
        let worker = held.container.newBackgroundContext(name: "worker")
        #expect(try await worker.perform { try Self.plays(held.track, $0) } == .int(0))
        try await held.setPlays(1)
        main.makeTrack("y")
        try await main.save(through: .store)
        Self.forgetSteps(held)
        try await worker.perform { try $0.incrementPlays(of: held.track) }
        await #expect(throws: SaveError.self) { try await worker.save(through: .store) }
        await worker.perform { $0.rollback() }
        main.refreshAllObjects()
        try await worker.refreshFromParent()
        try await worker.perform { try $0.incrementPlays(of: held.track) }
        try await worker.save(through: .store)
        let plays = try await held.container.newBatchOperationContext().perform { try Self.plays(held.track, $0) }
        #expect(plays == .int(2))
    }

    /// Catches: a step without a description, as after a flush that left a save out, counts as merged with all steps beside it.
    @Test func `S100: a save beside one that could not be written is a conflict with an older child`() async throws {
        let store = FaultyStore(schema: Music.model.storeSchema)
        let coordinator = try PersistentStoreCoordinator.music(store, SteppedClock())
        let (root, other) = (coordinator.newBackgroundContext(name: "root"), coordinator.newBackgroundContext(name: "other"))
        let track = try await root.perform(andSave: .durable) { $0.makeTrack("x").objectID }
        let child = await root.newBackgroundChild(name: "child")
        #expect(try await child.perform { try Self.plays(track, $0) } == .int(0))
        await other.perform { $0.refreshAllObjects() }
        try await other.perform(andSave: .deferred(within: .seconds(600))) { try $0.incrementPlays(of: track) }
        let bad = try await other.perform(andSave: .deferred(within: .seconds(600))) { $0.makeTrack("bad").objectID }
        store.refuse { layer in
            layer.row(bad.entity, bad.key) == nil ? nil : StoreError(.valueTooLarge, "a value is too large. Change it")
        }
        await #expect(throws: SaveError.self) { try await coordinator.flush() }
        store.refuse(nil)
        try await root.perform(andSave: .durable) { _ = $0.makeTrack("y") }
        try await child.perform { try $0.incrementPlays(of: track) }
        await #expect(throws: SaveError.self) { try await child.save(through: .store) }
    }

    /// Catches: a conflict with the parent's own saves, because the writer has forgotten who made them.
    @MainActor @Test(arguments: [ContextStack.nested, .masterMainWorker], StoreKind.allCases)
    func `S075: the parent's own saves are no conflict with an older child, even if the writer has forgotten them`(
        _ stack: ContextStack, _ kind: StoreKind
    ) async throws {
        let held = try await HeldSaves(kind, stack)
        let main = held.container.mainContext
        main.automaticallyMergesChanges = false
        main.refreshAllObjects()
        let worker = held.container.newBackgroundContext(name: "worker")
        #expect(try await worker.perform { try Self.plays(held.track, $0) } == .int(0))
        for durability in [Durability.durable, .deferred(within: .seconds(600)), .durable] {
            try main.incrementPlays(of: held.track)
            try await main.save(through: .store, durability)
        }
        Self.forgetSteps(held)
        try await worker.perform { try $0.existingObject(with: held.track)["plays"] = .int(7) }
        try await worker.save(through: .store)
        let plays = try await held.container.newBatchOperationContext().perform { try Self.plays(held.track, $0) }
        #expect(plays == .int(7))
    }

    // MARK: Snapshots that are newer than their state

    /// Catches: a parent whose snapshot has a save that is not among the writer's steps, below the changes of an older child.
    @Test(arguments: [true, false])
    func `S100: a save in the parent's later snapshot is a conflict with an older child`(_ parentReads: Bool) async throws {
        let store = FaultyStore(schema: Music.model.storeSchema)
        let coordinator = try PersistentStoreCoordinator.music(store, SteppedClock())
        let root = coordinator.newBackgroundContext(name: "root")
        let track = try await root.perform(andSave: .durable) { $0.makeTrack("x").objectID }
        let child = await root.newBackgroundChild(name: "child")
        #expect(try await child.perform { try Self.plays(track, $0) } == .int(0))
        try await root.perform(andSave: .durable) { _ = $0.makeTrack("y") }
        // While the root rests.
        try store.updateElsewhere(track, entity: "Track", property: "plays", to: .int(5))
        if parentReads { #expect(try await root.perform { try Self.plays(track, $0) } == .int(5)) }
        try await child.perform { try $0.incrementPlays(of: track) }
        await #expect(throws: SaveError.self) { try await child.save(through: .store) }
        await child.perform { $0.rollback() }
        await root.perform { $0.refreshAllObjects() }
        try await child.refreshFromParent()
        try await child.perform { try $0.incrementPlays(of: track) }
        try await child.save(through: .store)
        #expect(try await coordinator.newBackgroundContext().perform { try Self.plays(track, $0) } == .int(6))
    }

    // MARK: Moves that are no merges

    /// Catches: what a context merged before it was pinned to an older state counts as merged for the children that read that state.
    @Test(arguments: StoreKind.allCases)
    func `S151: what a context merged before it was pinned to an older state is a conflict with its child`(
        _ kind: StoreKind
    ) async throws {
        let held = try await HeldSaves(kind)
        let root = await held.container.makeBackgroundContext(name: "root")
        let old = await root.perform { context in
            context.automaticallyMergesChanges = false
            return context.snapshot
        }
        try await held.setPlays(1)
        await root.perform { context in
            context.refreshAllObjects()
            context.read(from: old)
        }
        let child = await root.newBackgroundChild(name: "child")
        #expect(try await child.perform { try Self.plays(held.track, $0) } == .int(0))
        try await root.perform(andSave: .durable) { _ = $0.makeTrack("y") }
        try await child.perform { try $0.incrementPlays(of: held.track) }
        await #expect(throws: SaveError.self) { try await child.save(through: .store) }
    }

    /// Catches: a parent that a snapshot budget has moved counts as one that has merged.
    @Test(arguments: StoreKind.allCases)
    func `S152: a snapshot budget that moves a parent does not hide a save from its child`(_ kind: StoreKind) async throws {
        let held = try await HeldSaves(kind)
        let root = await held.container.makeBackgroundContext(name: "root")
        await root.perform { $0.automaticallyMergesChanges = false }
        let child = await root.newBackgroundChild(name: "child")
        try await child.perform { try $0.incrementPlays(of: held.track) }
        try await held.setPlays(5)
        await root.perform { $0.advanceIfClean() }
        await #expect(throws: SaveError.self) { try await child.save(through: .store) }
        await child.perform { $0.rollback() }
        await root.perform { $0.refreshAllObjects() }
        try await child.refreshFromParent()
        try await child.perform { try $0.incrementPlays(of: held.track) }
        try await child.save(through: .store)
        #expect(try await root.perform { try Self.plays(held.track, $0) } == .int(6))
    }

    /// Catches: what the root of main has merged counts as merged by main.
    @MainActor @Test(arguments: [ContextStack.masterMainWorker, .hybrid], StoreKind.allCases)
    func `S100: a save that the root of main has merged before main is a conflict of main's next save`(
        _ stack: ContextStack, _ kind: StoreKind
    ) async throws {
        let held = try await HeldSaves(kind, stack)
        let main = held.container.mainContext
        main.automaticallyMergesChanges = false
        main.refreshAllObjects()
        #expect(try main.existingObject(with: held.track)["plays"] == .int(0))
        try await held.setPlays(1)
        // The root of `.hybrid` does this by itself if it learns of the save before main stops merging.
        let root = try #require(held.container.creation.root)
        try await root.run { $0.refreshAllObjects() }
        try main.incrementPlays(of: held.track)
        await #expect(throws: SaveError.self) { try await main.save(through: .store) }
        main.rollback()
        main.refreshAllObjects()
        try main.incrementPlays(of: held.track)
        try await main.save(through: .store)
        let plays = try await held.container.newBatchOperationContext().perform { try Self.plays(held.track, $0) }
        #expect(plays == .int(2))
    }

    // MARK: Bases

    /// Catches: the base of the conflict is the store's value from before the child's own last save.
    @MainActor @Test(arguments: StoreKind.allCases)
    func `S109: the base of an older child's conflict is the value that it saved last`(_ kind: StoreKind) async throws {
        let held = try await HeldSaves(kind, .nested)
        let main = held.container.mainContext
        main.automaticallyMergesChanges = false
        let found = Mutex<[Value?]>([])
        main.mergePolicy = .custom { conflicts in
            for conflict in conflicts {
                guard let plays = conflict.properties.first(where: { $0.name == "plays" }) else { continue }
                found.withLock { $0 += [plays.base, plays.ours, plays.theirs] }
            }
            return [:]
        }
        let worker = held.container.newBackgroundContext(name: "worker")
        #expect(try await worker.perform { try Self.plays(held.track, $0) } == .int(0))
        // Changes of main that the worker does not see, so that it keeps the state that it reads.
        main.makeTrack("y")
        try await worker.perform { try $0.incrementPlays(of: held.track) }
        try await worker.save(through: .store)
        try await held.setPlays(10)
        main.makeTrack("z")
        try await main.save(through: .store)
        try await worker.perform { try $0.incrementPlays(of: held.track) }
        #expect(try await worker.perform { try Self.plays(held.track, $0) } == .int(2))
        await #expect(throws: SaveError.self) { try await worker.save(through: .store) }
        #expect(found.withLock { $0 } == [.int(1), .int(2), .int(10)])
    }

    /// Catches: a write that main shows but does not count as merged.
    @MainActor @Test(arguments: [ContextStack.nested, .masterMainWorker], StoreKind.allCases)
    func `S075: a write that main shows is no conflict with an older child of main`(
        _ stack: ContextStack, _ kind: StoreKind
    ) async throws {
        let held = try await HeldSaves(kind, stack)
        let main = held.container.mainContext
        let worker = held.container.newBackgroundContext(name: "worker")
        try await worker.perform { try $0.existingObject(with: held.track)["plays"] = .int(7) }
        try await held.container.write { try $0.existingObject(with: held.track)["plays"] = .int(5) }
        try await until("main shows the write") { try main.existingObject(with: held.track)["plays"] == .int(5) }
        try await worker.save(through: .store)
        #expect(try main.existingObject(with: held.track)["plays"] == .int(7))
    }
}
