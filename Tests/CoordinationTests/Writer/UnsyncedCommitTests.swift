import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

/// Two connections of one process to a store that commits deferred saves at once, without a sync, as SQLite does.
@Suite struct UnsyncedCommitTests {
    private let clock = SteppedClock()
    private let store: FaultyStore
    private let other: FaultyStore

    init() {
        store = FaultyStore(schema: Music.model.storeSchema, capabilities: [.externalSaves, .history])
        other = FaultyStore(sharing: store)
    }

    private func save(_ title: String, _ coordinator: PersistentStoreCoordinator, _ durability: Durability) async throws {
        try await coordinator.newBackgroundContext(name: title).perform(andSave: durability) { _ = $0.makeTrack(title) }
    }

    @Test func `S160: a token comes before unsynced saves of another connection, until a later save of any connection is synced`()
        async throws
    {
        let first = try PersistentStoreCoordinator.music(store, clock)
        let second = try PersistentStoreCoordinator.music(other, clock)
        try await save("a", first, .durable)
        try await second.refresh()
        #expect(second.currentHistoryToken.generation == 1)
        try await save("b", first, .deferred(within: .seconds(10)))
        try await second.refresh()
        #expect(second.currentHistoryToken.generation == 1)
        try await save("c", second, .durable)
        #expect(second.currentHistoryToken.generation == 3)
        try await first.refresh()
        #expect(first.currentHistoryToken.generation == 3)
        #expect(try await second.titles() == ["a", "b", "c"])
    }

    /// Catches: a transaction without a save that counts as a sync of the file.
    @Test func `S160: a durable save that is refused takes no unsynced save of another connection to disk`() async throws {
        let first = try PersistentStoreCoordinator.music(store, clock)
        let second = try PersistentStoreCoordinator.music(other, clock)
        let id = try await first.newBackgroundContext(name: "first").perform(andSave: .durable) { $0.makeTrack("a").objectID }
        try await second.refresh()
        let editor = second.newBackgroundContext(name: "editor")
        try await editor.perform { try $0.existingObject(with: id)["plays"] = .int(1) }
        try await first.newBackgroundContext(name: "second").perform(andSave: .deferred(within: .seconds(10))) {
            try $0.existingObject(with: id)["plays"] = .int(2)
        }
        await #expect(throws: (any Error).self) { try await editor.save(.durable) }
        try await second.refresh()
        #expect(second.currentHistoryToken.generation == 1)
    }

    /// Catches: a token that stays behind because of a save that no power failure can take, as it is not in the file.
    @Test(arguments: [false, true])
    func `S160: a deferred save whose commit has failed holds no token back`(hasEarlier: Bool) async throws {
        let first = try PersistentStoreCoordinator.music(store, clock)
        let worker = first.newBackgroundContext(name: "worker")
        let id = try await worker.perform(andSave: .durable) { $0.makeTrack("a").objectID }
        if hasEarlier { try await save("b", first, .deferred(within: .seconds(600))) }
        let failing = store.count(.commit) + 1
        store.fail { call, number in
            call == .commit && number >= failing ? StoreError(.full, "the disk is full. Make room") : nil
        }
        await #expect(throws: StoreError.self) { try await save("c", first, .deferred(within: .seconds(600))) }
        store.fail(nil)
        try store.updateElsewhere(id, entity: "Track", property: "title", to: "d")
        try await first.refresh()
        // The earlier save is in the file, and not on disk yet.
        #expect(first.currentHistoryToken.generation == (hasEarlier ? 1 : 2))
        try await first.flush()
        try await first.refresh()
        #expect(first.currentHistoryToken.generation == (hasEarlier ? 3 : 2))
        #expect(try await first.titles() == (hasEarlier ? ["b", "d"] : ["d"]))
    }

    @Test func `S066: a flush of one connection takes the unsynced saves of another to disk`() async throws {
        let first = try PersistentStoreCoordinator.music(store, clock)
        let second = try PersistentStoreCoordinator.music(other, clock)
        try await save("a", first, .deferred(within: .seconds(600)))
        let commits = store.count(.commit)
        try await second.flush()
        #expect(store.count(.commit) > commits)
        try await second.refresh()
        #expect(second.currentHistoryToken.generation == 1)
        try await save("b", first, .deferred(within: .seconds(600)))
        #expect(try await second.history().map(\.id) == [1, 2])
    }

    /// Catches: a deferred save that is never synced, because its writer was released before the save was due.
    @Test func `S066, S160: an unsynced save of a released coordinator is synced, and tokens come before it until then`()
        async throws
    {
        var first: PersistentStoreCoordinator? = try PersistentStoreCoordinator.music(store, clock)
        let second = try PersistentStoreCoordinator.music(other, clock)
        try await save("a", try #require(first), .deferred(within: .seconds(600)))
        try await second.refresh()
        let (isSyncing, mayEnd) = (Flag(), Flag())
        store.hold(.commit, isSyncing, until: mayEnd)
        first = nil
        try await until("the save is being synced") { isSyncing.wait(atMost: .zero) }
        #expect(second.currentHistoryToken.generation == 0)
        mayEnd.set()
        try await until("the save is synced") { second.currentHistoryToken.generation == 1 }
    }

    /// Catches: a released coordinator that gives up after one failed sync, so that the histories of the others stop before its save.
    @Test func `S066, S160: a released coordinator tries the sync of its saves again`() async throws {
        var first: PersistentStoreCoordinator? = try PersistentStoreCoordinator.music(store, clock)
        let second = try PersistentStoreCoordinator.music(other, clock)
        try await save("a", try #require(first), .deferred(within: .seconds(600)))
        try await second.refresh()
        let hasFailed = Flag()
        store.fail { call, _ in
            guard call == .commit else { return nil }
            hasFailed.set()
            return StoreError(.full, "the disk is full. Make room")
        }
        first = nil
        try await until("a sync has failed") { hasFailed.wait(atMost: .zero) }
        #expect(second.currentHistoryToken.generation == 0)
        store.fail(nil)
        try await until("the save is synced") {
            clock.advance(by: .seconds(1))
            return second.currentHistoryToken.generation == 1
        }
    }
}
