import Dispatch
import Observation
import Platform
import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

/// A watched object is checked from the watch until the next save, unless the context merges, is rolled back or is reset.
@Suite struct UnmergedWatchesTests {
    private static func watch(_ id: ObjectID, _ context: ManagedObjectContext) throws {
        let object = try context.existingObject(with: id)
        #expect(object["plays"] == .int(0))
        context.detectConflicts(for: object)
    }

    // MARK: Moves

    @Test(arguments: StoreKind.allCases, [true, false])
    func `S152: a watched object is checked although a snapshot budget moves the context`(
        _ kind: StoreKind, _ isInChild: Bool
    ) async throws {
        let held = try await HeldSaves(kind)
        let root = await held.container.makeBackgroundContext(name: "root")
        await root.perform { $0.automaticallyMergesChanges = false }
        let context = isInChild ? await root.newBackgroundChild(name: "child") : root
        try await context.perform { try Self.watch(held.track, $0) }
        try await held.setPlays(1)
        await context.perform { $0.advanceIfClean() }
        let newest = held.container.coordinator.currentHistoryToken.generation
        try await until("the context is moved") { await context.perform { $0.snapshot.generation } == newest }
        await context.perform { _ = $0.makeTrack("y") }
        await #expect(throws: SaveError.self) { try await context.save(through: .store) }
        await root.perform { $0.refreshAllObjects() }
        if isInChild { try await context.refreshFromParent() }
        try await context.save(through: .store)
    }

    @Test(arguments: StoreKind.allCases)
    func `S100: a watched object is checked although a request moves a confined context`(_ kind: StoreKind) async throws {
        let held = try await HeldSaves(kind)
        let context = held.container.makeConfinedContext()
        try Self.watch(held.track, context)
        try await held.setPlays(1)
        #expect(try context.existingObject(with: held.track)["plays"] == .int(1))
        context.makeTrack("y")
        #expect(throws: SaveError.self) { try context.saveNow() }
        context.refreshAllObjects()
        try context.saveNow()
    }

    /// Catches: a context that shows no object releases the snapshot with which a watched object is compared.
    @Test func `S100: an object that is watched during a save is compared with the state after it`() async throws {
        let store = FaultyStore(schema: Music.model.storeSchema)
        let coordinator = try PersistentStoreCoordinator.music(store, SteppedClock())
        let root = coordinator.newBackgroundContext(name: "root")
        let track = try await root.perform(andSave: .durable) { $0.makeTrack("x").objectID }
        let gate = DispatchSemaphore(value: 0)
        coordinator.writer.queue.async { gate.wait() }
        let saving = Task { try await root.perform(andSave: .durable) { _ = $0.makeTrack("y") } }
        try await until("the save waits") { coordinator.writer.shared.withLock { $0.waiting.count } == 1 }
        try await root.perform { try Self.watch(track, $0) }
        gate.signal()
        try await saving.value
        try store.updateElsewhere(track, entity: "Track", property: "plays", to: .int(5))
        await root.perform { _ = $0.makeTrack("z") }
        await #expect(throws: SaveError.self) { try await root.save() }
    }

    // MARK: Dropped changes

    @Test(arguments: StoreKind.allCases)
    func `S048: an object that was watched before a rollback is no conflict afterwards`(_ kind: StoreKind) async throws {
        let held = try await HeldSaves(kind)
        let a = await held.container.makeBackgroundContext(name: "a")
        try await a.perform { context in
            context.automaticallyMergesChanges = false
            try Self.watch(held.track, context)
            context.makeTrack("y")
            context.rollback()
            context.makeTrack("z")
        }
        try await held.setPlays(1)
        try await a.save()
    }

    @Test(arguments: StoreKind.allCases)
    func `S048: a running save checks its watched objects although the context is rolled back`(_ kind: StoreKind) async throws {
        let held = try await HeldSaves(kind)
        let a = await held.container.makeBackgroundContext(name: "a")
        let other = await held.container.makeBackgroundContext(name: "other")
        try await a.perform { context in
            context.automaticallyMergesChanges = false
            try Self.watch(held.track, context)
            context.makeTrack("y")
        }
        try await other.perform { try $0.existingObject(with: held.track)["plays"] = .int(1) }
        held.block()
        let first = Task { try await other.save() }
        try await held.queued(1)
        let second = Task { try await a.save() }
        try await held.queued(2)
        await a.perform { $0.rollback() }
        held.release()
        try await first.value
        await #expect(throws: SaveError.self) { try await second.value }
    }

    /// Catches: a save that fails although no other context has changed the object since. Its change came after the move to the newest
    /// state, and was compared with the state before.
    @MainActor @Test(arguments: StoreKind.allCases)
    func `S100, S120: a change that an observer of notices makes over the shown state is no conflict`(_ kind: StoreKind)
        async throws
    {
        let held = try await HeldSaves(kind)
        let main = held.container.mainContext
        main.automaticallyMergesChanges = false
        let track = try main.existingObject(with: held.track)
        withObservationTracking {
            _ = track["title"]
        } onChange: {
        }
        let token = main.observe { notice in
            if notice.kind == .objectsDidChange, !main.hasChanges { track["plays"] = .int(15) }
        }
        try await held.setPlays(5)
        main.advanceIfClean()
        #expect(track["plays"] == .int(15))
        try await main.save()
        withExtendedLifetime(token) {}
    }
}
