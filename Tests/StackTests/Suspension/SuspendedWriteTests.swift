import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// `PersistentContainer.write` beside a suspension (S167).
@Suite struct SuspendedWriteTests {
    /// Catches: the main context, or its root, that is moved to the write after the suspension has ended its reads, and so opens the file
    /// again. The suspension waits for the save, and then both go on at once, so each round may or may not show the fault.
    @Test(arguments: [StoreKind.lmdb, .sqlite], [ContextStack.nested, .masterMainWorker, .hybrid])
    func `S167: a write that ends while the container is suspended leaves the file closed`(
        _ kind: StoreKind, _ stack: ContextStack
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(stack)
        let rounds = Rounds.of(20, long: 200)
        for round in 0..<rounds {
            // A read of main, so that a suspension has something to end.
            _ = try await MainActor.run { try container.mainContext.count(EntityFetchRequest("Track")) }
            let suspending = try await container.write { context in
                context.makeTrack("track \(round)")
                return Task { try await container.suspend() }
            }
            try await suspending.value
            // After the jobs of main that the write has left.
            await MainActor.run {}
            let used = try SuspensionTests.used(bed)
            #expect(used == [], "round \(round)")
            await container.resume()
        }
        let shown = try await MainActor.run { try container.mainContext.count(EntityFetchRequest("Track")) }
        #expect(shown == rounds)
        try await container.close()
    }

    /// Catches: a new context that opens the file to look for the newest state, although nothing has been read in it, and a write whose
    /// context stays at the state before the suspension.
    @Test(arguments: [StoreKind.lmdb, .sqlite], [ContextStack.siblings, .split, .masterMainWorker])
    func `S167: a write that begins while the container is suspended waits and leaves the file closed`(
        _ kind: StoreKind, _ stack: ContextStack
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(stack)
        try await container.write { _ = $0.makeTrack("a", plays: 1) }
        try await container.suspend()
        let context = container.newBatchOperationContext()
        let count = try await container.read { _ in 1 }
        let writing = Task {
            // A conflict would not be retried.
            try await container.write { context in
                for track in try context.fetch(EntityFetchRequest("Track")) { track["rating"] = .double(5) }
            }
        }
        try await until("the write waits") { SuspensionTests.waitingCount(container) == 1 }
        #expect(count == 1)
        #expect(try SuspensionTests.used(bed) == [])
        await SuspensionTests.elsewhere(bed, "a", plays: 10)
        #expect(try SuspensionTests.used(bed) == [])
        await container.resume()
        try await writing.value
        let shown = try await container.read { context in
            try context.fetch(EntityFetchRequest("Track")).map { [$0["plays"], $0["rating"]] }
        }
        #expect(shown == [[.int(10), .double(5)]])
        #expect(try await context.perform { try $0.trackTitles() } == ["a"])
        try await container.close()
    }

    /// Catches: a main context that is first used while the container is suspended, and then stays at the state that it has read.
    @Test(arguments: [StoreKind.lmdb, .sqlite], [ContextStack.nested, .masterMainWorker])
    @MainActor func `S167: a main context that is first used during a suspension is moved to the newest state by its end`(
        _ kind: StoreKind, _ stack: ContextStack
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(stack)
        try await container.suspend()
        #expect(try container.mainContext.trackTitles() == [])
        try await container.suspend()
        await SuspensionTests.elsewhere(bed, "a", plays: 1)
        await container.resume()
        #expect(try container.mainContext.trackTitles() == ["a"])
        try await container.close()
    }

    /// Catches: a new context that cannot be read before the container is resumed, or that a second suspension does not find.
    @Test(arguments: [StoreKind.lmdb, .sqlite])
    func `S167: a context that is created while the container is suspended reads the newest state`(_ kind: StoreKind) async throws
    {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        try await container.suspend()
        let context = container.coordinator.newBackgroundContext()
        await SuspensionTests.elsewhere(bed, "a", plays: 1)
        #expect(try await context.perform { try $0.trackTitles() } == ["a"])
        #expect(try await container.read { try $0.trackTitles() } == ["a"])
        try await container.suspend()
        #expect(try SuspensionTests.used(bed) == [])
        await container.resume()
        try await context.perform(andSave: .durable) { _ = $0.makeTrack("b") }
        #expect(try await container.read { try $0.trackTitles() }.sorted() == ["a", "b"])
        try await container.close()
    }
}
