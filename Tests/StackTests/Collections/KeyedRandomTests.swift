import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// The same random work on collections and on plain dictionaries.
@Suite struct KeyedRandomTests {
    typealias Entries = [String: Int]

    private static func work(_ context: ManagedObjectContext, _ seed: UInt64, _ start: Entries) throws -> Entries {
        var random = SeededGenerator(seed: seed)
        var entries = start
        let numbers = try context.collection("numbers", of: Int.self)
        for _ in 0..<random.below(25) {
            let key = "\(random.below(12))" + (random.chance(30) ? "x" : "")
            switch random.below(10) {
            case 0..<5:
                if random.chance(80) { entries[key] = random.below(1 << 40) }
                numbers[key] = entries[key]
            case 5..<8:
                let isThere = entries.removeValue(forKey: key) != nil
                #expect(try numbers.removeValue(forKey: key) == isThere)
            case 8:
                let other = "\(random.below(12))"
                let (lower, upper) = key < other ? (key, other) : (other, key)
                if random.chance(30) {
                    try numbers[lower..<upper].removeAll()
                    entries = entries.filter { !(lower..<upper ~= $0.key) }
                } else {
                    let expected = entries.keys.filter { lower..<upper ~= $0 }.sorted()
                    #expect(try numbers[lower..<upper].keys() == expected)
                    #expect(try numbers[lower..<upper].keys(.descending, limit: 3) == Array(expected.reversed().prefix(3)))
                }
            default: #expect(numbers[key] == entries[key])
            }
        }
        return entries
    }

    private static func check(_ context: ManagedObjectContext, _ expected: Entries, _ what: String) throws {
        let numbers = try context.collection("numbers", of: Int.self)
        let shown = try numbers.all.entries().map { "\($0.key)=\($0.value)" }
        try #require(shown == expected.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }, "\(what)")
        try #require(try numbers.count == expected.count, "\(what)")
        try #require(try numbers.last?.key == expected.keys.max(), "\(what)")
        for key in expected.keys { try #require(numbers[key] == expected[key], "\(what)") }
    }

    @MainActor @Test(arguments: Combination.all)
    func `S191: random work in a context and its children equals the same on dictionaries`(
        _ combination: Combination
    ) async throws {
        var random = SeededGenerator()
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let main = container.mainContext
        var (committed, pending): (Entries, Entries) = ([:], [:])
        for round in 0..<Rounds.of(20, long: 1000) {
            let what = "\(combination), STRATA_SEED=\(random.seed), round \(round)"
            switch random.below(10) {
            case 0..<3: pending = try Self.work(main, random.next(), pending)
            case 3..<7:
                // The parent changes other keys while the child works, or none: the child's whole state is compared.
                let child = main.newBackgroundChild()
                let (seed, start) = (random.next(), pending)
                let entries = try await child.perform { context in
                    let entries = try Self.work(context, seed, start)
                    try Self.check(context, entries, "in the child, \(what)")
                    return entries
                }
                switch random.below(4) {
                case 0: await child.perform { $0.rollback() }
                // In the hybrid stack, main may move to the saved state before it learns that its own save has succeeded. If the child has
                // deleted what main has updated, main then keeps that update.
                case 1:
                    try await child.save(through: .store)
                    (committed, pending) = (entries, entries)
                default:
                    try await child.save()
                    pending = entries
                }
            case 7:
                main.rollback()
                pending = committed
            default:
                try await container.saveMain(random.chance(50) ? .durable : .deferred(within: .seconds(30)))
                committed = pending
            }
            try Self.check(main, pending, what)
            let saved = committed
            try await container.read { try Self.check($0, saved, "saved, \(what)") }
        }
        try await container.saveMain()
        #expect(try await container.coordinator.verify().isEmpty, "STRATA_SEED=\(random.seed)")
    }

    @Test(arguments: Combination.rooted, [true, false])
    func `S192: two contexts that trump each other at random end with the values saved last`(
        _ combination: Combination, _ isTrumping: Bool
    ) async throws {
        var random = SeededGenerator()
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let workers = await [container.makeBackgroundContext(name: "a"), container.makeBackgroundContext(name: "b")]
        for worker in workers { await worker.perform { $0.mergePolicy = isTrumping ? .objectTrump : .storeTrump } }
        var store: Entries = [:]
        var bases: [Entries] = [[:], [:]]
        for round in 0..<Rounds.of(25, long: 1500) {
            let what = "\(combination), STRATA_SEED=\(random.seed), round \(round)"
            for number in [0, 1] where random.chance(70) {
                let (seed, base) = (random.next(), bases[number])
                let entries = try await workers[number].perform { try Self.work($0, seed, base) }
                let saved = store
                try await workers[number].save()
                let before = base
                for key in Set(before.keys).union(entries.keys) where entries[key] != before[key] {
                    if isTrumping || saved[key] == before[key] { store[key] = entries[key] }
                }
                let expected = store
                try await workers[number].perform { context in
                    // A save without changes does not move the context.
                    context.refreshAllObjects()
                    try Self.check(context, expected, what)
                }
                bases[number] = store
            }
            let expected = store
            try await container.read { try Self.check($0, expected, what) }
        }
        #expect(try await container.coordinator.verify().isEmpty, "STRATA_SEED=\(random.seed)")
    }
}
