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
}
