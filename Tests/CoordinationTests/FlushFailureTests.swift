import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

/// Flushes of deferred saves of which some cannot be written.
@Suite struct FlushFailureTests {
    private let clock = SteppedClock()
    private let store = FaultyStore(schema: Music.model.storeSchema)
    private let coordinator: PersistentStoreCoordinator

    init() throws {
        coordinator = try .music(store, clock)
    }

    private static let title = Music.column("Track", "title")
    private static let entity = Music.query("Track").entity
    private static let diskFull = StoreError(.full, "the disk is full. Make room")
    private static let tooLarge = StoreError(.valueTooLarge, "a value is too large. Change it")
    private static let mismatch = StoreError(.schemaMismatch, "the file has another schema. Open it anew")

    private func saveLater(_ title: String, _ context: BackgroundContext? = nil) async throws {
        let context = context ?? coordinator.newBackgroundContext(name: title)
        await context.perform { _ = $0.makeTrack(title) }
        try await context.save(.deferred(within: .seconds(600)))
    }

    private func storedTitles() throws -> [String] {
        let snapshot = try store.snapshot()
        return try snapshot.keys(Music.query("Track")).compactMap {
            if case .string(let title)? = try snapshot.value(Self.entity, key: $0, column: Self.title) { title } else { nil }
        }.sorted()
    }

    private func settle() async throws { try await coordinator.writer.onQueue { $0.finishFlush() } }

    /// Returns the titles that a layer writes.
    @Sendable private static func titles(_ layer: Layer) -> [String] {
        (layer.entity(entity)?.pages.values.flatMap { page in
            SlotIterator(page.touched).compactMap { slot -> String? in
                guard let row = page[slot], row.isSet(title), case .string(let text) = row[title] else { return nil }
                return text
            }
        }) ?? []
    }

    /// Refuses every layer that writes this title.
    private func refuse(_ title: String, _ error: StoreError = tooLarge) {
        store.refuse { Self.titles($0).contains(title) ? error : nil }
    }

    private func failures(_ body: () async throws -> Void) async throws -> [DeferredSaveFailure] {
        let error = try #require(await #expect(throws: SaveError.self) { try await body() })
        guard case .deferredSavesFailed(let failures) = error else {
            Issue.record("another error: \(error)")
            return []
        }
        return failures
    }

    /// Catches: a store that accepts no more saves because one acknowledged save cannot be written. Also catches saves that are
    /// lost because they were folded with it.
    @Test func `S067: a deferred save that cannot be written is left out and reported, and takes no other save along`()
        async throws
    {
        for title in ["a", "bad", "b", "c", "d", "e", "f", "g", "h"] { try await saveLater(title) }
        #expect(coordinator.writer.state.deferred.count < 9, "some are folded")
        refuse("bad")
        let failures = try await failures { try await coordinator.flush() }
        #expect(failures.map(\.metadata.contextName) == ["bad"])
        store.refuse(nil)
        let expected = ["a", "b", "c", "d", "e", "f", "g", "h"]
        #expect(try storedTitles() == expected)
        #expect(try await coordinator.titles() == expected)
        try await coordinator.flush()
        #expect(try store.verify().isEmpty)
        #expect(try store.history(after: 0, limit: 100)?.count == 8)
    }

    /// Catches: a report that is taken by a flush of which the program never learns.
    @Test func `S067: a flush that the program does not wait for leaves the report of a lost save to the next one`() async throws
    {
        try await saveLater("bad")
        refuse("bad")
        try coordinator.flushNow(reportsFailures: false)
        _ = try await coordinator.history()
        let failures = try await failures { try await coordinator.flush() }
        #expect(failures.map(\.metadata.contextName) == ["bad"])
    }

    /// Catches: an update of an object that was never written, or a reference to it, that is written all the same.
    @Test func `S067: saves that depend on one that was left out are left out and reported too`() async throws {
        let context = coordinator.newBackgroundContext(name: "bad")
        let id = await context.perform { $0.makeTrack("bad").objectID }
        try await context.save(.deferred(within: .seconds(600)))
        let other = coordinator.newBackgroundContext(name: "update")
        try await other.perform { try $0.existingObject(with: id)["plays"] = .int(7) }
        try await other.save(.deferred(within: .seconds(600)))
        try await saveLater("good")
        refuse("bad")
        let failures = try await failures { try await coordinator.flush() }
        #expect(failures.map(\.metadata.contextName) == ["bad", "update"])
        store.refuse(nil)
        #expect(try storedTitles() == ["good"])
        #expect(try await coordinator.titles() == ["good"])
        #expect(try store.verify().isEmpty)
    }

    /// Catches: saves that were committed before the disk became full, but that the writer considers pending. They would be
    /// written twice, or never.
    @Test func `S066: what was committed before a full disk stays, and only the rest is written later`() async throws {
        for title in ["a", "bad", "b", "c"] { try await saveLater(title) }
        let commits = store.count(.commit)
        refuse("bad")
        // If written together, none is committed. If written one by one, "a" is committed, and "b" does not fit.
        store.fail { call, number in call == .commit && number > commits + 1 ? Self.diskFull : nil }
        await #expect(throws: StoreError.self) { try await coordinator.flush() }
        #expect(try storedTitles() == ["a"])
        #expect(try await coordinator.titles() == ["a", "b", "c"])
        #expect(coordinator.writer.state.pendingSaves == 2)
        #expect(store.heldClaims == 1)
        store.fail(nil)
        let failures = try await failures { try await coordinator.flush() }
        #expect(failures.map(\.metadata.contextName) == ["bad"])
        #expect(try storedTitles() == ["a", "b", "c"])
        #expect(try store.history(after: 0, limit: 100)?.count == 3)
        try await settle()
        #expect(store.heldClaims == 0)
        #expect(try store.verify().isEmpty)
    }

    /// Catches: a save that depends on a rejected save and is no longer checked after a full disk.
    @Test func `S067: saves are checked without those left out, also when they are written later`() async throws {
        let context = coordinator.newBackgroundContext(name: "bad")
        let id = await context.perform { $0.makeTrack("bad").objectID }
        try await context.save(.deferred(within: .seconds(600)))
        try await saveLater("good")
        try await context.perform { try $0.existingObject(with: id)["plays"] = .int(7) }
        try await context.save(.deferred(within: .seconds(600)))
        refuse("bad")
        store.fail { call, _ in call == .commit ? Self.diskFull : nil }
        await #expect(throws: StoreError.self) { try await coordinator.flush() }
        store.fail(nil)
        let failures = try await failures { try await coordinator.flush() }
        #expect(failures.map(\.metadata.contextName) == ["bad", "bad"])
        #expect(try storedTitles() == ["good"])
        #expect(try store.verify().isEmpty)
        try await saveLater("later")
        try await coordinator.flush()
        #expect(try storedTitles() == ["good", "later"])
    }

    /// Catches: saves that are acknowledged although the file no longer accepts any save of this model.
    @Test func `S066: a deferred save is refused once the file takes no save of this model`() async throws {
        let context = coordinator.newBackgroundContext()
        try await saveLater("a", context)
        store.fail { call, _ in call == .commit ? Self.mismatch : nil }
        let error = await #expect(throws: StoreError.self) { try await coordinator.flush() }
        #expect(error?.code == .schemaMismatch)
        await context.perform { _ = $0.makeTrack("b") }
        let refusal = await #expect(throws: StoreError.self) { try await context.save(.deferred(within: .seconds(600))) }
        #expect(refusal?.code == .schemaMismatch)
        #expect(await context.perform { $0.hasChanges })
        // As if the other process had repaired it.
        store.fail(nil)
        try await context.save(.deferred(within: .seconds(600)))
        try await coordinator.flush()
        #expect(try storedTitles() == ["a", "b"])
    }

    /// Catches: an undo that misses saves, because a save that was left out has counted among those of the snapshot.
    @Test(arguments: [["bad", "good"], ["good", "bad"]])
    func `S162: an author's saves are undone since a snapshot with a save that was left out`(_ titles: [String]) async throws {
        let container = try await container()
        for title in titles { try await saveLater(title) }
        let snapshot = try coordinator.snapshot()
        refuse("bad")
        _ = try await failures { try await coordinator.flush() }
        store.refuse(nil)
        let context = coordinator.newBackgroundContext(name: "author")
        try await context.perform(andSave: .durable) { context in
            context.transactionAuthor = "author"
            context.makeTrack("mine")
        }
        #expect(try storedTitles() == ["good", "mine"])
        #expect(try await container.undoChanges(by: "author", since: snapshot) == [])
        #expect(try storedTitles() == ["good"])
    }

    /// Catches: a context that keeps showing a save which was left out, because the saves before and after it are in the history.
    @Test func `S067: saves that were left out are no part of the changes after many others`() async throws {
        for title in ["bad", "good"] { try await saveLater(title) }
        let writer = coordinator.writer
        let old = writer.state
        refuse("bad")
        _ = try await failures { try await coordinator.flush() }
        store.refuse(nil)
        try await coordinator.newBackgroundContext().perform(andSave: .durable) { _ = $0.makeTrack("later") }
        // As after some thousand saves.
        writer.shared.withLock { $0.recent.forgetSteps() }
        #expect(writer.changes(after: old, through: writer.state) == nil)
    }

    // MARK: Closing and suspending

    /// Leaves out a save at its deadline, for which no caller waits.
    private func leaveOut(_ title: String) async throws {
        try await saveLater(title)
        refuse(title)
        clock.advance(by: .seconds(600))
        try await settle()
        store.refuse(nil)
        #expect(coordinator.writer.state.pendingSaves == 0)
    }

    private func container() async throws -> PersistentContainer {
        try await PersistentContainer(model: Music.model, store: StoreDescription(name: "faulty") { [store] _ in store })
    }

    /// Catches: a save of another process that is overwritten, because it came between the choice of a state and its snapshot.
    @Test func `S162: undoing an author's saves finds the newest save of another process`() async throws {
        let container = try await container()
        let context = container.newBatchOperationContext()
        let id = try await context.perform(andSave: .durable) { context in
            let track = context.makeTrack("t")
            track["plays"] = .int(1)
            return track.objectID
        }
        let before = try container.coordinator.snapshot(owner: "test")
        await context.perform { $0.transactionAuthor = "author" }
        try await context.perform(andSave: .durable) { try $0.existingObject(with: id)["plays"] = .int(5) }
        let layer = Layer(schema: Music.model.storeSchema)
        let row = Row.make(
            kind: .update, layer: layer.id, columnCount: Music.model.storeSchema.entities[id.entity].columns.count)
        row[Music.column("Track", "plays")] = .int(9)
        layer.put(row, entity: id.entity, key: id.key)
        let (store, hasSaved) = (store, Flag())
        store.fail { call, _ in
            guard call == .snapshot, !hasSaved.wait(atMost: .zero) else { return nil }
            hasSaved.set()
            try? store.saveElsewhere(layer)
            return nil
        }
        await #expect(throws: UndoError.self) { try await container.undoChanges(by: "author", since: before) }
        store.fail(nil)
        let plays = try store.snapshot().value(id.entity, key: id.key, column: Music.column("Track", "plays"))
        #expect(plays == .int(9))
        try await container.close()
    }

    /// Catches: a save that was acknowledged, and of whose loss only the log knows.
    @Test(arguments: [false, true])
    func `S067: closing a container reports the saves that were left out before`(_ hasSecond: Bool) async throws {
        let container = try await container()
        try await leaveOut("first")
        if hasSecond {
            try await saveLater("second")
            refuse("second")
        }
        let failures = try await failures { try await container.close() }
        #expect(failures.map(\.metadata.contextName) == (hasSecond ? ["first", "second"] : ["first"]))
        try await container.close()
    }

    @Test func `S067: a container that cannot be closed yet reports them when it is`() async throws {
        let container = try await container()
        try await leaveOut("bad")
        try await saveLater("good")
        store.fail { call, _ in call == .commit ? Self.diskFull : nil }
        let error = await #expect(throws: StoreError.self) { try await container.close() }
        #expect(error?.code == .full)
        store.fail(nil)
        let failures = try await failures { try await container.close() }
        #expect(failures.map(\.metadata.contextName) == ["bad"])
        #expect(try storedTitles() == ["good"])
    }

    @Test func `S067: suspending a container reports the saves that were left out before, once`() async throws {
        let container = try await container()
        try await leaveOut("bad")
        let failures = try await failures { try await container.suspend() }
        #expect(failures.map(\.metadata.contextName) == ["bad"])
        #expect(!coordinator.writer.suspension.isClosed)
        try await container.suspend()
        await container.resume()
        try await container.close()
    }

    // MARK: Snapshots

    @Test func `S152: a snapshot that is read again and again is remembered once`() throws {
        let snapshot = try store.snapshot()
        let count = coordinator.writer.snapshotRegistry.notedCount
        for _ in 0..<1000 { coordinator.writer.snapshotRegistry.note(snapshot) }
        #expect(coordinator.writer.snapshotRegistry.notedCount <= count + 1)
    }

    /// Catches: a count that changes in a context that has merged nothing.
    @Test func `S150: a context that has shown a count keeps its state when deferred saves are written`() async throws {
        try await saveLater("a")
        let reader = coordinator.newBackgroundContext()
        await reader.perform { $0.automaticallyMergesChanges = true }
        let request = EntityFetchRequest("Track")
        #expect(try await reader.perform { try $0.count(request) } == 1)
        clock.advance(by: .seconds(600))
        try await settle()
        try await until("the reader stands on the file") {
            await reader.perform { $0.layerStack.baseState.state.deferred.isEmpty }
        }
        let layer = Layer(schema: Music.model.storeSchema)
        let entity = try #require(Music.model.entity(named: "Track"))
        let row = Row.make(kind: .insert, layer: layer.id, columnCount: entity.columns.count)
        row.fill(with: entity.defaults)
        row[Self.title] = .string("elsewhere")
        layer.put(row, entity: entity.number, key: ObjectKey(1 << 30))
        try store.saveElsewhere(layer)
        #expect(try await reader.perform { try $0.count(request) } == 1)
        #expect(
            try await reader.perform { context in
                context.refreshAllObjects()
                return try context.count(request)
            } == 2)
    }

    /// Catches: a merge that compares the number of a save with that of a deferred save, which was left out and never had it.
    @Test(arguments: [Durability.durable, .deferred(within: .seconds(600))])
    func `S091: a save after a rejected deferred save is merged into a context that has read the rejected one`(
        _ durability: Durability
    ) async throws {
        let store = FaultyStore(schema: Music.model.storeSchema)
        let coordinator = try PersistentStoreCoordinator.music(store, SteppedClock())
        let bad = coordinator.newBackgroundContext(name: "bad")
        let id = try await bad.perform(andSave: .durable) { $0.makeTrack("t").objectID }
        try await bad.perform(andSave: .deferred(within: .seconds(600))) { _ = $0.makeTrack("bad") }
        let reader = coordinator.newBackgroundContext(name: "reader")
        #expect(try await reader.perform { try $0.existingObject(with: id)["plays"] } == .int(0))
        store.refuse { _ in StoreError(.valueTooLarge, "a value is too large. Change it") }
        await #expect(throws: SaveError.self) { try await coordinator.flush() }
        store.refuse(nil)
        let writer = coordinator.newBackgroundContext(name: "writer")
        let counter = Counter()
        try await writer.perform { context in
            _ = context.addObserver { counter.note($0) }
            try context.existingObject(with: id)["plays"] = .int(5)
        }
        try await writer.save(durability)
        let changes = try #require(counter.all.last { $0.kind == .didSave }?.changes)
        let shown = try await reader.perform { context in
            context.mergeChanges(from: changes)
            return try (context.existingObject(with: id)["plays"], context.trackTitles())
        }
        #expect(shown.0 == .int(5) && shown.1 == ["t"])
    }

    /// Catches: a repair of the above that moves a context whenever saves are deferred.
    @Test func `S090, S091: merging a save that the context shows does not move it`() async throws {
        let store = FaultyStore(schema: Music.model.storeSchema)
        let coordinator = try PersistentStoreCoordinator.music(store, SteppedClock())
        let writer = coordinator.newBackgroundContext(name: "writer")
        let counter = Counter()
        await writer.perform { _ = $0.addObserver { counter.note($0) } }
        for title in ["a", "b"] {
            try await writer.perform(andSave: .deferred(within: .seconds(600))) { _ = $0.makeTrack(title) }
        }
        let reader = coordinator.newBackgroundContext(name: "reader")
        #expect(try await reader.perform { try $0.trackTitles() } == ["a", "b"])
        try await writer.perform(andSave: .deferred(within: .seconds(600))) { _ = $0.makeTrack("c") }
        let saves = counter.all.filter { $0.kind == .didSave }.map(\.changes)
        for flushes in [false, true] {
            if flushes { try await coordinator.flush() }
            let shown = try await reader.perform { context in
                for changes in saves.prefix(2) { context.mergeChanges(from: changes) }
                return try context.trackTitles()
            }
            #expect(shown == ["a", "b"])
        }
        #expect(
            try await reader.perform {
                $0.mergeChanges(from: saves[2]); return try $0.trackTitles()
            } == ["a", "b", "c"])
    }
}
