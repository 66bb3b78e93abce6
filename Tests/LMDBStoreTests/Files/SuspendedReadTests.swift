import Dispatch
import StoreInterface
import StoreModel
import Synchronization
import Testing

@testable import LMDBStore

/// Reads of a store that other threads suspend (S167).
@Suite struct SuspendedReadTests {
    private static func onThread<R: Sendable>(_ body: @escaping @Sendable () throws -> R) async throws -> R {
        try await withCheckedThrowingContinuation { continuation in
            DispatchQueue.global().async { continuation.resume(with: Result { try body() }) }
        }
    }

    /// Catches: a read that is refused because the file is being closed, although another read opens it again.
    @Test func `S167: a read opens the file again whenever another thread suspends the store`() async throws {
        let scratch = try Scratch()
        let store = try scratch.store()
        try store.insertTracks(10)
        let isDone = Atomic(false)
        async let suspensions = Self.onThread {
            var count = 0
            while !isDone.load(ordering: .relaxed) {
                try store.suspend()
                count += 1
            }
            return count
        }
        async let other = Self.onThread { Result { try Self.counts(store) } }
        let results = try await [Self.onThread { Result { try Self.counts(store) } }, other]
        isDone.store(true, ordering: .relaxed)
        #expect(try await suspensions > 0)
        for result in results { #expect(try result.get() == [10]) }
    }

    /// Returns the different numbers of objects that many reads have found.
    private static func counts(_ store: LMDBStore) throws -> Set<Int> {
        try Set((0..<1000).map { _ in try store.snapshot().count(StoreQuery(entity: Samples.track)) })
    }
}
