import Dispatch
import Platform
import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

/// Snapshots that are taken at the first read (S154), by several threads.
@Suite struct LazySnapshotTests {
    private let store = FaultyStore(schema: Music.model.storeSchema)

    /// Catches: a lock that is held while the store is called. On a store with one connection a context waits there for the
    /// writer's transaction, and inside that transaction the writer takes the same snapshot.
    @Test func `S154: the writer takes a snapshot while a context that takes it waits for the store`() async throws {
        let lazy = LazySnapshot(store, generation: 0) { _ in }
        let writersSnapshot = Mutex<(any StoreSnapshot)?>(nil)
        store.fail { call, number in
            guard call == .snapshot, number == 1 else { return nil }
            // The first caller is inside the store now. The second caller must not wait for it.
            let isDone = DispatchSemaphore(value: 0)
            DispatchQueue.global().async {
                writersSnapshot.withLock { $0 = try? lazy.take() }
                isDone.signal()
            }
            return isDone.wait(timeout: .now() + 300) == .success ? nil : StoreError(.internalInconsistency, "a deadlock")
        }
        let contexts = try await withCheckedThrowingContinuation { continuation in
            DispatchQueue.global().async { continuation.resume(with: Result { try lazy.take() }) }
        }
        #expect(contexts === writersSnapshot.withLock { $0 }, "both read the snapshot that was taken first")
        // The fault retains the snapshot, which retains the store that has the fault.
        store.fail(nil)
    }

    @Test func `S154: a failure of the store is not told when the snapshot has been taken meanwhile`() throws {
        let lazy = LazySnapshot(store, generation: 0) { _ in }
        store.fail { call, number in
            guard call == .snapshot, number == 1 else { return nil }
            _ = try? lazy.take()
            return StoreError(.inputOutput, "the disk fails")
        }
        _ = try lazy.take()
        #expect(lazy.current != nil)
        #expect(store.count(.snapshot) == 2)
        store.fail(nil)
    }
}
