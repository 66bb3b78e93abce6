import Dispatch
import Platform
import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

/// Live results that are released while another one computes.
@Suite struct StoppedResultTests {
    /// A live result and its snapshot, which one executor alone uses.
    private final class Kept: @unchecked Sendable {
        var results: FetchedResultsController<ManagedObject>?
        weak var snapshot: (any StoreSnapshot)?
    }

    /// Catches: a snapshot that keeps pages from reuse as long as the computations of other results take.
    @Test func `S154: a released live result keeps no snapshot while another result computes`() async throws {
        let store = FaultyStore(schema: Music.model.storeSchema)
        let coordinator = try PersistentStoreCoordinator.music(store, SteppedClock())
        let worker = coordinator.newBackgroundContext()
        await worker.perform { _ = $0.makeTrack("a") }
        try await worker.save()
        let shown = coordinator.newBackgroundContext()
        let kept = Kept()
        try await shown.perform { context throws in
            let results = try FetchedResultsController(
                EntityFetchRequest("Track", sortBy: [AttributeSort("title")]), context: context)
            try results.performFetch()
            let base = context.layerStack.view.base
            (kept.results, kept.snapshot) = (results, (base as? LazySnapshot)?.held ?? base)
        }
        #expect(kept.snapshot != nil)
        // A computation that takes as long as the disk does.
        let (begun, mayEnd) = (Flag(), Flag())
        store.hold(.snapshot, begun, until: mayEnd)
        let query = try await shown.perform { context throws in
            try EntityFetchRequest("Track").storeQuery(in: context.requestScope)
        }
        let other = ResultWorker(contextExecutor: shown, store: store.identity, interval: .zero) { _, _ in }
        let view = LayeredView(base: coordinator.writer.lazySnapshot(after: 1), layers: [])
        let computation = Task { try await other.compute(query, hasSections: false, in: view) }
        try await until("the other result computes") { begun.wait(atMost: .zero) }
        store.fail(nil)
        await shown.perform { _ in kept.results = nil }
        await worker.perform { _ = $0.makeTrack("b") }
        try await worker.save()
        await shown.perform { $0.refreshAllObjects() }
        #expect(kept.snapshot == nil)
        mayEnd.set()
        _ = try await computation.value
    }
}
