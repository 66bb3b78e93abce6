import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

/// Durable saves whose commits are synced beside the writer's queue, in a store that commits deferred saves at once, as SQLite does (S066).
@Suite struct SeparateSyncTests {
    /// A coordinator whose syncs can be held, and whose writer expects threads that save.
    private struct Bed {
        let store = FaultyStore(schema: Music.model.storeSchema, capabilities: [.externalSaves, .history])
        let clock = SteppedClock()
        let coordinator: PersistentStoreCoordinator
        let importer: BackgroundContext
        let editor: BackgroundContext
        /// Whether a sync is held, and whether it may end.
        let isHeld = Flag()
        let mayEnd = Flag()

        init() async throws {
            coordinator = try .music(store, clock)
            importer = coordinator.newBackgroundContext(name: "importer")
            editor = coordinator.newBackgroundContext(name: "editor")
            try await save("first")
            // Keys are taken now, so that no transaction for keys is counted instead of a save.
            await importer.perform { $0.delete($0.makeTrack("none")) }
            coordinator.writer.disk.sync {}
        }

        /// Saves a new track as synchronous code does.
        func save(_ title: String, _ durability: Durability = .deferred) async throws {
            try await editor.perform { context in
                context.makeTrack(title)
                try context.saveNow(durability)
            }
        }

        /// Begins a durable save of a new track.
        func begin(_ title: String, by context: BackgroundContext? = nil, ended: Flag = Flag()) -> Task<Void, any Error> {
            let saver = context ?? importer
            return Task {
                defer { ended.set() }
                try await saver.perform(andSave: .durable) { _ = $0.makeTrack(title) }
            }
        }

        /// Begins a durable save, and returns when its sync is held.
        func beginHeld(_ title: String, ended: Flag = Flag()) async throws -> Task<Void, any Error> {
            store.hold(.sync, isHeld, until: mayEnd)
            let task = begin(title, ended: ended)
            try await until("the sync is held") { isHeld.wait(atMost: .zero) }
            return task
        }

        /// Makes each sync fail, and each commit after a number of them.
        func failDisk(afterCommits count: Int) {
            let last = store.count(.commit) + count
            store.fail { call, number in
                call == .sync || call == .commit && number > last ? StoreError(.inputOutput, "the disk failed") : nil
            }
        }

        /// The number of objects that all saves in the history have inserted.
        func insertedCount() throws -> Int {
            let saves = try store.history(after: nil, limit: 1000) ?? []
            return saves.flatMap(\.entities).reduce(0) { $0 + $1.insertedKeys.count }
        }

        var token: Generation { coordinator.currentHistoryToken.generation }

        func titles() async throws -> [String] { try await coordinator.titles().sorted() }
    }

    /// Catches: a program without synchronous saves that pays for a second thread and a second transaction.
    @Test func `S066: without threads that save, a durable save is synced by its commit`() async throws {
        let store = FaultyStore(schema: Music.model.storeSchema, capabilities: [.externalSaves, .history])
        let coordinator = try PersistentStoreCoordinator.music(store, SteppedClock())
        try await coordinator.newBackgroundContext().perform(andSave: .durable) { _ = $0.makeTrack("a") }
        try await coordinator.newBackgroundContext().perform(andSave: .deferred) { _ = $0.makeTrack("b") }
        try await coordinator.flush()
        #expect(store.count(.sync) == 0)
    }

    /// Catches: a token after a save that is visible and not on disk, and one that stays behind after the sync.
    @Test func `S160: a token comes before a durable save until it is synced, and before later deferred saves`() async throws {
        let bed = try await Bed()
        let ended = Flag()
        let durable = try await bed.beginHeld("durable", ended: ended)
        #expect(bed.token == 0)
        try await bed.save("second")
        #expect(try await bed.titles() == ["durable", "first", "second"])
        #expect(!ended.wait(atMost: .zero))
        bed.mayEnd.set()
        try await durable.value
        #expect(bed.token == 2, "the deferred save that came during the sync is not on disk")
        #expect(bed.coordinator.writer.shared.withLock { $0.deferred.isOwed })
        try await bed.coordinator.flush()
        #expect(bed.token == 3)
        #expect(!bed.coordinator.writer.shared.withLock { $0.deferred.isOwed || $0.syncs.isOwed })
    }

    /// Catches: a synchronous save that waits for the sync of earlier deferred saves, which have become due.
    @Test func `S066: a deferred save does not wait for the sync of others that are due`() async throws {
        let bed = try await Bed()
        bed.store.hold(.sync, bed.isHeld, until: bed.mayEnd)
        bed.clock.advance(by: .seconds(2))
        try await until("the sync is held") { bed.isHeld.wait(atMost: .zero) }
        try await bed.save("second")
        #expect(bed.token == 0)
        bed.mayEnd.set()
        try await until("the first save is on disk") { bed.token == 1 }
    }

    @Test func `S066: durable saves during a sync share the next one`() async throws {
        let bed = try await Bed()
        let durable = try await bed.beginHeld("durable")
        var later: [Task<Void, any Error>] = []
        for title in ["a", "b", "c"] {
            later.append(bed.begin(title, by: bed.coordinator.newBackgroundContext(name: title)))
            try await until("the save is visible") { try await bed.titles().contains(title) }
        }
        try await bed.coordinator.writer.onQueue { _ in }
        bed.mayEnd.set()
        try await durable.value
        for task in later { try await task.value }
        #expect(bed.store.count(.sync) == 2)
        #expect(bed.token == 5)
    }

    /// Catches: a save that waits for its own sync although a later commit has taken it to disk.
    @Test func `S066: a durable commit ends the saves before it`() async throws {
        let bed = try await Bed()
        let durable = try await bed.beginHeld("durable")
        try await bed.save("second", .durable)
        try await durable.value
        #expect(bed.token == 3)
        bed.mayEnd.set()
        try await bed.coordinator.flush()
        #expect(try await bed.titles() == ["durable", "first", "second"])
    }

    /// Catches: a context that merges by itself and does not see a save that has returned, because its own waits for the sync.
    @Test func `S068: the durable save of a context that merges by itself is synced by its commit`() async throws {
        let bed = try await Bed()
        await bed.importer.perform { $0.automaticallyMergesChanges = true }
        try await bed.begin("durable").value
        #expect(bed.store.count(.sync) == 0)
    }

    // MARK: Failures

    @Test func `S066: a durable save whose sync fails is synced by a commit`() async throws {
        let bed = try await Bed()
        bed.failDisk(afterCommits: 1_000_000)
        try await bed.begin("durable").value
        #expect(bed.token == 2)
        #expect(try bed.insertedCount() == 2)
        #expect(await bed.importer.perform { !$0.hasChanges })
        // The commit has repaired the failure, so the next save is synced separately again.
        bed.store.fail(nil)
        let syncs = bed.store.count(.sync)
        try await bed.begin("next").value
        #expect(bed.store.count(.sync) == syncs + 1)
    }

    /// Catches: a save that returns although it is on no disk, and one that is written twice because its context keeps the changes.
    @Test func `S062, S066: a durable save that cannot be synced throws until it can, and is saved once`() async throws {
        let bed = try await Bed()
        // The commit of the save succeeds. Its sync fails, and every commit that repeats it.
        bed.failDisk(afterCommits: 1)
        let error = await #expect(throws: StoreError.self) { try await bed.begin("durable").value }
        #expect(error?.code == .notOnDisk)
        #expect(try await bed.titles() == ["durable", "first"])
        #expect(await bed.importer.perform { !$0.hasChanges })
        #expect(bed.token == 0)
        await #expect(throws: StoreError.self) { try await bed.importer.save() }
        bed.store.fail(nil)
        try await bed.importer.save()
        #expect(bed.token == 2)
        #expect(try bed.insertedCount() == 2)
        #expect(try bed.store.verify() == [])
    }

    /// Catches: an import that reports rows as not saved which are visible, so that the program imports them again.
    @Test func `S066, S137: an import whose save cannot be synced counts its rows as saved`() async throws {
        let bed = try await Bed()
        func insert(_ titles: [String]) async throws {
            try await bed.coordinator.insert(into: "Track", ["title"], rows: titles.map { [.string($0)] })
        }
        try await insert(["earlier"])
        bed.failDisk(afterCommits: 1)
        let error = await #expect(throws: BatchError.self) { try await insert(["a", "b"]) }
        guard case .importStopped(savedRows: 2, let cause as StoreError)? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(cause.code == .notOnDisk)
        #expect(try await bed.titles() == ["a", "b", "earlier", "first"])
    }

    /// Catches: saves that are never synced because no one repeats them.
    @Test func `S066: saves whose sync has failed are tried again each second`() async throws {
        let bed = try await Bed()
        bed.failDisk(afterCommits: 1)
        await #expect(throws: (any Error).self) { try await bed.coordinator.flush() }
        bed.store.fail(nil)
        try await until("the save is on disk") {
            bed.clock.advance(by: .seconds(1))
            return bed.token == 1
        }
    }

    // MARK: Closing

    /// Catches: a store that is closed before its last saves are on disk, and a save that never returns.
    @Test func `S169: closing waits for the sync of durable saves`() async throws {
        let bed = try await Bed()
        let durable = try await bed.beginHeld("durable")
        let finished = Flag()
        let closing = Task { [coordinator = bed.coordinator] in
            defer { finished.set() }
            try await coordinator.writer.finishSaves()
            await coordinator.closeContexts()
            coordinator.leaveWriter(closing: true)
            try await coordinator.writer.close()
        }
        try await until("the flush of the closing waits") {
            bed.coordinator.writer.shared.withLock { $0.syncs.shareable != nil }
        }
        #expect(!finished.wait(atMost: .zero))
        bed.mayEnd.set()
        try await durable.value
        try await closing.value
        let reader = try PersistentStoreCoordinator(model: Music.model, store: FaultyStore(sharing: bed.store), name: "reader")
        #expect(try await reader.titles().sorted() == ["durable", "first"])
    }
}
