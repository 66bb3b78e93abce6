import Platform
import Dispatch
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

@Suite(.serialized) struct ReadWriteTests {
    private struct Refused: Error {}

    private func plays(_ id: ObjectID, in container: PersistentContainer) async throws -> Value {
        try await container.read { try $0.existingObject(with: id)["plays"] }
    }

    /// Runs a write of another context to its end while the calling thread, which belongs to a context's own queue, waits.
    private func writeMeanwhile(
        _ container: PersistentContainer, _ body: @escaping @Sendable (ManagedObjectContext) throws -> Void
    ) throws {
        let (answer, isDone) = (Answer(), DispatchSemaphore(value: 0))
        Task.detached {
            do { try await container.write { try body($0) } } catch { answer.error.withLock { $0 = error } }
            isDone.signal()
        }
        isDone.wait()
        if let error = answer.error.withLock({ $0 }) { throw error }
    }

    private final class Answer: Sendable {
        let error = Mutex<(any Error)?>(nil)
    }

    // MARK: Reading

    @Test(arguments: Combination.all)
    func `a read shows the newest saved state whatever is saved meanwhile`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        await MainActor.run { _ = container.mainContext.makeTrack("unsaved") }
        try await container.write { _ = $0.makeTrack("a") }
        let (before, after) = try await container.read { context in
            let before = try context.trackTitles()
            try writeMeanwhile(container) { _ = $0.makeTrack("b") }
            return (before, try context.trackTitles())
        }
        #expect(before == ["a"] && after == ["a"])
        #expect(try await container.read { try $0.trackTitles() } == ["a", "b"])
    }

    @Test(arguments: Combination.all)
    func `a read gives its state back also when it throws`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        try await container.write { _ = $0.makeTrack("a") }
        let owners = { try container.backgroundCoordinator.snapshots().flatMap(\.owners) }
        let during = try await container.read { context in
            _ = try context.trackTitles()
            return try container.backgroundCoordinator.snapshots().flatMap(\.owners)
        }
        #expect(during.contains("read"))
        #expect(try !owners().contains("read"))
        await #expect(throws: Refused.self) {
            try await container.read { context in
                _ = try context.trackTitles()
                throw Refused()
            }
        }
        #expect(try !owners().contains("read"))
    }

    @Test(arguments: Combination.all)
    func `what a read changes reaches the store in no way`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let child = try await container.read { context in
            _ = context.makeTrack("a")
            return context.newBackgroundChild()
        }
        await child.perform { _ = $0.makeTrack("b") }
        let error = await #expect(throws: SaveError.self) { try await child.save(through: .store) }
        #expect(error?.code == .parentGone)
        #expect(try await container.read { try $0.trackTitles() } == [])
    }

    // MARK: Writing

    @Test(arguments: Combination.all)
    func `a write is repeated after a conflict`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let id = try await container.write { $0.makeTrack("a").objectID }
        let attempts = Atomic(0)
        let seen = try await container.write(retrying: 3) { context in
            let attempt = attempts.add(1, ordering: .relaxed).newValue
            let track = try context.existingObject(with: id)
            guard case .int(let plays) = track["plays"] else { return Int64(-1) }
            // Another context changes the track between this read and this save.
            if attempt <= 3 { try writeMeanwhile(container) { try $0.existingObject(with: id)["plays"] = .int(plays + 10) } }
            track["plays"] = .int(plays + 1)
            return plays
        }
        #expect(seen == 30)
        #expect(attempts.load(ordering: .relaxed) == 4)
        #expect(try await plays(id, in: container) == 31)
    }

    @Test(arguments: Combination.all)
    func `the last conflict is thrown when no retry is left`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let id = try await container.write { $0.makeTrack("a").objectID }
        for retries in [0, 2] {
            let attempts = Atomic(0)
            let error = await #expect(throws: SaveError.self) {
                try await container.write(retrying: retries) { context in
                    let attempt = attempts.add(1, ordering: .relaxed).newValue
                    let track = try context.existingObject(with: id)
                    _ = track["plays"]
                    try writeMeanwhile(container) {
                        try $0.existingObject(with: id)["plays"] = .int(Int64(100 * retries + attempt))
                    }
                    track["plays"] = .int(-1)
                }
            }
            #expect(error?.code == .conflicts)
            #expect(error?.objectIDs == [id])
            #expect(attempts.load(ordering: .relaxed) == retries + 1)
            #expect(try await plays(id, in: container) == .int(Int64(100 * retries + retries + 1)))
        }
    }

    @Test(arguments: Combination.all)
    func `S108: a write that finds or inserts is repeated if another context inserted meanwhile`(_ combination: Combination)
        async throws
    {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let attempts = Atomic(0)
        let trackOfCode = EntityFetchRequest("Track", matching: .equal("isrc", "x"))
        let findOrInsert: @Sendable (ManagedObjectContext) throws -> Value? = { context in
            let found = try context.fetch(trackOfCode).first
            if attempts.add(1, ordering: .relaxed).newValue == 1 {
                try writeMeanwhile(container) { $0.makeTrack("theirs")["isrc"] = "x" }
            }
            let track = found ?? context.makeTrack("ours")
            track["isrc"] = "x"
            return track["title"]
        }
        #expect(try await container.write(retrying: 1, .durable, findOrInsert) == "theirs")
        #expect(attempts.load(ordering: .relaxed) == 2)
        #expect(try await container.read { try $0.trackTitles() } == ["theirs"])
        try await container.write { $0.delete(try #require(try $0.fetch(trackOfCode).first)) }
        attempts.store(0, ordering: .relaxed)
        let error = await #expect(throws: SaveError.self) { try await container.write(retrying: 0, .durable, findOrInsert) }
        #expect(error?.code == .uniqueConstraint && attempts.load(ordering: .relaxed) == 1)
    }

    @Test(arguments: Combination.all)
    func `other errors end a write at once`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let attempts = Atomic(0)
        await #expect(throws: Refused.self) {
            try await container.write(retrying: 5) { context in
                attempts.add(1, ordering: .relaxed)
                _ = context.makeTrack("a")
                throw Refused()
            }
        }
        let error = await #expect(throws: SaveError.self) {
            try await container.write(retrying: 5) { context in
                attempts.add(1, ordering: .relaxed)
                for title in ["b", "c"] { context.makeTrack(title)["isrc"] = "same" }
            }
        }
        #expect(error?.code == .uniqueConstraint)
        #expect(attempts.load(ordering: .relaxed) == 2)
        #expect(try await container.read { try $0.trackTitles() } == [])
        #expect(try container.backgroundCoordinator.snapshots().allSatisfy { !$0.owners.contains("write") })
    }

    @Test(arguments: StoreKind.allCases)
    func `a cancelled write is not repeated`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let id = try await container.write { $0.makeTrack("a").objectID }
        let attempts = Atomic(0)
        let task = Task {
            try await container.write(retrying: 100) { context in
                attempts.add(1, ordering: .relaxed)
                let track = try context.existingObject(with: id)
                _ = track["plays"]
                try writeMeanwhile(container) { try $0.existingObject(with: id)["plays"] = 10 }
                track["plays"] = 1
                withUnsafeCurrentTask { $0?.cancel() }
            }
        }
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(attempts.load(ordering: .relaxed) == 1)
        #expect(try await plays(id, in: container) == 10)
    }

    @Test(arguments: Combination.all)
    func `increments from many tasks add up`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let ids = try await container.write { context in (0..<3).map { context.makeTrack("\($0)").objectID } }
        let (tasks, rounds) = (6, 10)
        var expected = [Int64](repeating: 0, count: ids.count)
        var generator = SeededGenerator(seed: Seed.value)
        let plans = (0..<tasks).map { _ in
            (0..<rounds).map { _ in (Int.random(in: 0..<3, using: &generator), Int64.random(in: 1...9, using: &generator)) }
        }
        for (track, amount) in plans.joined() { expected[track] += amount }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for plan in plans {
                group.addTask {
                    for (track, amount) in plan {
                        try await container.write(retrying: .max, amount % 2 == 0 ? .deferred : .durable) { context in
                            let object = try context.existingObject(with: ids[track])
                            guard case .int(let plays) = object["plays"] else { return }
                            object["plays"] = .int(plays + amount)
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        let found = try await container.read { context in try ids.map { try context.existingObject(with: $0)["plays"] } }
        try await container.flush()
        #expect(found == expected.map { .int($0) }, "seed \(Seed.value)")
    }

    @Test(arguments: Combination.all)
    func `the main context shows a write and keeps its changes`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let id = try await container.write { $0.makeTrack("a").objectID }
        try await until("main shows the track") { try await MainActor.run { try container.mainContext.trackTitles() == ["a"] } }
        try await MainActor.run {
            let track = try container.mainContext.existingObject(with: id)
            track["title"] = "mine"
            container.mainContext.makeTrack("unsaved")
        }
        try await container.write(retrying: 1) { try $0.existingObject(with: id)["plays"] = 7 }
        try await until("main shows the new value") {
            try await MainActor.run { try container.mainContext.existingObject(with: id)["plays"] == 7 }
        }
        #expect(try await MainActor.run { try container.mainContext.trackTitles() } == ["mine", "unsaved"])
        try await container.saveMain()
        #expect(try await container.read { try $0.trackTitles() } == ["mine", "unsaved"])
    }

    @Test(arguments: StoreKind.allCases)
    func `reads and writes of a closed container throw`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        try await container.close()
        let reading = await #expect(throws: StoreError.self) { try await container.read { _ in } }
        let writing = await #expect(throws: StoreError.self) { try await container.write(retrying: 3) { _ in } }
        #expect(reading?.code == .closed)
        #expect(reading == writing)
    }
}
