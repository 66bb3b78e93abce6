import Foundation
import LMDBStore
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// The contexts and snapshots that keep old states of a store alive, and the effects of a budget.
@Suite struct LiveSnapshotTests {
    /// Some hundred durable saves, or a million deferred saves in long runs.
    static let saves = Rounds.of(400, long: 1_000_000)

    private static func fill(_ container: PersistentContainer, tracks: Int = 64) async throws -> [ObjectID] {
        let worker = container.newBatchOperationContext(name: "fill")
        let ids = await worker.perform { context in (0..<tracks).map { context.makeTrack("t\($0)", plays: $0).objectID } }
        try await worker.save()
        return ids
    }

    @Test(arguments: StoreKind.allCases)
    func S152_eachLiveSnapshotIsListedWithItsOwner(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let coordinator = container.coordinator
        let ids = try await Self.fill(container)
        let sleeper = coordinator.newBackgroundContext(name: "sleeper")
        let kept = try coordinator.snapshot(owner: "export")
        let old = kept.generation
        let worker = coordinator.newBackgroundContext(name: "worker")
        for number in 0..<50 {
            try await worker.perform { try $0.existingObject(with: ids[number])["plays"] = .int(-1) }
            try await worker.save()
        }
        let listed = try coordinator.snapshots()
        let held = try #require(listed.first { $0.owners.contains("sleeper") })
        // On a busy machine, main and the context that has filled the store may still read this state.
        #expect(Set(held.owners).isSuperset(of: ["export", "sleeper"]) && !held.owners.contains("worker"))
        #expect(held.generation == old && !held.isNewest)
        #expect(try #require(held.age) > .zero && held.processID == ProcessInfo.processInfo.processIdentifier)
        let newest = try #require(listed.first { $0.isNewest && $0.owners.contains("worker") })
        #expect(newest.generation == coordinator.currentHistoryToken.generation)
        if kind == .lmdb {
            // 50 saves, each of which wrote a page and the path to the root.
            #expect(try #require(held.bytesRetained) > 50 * 4096)
            #expect(try #require(newest.bytesRetained) == 0)
        }
        await sleeper.perform { $0.name = "renamed" }
        #expect(try coordinator.snapshots().contains { Set($0.owners).isSuperset(of: ["export", "renamed"]) })
        withExtendedLifetime(kept) {}
    }

    @Test(arguments: StoreKind.allCases)
    func S152_aSnapshotThatIsLetGoIsListedNoMore(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        _ = try await Self.fill(container)
        do {
            let kept = try container.coordinator.snapshot(owner: "export")
            let context = container.coordinator.newBackgroundContext(name: "reader", reading: kept)
            _ = try await context.perform { try $0.trackTitles() }
            _ = try await Self.fill(container)
            // On a busy machine the main context may still read the same state.
            let owners = try container.coordinator.snapshots().map { Set($0.owners) }
            #expect(owners.contains { $0.isSuperset(of: ["export", "reader"]) })
            withExtendedLifetime((kept, context)) {}
        }
        // A context's executor may hold it a moment longer.
        try await until("the reader is gone") {
            try container.coordinator.snapshots().allSatisfy { !$0.owners.contains("reader") }
        }
        let owners = try container.coordinator.snapshots().flatMap(\.owners)
        #expect(!owners.contains("export") && !owners.contains("reader"))
    }

    @Test func S152_readersOfOtherProcessesAreListed() async throws {
        let bed = try TestBed(.lmdb)
        let container = try await bed.container()
        _ = try await Self.fill(container)
        let kept = try container.coordinator.snapshot()
        // The other process makes the check. A child process that waited for this process would block a thread of the tests'
        // pool.
        await #expect(processExitsWith: .success) { [path = bed.file.path as String, parent = getpid() as Int32] in
            let container = try await PersistentContainer(model: Music.model, store: .lmdb(URL(fileURLWithPath: path)))
            let worker = container.coordinator.newBackgroundContext()
            let ids = try await worker.perform { try $0.fetchIDs(EntityFetchRequest("Track")) }
            for id in ids.prefix(20) {
                try await worker.perform { try $0.existingObject(with: id)["plays"] = .int(-1) }
                try await worker.save()
            }
            let foreign = try container.coordinator.snapshots().filter { $0.processID != getpid() }
            // A second reader of the parent may be looking for saves at this moment.
            try #require(!foreign.isEmpty && foreign.allSatisfy { $0.processID == parent })
            try #require(foreign.allSatisfy { $0.age == nil && $0.generation == nil })
            try #require(foreign.compactMap(\.bytesRetained).max() ?? 0 > 20 * 4096)
        }
        withExtendedLifetime(kept) {}
    }

    @Test(arguments: StoreKind.allCases, [ContextStack.siblings, .nested, .masterMainWorker])
    func S152_aBudgetMovesCleanContextsOn(_ kind: StoreKind, _ stack: ContextStack) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(stack)
        let coordinator = container.coordinator
        _ = try await Self.fill(container)
        let clean = coordinator.newBackgroundContext(name: "clean")
        let child = await clean.perform { $0.newBackgroundChild(name: "child") }
        let dirty = coordinator.newBackgroundContext(name: "dirty")
        await dirty.perform { _ = $0.makeTrack("unsaved") }
        let start = await dirty.perform { $0.snapshot.generation }
        coordinator.snapshotBudget = SnapshotBudget(maximumAge: .milliseconds(1), responses: .advanceCleanContexts)
        _ = try await Self.fill(container)
        let newest = coordinator.currentHistoryToken.generation
        try await until("the child is moved") { await child.perform { $0.snapshot.generation } == newest }
        #expect(await clean.perform { $0.snapshot.generation } == newest)
        #expect(await child.perform { $0.snapshot.generation } == newest)
        #expect(try await child.perform { try $0.trackTitles().count } == 128)
        #expect(await dirty.perform { $0.snapshot.generation } == start, "unsaved changes stay on what they were made on")
        #expect(try await dirty.perform { try $0.trackTitles().count } == 65)
    }

    @Test(arguments: StoreKind.allCases)
    func S152_aBudgetRefusesNewSnapshotsWhileAnOldOneIsHeld(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let coordinator = container.coordinator
        _ = try await Self.fill(container)
        coordinator.snapshotBudget = SnapshotBudget(maximumAge: .milliseconds(1), responses: .refuseNewSnapshots)
        var kept: [Snapshot] = [try coordinator.snapshot(owner: "forgotten")]
        _ = try await Self.fill(container)
        var refusal: SnapshotError?
        try await until("a snapshot is refused") {
            do { _ = try coordinator.snapshot() } catch let error as SnapshotError { refusal = error }
            return refusal != nil
        }
        #expect(try #require(refusal).description.contains("forgotten"))
        // Compiled with -O, the test would otherwise release the snapshot directly after its creation.
        withExtendedLifetime(kept) {}
        kept.removeAll()
        // Main reads the old state too until it has merged.
        await MainActor.run { container.mainContext.refreshAllObjects() }
        try await until("snapshots are made again") { (try? coordinator.snapshot()) != nil }
        coordinator.snapshotBudget = nil
    }

    @Test func S152_aFileStaysBoundedThoughAReaderSleeps() async throws {
        let budget = SnapshotBudget(maximumBytes: 1 << 20, responses: .advanceCleanContexts)
        let bounded = try await Self.fileBytes(after: Self.saves, budget)
        let unbounded = try await Self.fileBytes(after: min(Self.saves, 2_000), nil)
        print("\(Self.saves) saves while a reader sleeps: \(bounded) bytes with a budget of 1 MiB, \(unbounded) without")
        #expect(bounded < 8 << 20)
        #expect(unbounded > bounded)
    }

    /// Catches: a live result that keeps the snapshot below deferred saves after they were written, so that a budget refuses others.
    @Test(arguments: Combination.all.filter { [.siblings, .split, .hybrid].contains($0.stack) })
    @MainActor func `S152, S154: live results release the snapshot below deferred saves when these are written`(
        _ combination: Combination
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let main = container.mainContext
        let results = try FetchedResultsController(
            EntityFetchRequest("Track", sortBy: [AttributeSort("title")]), context: main)
        try results.performFetch()
        main.makeTrack("a")
        try await container.saveMain(.deferred(within: .seconds(600)))
        try await until("the new object is shown") { results.snapshot.count == 1 }
        try await container.flush()
        try await until("no older state is in use") { try container.coordinator.snapshots().allSatisfy(\.isNewest) }
    }

    /// Catches: a context that leaves the state which it was told to read, because a save that was made before is written.
    @Test(arguments: StoreKind.allCases)
    @MainActor func `S150, S151: a context keeps the state that it was told to read while earlier saves are written`(
        _ kind: StoreKind
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let main = container.mainContext
        let track = main.makeTrack("a", plays: 1)
        try await container.saveMain()
        let id = track.objectID
        let old = try container.coordinator.snapshot()
        let worker = container.newBatchOperationContext()
        try await worker.perform { try $0.existingObject(with: id)["plays"] = .int(2) }
        try await worker.save(.deferred(within: .seconds(600)))
        try await until("the save is merged") { track["plays"] == .int(2) }
        main.read(from: old)
        try await container.flush()
        for _ in 0..<100 { await Task.yield() }
        #expect(track["plays"] == .int(1))
        // A later save moves it.
        try await worker.perform { try $0.existingObject(with: id)["plays"] = .int(3) }
        try await worker.save(.durable)
        try await until("the later save is merged") { track["plays"] == .int(3) }
    }

    /// Returns the size of a file in which some pages were written repeatedly while a context kept its state.
    private static func fileBytes(after saves: Int, _ budget: SnapshotBudget?) async throws -> Int {
        let bed = try TestBed(.lmdb)
        let container = try await bed.container()
        let ids = try await fill(container, tracks: 512)
        let sleeper = container.coordinator.newBackgroundContext(name: "sleeper")
        container.coordinator.snapshotBudget = budget
        let worker = container.coordinator.newBackgroundContext(name: "worker")
        let isLong = saves > 10_000
        for number in 0..<saves {
            try await worker.perform { try $0.existingObject(with: ids[number * 67 % ids.count])["plays"] = .int(Int64(number)) }
            try await worker.save(isLong ? .deferred(within: .milliseconds(5)) : .durable)
            // The budget asks contexts to move and does not wait for them. Main may be busy with other tests for seconds.
            guard let limit = budget?.maximumBytes, number % 16 == 15 else { continue }
            try await container.flush()
            try await until("no context retains more than the budget") {
                try container.coordinator.snapshots().allSatisfy { $0.isNewest || ($0.bytesRetained ?? 0) <= limit }
            }
        }
        try await container.flush()
        _ = await sleeper.perform { $0.hasChanges }
        return try container.coordinator.store.fileBytes()
    }
}
