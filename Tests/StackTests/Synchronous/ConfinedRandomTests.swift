import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import Synchronization
import TestSupport
import Testing

@Suite struct ConfinedRandomTests {
    /// The content of one context by title, as it must read: the saved state that it shows, and its own changes.
    private struct Expected {
        var saved: [String: Int]
        var own: [String: Int?] = [:]

        var content: [String: Int] {
            var content = saved
            for (title, plays) in own { content[title] = plays }
            return content
        }
    }

    /// Two contexts change, save, roll back and read in a random order, each step on another thread. Titles of the two differ, so that
    /// no conflicts arise.
    @Test(arguments: StoreKind.allCases)
    func `two confined contexts show what a plain model says, on changing threads`(_ kind: StoreKind) async throws {
        var random = SeededGenerator()
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let carriers = [Carrier(container, "zero"), Carrier(container, "one", merging: true)]
        var saved: [String: Int] = [:]
        var expected = [Expected(saved: [:]), Expected(saved: [:])]
        /// Moves a context as a fetch does.
        func fetch(_ number: Int) async throws {
            let isDirty = try await carriers[number].onThread { $0.hasChanges }
            if number == 1 || !isDirty { expected[number].saved = saved }
        }
        for step in 0..<Rounds.of(60, long: 2000) {
            let number = random.below(2)
            let title = "\(number)-\(random.below(6))"
            let plays = random.below(1000)
            try await fetch(number)
            switch random.below(8) {
            case 0...2:
                expected[number].own[title] = .some(plays)
                try await carriers[number].onThread { context in
                    let track = try Self.track(title, in: context) ?? context.makeTrack(title)
                    track["plays"] = .int(Int64(plays))
                }
            case 3:
                if expected[number].content[title] != nil { expected[number].own[title] = .some(nil) }
                try await carriers[number].onThread { context in
                    if let track = try Self.track(title, in: context) { context.delete(track) }
                }
            case 4:
                expected[number].own = [:]
                try await carriers[number].onThread { $0.rollback() }
            case 5, 6:
                for (title, plays) in expected[number].own { saved[title] = plays }
                expected[number].own = [:]
                try await carriers[number].onThread { try $0.saveNow() }
            default: break
            }
            try await fetch(number)
            let shown = try await carriers[number].onThread { try Self.content($0) }
            #expect(shown == expected[number].content, "seed \(random.seed), step \(step), context \(number)")
            guard shown == expected[number].content else { return }
        }
    }

    private static func track(_ title: String, in context: ManagedObjectContext) throws -> ManagedObject? {
        try context.fetch(EntityFetchRequest("Track")).first { $0["title"] == .string(title) }
    }

    private static func content(_ context: ManagedObjectContext) throws -> [String: Int] {
        var content: [String: Int] = [:]
        for track in try context.fetch(EntityFetchRequest("Track")) {
            if case .string(let title) = track["title"], case .int(let plays) = track["plays"] { content[title] = Int(plays) }
        }
        return content
    }

    /// Confined contexts on one thread each, a context with an executor, and durable importers count up the same objects. Each
    /// repeats a save that conflicts, so the sum is the number of acknowledged saves.
    @Test(arguments: StoreKind.allCases)
    func `synchronous saves beside durable importers lose no update`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let ids = try await Carrier(container).onThread { context in
            let tracks = (0..<3).map { context.makeTrack("\($0)") }
            try context.saveNow(.durable)
            return tracks.map(\.objectID)
        }
        let rounds = Rounds.of(25, long: 500)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<2 {
                group.addTask {
                    try await Carrier(container, "counter \(number)").onThread { context in
                        for round in 0..<rounds { try Self.count(ids[round % 3], in: context) { try context.saveNow() } }
                    }
                }
                group.addTask {
                    let importer = container.newBatchOperationContext(name: "importer \(number)")
                    for round in 0..<rounds {
                        await importer.perform { context in
                            for row in 0..<20 { context.makeTrack("import \(number) \(round) \(row)") }
                        }
                        try await importer.save(.durable)
                    }
                }
            }
            group.addTask {
                let worker = container.newBatchOperationContext(name: "worker")
                for round in 0..<rounds {
                    try await worker.perform { context in
                        try Self.count(ids[round % 3], in: context) { try context.saveNow(.durable) }
                    }
                }
            }
            try await group.waitForAll()
        }
        try container.flushNow()
        let (sum, imported) = try await Carrier(container).onThread { context in
            let sum = try ids.reduce(0) { sum, id in
                guard case .int(let plays) = try context.existingObject(with: id)["plays"] else { return sum }
                return sum + Int(plays)
            }
            return (sum, try context.count(EntityFetchRequest("Track")) - ids.count)
        }
        #expect(sum == 3 * rounds)
        #expect(imported == 2 * rounds * 20)
    }

    private static func count(_ id: ObjectID, in context: ManagedObjectContext, _ save: () throws -> Void) throws {
        while true {
            context.refreshAllObjects()
            let track = try context.existingObject(with: id)
            guard case .int(let plays) = track["plays"] else { return }
            track["plays"] = .int(plays + 1)
            do { return try save() } catch SaveError.conflicts { context.rollback() }
        }
    }
}
