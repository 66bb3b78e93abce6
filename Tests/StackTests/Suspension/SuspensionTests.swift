import Foundation
import LMDBStore
import Platform
import SQLiteStore
import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

/// Suspending a container and going on after it (S167).
@Suite struct SuspensionTests {
    /// Sets the plays of a track, by title, in another process. Adds the track if it does not exist.
    static func saveElsewhere(_ kind: StoreKind, path: String, _ title: String, plays: Int, saves: Int = 1) async throws {
        let url = URL(fileURLWithPath: path)
        let container = try await PersistentContainer(
            model: Music.model, store: kind == .lmdb ? .lmdb(url) : .sqlite(url), stack: .siblings)
        let context = container.newBatchOperationContext(name: "elsewhere")
        for save in 0..<saves {
            try await context.perform(andSave: .durable) { context in
                let request = EntityFetchRequest("Track", matching: .compare("title", .equal, to: .string(title)))
                let track = try context.fetch(request).first ?? context.makeTrack(title)
                track["plays"] = .int(Int64(plays + save))
            }
        }
        try await container.close()
    }

    static func elsewhere(_ bed: TestBed, _ title: String, plays: Int, saves: Int = 1) async {
        await #expect(processExitsWith: .success) {
            [
                path = bed.file.path as String, kind = bed.kind.rawValue as String, title = title as String,
                plays = plays as Int, saves = saves as Int
            ] in
            guard let kind = StoreKind(rawValue: kind) else { exit(2) }
            try await SuspensionTests.saveElsewhere(kind, path: path, title, plays: plays, saves: saves)
        }
    }

    /// Catches: a flush that opens a suspended file although nothing is to be written, with locks for which the system ends the process.
    @Test(arguments: [StoreKind.lmdb, .sqlite], [ContextStack.siblings, .split])
    func `S167: a flush with nothing to write leaves a suspended store closed`(_ kind: StoreKind, _ stack: ContextStack)
        async throws
    {
        let bed = try TestBed(kind)
        let container = try await bed.container(stack)
        try await container.coordinator.newBackgroundContext().perform(andSave: .deferred) { _ = $0.makeTrack("t") }
        try await container.suspend()
        try await container.flush()
        #expect(try Self.used(bed) == [])
        await container.resume()
        try await container.close()
    }

    /// The number of saves, batches and deletions of history that wait until a container is resumed.
    static func waitingCount(_ container: PersistentContainer) -> Int {
        let (first, second) = (container.coordinator.writer, container.backgroundCoordinator.writer)
        return first.suspension.waitingCount + (first === second ? 0 : second.suspension.waitingCount)
    }

    /// The files of the store that this process has open or locked, as Linux lists them.
    static func used(_ bed: TestBed) throws -> [String] {
        #if os(Linux)
            let files = try FileManager.default.contentsOfDirectory(atPath: bed.folder.path)
            let open = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").compactMap {
                try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")
            }
            let locks = try String(contentsOfFile: "/proc/locks", encoding: .utf8).split(separator: "\n")
            return try files.filter { name in
                let path = bed.folder.appendingPathComponent(name).path
                let number = try FileManager.default.attributesOfItem(atPath: path)[.systemFileNumber] as? Int ?? 0
                // The file of signals stays open, without a lock, where it is watched.
                return open.contains(path) && !name.hasSuffix("-signal") || locks.contains { $0.contains(":\(number) ") }
            }
        #else
            return []
        #endif
    }

    @Test(arguments: Combination.all)
    @MainActor func `S167: a suspended container has no file open and no lock, and keeps everything that is unsaved`(
        _ combination: Combination
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let worker = container.newBackgroundContext()
        let id = await worker.perform { $0.makeTrack("saved", plays: 1).objectID }
        try await worker.save(through: .store, .deferred(within: .seconds(600)))
        let kept = try container.coordinator.snapshot()
        let confined = Carrier(container)
        _ = try await confined.onThread { try $0.trackTitles() }
        await worker.perform { _ = $0.makeTrack("unsaved") }
        let main = container.mainContext
        let shown = try main.existingObject(with: id)
        main.makeTrack("main")
        #expect(shown["plays"] == .int(1))
        try await container.suspend()
        #expect(try Self.used(bed) == [])
        await container.resume()
        #expect(await worker.perform { $0.hasChanges })
        #expect(try await worker.perform { try $0.trackTitles() }.contains("unsaved"))
        try await worker.save(through: .store)
        #expect(try Set(main.trackTitles()).isSuperset(of: ["main", "saved"]) && shown["plays"] == .int(1))
        try await container.saveMain()
        #expect(try await Set(confined.onThread { try $0.trackTitles() }) == ["main", "saved", "unsaved"])
        let reader = container.coordinator.newBackgroundContext(reading: kept)
        await #expect(throws: StoreError.self) { try await reader.perform { try $0.trackTitles() } }
        #expect(try container.coordinator.store.verify().isEmpty)
        try await container.close()
    }

    /// Catches: a second suspension that compares with the state of the first one, although the context has read a newer one between.
    @Test(arguments: [StoreKind.lmdb, .sqlite], [false, true])
    func `S167: what a context has read during a suspension is no conflict after the next one`(
        _ kind: StoreKind, _ isChild: Bool
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let root = container.coordinator.newBackgroundContext()
        let context = isChild ? await root.newBackgroundChild() : root
        await context.perform { $0.automaticallyMergesChanges = false }
        let id = await context.perform { $0.makeTrack("a", plays: 1).objectID }
        try await context.save(through: .store)
        try await container.suspend()
        await Self.elsewhere(bed, "a", plays: 10)
        try await context.perform { context throws in
            let track = try context.existingObject(with: id)
            #expect(track["plays"] == .int(10))
            track["plays"] = .int(11)
        }
        try await container.suspend()
        await Self.elsewhere(bed, "b", plays: 1)
        await container.resume()
        try await context.save(through: .store)
        #expect(try await context.perform { context throws in try context.existingObject(with: id)["plays"] } == .int(11))
        try await container.close()
    }

    @Test(arguments: [StoreKind.lmdb, .sqlite], ContextStack.allCases)
    @MainActor func `S167: contexts and live results show what another process has saved meanwhile`(
        _ kind: StoreKind, _ stack: ContextStack
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(stack)
        let main = container.mainContext
        let (track, other) = (main.makeTrack("a", plays: 1), main.makeTrack("b", plays: 1))
        try await container.saveMain()
        main.automaticallyMergesChanges = true
        let results = try FetchedResultsController(
            EntityFetchRequest("Track", sortBy: [AttributeSort("title")]), context: main)
        try results.performFetch()
        var updates: [ResultUpdate] = []
        results.onChange = { updates.append($0) }
        let watch = Watch { _ = track["plays"] }
        other["plays"] = .int(2)
        main.processPendingChanges()
        try await until("the unsaved change is shown") { updates.count == 1 }
        updates = []
        try await container.suspend()
        await Self.elsewhere(bed, "a", plays: 100)
        await Self.elsewhere(bed, "c", plays: 3)
        #expect(try Self.used(bed) == [])
        await container.resume()
        #expect(track["plays"] == .int(100))
        #expect(other["plays"] == .int(2) && main.hasChanges)
        try await until("the saves of the other process are shown") { results.snapshot.count == 3 }
        #expect(results.fetchedObjects.map { $0["title"] } == ["a", "b", "c"])
        #expect(updates.map(\.difference.insertions) == [[2]])
        #expect(updates.map(\.difference.updates) == [[0]])
        try await until("the observer of the property is notified") { watch.count == 1 }
        try await container.saveMain()
        #expect(try container.coordinator.store.verify().isEmpty)
        try await container.close()
    }

    @Test(arguments: Combination.all)
    @MainActor func `S167: without other saves a live result and observers see nothing`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let main = container.mainContext
        let track = main.makeTrack("a", plays: 1)
        try await container.saveMain()
        let results = try FetchedResultsController(
            EntityFetchRequest("Track", sortBy: [AttributeSort("title")]), context: main)
        try results.performFetch()
        var updates = 0
        results.onChange = { _ in updates += 1 }
        let watch = Watch { _ = track["plays"] }
        for _ in 0..<3 {
            try await container.suspend()
            await container.resume()
            #expect(track["plays"] == .int(1))
        }
        main.makeTrack("b", plays: 1)
        main.processPendingChanges()
        try await until("the new object is shown") { results.snapshot.count == 2 }
        // Updates come in order, so there was none before this one.
        #expect(updates == 1 && watch.count == 0)
        try await container.close()
    }

    /// Catches: a context that keeps a temporary state after a suspension, in which it cannot compare properties.
    @Test(arguments: Combination.all)
    @MainActor func `S146, S167: after a suspension an observer hears only of its own property`(_ combination: Combination)
        async throws
    {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let track = container.mainContext.makeTrack("a", plays: 1)
        try await container.saveMain()
        let id = track.objectID
        let watch = Watch { _ = track["title"] }
        try await container.suspend()
        await container.resume()
        let worker = container.newBackgroundContext()
        try await worker.perform { try $0.existingObject(with: id)["plays"] = .int(7) }
        try await worker.save(through: .store)
        try await until("the save is merged") { track["plays"] == .int(7) }
        #expect(watch.count == 0)
        try await container.close()
    }

    /// Catches: the end of a closure that opens the file again, to tell observers what the closure has changed.
    @Test(arguments: [StoreKind.lmdb, .sqlite], ContextStack.allCases)
    func `S167: changes of a closure that ends while the container is suspended are posted after the suspension`(
        _ kind: StoreKind, _ stack: ContextStack
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(stack)
        let context = await container.newBackgroundContext()
        let counter = Counter()
        let token = await context.perform { $0.observe { counter.note($0) } }
        let (changed, changes) = AsyncStream<ObjectID>.makeStream()
        let (suspended, ends) = AsyncStream<Void>.makeStream()
        let running = Task {
            await context.perform { _, context in
                changes.yield(context.makeTrack("a").objectID)
                for await _ in suspended { break }
            }
        }
        var inserted: [ObjectID] = []
        for await id in changed {
            inserted.append(id)
            break
        }
        try await container.suspend()
        ends.yield()
        await running.value
        // A closure that uses nothing changes nothing either.
        await context.perform { _ in }
        #expect(try Self.used(bed) == [])
        #expect(counter.all.isEmpty)
        await container.resume()
        let store = container.coordinator.store.identity
        #expect(await context.perform { _ in counter.all.flatMap { $0.changes.insertedIDs(in: store) } } == inserted)
        token.cancel()
        try await container.close()
    }

    @Test(arguments: [StoreKind.lmdb, .sqlite], ContextStack.allCases)
    func `S100: an unsaved change of an object that was saved elsewhere meanwhile is a conflict`(
        _ kind: StoreKind, _ stack: ContextStack
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(stack)
        let context = await container.newBackgroundContext()
        let ids = await context.perform { context in ["a", "b"].map { context.makeTrack($0, plays: 1).objectID } }
        try await context.save(through: .store)
        try await context.perform { context in
            for id in ids {
                let track = try context.existingObject(with: id)
                if case .int(let plays) = track["plays"] { track["plays"] = .int(plays + 1) }
            }
        }
        try await container.suspend()
        await Self.elsewhere(bed, "a", plays: 10)
        await container.resume()
        do {
            try await context.save(through: .store)
            Issue.record("the increment of another process was lost")
        } catch SaveError.conflicts(let conflicts) {
            #expect(conflicts.map(\.objectID) == [ids[0]])
        }
        // Reading again settles the conflict.
        try await context.perform { context in
            let track = try context.existingObject(with: ids[0])
            context.refresh(track, mergeChanges: false)
            #expect(track["plays"] == .int(10))
            track["plays"] = .int(11)
        }
        try await context.save(through: .store)
        let plays = try await container.coordinator.newBackgroundContext().perform { context in
            try ids.map { try context.existingObject(with: $0)["plays"] }
        }
        #expect(plays == [.int(11), .int(2)])
        try await container.close()
    }

    /// Makes an increment without an executor, which is not saved.
    private static func increment(_ confined: Carrier, _ id: ObjectID) async throws {
        try await confined.onThread { context in
            let track = try context.existingObject(with: id)
            if case .int(let plays) = track["plays"] { track["plays"] = .int(plays + 1) }
        }
    }

    private static func expectConflict(of confined: Carrier, _ id: ObjectID) async throws {
        do {
            try await confined.onThread { try $0.saveNow() }
            Issue.record("the value of another context was lost")
        } catch SaveError.conflicts(let conflicts) {
            #expect(conflicts.map(\.objectID) == [id])
        }
    }

    /// Catches: a context without an executor that takes the state of the suspension for the state that it has read.
    @Test(arguments: StoreKind.allCases)
    func `S100: an unsaved change of an object that was saved before the suspension stays a conflict`(_ kind: StoreKind)
        async throws
    {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let context = container.newBatchOperationContext()
        let id = try await context.perform(andSave: .durable) { $0.makeTrack("a", plays: 1).objectID }
        let confined = Carrier(container)
        try await Self.increment(confined, id)
        try await context.perform(andSave: .durable) { try $0.existingObject(with: id)["plays"] = .int(7) }
        try await container.suspend()
        try await container.suspend()
        await container.resume()
        try await Self.expectConflict(of: confined, id)
        try await container.close()
    }

    /// Catches: the same, after a property was read during the suspension.
    @Test(arguments: [StoreKind.lmdb, .sqlite])
    func `S100: reading a property while the store is suspended settles no conflict`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let id = try await container.newBatchOperationContext().perform(andSave: .durable) { context in
            context.makeTrack("a", plays: 1).objectID
        }
        let confined = Carrier(container)
        try await Self.increment(confined, id)
        try await container.suspend()
        await Self.elsewhere(bed, "a", plays: 10)
        _ = try await confined.onThread { context in context.registeredObjects.map { $0["rating"] } }
        await container.resume()
        try await Self.expectConflict(of: confined, id)
        try await container.close()
    }

    @Test(arguments: [StoreKind.lmdb, .sqlite], [true, false])
    func `S103: a policy decides by property about an object that was saved elsewhere meanwhile`(
        _ kind: StoreKind, _ storeWins: Bool
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let context = container.coordinator.newBackgroundContext()
        let id = await context.perform { $0.makeTrack("a", plays: 1).objectID }
        try await context.save()
        try await context.perform { context in
            context.mergePolicy = storeWins ? .storeTrump : .objectTrump
            let track = try context.existingObject(with: id)
            track["plays"] = .int(2)
            track["rating"] = .double(5)
        }
        try await container.suspend()
        await Self.elsewhere(bed, "a", plays: 10)
        await container.resume()
        try await context.save()
        let shown = try await context.perform { context in
            let track = try context.existingObject(with: id)
            return [track["plays"], track["rating"]]
        }
        #expect(shown == [storeWins ? .int(10) : .int(2), .double(5)])
        try await container.close()
    }

    @Test(arguments: Combination.all)
    func `S167: saves and batches wait until the container is resumed`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let context = container.newBatchOperationContext()
        await context.perform { _ = $0.makeTrack("a", plays: 1) }
        let confined = Carrier(container)
        try await container.suspend()
        let (saved, batched) = (Flag(), Flag())
        let saving = Task {
            try await context.save()
            saved.set()
        }
        let batch = Task {
            let result = try await container.coordinator.batchUpdate(EntityFetchRequest("Track"), set: ["plays": .int(5)])
            batched.set()
            return result
        }
        // A save that may not wait says so.
        let code = try await confined.onThread { context -> StoreError.Code? in
            context.makeTrack("confined")
            do { try context.saveNow() } catch { return (error as? StoreError)?.code }
            return nil
        }
        #expect(code == .suspended)
        try await until("the save and the batch wait, or have passed") {
            let passed = [saved, batched].count { $0.wait(atMost: .zero) }
            return Self.waitingCount(container) + passed == 2
        }
        #expect(!saved.wait(atMost: .zero) && !batched.wait(atMost: .zero))
        await container.resume()
        try await saving.value
        _ = try await batch.value
        try await confined.onThread { try $0.saveNow() }
        #expect(try await confined.onThread { try Set($0.trackTitles()) } == ["a", "confined"])
        try await container.close()
    }

    @Test(arguments: [StoreKind.lmdb, .sqlite], ContextStack.allCases)
    @MainActor func `S167: a read of a suspended container shows the newest state, and a second suspension ends it`(
        _ kind: StoreKind, _ stack: ContextStack
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(stack)
        let track = container.mainContext.makeTrack("a", plays: 1)
        try await container.saveMain()
        try await container.suspend()
        await Self.elsewhere(bed, "a", plays: 7)
        #expect(track["plays"] == .int(7))
        #expect(try container.mainContext.count(EntityFetchRequest("Track")) == 1)
        try await container.suspend()
        #expect(try Self.used(bed) == [])
        await container.resume()
        await container.resume()
        #expect(track["plays"] == .int(7))
        track["plays"] = .int(8)
        try await container.saveMain()
        try await container.close()
    }

    @Test(arguments: [StoreKind.lmdb, .sqlite])
    func `S167: with a read that does not end, the container is not suspended`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let context = container.coordinator.newBackgroundContext()
        await context.perform { _ = $0.makeTrack("a") }
        try await context.save()
        let confined = Carrier(container)
        let (begun, mayEnd) = (Flag(), Flag())
        async let saving: Void = confined.onThread { context in
            context.makeTrack("b")
            let token = context.observe { notice in
                guard notice.kind == .willSave else { return }
                begun.set()
                _ = mayEnd.wait(atMost: .seconds(600))
            }
            defer { token.cancel() }
            try context.saveNow()
        }
        try await until("the save has begun") { begun.wait(atMost: .zero) }
        do {
            try await container.suspend(within: .zero)
            Issue.record("the container was suspended during a save")
        } catch let error as StoreError {
            #expect(error.code == .inUseElsewhere && error.message.contains("confined"))
        }
        mayEnd.set()
        // The save passed, or came while the container tried, and can be repeated.
        do { try await saving } catch let error as StoreError where error.code == .suspended {
            try await confined.onThread { try $0.saveNow() }
        }
        await context.perform { _ = $0.makeTrack("c") }
        try await context.save()
        try await container.suspend()
        #expect(try Self.used(bed) == [])
        await container.resume()
        #expect(try await context.perform { try $0.trackTitles().sorted() } == ["a", "b", "c"])
        try await container.close()
    }

    @Test(arguments: [StoreKind.lmdb, .sqlite], ContextStack.allCases)
    @MainActor func `S167: after the file was replaced, requests throw and nothing traps`(
        _ kind: StoreKind, _ stack: ContextStack
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(stack)
        let track = container.mainContext.makeTrack("a", plays: 1)
        try await container.saveMain()
        track["rating"] = .double(4)
        track["title"] = .string("unsaved")
        try await container.suspend()
        for name in try FileManager.default.contentsOfDirectory(atPath: bed.folder.path) {
            try FileManager.default.removeItem(at: bed.folder.appendingPathComponent(name))
        }
        await container.resume()
        #expect(track["title"] == .string("unsaved"))
        #expect(throws: StoreError.self) { try container.mainContext.count(EntityFetchRequest("Track")) }
        await #expect(throws: (any Error).self) { try await container.saveMain() }
        #expect(container.mainContext.hasChanges)
    }

    /// Catches: a stop of the program, because the values before a change are read for undo while the file is away; and a lost change.
    @Test(arguments: [StoreKind.lmdb, .sqlite])
    func `S162, S167: a block that ends while the file is away is undone when the file is back`(_ kind: StoreKind) async throws {
        let (bed, away) = (try TestBed(kind), try TestBed(kind))
        let container = try await bed.container()
        let context = container.coordinator.newBackgroundContext()
        let id = try await context.perform(andSave: .durable) { context throws in
            try context.collection("counts", of: Int.self)["a"] = 1
            return context.makeTrack("saved").objectID
        }
        try await context.perform { _, context in
            context.undoHistory = UndoHistory()
            context.object(with: id)["title"] = .string("changed")
            try context.collection("counts", of: Int.self)["a"] = 2
            try await container.suspend()
            try Self.moveFiles(bed.folder, to: away.folder)
            await container.resume()
        }
        try Self.moveFiles(away.folder, to: bed.folder)
        try await context.perform { context throws in
            let (history, counts) = (try #require(context.undoHistory), try context.collection("counts", of: Int.self))
            #expect(context.object(with: id)["title"] == .string("changed") && counts["a"] == 2)
            #expect(try history.undo().isEmpty)
            #expect(context.object(with: id)["title"] == .string("saved") && counts["a"] == 1)
        }
        try await container.close()
    }

    private static func moveFiles(_ folder: URL, to other: URL) throws {
        for name in try FileManager.default.contentsOfDirectory(atPath: folder.path) {
            try FileManager.default.moveItem(at: folder.appendingPathComponent(name), to: other.appendingPathComponent(name))
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `S167: a suspended container can be closed, and its file opened again`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let context = container.coordinator.newBackgroundContext()
        await context.perform { _ = $0.makeTrack("a") }
        try await context.save(.deferred(within: .seconds(600)))
        try await container.suspend()
        await context.perform { _ = $0.makeTrack("b") }
        let waiting = Task { try await context.save() }
        try await container.close()
        await #expect(throws: StoreError.self) { try await waiting.value }
        await #expect(throws: StoreError.self) { try await container.suspend() }
        if kind == .memory { return }
        let reopened = try await bed.container()
        #expect(try await reopened.newBatchOperationContext().perform { try $0.trackTitles() } == ["a"])
        try await reopened.close()
    }

    /// Catches: a container whose closing lets the saves of another one pass, and opens the file that is suspended.
    @Test(arguments: [StoreKind.memory, .lmdb])
    func `S167: closing a container leaves another one suspended`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let (first, second) = (try await bed.container(), try await bed.container())
        let (context, closing) = (first.newBatchOperationContext(), second.newBatchOperationContext())
        await context.perform { _ = $0.makeTrack("a") }
        await closing.perform { _ = $0.makeTrack("b") }
        try await first.suspend()
        let saved = Flag()
        let saving = Task {
            try await context.save()
            saved.set()
        }
        let refused = Task { try await closing.save() }
        // Both containers have one writer.
        try await until("both saves wait") { Self.waitingCount(first) == 2 }
        try await second.close()
        let error = await #expect(throws: StoreError.self) { try await refused.value }
        #expect(error?.code == .closed)
        // The closed container has nothing to resume.
        await second.resume()
        #expect(try Self.used(bed) == [])
        // A save that passes no longer waits, even before it ends.
        #expect(Self.waitingCount(first) == 1 && !saved.wait(atMost: .zero))
        await first.resume()
        try await saving.value
        #expect(try await context.perform { try $0.trackTitles() } == ["a"])
        try await first.close()
    }

    /// Catches: work that opens the file again, or that never goes on. If the index is built before the suspension, the test shows less:
    /// `SuspensionFailureTests` has work that does not end.
    @Test func `S167: the building of an index waits while the container is suspended, and goes on afterwards`() async throws {
        func model(_ index: IndexKind) throws -> Model {
            let name = AttributeDescription(name: "name", type: .string, index: index)
            return try Model(
                [EntityDescription(name: "Thing", properties: [.attribute(name)])], version: .init(index == .none ? 1 : 2))
        }
        let bed = try TestBed(.lmdb)
        let first = try await bed.container(model: try model(.none))
        try await first.coordinator.insert(into: "Thing", ["name"], rows: (0..<5_000).map { [.string("\($0)")] })
        try await first.close()
        let container = try await bed.container(model: try model(.indexed))
        try await container.suspend()
        let writer = container.coordinator.writer
        try await until("the work waits, or has ended") { writer.migration.withLock { $0.isSuspended || !$0.isRunning } }
        let waiting = Task { try await container.coordinator.finishMigration() }
        try await until("its end is awaited") { writer.migration.withLock { !$0.waiting.isEmpty || !$0.isRunning } }
        // A step that wrongly does not wait would be on the disk queue already, and so run before this.
        try await writer.onDisk { _ in }
        #expect(try Self.used(bed) == [])
        await container.resume()
        try await waiting.value
        let request = EntityFetchRequest("Thing", matching: .equal("name", .string("4999")))
        #expect(try await container.newBatchOperationContext().perform { try $0.count(request) } == 1)
        #expect(try container.coordinator.store.verify().isEmpty)
        try await container.close()
    }

    /// A process that is frozen after it was suspended, while a thread of this one saves.
    @Test(arguments: [StoreKind.lmdb, .sqlite])
    func `S167: no process waits for a frozen one, which shows its objects and unsaved changes afterwards`(_ kind: StoreKind)
        async throws
    {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let confined = Carrier(container)
        try await confined.onThread { context in
            context.makeTrack("a", plays: 1)
            try context.saveNow(.durable)
        }
        // A thread saves, because the wait for the end of the process may occupy every thread that runs tasks.
        async let saving: Void = confined.onThread { context in
            let process = try Self.waitForFrozenProcess(bed)
            defer { kill(process, SIGCONT) }
            let track = try context.fetch(EntityFetchRequest("Track"))[0]
            #expect(track["plays"] == .int(2), "the deferred save of the other process is in the file")
            for plays in 0..<300 {
                track["plays"] = .int(Int64(1000 + plays))
                track["title"] = .string(String(repeating: "a", count: 400))
                try context.saveNow(.durable)
            }
            let others = try container.coordinator.snapshots().filter {
                $0.processID != ProcessInfo.processInfo.processIdentifier
            }
            #expect(others.isEmpty, "the frozen process keeps pages from reuse")
        }
        await #expect(processExitsWith: .success) { [path = bed.file.path as String, kind = kind.rawValue as String] in
            try await SuspensionTests.freeze(StoreKind(rawValue: kind) ?? .memory, path: path)
        }
        try await saving
        #expect(try await confined.onThread { try $0.trackTitles().count } == 2)
        try await container.close()
    }

    /// Waits until the process that has written its number beside the store is stopped, and returns the number.
    private static func waitForFrozenProcess(_ bed: TestBed) throws -> pid_t {
        for _ in 0..<60_000 {
            usleep(5_000)
            guard let text = try? String(contentsOfFile: bed.file.path + ".process", encoding: .utf8), let number = pid_t(text)
            else { continue }
            #if os(Linux)
                let status = try String(contentsOfFile: "/proc/\(number)/status", encoding: .utf8)
                if !status.contains("State:\tT") { continue }
            #endif
            return number
        }
        throw CancellationError()
    }

    static func freeze(_ kind: StoreKind, path: String) async throws {
        let url = URL(fileURLWithPath: path)
        let container = try await PersistentContainer(
            model: Music.model, store: kind == .lmdb ? .lmdb(url) : .sqlite(url), stack: .siblings)
        let context = container.coordinator.newBackgroundContext()
        try await context.perform(andSave: .deferred(within: .seconds(600))) { context in
            try context.fetch(EntityFetchRequest("Track"))[0]["plays"] = .int(2)
        }
        await context.perform { _ = $0.makeTrack("unsaved") }
        try await container.suspend()
        try "\(getpid())".write(toFile: path + ".process", atomically: true, encoding: .utf8)
        // To this thread: another thread may receive a signal to the process only after this one has gone on.
        raise(SIGSTOP)
        await container.resume()
        try await context.save()
        let plays = try await context.perform { try $0.fetch(EntityFetchRequest("Track"))[0]["plays"] }
        guard plays == .int(1299) else { exit(3) }
        try await container.close()
    }

    /// Catches: a list that shows an object with its former members after a suspension.
    @Test @MainActor func `S167, S080: a live result hears of members that another connection has added meanwhile`() async throws
    {
        let bed = try TestBed(.sqlite)
        let container = try await bed.container()
        let elsewhere = try await bed.container()
        let main = container.mainContext
        let (artist, album) = (main.makeArtist("a"), main.insert("Album"))
        album.setRelatedObject("artist", to: artist)
        try await container.saveMain()
        main.automaticallyMergesChanges = true
        let results = try FetchedResultsController(
            EntityFetchRequest("Album", sortBy: [AttributeSort("title")]), context: main)
        try results.performFetch()
        var updates: [ResultUpdate] = []
        results.onChange = { updates.append($0) }
        let id = album.objectID
        try await container.suspend()
        try await elsewhere.newBatchOperationContext().perform(andSave: .durable) { context throws in
            context.makeTrack("new").setRelatedObject("album", to: try context.existingObject(with: id))
        }
        await container.resume()
        #expect(album.relatedObjects("tracks").count == 1)
        try await until("the album is reported") { updates.map(\.difference.updates) == [[0]] }
        try await container.close()
        try await elsewhere.close()
    }

    /// Catches: contexts that have read between their suspension and the closing of the file, and keep their snapshots.
    @Test(arguments: [StoreKind.lmdb, .sqlite])
    func `S167: contexts that read again and again do not keep the store from being suspended`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(.siblings)
        _ = try await container.write { $0.makeTrack("a").objectID }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<2 {
                let reader = await container.newBackgroundContext()
                group.addTask {
                    while !Task.isCancelled {
                        let count = try? await reader.perform { try $0.count(EntityFetchRequest("Track")) }
                        #expect(count == 1 || Task.isCancelled)
                        try? await Task.sleep(for: .milliseconds(1))
                    }
                }
            }
            defer { group.cancelAll() }
            for _ in 0..<20 {
                try await container.suspend()
                await container.resume()
            }
        }
        try await container.close()
    }
}
