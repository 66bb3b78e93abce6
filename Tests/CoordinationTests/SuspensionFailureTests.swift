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
}
