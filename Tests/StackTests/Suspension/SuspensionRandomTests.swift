import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Random changes, saves and suspensions against a dictionary.
@Suite struct SuspensionRandomTests {
    /// Changes and saves in contexts of one container. On SQLite, a second connection also saves while the container is suspended.
    @Test(arguments: Combination.all)
    func `S167: contexts show what a dictionary holds, whenever they are suspended`(_ combination: Combination) async throws {
        for round in 0..<Rounds.of(2, long: 40) {
            let seed = Seed.value &+ UInt64(round)
            try await Self.run(combination, seed: seed)
        }
    }

    private static func run(_ combination: Combination, seed: UInt64) async throws {
        var generator = SeededGenerator(seed: seed)
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let comment: Comment = "STRATA_SEED=\(seed), \(combination)"
        await MainActor.run { container.mainContext.automaticallyMergesChanges = true }
        // In this stack, the hidden root does not merge the saves of other roots.
        let hasOtherRoots = combination.stack != .masterMainWorker
        var workers = [await container.newBackgroundContext(name: "0")]
        if hasOtherRoots { workers.append(container.newBatchOperationContext(name: "1")) }
        let elsewhere = combination.store == .sqlite && hasOtherRoots ? try await bed.container() : nil
        await workers[0].perform { context in
            for number in 0..<8 { context.makeTrack("t\(number)") }
        }
        try await workers[0].save(through: .store)
        var expected = Dictionary(uniqueKeysWithValues: (0..<8).map { ("t\($0)", Int64(0)) })
        for step in 0..<40 {
            let title = "t\(Int.random(in: 0..<8, using: &generator))"
            switch Int.random(in: 0..<10, using: &generator) {
            case 0..<5:
                let worker = workers[Int.random(in: 0..<workers.count, using: &generator)]
                let durability: Durability = Bool.random(using: &generator) ? .durable : .deferred(within: .seconds(600))
                try await set(title, Int64(step), in: worker, durability)
                expected[title] = Int64(step)
            case 5, 6:
                try await container.suspend()
                let used = elsewhere == nil && combination.store != .memory ? try SuspensionTests.used(bed) : []
                #expect(used == [], comment)
                if let elsewhere, Bool.random(using: &generator) {
                    try await set(title, Int64(step), in: elsewhere.newBatchOperationContext(), .durable)
                    expected[title] = Int64(step)
                }
                if Bool.random(using: &generator) {
                    let found = try await shown(container.newBatchOperationContext())
                    #expect(found == expected, comment)
                }
                if Int.random(in: 0..<3, using: &generator) == 0 { try await container.suspend() }
                await container.resume()
            case 7:
                try await container.flush()
            default:
                let found = try await shown(container.newBatchOperationContext())
                #expect(found == expected, comment)
                let onMain = try await MainActor.run { try plays(container.mainContext) }
                #expect(onMain == expected, comment)
            }
        }
        #expect(try container.coordinator.store.verify().isEmpty, comment)
        try await elsewhere?.close()
        try await container.close()
    }

    /// Sets the plays of a track, and repeats after each conflict.
    private static func set(_ title: String, _ plays: Int64, in context: BackgroundContext, _ durability: Durability) async throws
    {
        while true {
            do {
                await context.perform { context in
                    context.rollback()
                    context.refreshAllObjects()
                }
                try? await context.refreshFromParent()
                try await context.perform { context in
                    let request = EntityFetchRequest("Track", matching: .compare("title", .equal, to: .string(title)))
                    try context.fetch(request)[0]["plays"] = .int(plays)
                }
                return try await context.save(through: .store, durability)
            } catch SaveError.conflicts { continue }
        }
    }

    private static func shown(_ context: BackgroundContext) async throws -> [String: Int64] {
        try await context.perform { context in
            context.refreshAllObjects()
            return try plays(context)
        }
    }

    private static func plays(_ context: ManagedObjectContext) throws -> [String: Int64] {
        var found: [String: Int64] = [:]
        for track in try context.fetch(EntityFetchRequest("Track")) {
            if case .string(let title) = track["title"], case .int(let plays) = track["plays"] { found[title] = plays }
        }
        return found
    }
}
