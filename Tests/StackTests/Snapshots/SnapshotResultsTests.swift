import ObjectGraph
import Observation
import StoreInterface
import StoreModel
import Synchronization
import TestSupport
import Testing

/// Live results of contexts that read a snapshot (S150).
@Suite struct SnapshotResultsTests {
    private static let tracks = EntityFetchRequest("Track", sortBy: [AttributeSort("title")])

    /// Saves an object and a value of a collection, and changes the first ones.
    private static func save(_ number: Int, _ durability: Durability, in context: BackgroundContext) async throws {
        try await context.perform(andSave: durability) { context in
            let first = try context.fetch(tracks).first
            first?["plays"] = .int(Int64(number))
            context.makeTrack("\(number)")
            let numbers = try context.collection("numbers", of: Int.self)
            numbers["\(number)"] = number
            numbers["0"] = number
        }
    }

    /// Follows results while others save. Returns the numbers of objects and keys before the saves, after them and after a refresh, and how
    /// often observers were notified before the refresh.
    private static func follow(
        in context: BackgroundContext, reading snapshot: Snapshot? = nil, _ saves: @Sendable () async throws -> Void
    ) async throws -> (counts: [Int], notified: Int) {
        let notified = Mutex(0)
        let note: @Sendable () -> Void = { notified.withLock { $0 += 1 } }
        return try await context.perform { _, context in
            if let snapshot { context.read(from: snapshot) }
            let results = try Results(tracks, context: context)
            let keyed = try KeyedResults(context.collection("numbers", of: Int.self).all)
            withObservationTracking {
                _ = results.count
            } onChange: {
                note()
            }
            withObservationTracking {
                _ = keyed.count
            } onChange: {
                note()
            }
            var counts = [results.count, keyed.count]
            try await saves()
            context.processPendingChanges()
            counts += [results.count, keyed.count]
            let count = notified.withLock { $0 }
            context.refreshAllObjects()
            counts += [results.count, keyed.count]
            return (counts, count)
        }
    }

    /// Catches: a context that moves to saves of others because a live result follows it.
    @Test(arguments: Combination.all)
    func `S145, S150, S192: results of a context that reads a snapshot stay as they are while others save`(
        _ combination: Combination
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let coordinator = container.coordinator
        let writer = coordinator.newBackgroundContext(name: "writer")
        try await Self.save(0, .durable, in: writer)
        let snapshot = try coordinator.snapshot()
        try await Self.save(1, .durable, in: writer)
        let saves = { @Sendable (first: Int) in
            for number in first..<first + 3 {
                try await Self.save(number, number % 2 == 0 ? .durable : .deferred(within: .seconds(10)), in: writer)
            }
            try await container.flush()
        }
        let pinned = coordinator.newBackgroundContext(name: "pinned", reading: snapshot)
        let atFirst = try await Self.follow(in: pinned) { try await saves(2) }
        #expect(atFirst.counts == [1, 1, 1, 1, 5, 5] && atFirst.notified == 0)
        let moved = coordinator.newBackgroundContext(name: "moved")
        let later = try await Self.follow(in: moved, reading: snapshot) { try await saves(5) }
        #expect(later.counts == [1, 1, 1, 1, 8, 8] && later.notified == 0)
        try await container.close()
    }
}
