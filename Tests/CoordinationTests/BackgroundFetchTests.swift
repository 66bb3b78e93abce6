import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

/// Live results that are being fetched in the background while their container is suspended or closed.
@Suite(.serialized, .timeLimit(.minutes(10))) struct BackgroundFetchTests {
    private static let tracks = EntityFetchRequest("Track", sortBy: [AttributeSort("title")])

    /// A live result whose read from the store waits until ``release()``. All live results of the process wait behind it.
    private struct SlowResult {
        private let coordinator: PersistentStoreCoordinator
        private let context: BackgroundContext
        private let isReading = Flag()
        private let isReleased = Flag()
        private let reading: Task<Void, any Error>

        init() async throws {
            let store = FaultyStore(schema: Music.model.storeSchema)
            coordinator = try PersistentStoreCoordinator.music(store, SteppedClock())
            context = BackgroundContext(.root(of: coordinator, name: "slow", beginsAtFirstRead: true))
            store.hold(.snapshot, isReading, until: isReleased)
            reading = Task { [context] in
                try await context.perform { _, context in
                    try await FetchedResultsController(tracks, context: context).performFetchInBackground()
                }
            }
            try await until("the read waits") { [isReading] in isReading.wait(atMost: .zero) }
        }

        func release() async throws {
            isReleased.set()
            try await reading.value
        }
    }

    /// The result of a fetch in the background.
    private struct Outcome: Sendable {
        var code: StoreError.Code?
        var count: Int
    }

    /// The moments that an interruption waits for.
    private struct Moments: Sendable {
        let isFetched = Flag()
        let isReleased = Flag()
    }

    /// Fetches in the background while `interrupt` runs. The read goes on when the context was interrupted.
    private func fetch(
        _ context: BackgroundContext, while interrupt: @escaping @Sendable (Moments) async throws -> Void,
        isInterrupted: @escaping @Sendable (ManagedObjectContext) -> Bool
    ) async throws -> Outcome {
        let slow = try await SlowResult()
        let (isStarted, isOver, moments) = (Flag(), Flag(), Moments())
        let fetching = Task {
            try await context.perform { _, context in
                let results = try FetchedResultsController(Self.tracks, context: context)
                isStarted.set()
                var code: StoreError.Code?
                do { try await results.performFetchInBackground() } catch { code = (error as? StoreError)?.code }
                moments.isFetched.set()
                try await until("the interruption is over") { isOver.wait(atMost: .zero) }
                context.makeTrack("b")
                context.processPendingChanges()
                await results.untilIdle()
                return Outcome(code: code, count: results.snapshot.count)
            }
        }
        try await until("the fetch has begun") { isStarted.wait(atMost: .zero) }
        let interrupting = Task { try await interrupt(moments) }
        // By a job, because `perform` would use the context, which moves it.
        try await until("the context was interrupted") {
            await withCheckedContinuation { continuation in
                context.enqueue { continuation.resume(returning: isInterrupted($0)) }
            }
        }
        try await slow.release()
        moments.isReleased.set()
        let result = await interrupting.result
        isOver.set()
        let outcome = try await fetching.value
        try result.get()
        return outcome
    }

    /// Catches: a fetch that ends after its context was closed, and keeps the snapshot that it has read.
    @Test(arguments: StoreKind.allCases)
    func `closing a container ends the reads of a live result that is being fetched in the background`(_ kind: StoreKind)
        async throws
    {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let context = container.newBatchOperationContext()
        try await context.perform(andSave: .durable) { _ = $0.makeTrack("a") }
        let outcome = try await fetch(context) { _ in
            try await container.close()
        } isInterrupted: {
            $0.phase.closure != nil
        }
        #expect(outcome.code == .closed && outcome.count == 0)
    }

    /// Catches: a fetch that reads after the suspension, and opens the file again.
    @Test(arguments: StoreKind.allCases)
    func `S167: a live result that is being fetched in the background follows its context after a suspension`(_ kind: StoreKind)
        async throws
    {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let context = container.newBatchOperationContext()
        try await context.perform(andSave: .durable) { _ = $0.makeTrack("a") }
        let outcome = try await fetch(context) { moments in
            try await container.suspend()
            #expect(moments.isFetched.wait(atMost: .zero), "the fetch opens the file again")
            try await until("the read goes on") { moments.isReleased.wait(atMost: .zero) }
            await container.resume()
        } isInterrupted: {
            $0.configuration.writer.suspension.isClosed
        }
        #expect(outcome.code == nil && outcome.count == 2)
        try await container.close()
    }

    /// A live result, which one executor alone uses.
    private final class Kept: @unchecked Sendable {
        var results: FetchedResultsController<ManagedObject>?
    }

    /// Catches: a fetch that returns without its result, or with one that nothing follows, because another one has failed meanwhile.
    @Test(arguments: [true, false])
    func `S145: a background fetch gives its result and follows it if a later fetch fails`(inBackground: Bool) async throws {
        let store = FaultyStore(schema: Music.model.storeSchema)
        let coordinator = try PersistentStoreCoordinator.music(store, SteppedClock())
        try await coordinator.newBackgroundContext().perform(andSave: .durable) { _ = $0.makeTrack("a") }
        let (context, kept) = (coordinator.newBackgroundContext(), Kept())
        try await context.perform { context throws in
            kept.results = try FetchedResultsController(Self.tracks, context: context)
        }
        let (isReading, mayEnd, isStarted) = (Flag(), Flag(), Flag())
        store.fail { call, _ in
            guard call == .readKeys else { return nil }
            if isReading.wait(atMost: .zero) { return StoreError(.full, "the second fetch") }
            isReading.set()
            _ = mayEnd.wait(atMost: .seconds(600))
            return nil
        }
        let first = Task {
            try await context.perform { _, _ in
                try await kept.results?.performFetchInBackground()
                return kept.results?.snapshot.count
            }
        }
        try await until("the first fetch reads") { isReading.wait(atMost: .zero) }
        let second = Task {
            try await context.perform { _, _ in
                isStarted.set()
                if inBackground {
                    try await kept.results?.performFetchInBackground()
                } else {
                    try kept.results?.performFetch()
                }
            }
        }
        try await until("the second fetch has begun") { isStarted.wait(atMost: .zero) }
        // Runs when the second fetch has suspended or ended.
        await context.perform { _ in }
        mayEnd.set()
        let count = try await first.value
        #expect(count == 1)
        await #expect(throws: StoreError.self) { try await second.value }
        store.fail(nil)
        await context.perform { _ = $0.makeTrack("b") }
        let followed = await context.perform { _, _ in
            await kept.results?.untilIdle()
            return kept.results?.snapshot.count
        }
        #expect(followed == 2)
        await context.perform { _ in kept.results = nil }
    }
}
