import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

/// A store that has fewer saves than before, because another program has copied another file over it.
@Suite struct OverwrittenStoreTests {
    private let clock = SteppedClock()
    private let store = FaultyStore(schema: Music.model.storeSchema)
    private let coordinator: PersistentStoreCoordinator

    init() throws {
        coordinator = try .music(store, clock)
    }

    private func save(_ title: String, _ durability: Durability) async throws {
        let context = coordinator.newBackgroundContext(name: title)
        await context.perform { _ = $0.makeTrack(title) }
        try await context.save(durability)
    }

    private func code(_ body: () async throws -> Void) async -> StoreError.Code? {
        let error = await #expect(throws: StoreError.self) { try await body() }
        return error?.code
    }

    @Test func `S066: a durable save over an older state is refused`() async throws {
        for title in ["a", "b", "c"] { try await save(title, .durable) }
        store.overwrite()
        #expect(await code { try await save("d", .durable) } == .fileReplaced)
        #expect(await code { try await coordinator.refresh() } == .fileReplaced)
        #expect(try store.snapshot().generation == 0)
    }

    @Test func `S067: a deferred save over an older state is kept, and not written`() async throws {
        for title in ["a", "b", "c"] { try await save(title, .durable) }
        try await save("d", .deferred(within: .seconds(600)))
        store.overwrite()
        #expect(await code { try await coordinator.flush() } == .fileReplaced)
        #expect(try store.snapshot().generation == 0)
        #expect(coordinator.writer.state.pendingSaves == 1)
    }

    /// Catches: deferred saves that are acknowledged although the file has lost its name, and then left out one by one.
    @Test func `S066: no deferred save is accepted while another file has the name, and none is lost when it is back`()
        async throws
    {
        try await save("a", .durable)
        try await save("b", .deferred(within: .seconds(600)))
        store.refuse { _ in StoreError.fileReplaced("store", isGone: true) }
        #expect(await code { try await coordinator.flush() } == .fileReplaced)
        #expect(await code { try await save("c", .deferred(within: .seconds(600))) } == .fileReplaced)
        store.refuse(nil)
        try await coordinator.flush()
        try await save("d", .deferred(within: .seconds(600)))
        try await coordinator.flush()
        #expect(try await coordinator.titles() == ["a", "b", "d"])
        #expect(try store.history(after: 0, limit: 100)?.count == 3)
    }
}
