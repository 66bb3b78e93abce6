import Dispatch
import Platform
import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

/// The threads on which snapshots are acquired.
@Suite struct MainThreadSnapshotTests {
    /// Set on the main queue. `Thread.isMainThread` does not tell: in a test process, another thread than the first one may run that queue.
    private static let mainQueue: DispatchSpecificKey<Bool> = {
        let key = DispatchSpecificKey<Bool>()
        DispatchQueue.main.setSpecific(key: key, value: true)
        return key
    }()

    private static var isOnMain: Bool { DispatchQueue.getSpecific(key: mainQueue) ?? false }

    /// Catches: a main thread that opens the store's snapshot of each save that it shows.
    @Test(arguments: [ContextStack.nested, .masterMainWorker, .hybrid])
    @MainActor func `S154: the main context shows its children's saves from snapshots that other threads acquire`(
        _ stack: ContextStack
    ) async throws {
        #expect(Self.isOnMain)
        let store = FaultyStore(schema: Music.model.storeSchema)
        let container = try await PersistentContainer(
            model: Music.model, store: StoreDescription(name: "faulty") { _ in store }, stack: stack)
        let main = container.mainContext
        let results = try Results(EntityFetchRequest("Track"), context: main)
        let worker = container.newBackgroundContext()
        let acquired = Mutex(0)
        for number in 1...6 {
            // The first saves tell the writer that the main context shows something.
            if number == 3 {
                store.fail { call, _ in
                    if call == .snapshot, Self.isOnMain { acquired.withLock { $0 += 1 } }
                    return nil
                }
            }
            await worker.perform { _ = $0.makeTrack("\(number)") }
            try await worker.save(through: .store)
            #expect(results.count == number)
        }
        store.fail(nil)
        #expect(acquired.withLock { $0 } == 0)
        try await container.close()
    }

    /// Catches: a hidden root that acquires a snapshot for the main context, and keeps it from reuse when the main context shows nothing.
    @Test @MainActor func `S154: a main context that shows nothing any more leaves its root without a snapshot`() async throws {
        let store = FaultyStore(schema: Music.model.storeSchema)
        let container = try await PersistentContainer(
            model: Music.model, store: StoreDescription(name: "faulty") { _ in store }, stack: .hybrid)
        let main = container.mainContext
        let root = try #require(main.configuration.parent?.contextExecutor)
        // As if its last object had been released since the last move.
        main.place.readsNextState.store(true, ordering: .relaxed)
        let importer = container.newBatchOperationContext()
        await importer.perform { _ = $0.makeTrack("a") }
        try await importer.save()
        let writer = container.coordinator.writer
        try await until("the root and the main context have merged the save") {
            let isMerged = try await root.run(orThrow: SaveError.parentGone(context: "main")) {
                $0.layerStack.baseState.state.sequence == $0.configuration.writer.state.sequence
            }
            return isMerged && main.layerStack.baseState.state.sequence == writer.state.sequence
        }
        let kept = writer.snapshotRegistry.live().taken.flatMap(\.holders).map(\.owner)
        #expect(kept.isEmpty, "\(kept)")
        try await container.close()
    }
}
