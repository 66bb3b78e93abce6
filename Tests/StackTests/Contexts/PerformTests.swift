import Platform
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

@Suite struct PerformTests {
    private struct Refused: Error {}

    /// Whether the main actor has begun to wait.
    private final class Busy: Sendable {
        let flag = Atomic(false)
    }

    /// The number of bodies that run now.
    private final class Running: Sendable {
        private let count = Atomic(0)

        func begin() { #expect(count.add(1, ordering: .relaxed).newValue == 1) }
        func end() { count.subtract(1, ordering: .relaxed) }
    }

    @Test(arguments: Combination.all)
    func `a body that waits keeps its context and may save`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let worker = await container.newBackgroundContext()
        let id = try await worker.perform { _, context in
            let track = context.makeTrack("a")
            try await context.save(through: .store)
            await Task.yield()
            track["plays"] = 2
            await withCheckedContinuation { continuation in Task.detached { continuation.resume() } }
            track["title"] = "b"
            try await context.save(through: .store)
            return track.objectID
        }
        let found = try await container.read { context in
            let track = try context.existingObject(with: id)
            return [track["title"], track["plays"]]
        }
        #expect(found == ["b", 2])
    }

    @Test(arguments: StoreKind.allCases)
    func `what a body throws after a wait reaches the caller and its changes stay`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let worker = await (try await bed.container()).makeBackgroundContext()
        await #expect(throws: Refused.self) {
            try await worker.perform { _, context in
                context.makeTrack("a")
                await Task.yield()
                throw Refused()
            }
        }
        #expect(await worker.perform { $0.hasChanges })
        // Bodies that throw nothing need no `try`.
        let count = await worker.perform { _, context in
            await Task.yield()
            return try? context.trackTitles().count
        }
        #expect(count == 1)
    }

    /// Other jobs of the context run while a body waits, and never beside it.
    @Test(arguments: StoreKind.allCases)
    func `work of one context never runs twice at once`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let worker = await container.newBackgroundContext()
        let running = Running()
        await withTaskGroup(of: Void.self) { group in
            for task in 0..<8 {
                group.addTask {
                    for round in 0..<20 {
                        await worker.perform { _, context in
                            running.begin()
                            context.makeTrack("\(task)-\(round)")
                            running.end()
                            await Task.yield()
                            running.begin()
                            context.makeTrack("\(task)-\(round) again")
                            running.end()
                        }
                    }
                }
            }
        }
        #expect(try await worker.perform { try $0.trackTitles().count } == 320)
    }

    /// Each save has exactly what its own body changed: both tracks or none of a pair.
    @Test(arguments: Combination.all)
    func `no other work comes between a body and its save`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let worker = await container.newBackgroundContext()
        let saved = Counter()
        let token = await worker.perform { $0.observe { saved.note($0) } }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for task in 0..<6 {
                group.addTask {
                    for round in 0..<5 {
                        try await worker.perform(andSave: .deferred, through: .store) { context in
                            context.makeTrack("\(task)-\(round)")
                            context.makeTrack("\(task)-\(round) again")
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        token.cancel()
        let store = container.coordinator.store.identity
        let saves = saved.all.filter { $0.kind == .didSave }
        #expect(saves.count == 30)
        #expect(saves.allSatisfy { $0.changes.insertedIDs(in: store).count == 2 })
        #expect(try await container.read { try $0.trackTitles().count } == 60)
        try await container.flush()
    }

    @Test(arguments: Combination.all)
    func `a body that throws is not saved`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let worker = await container.newBackgroundContext()
        await #expect(throws: Refused.self) {
            try await worker.perform(andSave: .durable, through: .store) { context in
                context.makeTrack("a")
                throw Refused()
            }
        }
        #expect(try await container.read { try $0.trackTitles() } == [])
        let title = try await worker.perform(andSave: .durable, through: .store) { context in
            context.rollback()
            context.makeTrack("b")
            return try context.trackTitles()
        }
        #expect(title == ["b"])
        #expect(try await container.read { try $0.trackTitles() } == ["b"])
    }

    @Test(arguments: Combination.all)
    func `contexts and their children are made off the main actor`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let worker = await container.makeBackgroundContext(name: "worker")
        let child = await worker.newBackgroundChild(name: "child")
        let grandchild = await child.newBackgroundChild(name: "grandchild")
        #expect((worker.name, child.name, grandchild.name) == ("worker", "child", "grandchild"))
        try await grandchild.perform(andSave: .durable) { _ = $0.makeTrack("one level up") }
        #expect(try await child.perform { try $0.trackTitles() } == ["one level up"])
        #expect(try await worker.perform { try $0.trackTitles() } == [])
        try await grandchild.perform(andSave: .durable, through: .store) { _ = $0.makeTrack("to the store") }
        #expect(try await container.read { try $0.trackTitles() } == ["one level up", "to the store"])
    }

    /// A root context is made without the main actor: this test keeps that busy until it has one.
    /// It runs in a separate process, because other tests need the main actor.
    @Test func `a root context is made while the main actor is busy`() async {
        await #expect(processExitsWith: .success) {
            for combination in Combination.all where [.siblings, .split].contains(combination.stack) {
                try await PerformTests.makeContextWhileMainIsBusy(combination)
            }
        }
    }

    private static func makeContextWhileMainIsBusy(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let (isBusy, isMade) = (Busy(), Flag())
        async let wasInTime = MainActor.run {
            isBusy.flag.store(true, ordering: .releasing)
            return isMade.wait(atMost: .seconds(600))
        }
        try await until("the main actor is busy") { isBusy.flag.load(ordering: .acquiring) }
        let worker = await container.makeBackgroundContext()
        let titles = try await container.read { try $0.trackTitles() }
        isMade.set()
        #expect(await wasInTime)
        #expect(titles == [])
        _ = worker
    }

    /// Catches: a context that is deallocated while the list of contexts is locked, and takes the lock again. Many contexts, because only a
    /// long list is searched for contexts that are gone.
    @Test func `S093: contexts that merge may be released while others are created`() async throws {
        let bed = try TestBed(.memory)
        let container = try await bed.container(.siblings)
        @Sendable func make() async -> BackgroundContext {
            let context = container.coordinator.newBackgroundContext()
            await context.perform { $0.automaticallyMergesChanges = true }
            return context
        }
        var kept: [BackgroundContext] = []
        for _ in 0..<70 { kept.append(await make()) }
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<8 { group.addTask { for _ in 0..<Rounds.of(100, long: 5_000) { _ = await make() } } }
        }
        withExtendedLifetime(kept) {}
    }
}
