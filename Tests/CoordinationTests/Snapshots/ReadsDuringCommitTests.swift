import Dispatch
import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

/// Reads while a commit of this process runs, after another connection has saved.
@Suite struct ReadsDuringCommitTests {
    private let store = FaultyStore(schema: Music.model.storeSchema)
    private let clock = SteppedClock()
    private let coordinator: PersistentStoreCoordinator

    /// The context whose save commits. It must exist before the other connection saves, because a new context looks for such saves.
    private let saving: BackgroundContext

    init() throws {
        coordinator = try .music(store, clock)
        saving = coordinator.newBackgroundContext(name: "writer")
    }

    /// Commits a change of a track without the writer's knowledge.
    private func saveElsewhere(_ id: ObjectID, plays: Int64) throws {
        let layer = Layer(schema: store.schema)
        let row = Row.make(kind: .update, layer: layer.id, columnCount: store.schema.entities[id.entity].columns.count)
        row[Music.column("Track", "plays")] = .int(plays)
        layer.put(row, entity: id.entity, key: id.key)
        try store.saveElsewhere(layer)
    }

    /// Runs a body while a save of a new track is being committed, then lets the commit end, with an error if there is one.
    private func duringCommit(_ error: StoreError?, _ body: () async throws -> Void) async throws {
        await saving.perform { _ = $0.makeTrack("y") }
        let (isCommitting, mayCommit) = (Flag(), DispatchSemaphore(value: 0))
        store.fail { call, _ in
            guard call == .commit else { return nil }
            isCommitting.set()
            mayCommit.wait()
            return error
        }
        let save = Task { try await saving.save() }
        try await until("the commit runs") { isCommitting.wait(atMost: .zero) }
        do { try await body() } catch {
            Issue.record(error)
        }
        // Reads do not fail, because a merge of a registered object stops the program if they do.
        store.fail { call, _ in FaultyStore.Call.reads.contains(call) ? nil : error }
        // The writer tries a failed group again.
        for _ in 0..<2 { mayCommit.signal() }
        let result = await save.result
        store.fail(nil)
        if error == nil { try result.get() } else { #expect(throws: StoreError.self) { try result.get() } }
    }

    @Test(arguments: [nil, StoreError(.full, "the disk is full. Make room")])
    func `S068: a refresh and a new context during a commit see an earlier save of another connection`(
        _ error: StoreError?
    ) async throws {
        let reader = coordinator.newBackgroundContext(name: "reader")
        let follower = coordinator.newBackgroundContext(name: "follower")
        await follower.perform { $0.automaticallyMergesChanges = true }
        let id = try await reader.perform(andSave: .durable) { $0.makeTrack("x").objectID }
        for context in [reader, follower] {
            #expect(try await context.perform { try $0.existingObject(with: id)["plays"] } == .int(0))
        }
        try saveElsewhere(id, plays: 7)
        let counter = Counter()
        try await duringCommit(error) {
            let shown = try await reader.perform { context in
                _ = context.addObserver { counter.note($0) }
                context.refreshAllObjects()
                return try (context.existingObject(with: id)["plays"], context.trackTitles())
            }
            #expect(shown.0 == .int(7) && shown.1 == ["x"])
            let new = try await coordinator.newBackgroundContext().perform { context in
                try (context.existingObject(with: id)["plays"], context.trackTitles())
            }
            #expect(new.0 == .int(7) && new.1 == ["x"])
        }
        #expect(counter.all.contains { $0.changes.updatedIDs(in: store.identity).contains(id) })
        // A context that merges hears of the save whether or not the commit succeeds.
        try await until("the follower has merged") {
            try await follower.perform { try $0.existingObject(with: id)["plays"] } == .int(7)
        }
        let titles = error == nil ? ["x", "y"] : ["x"]
        #expect(try await follower.perform { try $0.trackTitles() } == titles)
        #expect(try await reader.perform { try $0.trackTitles() } == ["x"])
        await reader.perform { $0.refreshAllObjects() }
        #expect(try await reader.perform { try $0.trackTitles() } == titles)
        #expect(coordinator.writer.state.committed == (try store.snapshot().generation))
    }

    /// Catches: a read that gives up waiting while the writer's thread is slow to publish a commit, and so misses a later save.
    @Test func `S068: a new context sees another connection's save after a commit that is published late`() async throws {
        let id = try await saving.perform(andSave: .durable) { $0.makeTrack("x").objectID }
        let (hasCommitted, mayPublish) = (Flag(), Flag())
        store.afterCommit {
            hasCommitted.set()
            _ = mayPublish.wait(atMost: .seconds(600))
        }
        await saving.perform { _ = $0.makeTrack("y") }
        let save = Task { try await saving.save() }
        try await until("the commit is in the file") { hasCommitted.wait(atMost: .zero) }
        try saveElsewhere(id, plays: 7)
        // A reader takes at most two snapshots in each attempt. The commit is published after five times the usual attempts.
        let last = store.count(.snapshot) + 10 * StoreWriter.publicationTries
        store.fail { call, number in
            if call == .snapshot, number > last { mayPublish.set() }
            return nil
        }
        let new = try await coordinator.newBackgroundContext().perform { context in
            try (context.existingObject(with: id)["plays"], context.trackTitles())
        }
        // If the read above gave up, the commit still waits.
        mayPublish.set()
        #expect(new.0 == .int(7) && new.1 == ["x", "y"])
        try await save.value
        store.afterCommit(nil)
        store.fail(nil)
    }

    /// Catches: a snapshot that stays acquired because its commit failed and no other save follows.
    @Test func `S154: the state that a failed commit has published keeps no pages after a rest`() async throws {
        let reader = coordinator.newBackgroundContext(name: "reader")
        let id = try await reader.perform(andSave: .durable) { $0.makeTrack("x").objectID }
        try saveElsewhere(id, plays: 7)
        try await duringCommit(StoreError(.full, "the disk is full. Make room")) {}
        #expect(coordinator.writer.state.committed == 2)
        clock.advance(by: .seconds(1))
        #expect((coordinator.writer.state.base as? LazySnapshot)?.current == nil)
    }
}
