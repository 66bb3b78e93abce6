import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

/// Suspensions that fail, and work that a suspension interrupts (S167).
@Suite struct SuspensionFailureTests {
    /// Catches: a container that keeps later saves waiting after a suspension that failed.
    @Test func `S167: if a deferred save cannot be written, the container is not suspended and keeps the save`() async throws {
        let store = FaultyStore(schema: Music.model.storeSchema)
        let container = try await PersistentContainer(
            model: Music.model, store: StoreDescription(name: "faulty") { _ in store })
        let context = container.coordinator.newBackgroundContext()
        await context.perform { _ = $0.makeTrack("a") }
        try await context.save(.deferred(within: .seconds(600)))
        let diskFull = StoreError(.full, "the disk is full. Make room")
        store.fail { call, _ in call == .commit ? diskFull : nil }
        await #expect(throws: diskFull) { try await container.suspend() }
        #expect(!container.coordinator.writer.suspension.isClosed)
        store.fail(nil)
        await context.perform { _ = $0.makeTrack("b") }
        try await context.save()
        try await container.suspend()
        #expect(container.coordinator.writer.suspension.isClosed)
        await container.resume()
        #expect(try await container.coordinator.titles().sorted() == ["a", "b"])
        try await container.close()
    }

    /// Catches: a merge that waits for the end of its frame and then opens the file for the main context, although the store is suspended.
    @Test func `S167: a merge that is due while the store is suspended reads nothing`() async throws {
        let store = FaultyStore(schema: Music.model.storeSchema)
        let clock = SteppedClock()
        let coordinator = try PersistentStoreCoordinator.music(store, clock)
        let shown = coordinator.newBackgroundContext()
        await shown.perform { context in
            context.automaticallyMergesChanges = true
            context.place.readsNextState.store(true, ordering: .relaxed)
        }
        let worker = coordinator.newBackgroundContext()
        for title in ["a", "b", "c"] {
            await worker.perform { _ = $0.makeTrack(title) }
            try await worker.save()
            // The merge that the save has sent runs first, so that the next save sends another one.
            await shown.perform { _ in }
        }
        #expect(clock.waitingCount > 0)
        await coordinator.writer.suspension.close()
        try await coordinator.writer.suspendReads(within: .seconds(60))
        let count = store.count(.snapshot)
        clock.advance(by: .milliseconds(9))
        #expect(store.count(.snapshot) == count)
        withExtendedLifetime(shown) {}
        await coordinator.writer.resume()
        #expect(try await coordinator.titles().sorted() == ["a", "b", "c"])
    }
}
