import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

/// A history that is read in two parts, of which another process deletes the beginning in between.
@Suite struct HistoryPartTests {
    private let store = FaultyStore(schema: Music.model.storeSchema)
    private let clock = SteppedClock()
    private let coordinator: PersistentStoreCoordinator

    init() throws {
        for _ in 0..<1100 { try store.saveElsewhere(Layer(schema: store.schema)) }
        coordinator = try PersistentStoreCoordinator.music(store, clock)
    }

    /// Deletes the saves through one before the second part is read.
    private func deleteMeanwhile(through last: Generation) {
        let other = FaultyStore(sharing: store)
        let parts = store.count(.history)
        store.fail { call, number in
            guard call == .history, number == parts + 2 else { return nil }
            do {
                _ = try other.write(.durable) { try $0.deleteHistory(.through(last), limit: .max) }
                return nil
            } catch { return error }
        }
    }

    /// Catches: a request without a token that throws `tokenExpired`.
    @Test func `S160: a history without a token has the saves that are left when some are deleted while it is read`() async throws
    {
        deleteMeanwhile(through: 1050)
        let parts = store.count(.history)
        #expect(try await coordinator.history().map(\.id) == Array(1051...1100))
        #expect(store.count(.history) >= parts + 2)
    }

    /// Catches: an error that names a token which the program does not have.
    @Test func `S160: a token after which saves are deleted while they are read has expired`() async throws {
        let token = try #require(try await coordinator.history(.init(limit: 10)).last?.token)
        #expect(token.generation == 10)
        deleteMeanwhile(through: 1050)
        await #expect(throws: HistoryError.tokenExpired(token)) { try await coordinator.history(.init(after: token)) }
    }
}
