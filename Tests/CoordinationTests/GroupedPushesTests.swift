import Dispatch
import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

/// Children that save through their parent while it saves: their saves are collected.
@Suite struct GroupedPushesTests {
    /// A child's save: an author and a durability.
    private struct Push {
        var author: String?
        var durability = Durability.durable
    }

    /// Saves the change of one child after the other, by default a new track, while a save of the parent with one track holds all of them
    /// back.
    private static func save(
        _ pushes: [Push], through parent: BackgroundContext,
        _ change: @escaping @Sendable (Int, ManagedObjectContext) throws -> Void = { _ = $1.makeTrack("\($0 + 1)") }
    ) async throws {
        await parent.perform { _ = $0.makeTrack("0") }
        let writer = await parent.perform { $0.configuration.writer }
        let gate = DispatchSemaphore(value: 0)
        writer.queue.async { gate.wait() }
        let saving = Task { try await parent.save(through: .store) }
        try await until("the parent's save waits") { writer.shared.withLock { $0.waiting.count } == 1 }
        var saves: [Task<Void, any Error>] = []
        for (number, push) in pushes.enumerated() {
            let child = await parent.newBackgroundChild(name: "child \(number)")
            try await child.perform {
                $0.transactionAuthor = push.author
                try change(number, $0)
            }
            saves.append(Task { try await child.save(through: .store, push.durability) })
            try await until("child \(number) waits") { await parent.perform { $0.phase.saveGate.pushCount } == number + 1 }
        }
        gate.signal()
        try await saving.value
        var results: [Result<Void, any Error>] = []
        for save in saves { results.append(await save.result) }
        for result in results { try result.get() }
    }

    @Test(arguments: Combination.all)
    func `S160: children that save together are recorded with their authors, in their order`(
        _ combination: Combination
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let parent = await container.makeBackgroundContext(name: "parent")
        let authors = ["alice", "alice", "bob", nil, "alice", "bob", "bob"]
        try await Self.save(authors.map { Push(author: $0) }, through: parent)
        let history = try container.coordinator.store.history(after: 0, limit: 100) ?? []
        // Consecutive saves of one author share a transaction.
        #expect(history.map(\.metadata.author) == ["", "alice", "bob", "", "alice", "bob"])
        #expect(history.map { $0.entities.reduce(0) { $0 + $1.insertedKeys.count } } == [1, 2, 1, 1, 1, 2])
    }

    /// Catches: an acknowledged save that is dropped, because the entry that it changes is only in an earlier child's save.
    @Test(arguments: [["alice", "alice"], ["alice", "bob"]], [Int?.some(1), nil])
    func `S192, S075: of children that insert one key and save together, the last one wins`(
        _ authors: [String], _ last: Int?
    ) async throws {
        let bed = try TestBed(.lmdb)
        let container = try await bed.container()
        let parent = await container.makeBackgroundContext(name: "parent")
        try await parent.perform(andSave: .durable) { try $0.collection("names", of: Int.self)["other"] = 0 }
        try await Self.save(authors.map { Push(author: $0) }, through: parent) { number, child in
            let names = try child.collection("names", of: Int.self)
            names["k"] = number
            if number == 1, last == nil { names["k"] = nil }
        }
        for context in [parent, container.coordinator.newBackgroundContext()] {
            let found = try await context.perform { try $0.collection("names", of: Int.self)["k"] }
            // A key that a child sets and removes is no change of it.
            #expect(found == last ?? 0)
        }
        #expect(try container.coordinator.store.verify() == [])
    }

    @Test(arguments: [["alice", "alice"], ["alice", "bob"]])
    func `S066: deferred saves of children that are saved together are written within the shortest bound`(
        _ authors: [String]
    ) async throws {
        let store = FaultyStore(schema: Music.model.storeSchema)
        let clock = SteppedClock()
        let coordinator = try PersistentStoreCoordinator.music(store, clock)
        let parent = coordinator.newBackgroundContext(name: "parent")
        let bounds = [Duration.seconds(600), .seconds(1)]
        try await Self.save(
            zip(authors, bounds).map { Push(author: $0, durability: .deferred(within: $1)) }, through: parent)
        #expect(try store.snapshot().count(Music.query("Track")) == 1, "the children's saves are deferred")
        clock.advance(by: .seconds(2))
        try await coordinator.writer.onQueue { $0.finishFlush() }
        #expect(try store.snapshot().count(Music.query("Track")) == 3)
    }

    @Test func `S066: a durable save of a child is on disk although it is saved together with a deferred one`() async throws {
        let store = FaultyStore(schema: Music.model.storeSchema)
        let coordinator = try PersistentStoreCoordinator.music(store, SteppedClock())
        let parent = coordinator.newBackgroundContext(name: "parent")
        try await Self.save([Push(durability: .deferred(within: .seconds(600))), Push()], through: parent)
        #expect(try store.snapshot().count(Music.query("Track")) == 3)
    }

    /// Catches: children that wait for another process one after the other, each for the whole time.
    @Test func `S067: children that save together wait for a busy process once`() async throws {
        let store = FaultyStore(schema: Music.model.storeSchema)
        let coordinator = try PersistentStoreCoordinator.music(store, SteppedClock())
        let parent = coordinator.newBackgroundContext(name: "parent")
        // The parent's save claims once.
        let passing = store.count(.claim) + 1
        store.fail { call, number in
            call == .claim && number > passing ? StoreError(.storeBusy, "process 1 holds saves back. Wait for it") : nil
        }
        let error = await #expect(throws: StoreError.self) { try await Self.save([Push(), Push(), Push()], through: parent) }
        #expect(error?.code == .storeBusy)
        // Nothing waits any more after a save of the parent.
        try? await parent.save(through: .store)
        #expect(store.count(.claim) == passing + 1)
    }
}
