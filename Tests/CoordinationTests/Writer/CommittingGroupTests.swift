import Foundation
import Platform
import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

/// Deferred saves of threads that wait, while durable saves are being committed (S066).
@Suite struct CommittingGroupTests {
    /// A coordinator over a store that fails, with a durable save in its commit.
    private struct Bed {
        let store: FaultyStore
        let clock = SteppedClock()
        let coordinator: PersistentStoreCoordinator
        let importer: BackgroundContext
        let editor: BackgroundContext
        /// The call that waits for the disk.
        let waiting: FaultyStore.Call
        /// Whether that call is held, whether it may end, and whether the durable save has ended.
        let isHeld = Flag()
        let mayEnd = Flag()
        let ended = Flag()

        init(_ layered: StoreCapabilities = .layeredDeferral) async throws {
            store = FaultyStore(
                schema: Music.model.storeSchema, capabilities: layered.union([.externalSaves, .history]))
            waiting = layered.isEmpty ? .sync : .commit
            coordinator = try .music(store, clock)
            importer = coordinator.newBackgroundContext(name: "importer")
            editor = coordinator.newBackgroundContext(name: "editor")
            // The first one makes the writer hold the next commits back during those that follow.
            try await save("first")
            // Keys are taken now, so that no transaction for keys is held instead of a save.
            await importer.perform { $0.delete($0.makeTrack("none")) }
            coordinator.writer.disk.sync {}
        }

        /// Waits until the writer has nothing to do.
        func settle() async throws { try await coordinator.writer.onQueue { _ in } }

        /// Saves a new track as synchronous code does.
        func save(_ title: String) async throws {
            try await editor.perform { context in
                context.makeTrack(title)
                try context.saveNow()
            }
        }

        /// Begins a durable save, whose commit or sync ends when ``mayEnd`` is set.
        func begin(_ title: String, error: StoreError? = nil) async throws -> Task<Void, any Error> {
            store.hold(waiting, isHeld, until: mayEnd, error: error)
            let task = Task { [importer, ended] in
                defer { ended.set() }
                try await importer.perform(andSave: .durable) { _ = $0.makeTrack(title) }
            }
            try await until("the durable save waits for the disk") { isHeld.wait(atMost: .zero) }
            return task
        }

        /// Begins a durable save of 1 as the plays of the first track, by the importer or another context. When ``mayEnd`` is set, its
        /// first commit fails, or all commits do.
        func beginUpdate(
            failsOnce: Bool, by other: BackgroundContext? = nil
        ) async throws -> (save: Task<Void, any Error>, track: ObjectID) {
            let id = try await editor.perform { try #require($0.objects("Track").first).objectID }
            let saver = other ?? importer
            try await saver.perform { context in
                context.refreshAllObjects()
                try context.existingObject(with: id)["plays"] = .int(1)
            }
            let commits = store.count(.commit)
            store.fail { [isHeld, mayEnd] call, number in
                guard call == .commit, !failsOnce || number == commits + 1 else { return nil }
                isHeld.set()
                _ = mayEnd.wait(atMost: .seconds(600))
                return StoreError(.full, "the disk is full. Make room")
            }
            let task = Task { try await saver.save(through: .store) }
            try await until("the durable save is being committed") { isHeld.wait(atMost: .zero) }
            return (task, id)
        }

        /// The plays of a track in a new context.
        func plays(_ id: ObjectID) async throws -> Value? {
            try await coordinator.newBackgroundContext().perform { try $0.existingObject(with: id)["plays"] }
        }

        func titles() async throws -> [String] { try await coordinator.titles().sorted() }

        /// The titles in the file, in the order of their saves.
        func written() async throws -> [String] {
            let reader = try PersistentStoreCoordinator(model: Music.model, store: FaultyStore(sharing: store), name: "reader")
            let saves = try store.history(after: nil, limit: 1000) ?? []
            let titles = try await reader.newBackgroundContext().perform { context in
                try context.objects("Track").map { (key: $0.objectID.key, title: $0["title"]) }
            }
            return saves.flatMap { save in
                save.entities.flatMap(\.insertedKeys).compactMap { key in
                    titles.first { $0.key == key }.flatMap { if case .string(let title) = $0.title { title } else { nil } }
                }
            }
        }
    }

    /// Catches: a synchronous save on the main thread that waits for the disk of an importer's save.
    @Test(arguments: [StoreCapabilities.layeredDeferral, []])
    func `S066: a deferred save does not wait for a durable save that is being committed`(_ layered: StoreCapabilities)
        async throws
    {
        let bed = try await Bed(layered)
        let durable = try await bed.begin("durable")
        try await bed.save("second")
        try await bed.save("third")
        #expect(try await bed.titles() == ["durable", "first", "second", "third"])
        #expect(!bed.ended.wait(atMost: .zero), "the durable save waits for the disk")
        bed.mayEnd.set()
        try await durable.value
        #expect(try await bed.titles() == ["durable", "first", "second", "third"])
        bed.store.fail(nil)
        try await bed.coordinator.flush()
        try await bed.settle()
        #expect(try await bed.written() == ["first", "durable", "second", "third"])
        #expect(bed.store.heldClaims == 0)
        #expect(try bed.store.verify() == [])
    }

    /// Catches: the first save after a pause, which waits for the disk of an importer's save.
    @Test(arguments: [StoreCapabilities.layeredDeferral, []])
    func `S066: a deferred save that was announced after a pause does not wait either`(_ layered: StoreCapabilities) async throws
    {
        let bed = try await Bed(layered)
        bed.clock.advance(by: .seconds(61))
        bed.coordinator.writer.disk.sync {}
        try await bed.settle()
        await bed.editor.perform { $0.expectSynchronousSave() }
        let durable = try await bed.begin("durable")
        try await bed.save("second")
        #expect(!bed.ended.wait(atMost: .zero), "the durable save waits for the disk")
        bed.mayEnd.set()
        try await durable.value
        #expect(try await bed.titles() == ["durable", "first", "second"])
    }

    /// Catches: a save of another process between the commit and the deferred save over it (S067).
    @Test func `S067: the claim is held until the deferred save is in the file`() async throws {
        let bed = try await Bed()
        let durable = try await bed.begin("durable")
        try await bed.save("second")
        bed.mayEnd.set()
        try await durable.value
        try await bed.settle()
        #expect(bed.store.heldClaims == 1)
        bed.store.fail(nil)
        try await bed.coordinator.flush()
        try await bed.settle()
        #expect(bed.store.heldClaims == 0)
    }

    /// Catches: a deferred save that is lost, or a durable one that appears although it has thrown.
    @Test func `S062: a durable save that fails in its commit is gone, and the deferred save over it stays`() async throws {
        let bed = try await Bed()
        let durable = try await bed.begin("durable", error: StoreError(.full, "the disk is full"))
        try await bed.save("second")
        bed.mayEnd.set()
        let error = await #expect(throws: StoreError.self) { try await durable.value }
        #expect(error?.code == .full)
        #expect(try await bed.titles() == ["first", "second"])
        #expect(await bed.importer.perform { $0.hasChanges }, "the changes of the failed save are unsaved again")
        bed.store.fail(nil)
        try await bed.importer.save()
        try await bed.coordinator.flush()
        try await bed.settle()
        #expect(try await bed.titles() == ["durable", "first", "second"])
        #expect(try await Set(bed.written()) == ["durable", "first", "second"])
        #expect(bed.store.heldClaims == 0)
    }

    // MARK: Withdrawn saves

    /// Catches: a conflict without any other save, in a context that has read a durable save which is saved again after its first commit
    /// failed.
    /// Also catches a save that rests on values of a durable save which is gone.
    @Test(arguments: [true, false])
    func `S066, S067: a save conflicts with a withdrawn one that it has read only if that is not saved again`(
        _ isSavedAgain: Bool
    ) async throws {
        let bed = try await Bed()
        let (durable, id) = try await bed.beginUpdate(failsOnce: isSavedAgain)
        try await bed.save("second")
        let reader = bed.coordinator.newBackgroundContext(name: "reader")
        #expect(try await reader.perform { try $0.existingObject(with: id)["plays"] } == .int(1))
        bed.mayEnd.set()
        let result = await durable.result
        bed.store.fail(nil)
        try await reader.perform { try $0.existingObject(with: id)["rating"] = .double(4) }
        if isSavedAgain {
            try result.get()
            try await reader.save()
            #expect(try await bed.plays(id) == .int(1))
        } else {
            #expect(throws: StoreError.self) { try result.get() }
            await #expect(throws: SaveError.self) { try await reader.save() }
            #expect(try await bed.plays(id) == .int(0))
        }
        try await bed.coordinator.flush()
        #expect(try bed.store.verify() == [])
    }

    /// Catches: a context that conflicts with its own save, which has failed, or shows it after a rollback.
    @Test(arguments: [true, false])
    func `S062: a context that is refreshed during its own save is as before when that save fails`(_ savesAgain: Bool)
        async throws
    {
        let bed = try await Bed()
        let (durable, id) = try await bed.beginUpdate(failsOnce: false)
        try await bed.save("second")
        let shown = try await bed.importer.perform { context in
            context.refreshAllObjects()
            return try context.trackTitles()
        }
        #expect(shown == ["first", "second"])
        bed.mayEnd.set()
        await #expect(throws: StoreError.self) { try await durable.value }
        bed.store.fail(nil)
        if savesAgain {
            #expect(await bed.importer.perform { $0.hasChanges })
            try await bed.importer.save()
        } else {
            await bed.importer.perform { $0.rollback() }
        }
        let expected = Value.int(savesAgain ? 1 : 0)
        #expect(try await bed.importer.perform { try $0.existingObject(with: id)["plays"] } == expected)
        #expect(try await bed.plays(id) == expected)
        #expect(try await bed.importer.perform { try $0.trackTitles() } == ["first", "second"])
        try await bed.coordinator.flush()
        #expect(try bed.store.verify() == [])
    }

    /// Catches: a root that goes on showing a child's save which has failed, and a next save of the child that conflicts with it. Under a
    /// policy that prefers the store, the child's change would be lost.
    @Test(arguments: [MergePolicy.error, .storeTrump], [false, true])
    func `S062, S064: a root that is refreshed while a child's save passes it leaves that save when it fails`(
        _ policy: MergePolicy, _ refreshesChild: Bool
    ) async throws {
        let bed = try await Bed()
        await bed.importer.perform { context in
            context.mergePolicy = policy
            context.refreshAllObjects()
        }
        let child = await bed.importer.newBackgroundChild(name: "child")
        let (durable, id) = try await bed.beginUpdate(failsOnce: false, by: child)
        try await bed.save("second")
        await bed.importer.perform { $0.refreshAllObjects() }
        #expect(try await bed.importer.perform { try $0.existingObject(with: id)["plays"] } == .int(1))
        if refreshesChild { try await child.refreshFromParent() }
        bed.mayEnd.set()
        await #expect(throws: StoreError.self) { try await durable.value }
        bed.store.fail(nil)
        #expect(try await bed.importer.perform { try $0.existingObject(with: id)["plays"] } == .int(0))
        #expect(await bed.importer.perform { !$0.hasChanges })
        try await child.save(through: .store)
        #expect(try await bed.plays(id) == .int(1))
        try await bed.coordinator.flush()
        #expect(try bed.store.verify() == [])
    }

    /// Catches: a main context that goes on showing a failed save, and moves its hidden root to that state with the next one.
    @Test(arguments: [false, true])
    func `S062, S064: a main context above a hidden root leaves a failed save, its own or a worker's`(
        _ isWorker: Bool
    ) async throws {
        let bed = try await Bed()
        await bed.importer.perform { $0.refreshAllObjects() }
        let main = BackgroundContext(
            await bed.importer.perform { NewContext.child(of: $0, name: "main", decidesForParent: true) })
        let saver = isWorker ? await main.newBackgroundChild(name: "worker") : main
        let (durable, id) = try await bed.beginUpdate(failsOnce: false, by: saver)
        try await bed.save("second")
        await main.perform { $0.refreshAllObjects() }
        #expect(try await main.perform { try $0.existingObject(with: id)["plays"] } == .int(1))
        bed.mayEnd.set()
        await #expect(throws: StoreError.self) { try await durable.value }
        bed.store.fail(nil)
        #expect(try await main.perform { try $0.existingObject(with: id)["plays"] } == .int(isWorker ? 0 : 1))
        #expect(await main.perform { $0.hasChanges } == !isWorker)
        try await saver.save(through: .store)
        #expect(try await bed.plays(id) == .int(1))
        try await bed.coordinator.flush()
        #expect(try bed.store.verify() == [])
    }

    /// Catches: a failed save of a worker that the main context keeps, because the save went past it to the writer.
    @MainActor @Test func `S062, S064: a main context that is refreshed leaves a failed save that has passed it directly`()
        async throws
    {
        let bed = try await Bed()
        try await bed.coordinator.flush()
        let executor = MainContextExecutor { [coordinator = bed.coordinator] in .root(of: coordinator, name: "main") }
        defer { withExtendedLifetime(executor) {} }
        let main = executor.context
        let worker = main.newBackgroundChild(name: "worker")
        await worker.perform { _ = $0.makeTrack("opening") }
        try await worker.save(through: .store)
        #expect(main.place.direct.isOpen)
        let (durable, id) = try await bed.beginUpdate(failsOnce: false, by: worker)
        #expect(main.place.direct.isTaken)
        try await bed.save("second")
        main.refreshAllObjects()
        #expect(try main.existingObject(with: id)["plays"] == .int(1))
        bed.mayEnd.set()
        await #expect(throws: StoreError.self) { try await durable.value }
        bed.store.fail(nil)
        #expect(try main.existingObject(with: id)["plays"] == .int(0))
        #expect(!main.hasChanges)
        try await worker.save(through: .store)
        #expect(try await bed.plays(id) == .int(1))
    }

    // MARK: Saves that wait

    /// Catches: a synchronous save that waits for the disk of a durable save which is not yet being written.
    @Test(arguments: [StoreCapabilities.layeredDeferral, []])
    func `S066: a deferred save does not wait for a durable save that waits beside it`(_ layered: StoreCapabilities) async throws
    {
        let bed = try await Bed(layered)
        let writer = bed.coordinator.writer
        let mayBegin = Flag()
        writer.queue.async { _ = mayBegin.wait(atMost: .seconds(600)) }
        bed.store.hold(bed.waiting, bed.isHeld, until: bed.mayEnd)
        let durable = Task { [importer = bed.importer, ended = bed.ended] in
            defer { ended.set() }
            try await importer.perform(andSave: .durable) { _ = $0.makeTrack("durable") }
        }
        try await until("the durable save waits") { writer.shared.withLock { $0.waiting.count == 1 } }
        let deferred = Task { try await bed.save("second") }
        try await until("the deferred save waits too") { writer.shared.withLock { $0.waiting.count == 2 } }
        mayBegin.set()
        try await deferred.value
        #expect(!bed.ended.wait(atMost: .zero), "the durable save waits for the disk")
        #expect(try await bed.titles().contains("second"))
        try await until("the durable save is being committed") { bed.isHeld.wait(atMost: .zero) }
        bed.mayEnd.set()
        try await durable.value
        #expect(try await bed.titles() == ["durable", "first", "second"])
        bed.store.fail(nil)
        try await bed.coordinator.flush()
        try await bed.settle()
        #expect(try await Set(bed.written()) == ["durable", "first", "second"])
        #expect(bed.store.heldClaims == 0)
        #expect(try bed.store.verify() == [])
    }

    // MARK: Saves that depend on the group

    /// Catches: a save that depends on one that may still fail.
    @Test func `S100: a deferred save of an object in the durable save waits and is checked after it`() async throws {
        let bed = try await Bed()
        let id = try await bed.editor.perform { try #require($0.objects("Track").first).objectID }
        try await bed.importer.perform { context in
            context.refreshAllObjects()
            try context.existingObject(with: id)["plays"] = .int(1)
        }
        bed.store.hold(.commit, bed.isHeld, until: bed.mayEnd)
        let durable = Task { [importer = bed.importer] in try await importer.save() }
        try await until("the durable save is being committed") { bed.isHeld.wait(atMost: .zero) }
        let deferred = Task { [editor = bed.editor] in
            try await editor.perform { context in
                try context.existingObject(with: id)["plays"] = .int(2)
                try context.saveNow()
            }
        }
        try await until("the deferred save waits") { bed.coordinator.writer.shared.withLock { $0.waiting.count == 1 } }
        bed.mayEnd.set()
        try await durable.value
        await #expect(throws: SaveError.self) { try await deferred.value }
        let plays = try await bed.coordinator.newBackgroundContext().perform { try $0.existingObject(with: id)["plays"] }
        #expect(plays == .int(1))
    }

    /// Catches: a context that merges by itself and does not see a save that has returned, because its own is being committed.
    @Test func `S068: a save waits for a durable save of a context that merges by itself`() async throws {
        let bed = try await Bed()
        await bed.importer.perform { context in
            context.automaticallyMergesChanges = true
            context.refreshAllObjects()
        }
        let notices = Notices()
        let token = await bed.importer.perform { context in context.observe { notices.add($0) } }
        let durable = try await bed.begin("durable")
        let second = Task { try await bed.save("second") }
        try await until("the second save waits") { bed.coordinator.writer.shared.withLock { $0.waiting.count == 1 } }
        bed.mayEnd.set()
        try await durable.value
        try await second.value
        #expect(try await bed.importer.perform { try $0.trackTitles().sorted() } == ["durable", "first", "second"])
        let key = try await bed.importer.perform { context in
            try #require(context.objects("Track").first { $0["title"] == .string("second") }).objectID.key
        }
        #expect(notices.insertions(of: key) == 1)
        await bed.importer.perform { _ in token.cancel() }
    }

    /// Catches: a save that begins while a durable one is being written, and then waits for its sync, too.
    @Test func `S066: a save that begins before the commit of a durable one does not wait for that commit`() async throws {
        let bed = try await Bed()
        let (isWriting, mayWrite) = (Flag(), Flag())
        bed.store.fail { [isHeld = bed.isHeld, mayEnd = bed.mayEnd] call, _ in
            if call == .apply {
                isWriting.set()
                _ = mayWrite.wait(atMost: .seconds(600))
            } else if call == .commit {
                isHeld.set()
                _ = mayEnd.wait(atMost: .seconds(600))
            }
            return nil
        }
        let durable = Task { [importer = bed.importer, ended = bed.ended] in
            defer { ended.set() }
            try await importer.perform(andSave: .durable) { _ = $0.makeTrack("durable") }
        }
        try await until("the durable save is being written") { isWriting.wait(atMost: .zero) }
        let saved = Task { try await bed.save("second") }
        let writer = bed.coordinator.writer
        try await until("the deferred save waits") {
            writer.shared.withLock { ($0.offer?.waiting.load(ordering: .relaxed) ?? 0) + $0.waiting.count } == 1
        }
        mayWrite.set()
        try await saved.value
        #expect(try await bed.titles() == ["durable", "first", "second"])
        #expect(!bed.ended.wait(atMost: .zero), "the durable save waits for the disk")
        bed.mayEnd.set()
        try await durable.value
        bed.store.fail(nil)
        try await bed.coordinator.flush()
        try await bed.settle()
        #expect(try await bed.written() == ["first", "durable", "second"])
    }

    /// Catches: a new object that is dropped because of a durable save with its unique value, which then fails.
    @Test func `S062, S104: a save that would lose an object to a durable one waits until that one is in the file`() async throws
    {
        let bed = try await Bed()
        bed.store.hold(.commit, bed.isHeld, until: bed.mayEnd, error: StoreError(.full, "the disk is full"))
        let durable = Task { [importer = bed.importer] in
            try await importer.perform(andSave: .durable) { $0.makeTrack("durable")["isrc"] = .string("same") }
        }
        try await until("the durable save is being committed") { bed.isHeld.wait(atMost: .zero) }
        let deferred = Task { [editor = bed.editor] in
            try await editor.perform { context in
                context.mergePolicy = .storeTrump
                context.makeTrack("second")["isrc"] = .string("same")
                context.makeTrack("third")
                try context.saveNow()
            }
        }
        try await until("the deferred save waits") { bed.coordinator.writer.shared.withLock { $0.waiting.count == 1 } }
        bed.mayEnd.set()
        await #expect(throws: StoreError.self) { try await durable.value }
        try await deferred.value
        #expect(try await bed.titles() == ["first", "second", "third"])
    }

    /// Catches: an upsert by a unique value that waits for a durable save of other objects.
    @Test func `S066, S108: a save that a unique value merges into a stored object does not wait`() async throws {
        let bed = try await Bed()
        try await bed.editor.perform { context in
            context.mergePolicy = .objectTrump
            context.makeTrack("stored")["isrc"] = .string("same")
            try context.saveNow()
        }
        let durable = try await bed.begin("durable")
        try await bed.editor.perform { context in
            context.makeTrack("replaced")["isrc"] = .string("same")
            try context.saveNow()
        }
        #expect(try await bed.titles() == ["durable", "first", "replaced"])
        #expect(!bed.ended.wait(atMost: .zero), "the durable save waits for the disk")
        bed.mayEnd.set()
        try await durable.value
        bed.store.fail(nil)
        try await bed.coordinator.flush()
        #expect(try await bed.titles() == ["durable", "first", "replaced"])
        #expect(try bed.store.verify() == [])
    }

    private final class Notices: Sendable {
        private let inserted = Mutex<[ObjectKey]>([])

        func add(_ notice: ContextNotice) {
            guard notice.kind == .objectsDidChange else { return }
            let keys = notice.changes.entities.flatMap(\.insertedKeys)
            inserted.withLock { $0 += keys }
        }

        /// The number of notices that an object was inserted.
        func insertions(of object: ObjectKey) -> Int { inserted.withLock { $0.count { $0 == object } } }
    }

    /// Makes commits of saves, and separate syncs, take random times, and some of them fail, by their number. Transactions for keys do not
    /// fail.
    private static func fail(_ store: FaultyStore, at failing: Set<Int>) {
        let isSave = Flagged()
        store.fail { call, number in
            switch call {
            case .write: isSave.set(false)
            case .apply: isSave.set(true)
            default: break
            }
            guard call == .sync || call == .commit && isSave.value else { return nil }
            CurrentThread.sleep(microseconds: UInt32(number % 3) * 300)
            return failing.contains(number) ? StoreError(.inputOutput, "the disk failed") : nil
        }
    }

    private final class Flagged: Sendable {
        private let isSet = Atomic(false)
        var value: Bool { isSet.load(ordering: .relaxed) }
        func set(_ value: Bool) { isSet.store(value, ordering: .relaxed) }
    }

    /// Saves new tracks one after another. Returns the titles of those whose saves have not thrown.
    private static func saves(_ context: BackgroundContext, areDurable: Bool) async -> [String] {
        var saved: [String] = []
        for step in 0..<40 {
            let title = "\(areDurable) \(await context.perform { $0.name }) \(step)"
            do {
                if areDurable {
                    try await context.perform(andSave: .durable) { _ = $0.makeTrack(title) }
                } else {
                    try await context.perform { context in
                        context.makeTrack(title)
                        try context.saveNow()
                    }
                }
                saved.append(title)
            } catch { await context.perform { $0.rollback() } }
        }
        return saved
    }

    /// Random durable and deferred saves at the same time, commits of which fail. Every save that has returned is in the file, each one
    /// once, and none that has thrown.
    @Test(arguments: [StoreCapabilities.layeredDeferral, []])
    func `S062, S066: random durable and deferred saves at the same time`(_ layered: StoreCapabilities) async throws {
        let seed = Seed.value
        for round in 0..<8 {
            let store = FaultyStore(
                schema: Music.model.storeSchema, capabilities: layered.union([.externalSaves, .history]))
            let coordinator = try PersistentStoreCoordinator(model: Music.model, store: store, name: "random")
            var random = SeededGenerator(seed: seed &+ UInt64(round))
            let failing = Set((0..<6).map { _ in Int.random(in: 10..<120, using: &random) })
            Self.fail(store, at: failing)
            let saved = await withTaskGroup(of: [String].self) { group in
                for number in 0..<3 {
                    group.addTask {
                        await Self.saves(coordinator.newBackgroundContext(name: "\(number)"), areDurable: number > 0)
                    }
                }
                return await group.reduce(into: []) { $0 += $1 }
            }
            store.fail(nil)
            try await coordinator.flush()
            try await coordinator.writer.onQueue { _ in }
            let expected = saved.sorted()
            #expect(try await coordinator.titles().sorted() == expected, "STRATA_SEED=\(seed), round \(round)")
            #expect(try store.verify() == [])
            #expect(store.heldClaims == 0)
            let written = try store.history(after: nil, limit: 1000) ?? []
            #expect(written.flatMap(\.entities).reduce(0) { $0 + $1.insertedKeys.count } == expected.count)
        }
    }

    /// Increments one number of a shared object again and again, each time after reading the newest value. Returns how often it was saved.
    private static func increments(_ context: BackgroundContext, _ id: ObjectID, areDurable: Bool) async throws -> Int {
        var saved = 0
        for step in 0..<30 {
            do {
                try await context.perform { context in
                    context.refreshAllObjects()
                    let track = try context.existingObject(with: id)
                    guard case .int(let plays) = track["plays"] else { return }
                    track["plays"] = .int(plays + 1)
                    // Other changes, which the save would lose with the number.
                    context.makeTrack("\(context.name) \(step)")
                    if !areDurable { try context.saveNow() }
                }
                if areDurable { try await context.save() }
                saved += 1
            } catch is SaveError { await context.perform { $0.rollback() } } catch is StoreError {
                await context.perform { $0.rollback() }
            }
        }
        return saved
    }

    /// Catches: a lost update or one that is saved twice, when a group with the object is being committed, or fails.
    @Test(arguments: [StoreCapabilities.layeredDeferral, []])
    func `S100: random increments of one object, of which none is lost and none doubled`(_ layered: StoreCapabilities)
        async throws
    {
        let seed = Seed.value
        for round in 0..<8 {
            let store = FaultyStore(
                schema: Music.model.storeSchema, capabilities: layered.union([.externalSaves, .history]))
            let coordinator = try PersistentStoreCoordinator(model: Music.model, store: store, name: "random")
            let id = try await coordinator.newBackgroundContext().perform(andSave: .durable) {
                $0.makeTrack("shared", plays: 0).objectID
            }
            var random = SeededGenerator(seed: seed &+ UInt64(round))
            let failing = Set((0..<6).map { _ in Int.random(in: 10..<120, using: &random) })
            Self.fail(store, at: failing)
            let saved = try await withThrowingTaskGroup(of: Int.self) { group in
                for number in 0..<4 {
                    group.addTask {
                        try await Self.increments(
                            coordinator.newBackgroundContext(name: "\(number)"), id, areDurable: number > 1)
                    }
                }
                return try await group.reduce(0, +)
            }
            store.fail(nil)
            try await coordinator.flush()
            let (plays, count) = try await coordinator.newBackgroundContext().perform { context in
                (try context.existingObject(with: id)["plays"], try context.objects("Track").count)
            }
            #expect(plays == .int(Int64(saved)) && count == saved + 1, "STRATA_SEED=\(seed), round \(round)")
            #expect(try store.verify() == [])
        }
    }
}
