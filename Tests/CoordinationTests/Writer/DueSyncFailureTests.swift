import StoreInterface
import TestSupport
import Testing

@testable import ObjectGraph

/// Deferred saves of a store that commits them at once, without a sync, as SQLite does.
@Suite struct DueSyncFailureTests {
    private let clock = SteppedClock()
    private let store = FaultyStore(schema: Music.model.storeSchema, capabilities: [.externalSaves, .history])
    private let coordinator: PersistentStoreCoordinator

    init() throws {
        coordinator = try .music(store, clock)
    }

    private func saveLater(_ title: String) async throws {
        try await coordinator.newBackgroundContext(name: title)
            .perform(andSave: .deferred(within: .seconds(10))) { _ = $0.makeTrack(title) }
    }

    /// Advances the time, and returns after the writer has done what became due.
    private func advance(seconds: Int) async throws {
        clock.advance(by: .seconds(seconds))
        try await coordinator.writer.onQueue { _ in }
    }

    /// Catches: a save that is never synced because the disk was full when its time came and no save followed.
    @Test func `S066: a sync that fails when it is due is tried again until it succeeds`() async throws {
        try await saveLater("a")
        let commits = store.count(.commit)
        store.fail { call, _ in call == .commit ? StoreError(.full, "the disk is full. Make room") : nil }
        try await advance(seconds: 10)
        #expect(store.count(.commit) > commits, "the sync was due")
        let failed = store.count(.commit)
        try await advance(seconds: 1)
        #expect(store.count(.commit) > failed, "and is tried again")
        store.fail(nil)
        let before = store.count(.commit)
        try await advance(seconds: 1)
        #expect(store.count(.commit) == before + 1)
        #expect(coordinator.writer.newestSynced == .max)
        #expect(coordinator.writer.shared.withLock { !$0.deferred.isOwed })
        try await advance(seconds: 600)
        #expect(store.count(.commit) == before + 1, "nothing is left to sync")
        #expect(try await coordinator.titles() == ["a"])
    }
}
