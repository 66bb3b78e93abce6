import Dispatch
import Platform
import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

/// The writer over a store that fails on request, with a clock that the test advances.
@Suite struct StoreWriterTests {
    private let clock = SteppedClock()
    private let store = FaultyStore(schema: Music.model.storeSchema)
    private let coordinator: PersistentStoreCoordinator

    init() throws {
        coordinator = try .music(store, clock)
    }

    private var writer: StoreWriter { coordinator.writer }

    private func save(_ context: BackgroundContext, _ title: String, _ durability: Durability) async throws {
        await context.perform { _ = $0.makeTrack(title) }
        try await context.save(durability)
    }

    private var stored: Int {
        get throws { try store.snapshot().count(Music.query("Track")) }
    }

    /// Returns when all jobs that were queued on the writer have run, including writes.
    private func settle() async throws {
        try await writer.onQueue { $0.finishFlush() }
    }

    private static let diskFull = StoreError(.full, "the disk is full. Make room")

    // MARK: Deferred saves

    @Test func `S066: a deferred save is visible at once and written when its time has come`() async throws {
        let context = coordinator.newBackgroundContext()
        try await save(context, "a", .deferred(within: .seconds(5)))
        #expect(try await coordinator.titles() == ["a"])
        #expect(try stored == 0)
        clock.advance(by: .seconds(4))
        try await settle()
        #expect(try stored == 0)
        clock.advance(by: .seconds(1))
        try await settle()
        #expect(try stored == 1)
        #expect(store.heldClaims == 0)
    }

    @Test func `S066: deferred saves that a full disk refuses are kept and written later`() async throws {
        let context = coordinator.newBackgroundContext()
        try await save(context, "a", .deferred(within: .seconds(1)))
        store.fail { call, _ in call == .commit ? Self.diskFull : nil }
        clock.advance(by: .seconds(1))
        try await settle()
        #expect(try stored == 0)
        #expect(try await coordinator.titles() == ["a"], "still visible")
        store.fail(nil)
        clock.advance(by: .seconds(1))
        try await settle()
        #expect(try stored == 1)
        try await coordinator.flush()
    }

    @Test func `S066: a flush that fails says so and loses nothing`() async throws {
        let context = coordinator.newBackgroundContext()
        try await save(context, "a", .deferred(within: .seconds(600)))
        store.fail { call, _ in call == .commit ? Self.diskFull : nil }
        let error = await #expect(throws: StoreError.self) { try await coordinator.flush() }
        #expect(error?.code == .full)
        store.fail(nil)
        try await coordinator.flush()
        #expect(try stored == 1)
    }

    /// Catches: a conflict between a context and its own deferred save.
    @Test func `S067: a context goes on updating what it saved deferred, across every flush`() async throws {
        let context = coordinator.newBackgroundContext()
        let id = await context.perform { $0.makeTrack("a", plays: 0).objectID }
        for number in 1...40 {
            try await context.perform { try $0.existingObject(with: id)["plays"] = .int(Int64(number)) }
            try await context.save(number % 7 == 0 ? .durable : .deferred(within: .seconds(1)))
            if number % 3 == 0 {
                clock.advance(by: .seconds(1))
                try await settle()
            }
            if number % 5 == 0 { try await save(coordinator.newBackgroundContext(), "\(number)", .deferred(within: .seconds(1))) }
        }
        try await coordinator.flush()
        let plays = try await coordinator.newBackgroundContext().perform { try $0.existingObject(with: id)["plays"] }
        #expect(plays == .int(40))
        #expect(try store.verify().isEmpty)
    }

    // MARK: Claims

    @Test func `S067: the claim is held while saves are pending, and no longer`() async throws {
        let context = coordinator.newBackgroundContext()
        #expect(store.heldClaims == 0)
        try await save(context, "a", .deferred(within: .seconds(600)))
        #expect(store.heldClaims == 1)
        try await save(context, "b", .deferred(within: .seconds(600)))
        #expect(store.heldClaims == 1)
        try await save(context, "c", .durable)
        // The writer gives the claim back after it has published the save.
        try await settle()
        #expect(store.heldClaims == 0)
        #expect(try stored == 3)
    }

    @Test func `S067: pending saves are written as soon as another process waits`() async throws {
        let context = coordinator.newBackgroundContext()
        try await save(context, "a", .deferred(within: .seconds(600)))
        store.setWanted(true)
        try await settle()
        #expect(try stored == 1)
        #expect(store.heldClaims == 0)
        // While another process waits, a save is not deferred.
        store.setWanted(true)
        try await save(context, "b", .deferred(within: .seconds(600)))
        try await save(context, "c", .deferred(within: .seconds(600)))
        try await settle()
        #expect(try stored >= 2)
    }

    @Test func `S067: a save that does not get the claim fails as busy and keeps its changes`() async throws {
        let context = coordinator.newBackgroundContext()
        store.fail { call, _ in call == .claim ? StoreError(.storeBusy, "process 1 holds saves. Wait") : nil }
        for durability in [Durability.durable, .deferred] {
            await context.perform { _ = $0.makeTrack("a") }
            let error = await #expect(throws: StoreError.self) { try await context.save(durability) }
            #expect(error?.code == .storeBusy)
            #expect(await context.perform { $0.hasChanges })
        }
        store.fail(nil)
        try await context.save()
        #expect(try stored == 2)
    }

    // MARK: Saves of others

    /// Saves tracks with these numbers of plays by another connection.
    private func saveElsewhere(_ kind: RowKind, _ plays: [ObjectKey: Int]) throws {
        let layer = Layer(schema: Music.model.storeSchema)
        let entity = try #require(Music.model.entity(named: "Track"))
        for (key, plays) in plays {
            let row = Row.make(kind: kind, layer: layer.id, columnCount: entity.columns.count)
            if kind == .insert {
                row.fill(with: entity.defaults)
                row[Music.column("Track", "title")] = .string("elsewhere")
            }
            row[Music.column("Track", "plays")] = .int(Int64(plays))
            layer.put(row, entity: entity.number, key: key)
        }
        try store.saveElsewhere(layer)
    }

    @Test func `S154: the budget moves a clean context after saves of other processes only`() async throws {
        let idle = coordinator.newBackgroundContext(name: "idle")
        #expect(try await idle.perform { try $0.trackTitles() } == [])
        coordinator.snapshotBudget = SnapshotBudget(maximumAge: .zero, responses: .advanceCleanContexts)
        for number in 1...3 {
            try saveElsewhere(.insert, [ObjectKey(number << 30): number])
            #expect(await idle.perform { $0.snapshot.generation } == Generation(rawValue: UInt64(number - 1)))
            clock.advance(by: .milliseconds(500))
            // The clock has run the check, which has enqueued the move.
            try await until("the context is moved") {
                await idle.perform { $0.snapshot.generation } == Generation(rawValue: UInt64(number))
            }
        }
        coordinator.snapshotBudget = nil
    }

    @Test func `S068: a new context sees what another connection has committed, without being told`() async throws {
        _ = try await coordinator.titles()
        try saveElsewhere(.insert, [ObjectKey(1 << 30): 0])
        #expect(try await coordinator.titles() == ["elsewhere"])
    }

    /// Catches: a context that shows a save before it has reported it. The next report then finds old positions by new values.
    @Test(arguments: [false, true])
    func `S145: results equal a fetch when a save arrives between a notice and the snapshot`(_ isOwnSave: Bool) async throws {
        let request = EntityFetchRequest("Track", sortBy: [AttributeSort("plays")])
        let context = coordinator.newBackgroundContext()
        try saveElsewhere(.insert, [ObjectKey(1 << 30): 10, ObjectKey(1 << 30 + 1): 20, ObjectKey(1 << 30 + 2): 30])
        try writer.adoptExternalSaves()
        let results = try await context.perform { context in
            context.refreshAllObjects()
            return try Unshared(Results(request, context: context))
        }
        for round in 0..<5 {
            try saveElsewhere(.update, [ObjectKey(1 << 30): 100 * round + 40])
            try writer.adoptExternalSaves()
            // The snapshot of the adopted state is not acquired yet, so that it contains this save too.
            try saveElsewhere(.update, [ObjectKey(1 << 30 + 1): 100 * round + 50])
            if isOwnSave {
                try await context.perform(andSave: .durable) { $0.insert("Artist")["name"] = .string("\(round)") }
            }
            await context.perform { context in
                context.moving { context.advance(to: context.configuration.writer.state) }
            }
            let (shown, fetched) = try await context.perform { context in
                (results.value.snapshot.ids, try context.fetchIDs(request))
            }
            #expect(shown == fetched, "round \(round)")
        }
    }

    /// `@unchecked Sendable` is safe because the results are used only inside `perform` of their context.
    private final class Unshared<T>: @unchecked Sendable {
        let value: T
        init(_ value: T) { self.value = value }
    }

    @Test func `S068: a save of a sibling connection is published even if a commit runs when it arrives`() async throws {
        let (isCommitting, hasLooked, mayCommit) = (Flag(), Flag(), Flag())
        store.fail { call, _ in
            if call == .commit {
                isCommitting.set()
                _ = mayCommit.wait(atMost: .seconds(600))
            } else if call == .snapshot, isCommitting.wait(atMost: .zero) {
                // Nobody else reads the file during the commit. A second look shows that the first one found the commit running.
                if hasLooked.wait(atMost: .zero) { mayCommit.set() }
                hasLooked.set()
            }
            return nil
        }
        let context = coordinator.newBackgroundContext()
        await context.perform { _ = $0.makeTrack("a") }
        try saveElsewhere(.insert, [ObjectKey(1 << 30): 0])
        let newest = try store.snapshot().generation
        async let saved: Void = context.save(.durable)
        let writer = writer
        let committed = await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                _ = isCommitting.wait(atMost: .seconds(600))
                writer.adoptSavesOfSibling()
                continuation.resume(returning: writer.state.committed)
                // If the call above did not wait, the commit still does.
                mayCommit.set()
            }
        }
        #expect(committed >= newest)
        try await saved
    }

    @Test func `S062: a save whose commit fails leaves the store and the context as they were`() async throws {
        let context = coordinator.newBackgroundContext()
        await context.perform { _ = $0.makeTrack("a") }
        store.fail { call, _ in call == .commit ? Self.diskFull : nil }
        let error = await #expect(throws: StoreError.self) { try await context.save() }
        #expect(error?.code == .full)
        #expect(try await coordinator.titles() == [])
        store.fail(nil)
        try await context.save()
        #expect(try await coordinator.titles() == ["a"])
    }

    // MARK: Values

    @Test func `S061: a value that its attribute cannot hold is refused when the save is accepted`() async throws {
        let context = coordinator.newBackgroundContext()
        await context.perform { $0.makeTrack("a")["title"] = .null }
        for durability in [Durability.deferred, .durable] {
            let error = try #require(await #expect(throws: SaveError.self) { try await context.save(durability) })
            guard case .validation(let failures) = error else {
                Issue.record("another error: \(error)")
                return
            }
            #expect(failures.map { "\($0.1)" } == ["Track.title has no value: it is not optional. Give it one"])
        }
        await context.perform { $0.rollback() }
        try await save(context, "b", .durable)
        #expect(try stored == 1)
    }

    /// Catches: a number that is acknowledged, and left out when the deferred saves are written.
    @Test func `S061: a number out of its attribute's range is refused when the save is accepted`() async throws {
        let model = try Model([EntityDescription(name: "Meter", properties: [.attribute(.init(name: "count", type: .int32))])])
        let store = FaultyStore(schema: model.storeSchema)
        let coordinator = try PersistentStoreCoordinator(model: model, store: store, name: "meters")
        let context = coordinator.newBackgroundContext()
        await context.perform { $0.insert("Meter")["count"] = .int(1 << 40) }
        for durability in [Durability.deferred, .durable] {
            let error = try #require(await #expect(throws: SaveError.self) { try await context.save(durability) })
            #expect(error.code == .validation && "\(error)".contains("Meter.count"), "\(error)")
        }
        await context.perform { context in
            context.rollback()
            context.insert("Meter")["count"] = .int(1 << 30)
        }
        try await context.save(.deferred)
        try await coordinator.flush()
        #expect(try await coordinator.newBackgroundContext().perform { try $0.count(EntityFetchRequest("Meter")) } == 1)
    }

    // MARK: Resting

    @Test func `S154: a writer that rests and contexts that have read nothing hold no snapshot`() async throws {
        let context = coordinator.newBackgroundContext()
        try await save(context, "a", .durable)
        // The writer's queue may release the state before the save a moment after it has completed the save.
        try await until("the save holds no snapshot") { writer.snapshotRegistry.live().taken.isEmpty }
        _ = try await coordinator.titles()
        // After a while the writer releases the snapshot. The reader may be released a moment after its last use.
        clock.advance(by: .seconds(1))
        try await settle()
        try await until("the snapshot is released") { writer.snapshotRegistry.live().taken.isEmpty }
    }

    /// Returns when the contexts have moved to what the writer has published, and the writer has given back its snapshot.
    private func rest(_ coordinator: PersistentStoreCoordinator, _ contexts: BackgroundContext...) async throws {
        for _ in 0..<2 {
            try await coordinator.writer.onQueue { $0.finishFlush() }
            clock.advance(by: .seconds(1))
        }
        try await coordinator.writer.onQueue { _ in }
        for context in contexts { await context.perform { _ in } }
    }

    @Test(arguments: [true, false])
    func `S154: contexts that show nothing hold no snapshot after a deferred save was written`(_ merges: Bool) async throws {
        let saver = coordinator.newBackgroundContext()
        let other = coordinator.newBackgroundContext()
        for context in [saver, other] { await context.perform { $0.automaticallyMergesChanges = merges } }
        try await save(saver, "a", .deferred(within: .seconds(600)))
        #expect(try await saver.perform { try $0.count(EntityFetchRequest("Track")) } == 1)
        try await save(saver, "b", .deferred(within: .seconds(600)))
        try await coordinator.flush()
        try await rest(coordinator, saver, other)
        let live = writer.snapshotRegistry.live()
        // The other context has not seen the saves, so it keeps the state before them, unless it merges.
        #expect(live.taken.flatMap(\.holders).map(\.owner) == (merges ? [] : [other.name]))
    }

    /// Catches: a context that gives up the state in which it has read a value.
    @Test(arguments: ["count", "object", "keyed value"])
    func `S150: a context that has read keeps its state when the deferred save is in the file`(_ read: String) async throws {
        let model = Music.model.withKeyedValues
        let coordinator = try PersistentStoreCoordinator(
            model: model, store: FaultyStore(schema: model.storeSchema), name: "test", clock: clock.source)
        let context = coordinator.newBackgroundContext()
        await context.perform { $0.automaticallyMergesChanges = false }
        let track = try await context.perform { context in
            try context.collection("drafts", of: String.self)["spring"] = "rain"
            return context.makeTrack("a").objectID
        }
        try await context.save(.deferred(within: .seconds(600)))
        try await context.perform { context in
            switch read {
            case "count": _ = try context.count(EntityFetchRequest("Track"))
            case "object": _ = try context.existingObject(with: track)["title"]
            default: _ = try context.collection("drafts", of: String.self)["spring"]
            }
        }
        try await coordinator.flush()
        try await rest(coordinator, context)
        #expect(coordinator.writer.snapshotRegistry.live().taken.flatMap(\.holders).map(\.owner) == [context.name])
    }

    // MARK: Closing

    /// Returns a request to insert a track, like that of a batch.
    private func insertion() async throws -> SaveRequest {
        let entity = try #require(Music.model.entity(named: "Track"))
        let layer = Layer(schema: Music.model.storeSchema)
        let row = Row.make(kind: .insert, layer: layer.id, columnCount: entity.columns.count)
        row.fill(with: entity.defaults)
        layer.put(row, entity: entity.number, key: ObjectKey(1 << 30))
        layer.seal()
        return await coordinator.newBackgroundContext().perform { $0.saveRequest([layer], .deferred(within: .seconds(600))) }
    }

    private func closeWriter() async throws {
        coordinator.leaveWriter(closing: true)
        try await writer.finishSaves()
        try await writer.close()
    }

    /// Catches: a save that passes its check before the last container is closed, and is acknowledged by a writer that is closed.
    @Test(arguments: [true, false])
    func `S066: a save that closing overtakes is refused and not acknowledged`(_ isSynchronous: Bool) async throws {
        let (writer, request) = (writer, try await insertion())
        let (hasBegun, mayEnd) = (Flag(), Flag())
        store.fail { call, _ in
            if call == .isReadOnly, !hasBegun.wait(atMost: .zero) {
                hasBegun.set()
                #expect(mayEnd.wait(atMost: .seconds(600)))
            }
            return nil
        }
        async let saving = DispatchQueue.blocking { () -> StoreError.Code? in
            do {
                if isSynchronous {
                    _ = try writer.submitAndWait(request, from: .batch)
                } else {
                    let ended = Flag()
                    let result = Mutex<Result<SaveOutcome, any Error>?>(nil)
                    writer.submit(request, from: .batch) { outcome in
                        result.withLock { $0 = outcome }
                        ended.set()
                    }
                    #expect(ended.wait(atMost: .seconds(600)))
                    _ = try result.withLock { $0 }?.get()
                }
            } catch { return (error as? StoreError)?.code }
            return nil
        }
        try await until("the save has been checked") { hasBegun.wait(atMost: .zero) }
        try await closeWriter()
        mayEnd.set()
        #expect(try await saving == .closed)
    }

    /// Catches: a save that was enqueued when the writer was asked for what it owes, and whose turn had not come.
    @Test func `S066: closing writes a deferred save that waits for its turn`() async throws {
        let request = try await insertion()
        let isSaved = Flag()
        // As between the two steps of submitting a save.
        writer.shared.withLock { $0.waiting.append(.init(request: request, source: .batch) { _ in isSaved.set() }) }
        try await closeWriter()
        #expect(isSaved.wait(atMost: .zero))
        #expect(try stored == 1)
    }
}
