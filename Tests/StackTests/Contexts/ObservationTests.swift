import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

@Suite struct ObservationTests {
    private final class Witness: Sendable {}

    @Test(arguments: Combination.all)
    func `an observation ends with its token`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let worker = await container.newBackgroundContext()
        let (kept, cancelled, released) = (Counter(), Counter(), Counter())
        let first = await worker.perform { $0.observe { kept.note($0) } }
        let second = await worker.perform { $0.observe { cancelled.note($0) } }
        var third: ObservationToken? = await worker.perform { $0.observe { released.note($0) } }
        await worker.perform { _ = $0.makeTrack("a") }
        #expect([kept, cancelled, released].map { $0.count(.objectsDidChange) } == [1, 1, 1])
        second.cancel()
        second.cancel()
        withExtendedLifetime(third) {}
        third = nil
        await worker.perform { _ = $0.makeTrack("b") }
        #expect([kept, cancelled, released].map { $0.count(.objectsDidChange) } == [2, 1, 1])
        first.cancel()
    }

    /// An observer and its captures are released when its token ends, and not only with the context.
    @Test(arguments: StoreKind.allCases)
    func `an ended observation releases its closure`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let worker = await container.newBackgroundContext()
        weak var witness: Witness?
        var token: ObservationToken? = await {
            let held = Witness()
            witness = held
            return await worker.perform { $0.observe { _ in withExtendedLifetime(held) {} } }
        }()
        #expect(witness != nil)
        withExtendedLifetime(token) {}
        token = nil
        await worker.perform { _ in }
        #expect(witness == nil)
    }

    @Test(arguments: StoreKind.allCases)
    func `an observer may end itself while it is called`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let counter = Counter()
        await MainActor.run {
            let main = container.mainContext
            var token: ObservationToken?
            token = main.observe { notice in
                counter.note(notice)
                token = nil
            }
            for title in ["a", "b"] {
                main.makeTrack(title)
                main.processPendingChanges()
            }
            #expect(token == nil)
        }
        #expect(counter.all.count == 1)
    }

    @Test(arguments: Combination.all) @MainActor
    func `a live result is observed until the token ends`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let main = container.mainContext
        let request = EntityFetchRequest("Track", sortBy: [AttributeSort("title")])
        let controller = try FetchedResultsController(request, context: main)
        try controller.performFetch()
        var (kept, ended) = (0, 0)
        let first = controller.observe { kept = $0.snapshot.count }
        let second = controller.observe { ended = $0.snapshot.count }
        main.makeTrack("a")
        main.processPendingChanges()
        try await until("both observers are called") { kept == 1 && ended == 1 }
        second.cancel()
        main.makeTrack("b")
        main.processPendingChanges()
        try await until("the first observer is called") { kept == 2 }
        #expect(ended == 1)
        first.cancel()
    }

    /// Catches: an access conflict, because the closure is freed while the observers are changed, and with it a live result.
    @Test(arguments: StoreKind.allCases) @MainActor
    func `S120, S140: the end of an observation may release a live result of its context`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(.siblings)
        let main = container.mainContext
        weak var released: FetchedResultsController<ManagedObject>?
        func observe() throws -> UInt64 {
            let controller = try FetchedResultsController(
                EntityFetchRequest("Track", sortBy: [AttributeSort("title")]), context: main)
            try controller.performFetch()
            released = controller
            return main.addObserver { _ in withExtendedLifetime(controller) {} }
        }
        let number = try observe()
        #expect(released != nil)
        main.removeObserver(number)
        #expect(released == nil)
    }
}
