import Foundation
import Logging
import Platform
import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

/// The warnings about snapshots that exceed their budget, by a clock that the test advances.
@Suite struct SnapshotBudgetTests {
    private final class Lines: Sendable {
        private let noted = Mutex<[String]>([])

        func note(_ line: String) { noted.withLock { $0.append(line) } }
        func all(where isWanted: (String) -> Bool) -> [String] { noted.withLock { $0 }.filter(isWanted) }
    }

    /// Catches: a budget that is silent, that warns with every check or save, or that warns once and never again.
    @Test func `S152: a budget warns at once, and again only after ten seconds however often the store is saved`() async throws {
        // A process has one handler for all loggers. The test sets it in another process than the other tests.
        await #expect(processExitsWith: .success) {
            let lines = Lines()
            LoggingSystem.bootstrap { _ in LineHandler { lines.note($0) } }
            let (store, clock) = (FaultyStore(schema: Music.model.storeSchema), SteppedClock())
            let coordinator = try PersistentStoreCoordinator.music(store, clock)
            let kept = try coordinator.snapshot(owner: "the forgotten export")
            let worker = coordinator.newBackgroundContext()
            await worker.perform { _ = $0.makeTrack("first") }
            try await worker.save()
            // Any older state is over this budget, because ages are not measured by the test's clock.
            coordinator.snapshotBudget = SnapshotBudget(maximumAge: .zero)
            func warnings() -> [String] { lines.all { $0.contains("exceeds the budget: the forgotten export:") } }
            try #require(warnings() == [])
            clock.advance(by: .milliseconds(50))
            try #require(warnings().count == 1, "the first check warns")
            for number in 0..<19 {
                await worker.perform { _ = $0.makeTrack("t\(number)") }
                try await worker.save()
                clock.advance(by: .milliseconds(500))
            }
            try #require(warnings().count == 1, "nothing is said again within ten seconds")
            clock.advance(by: .milliseconds(500))
            try #require(warnings().count == 2, "the warning is repeated after ten seconds")
            try #require(warnings().last?.contains("more times since the last warning") == true)
            withExtendedLifetime(kept) {}
        }
    }

    /// Catches: a warning that promises to advance a context which only its next request moves.
    @Test func `S152: the warning about a context without an executor says that it stays until its next request`() async throws {
        await #expect(processExitsWith: .success) {
            let lines = Lines()
            LoggingSystem.bootstrap { _ in LineHandler { lines.note($0) } }
            let (store, clock) = (FaultyStore(schema: Music.model.storeSchema), SteppedClock())
            let coordinator = try PersistentStoreCoordinator.music(store, clock)
            let confined = coordinator.makeConfinedContext(name: "the idle list")
            let count = try confined.count(EntityFetchRequest("Track"))
            try #require(count == 0)
            let worker = coordinator.newBackgroundContext()
            await worker.perform { _ = $0.makeTrack("first") }
            try await worker.save()
            coordinator.snapshotBudget = SnapshotBudget(maximumAge: .zero, responses: .advanceCleanContexts)
            clock.advance(by: .milliseconds(50))
            let warnings = lines.all { $0.contains("exceeds the budget: the idle list:") }
            try #require(warnings.count == 1)
            try #require(warnings[0].contains("stay until their next request") && !warnings[0].contains("are advanced"))
            withExtendedLifetime(confined) {}
        }
    }

    /// Catches: a main context that reports only the changes since the last move of its root, which a budget has moved without it.
    @Test(arguments: StoreKind.allCases, [ContextStack.masterMainWorker, .hybrid])
    @MainActor func `S152: a live result of main shows saves past which a budget has moved its root`(
        _ kind: StoreKind, _ stack: ContextStack
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(stack)
        let main = container.mainContext
        main.automaticallyMergesChanges = false
        let results = try FetchedResultsController(
            EntityFetchRequest("Track", sortBy: [AttributeSort("title")]), context: main)
        try results.performFetch()
        try await container.newBatchOperationContext().perform(andSave: .durable) { _ = $0.makeTrack("a") }
        let root = try #require(container.creation.root)
        try await root.run { $0.advanceIfClean() }
        try await container.write { _ = $0.makeTrack("b") }
        try await until("the last save is shown") { results.fetchedObjects.contains { $0["title"] == .string("b") } }
        #expect(results.fetchedObjects.map { $0["title"] } == [.string("a"), .string("b")])
        #expect(try main.trackTitles() == ["a", "b"])
        try await container.close()
    }

    // MARK: Beside another process

    private static let saves = 20

    /// The bytes of some pages. Twenty saves of another process make an old snapshot keep more.
    private static let fewBytes = 16 * 4096

    /// Saves new tracks in another process, one by one.
    private static func saveElsewhere(_ bed: TestBed) async {
        await #expect(processExitsWith: .success) {
            [folder = bed.folder as URL, kind = bed.kind.rawValue as String] in
            let bed = TestBed(try #require(StoreKind(rawValue: kind)), in: folder)
            let store = try bed.description.open(Music.model.storeSchema)
            let worker = try PersistentStoreCoordinator(model: Music.model, store: store, name: "test").newBackgroundContext()
            for number in 0..<SnapshotBudgetTests.saves {
                try await worker.perform(andSave: .durable) { _ = $0.makeTrack("elsewhere \(number)") }
            }
        }
    }

    /// Returns a coordinator with one save, and a snapshot of it, which the caller keeps.
    private static func forgotten(
        in bed: TestBed, _ clock: SteppedClock, tracks: Int = 1
    ) async throws -> (coordinator: PersistentStoreCoordinator, kept: Snapshot) {
        let coordinator = try PersistentStoreCoordinator(
            model: Music.model, store: bed.description.open(Music.model.storeSchema), name: "test", clock: clock.source)
        try await coordinator.newBackgroundContext().perform(andSave: .durable) { context in
            for number in 0..<tracks { context.makeTrack("track \(number)", plays: number) }
        }
        return (coordinator, try coordinator.snapshot(owner: "the forgotten export"))
    }

    /// Returns whether the budget has warned about that snapshot.
    private static func isWarned(_ coordinator: PersistentStoreCoordinator) -> Bool {
        coordinator.writer.snapshotRegistry.budget.withLock {
            $0.warned.keys.contains { $0.contains("the forgotten export") }
        }
    }

    /// Catches: a budget that counts the saves of this process only, so that snapshots grow old without a word while another process saves.
    @Test(
        arguments: zip(
            [StoreKind.lmdb, .lmdb, .sqlite],
            [
                SnapshotBudget(maximumAge: .zero, responses: [.advanceCleanContexts, .refuseNewSnapshots]),
                SnapshotBudget(maximumBytes: fewBytes, responses: [.advanceCleanContexts, .refuseNewSnapshots]),
                SnapshotBudget(maximumAge: .zero, responses: [.advanceCleanContexts, .refuseNewSnapshots]),
            ]))
    func `S152, S154: a snapshot that another process's saves put over the budget is warned about, and clean contexts are moved`(
        _ kind: StoreKind, _ budget: SnapshotBudget
    ) async throws {
        let bed = try TestBed(kind)
        let clock = SteppedClock()
        let (coordinator, kept) = try await Self.forgotten(in: bed, clock)
        let (clean, dirty) = (coordinator.newBackgroundContext(), coordinator.newBackgroundContext())
        await dirty.perform { _ = $0.makeTrack("unsaved") }
        let start = await dirty.perform { $0.snapshot.generation }
        coordinator.snapshotBudget = budget
        func isWarned() -> Bool { Self.isWarned(coordinator) }
        clock.advance(by: .milliseconds(500))
        #expect(!isWarned())
        for round in 1...2 {
            #expect(try await clean.perform { try $0.trackTitles().count } == 1 + (round - 1) * Self.saves)
            await Self.saveElsewhere(bed)
            #expect(try await clean.perform { try $0.trackTitles().count } == 1 + (round - 1) * Self.saves, "before the check")
            // The next check runs here. It moves contexts on their executors, before what is requested there afterwards.
            clock.advance(by: .milliseconds(500))
            #expect(isWarned())
            #expect(try await clean.perform { try $0.trackTitles().count } == 1 + round * Self.saves)
            #expect(await clean.perform { $0.snapshot.generation } == coordinator.currentHistoryToken.generation)
            #expect(await dirty.perform { $0.snapshot.generation } == start, "unsaved changes stay on what they were made on")
            #expect(throws: SnapshotError.self) { try coordinator.snapshot() }
        }
        #expect(kept.generation == start)
    }

    /// Catches: a budget that looks at another process's saves only by its timer, which checks every 500 ms.
    @Test(arguments: [StoreKind.lmdb, .sqlite])
    func `S152: the budget is checked 50 ms after the saves of another process are adopted`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let clock = SteppedClock()
        let (coordinator, kept) = try await Self.forgotten(in: bed, clock)
        coordinator.snapshotBudget = SnapshotBudget(maximumAge: .zero)
        func isWarned() -> Bool { Self.isWarned(coordinator) }
        // The check that setting the budget schedules.
        clock.advance(by: .milliseconds(50))
        #expect(!isWarned(), "the snapshot shows the newest state")
        await Self.saveElsewhere(bed)
        clock.advance(by: .milliseconds(50))
        #expect(!isWarned(), "no save was adopted")
        try await coordinator.refresh()
        #expect(!isWarned(), "the check waits for the last save of a burst")
        clock.advance(by: .milliseconds(50))
        #expect(isWarned())
        withExtendedLifetime(kept) {}
    }

    // MARK: After a compaction

    /// Catches: a budget that compares saves only, so that it is silent about the pages that a compaction has replaced.
    @Test func `S152: a snapshot that a compaction puts over the budget is warned about, and clean contexts are moved`()
        async throws
    {
        let bed = try TestBed(.lmdb)
        let clock = SteppedClock()
        let (coordinator, kept) = try await Self.forgotten(in: bed, clock, tracks: 6400)
        // A pinned context does not move by itself.
        let clean = coordinator.newBackgroundContext(name: "clean", reading: kept)
        let child = await clean.perform { $0.newBackgroundChild(name: "child") }
        #expect(try await child.perform { try $0.trackTitles().count } == 6400)
        coordinator.snapshotBudget = SnapshotBudget(
            maximumBytes: Self.fewBytes, responses: [.advanceCleanContexts, .refuseNewSnapshots])
        clock.advance(by: .milliseconds(500))
        #expect(!Self.isWarned(coordinator))
        #expect(try await coordinator.compact(CompactionOptions(age: .any)).pagesPacked > 0)
        // The writer renews its own snapshot on its queue, before it looks for other saves there.
        try await coordinator.refresh()
        let held = try #require(try coordinator.snapshots().first { $0.owners.contains("the forgotten export") })
        #expect(Set(held.owners).isSuperset(of: ["clean", "child"]), "\(held)")
        #expect(try #require(held.bytesRetained) > Self.fewBytes)
        clock.advance(by: .milliseconds(500))
        try #require(Self.isWarned(coordinator))
        #expect(throws: SnapshotError.self) { try coordinator.snapshot() }
        for context in [clean, child] {
            try await until("the context reads the newest snapshot") {
                let name = await context.perform { $0.name }
                return try coordinator.snapshots().contains { $0.owners.contains(name) && $0.bytesRetained == 0 }
            }
            #expect(try await context.perform { try $0.trackTitles().count } == 6400)
        }
        withExtendedLifetime(kept) {}
    }

    // MARK: Snapshots of other processes

    /// Catches: a budget that does not count the snapshots of other processes.
    @Test func `S152: a budget warns of the snapshot of another process, again only after ten seconds`() async throws {
        let bed = try TestBed(.lmdb)
        let container = try await bed.container()
        try await container.newBatchOperationContext().perform(andSave: .durable) { _ = $0.makeTrack("first") }
        let kept = try container.coordinator.snapshot()
        // The process that saves has the budget, and the log for itself.
        await #expect(processExitsWith: .success) { [folder = bed.folder as URL, parent = getpid() as Int32] in
            let lines = Lines()
            LoggingSystem.bootstrap { _ in LineHandler { lines.note($0) } }
            let clock = SteppedClock()
            let coordinator = try PersistentStoreCoordinator(
                model: Music.model, store: TestBed(.lmdb, in: folder).description.open(Music.model.storeSchema), name: "test",
                clock: clock.source)
            let worker = coordinator.newBackgroundContext()
            coordinator.snapshotBudget = SnapshotBudget(maximumBytes: SnapshotBudgetTests.fewBytes)
            func warnings() -> [String] { lines.all { $0.contains("exceeds the budget: process \(parent):") } }
            clock.advance(by: .milliseconds(500))
            try #require(warnings() == [])
            for number in 0..<SnapshotBudgetTests.saves {
                try await worker.perform(andSave: .durable) { _ = $0.makeTrack("\(number)") }
            }
            clock.advance(by: .milliseconds(500))
            try #require(warnings().count == 1, "the first check warns")
            for _ in 0..<19 { clock.advance(by: .milliseconds(500)) }
            try #require(warnings().count == 1, "nothing is said again within ten seconds")
            clock.advance(by: .milliseconds(500))
            try #require(warnings().count == 2, "the warning is repeated after ten seconds")
        }
        withExtendedLifetime(kept) {}
    }
}
