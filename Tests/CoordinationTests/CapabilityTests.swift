import Foundation
import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

/// The calls of a coordinator to a store, by the store's capabilities.
@Suite struct CapabilityTests {
    private func store(_ capabilities: StoreCapabilities) -> FaultyStore {
        FaultyStore(schema: Music.model.storeSchema, capabilities: capabilities)
    }

    private func save(_ title: String, _ coordinator: PersistentStoreCoordinator, _ durability: Durability) async throws {
        let context = coordinator.newBackgroundContext(name: title)
        await context.perform { _ = $0.makeTrack(title) }
        try await context.save(durability)
    }

    @Test(arguments: [StoreCapabilities.externalSaves, []])
    func `a store that only this process saves to is asked for no claim`(_ external: StoreCapabilities) async throws {
        let store = store(external.union([.layeredDeferral, .history]))
        let coordinator = try PersistentStoreCoordinator.music(store, SteppedClock())
        try await save("durable", coordinator, .durable)
        try await save("deferred", coordinator, .deferred)
        try await coordinator.flush()
        // The writer gives a claim back after it has completed the save.
        try await coordinator.writer.onQueue { $0.finishFlush() }
        #expect((store.count(.claim) > 0) == external.contains(.externalSaves))
        #expect(store.heldClaims == 0)
        #expect(try await coordinator.titles() == ["deferred", "durable"])
    }

    @Test(arguments: [StoreCapabilities.layeredDeferral, []])
    func `a store commits deferred saves at once unless it has layered deferral`(_ layered: StoreCapabilities) async throws {
        let store = store(layered.union([.history]))
        let coordinator = try PersistentStoreCoordinator.music(store, SteppedClock())
        try await save("deferred", coordinator, .deferred(within: .seconds(600)))
        #expect((store.count(.apply) > 0) == layered.isEmpty)
        #expect(try await coordinator.titles() == ["deferred"])
        try await coordinator.flush()
        #expect(try store.snapshot().count(Music.query("Track")) == 1)
    }

    @Test func `history, backup and compaction need their capability`() async throws {
        let coordinator = try PersistentStoreCoordinator.music(store([.layeredDeferral]), SteppedClock())
        func code(_ body: () async throws -> Void) async -> StoreError.Code? {
            do { try await body() } catch { return (error as? StoreError)?.code }
            return nil
        }
        try await save("one", coordinator, .durable)
        let file = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        #expect(await code { _ = try await coordinator.history() } == .unsupported)
        #expect(await code { _ = try await coordinator.backup(to: file) } == .unsupported)
        #expect(await code { try await coordinator.compactCopy(to: file) } == .unsupported)
        #expect(try await coordinator.compact() == CompactionProgress())
    }
}
