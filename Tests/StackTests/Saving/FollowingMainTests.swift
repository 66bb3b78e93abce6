import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// The main context beside other roots that save. Most tests run in the stacks in which it merges automatically.
@Suite @MainActor struct FollowingMainTests {
    private nonisolated static let combinations = Combination.all.filter { $0.stack != .nested && $0.stack != .masterMainWorker }

    /// Catches: a main context that begins with the state at the opening, and a `write` that does not move one that exists.
    @Test(arguments: Combination.all)
    func `S068: main's first use shows the saves that other contexts have made before`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        for title in ["a", "b"] {
            try await container.newBatchOperationContext().perform(andSave: .durable) { _ = $0.makeTrack(title) }
        }
        let main = container.mainContext
        #expect(try main.count(EntityFetchRequest("Track")) == 2)
        try await container.write { _ = $0.makeTrack("c") }
        try await until("main shows the write") { try main.count(EntityFetchRequest("Track")) == 3 }
        // The root of main shows the same, so that main's change of an earlier save is no conflict.
        for track in try main.fetch(EntityFetchRequest("Track")) { track["plays"] = .int(1) }
        try await container.saveMain()
        #expect(try await container.read { try $0.fetch(EntityFetchRequest("Track")).map { $0["plays"] } } == [1, 1, 1])
    }

    @Test(arguments: combinations)
    func `S068: main shows each save of another root as soon as it was awaited`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let main = container.mainContext
        let roots = [container.newBatchOperationContext(name: "a"), container.newBatchOperationContext(name: "b")]
        let plays = EntityFetchRequest("Track", matching: .compare("plays", .equal, to: .int(1)))
        for number in 0..<60 {
            try await roots[number % 2].perform(andSave: .deferred(within: .seconds(30))) {
                _ = $0.makeTrack("\(number)", plays: 1)
            }
            #expect(try main.count(plays) == number + 1)
            // Main's own unsaved changes stay on top.
            if number % 10 == 0 { main.makeTrack("own") }
        }
        try await main.save()
        #expect(try main.count(plays) == 60)
        try await container.flush()
    }

    /// The titles are changed by main and its children, the numbers of plays by other roots.
    private struct Expectation {
        var plays: [Int]
        /// As main shows them; as its parent has them, if main is a child; as they are saved.
        var (shown, parents, saved): ([Int], [Int], [Int])

        init(_ count: Int) {
            plays = Array(repeating: 0, count: count)
            (shown, parents, saved) = (plays, plays, plays)
        }

        mutating func save() { (parents, saved) = (shown, shown) }

        @MainActor func check(_ main: ManagedObjectContext, _ ids: [ObjectID], _ what: String) {
            for (index, id) in ids.enumerated() {
                let track = main.object(with: id)
                #expect(track["title"] == .string("\(shown[index])"), "\(what), track \(index)")
                #expect(track["plays"] == .int(Int64(plays[index])), "\(what), track \(index)")
            }
        }

        func checkSaved(_ context: ManagedObjectContext, _ ids: [ObjectID], _ what: String) {
            for (index, id) in ids.enumerated() {
                #expect(context.object(with: id)["title"] == .string("\(saved[index])"), "\(what), saved track \(index)")
            }
        }
    }

    @Test(arguments: combinations)
    func `S068: main equals a plain model after random saves by itself, its children and other roots`(
        _ combination: Combination
    ) async throws {
        var random = SeededGenerator()
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let main = container.mainContext
        let count = 20
        let ids = (0..<count).map { _ in main.makeTrack("0").objectID }
        try await container.saveMain()
        let roots = [container.newBatchOperationContext(name: "a"), container.newBatchOperationContext(name: "b")]
        let results = try Results(EntityFetchRequest("Track", sortBy: [AttributeSort("plays")]), context: main)
        var expected = Expectation(count)
        for round in 0..<Rounds.of(50, long: 5000) {
            let what = "\(combination), STRATA_SEED=\(random.seed), round \(round)"
            let (index, value) = (random.below(count), round + 1)
            let id = ids[index]
            switch random.below(10) {
            case 0..<4:
                let durability = random.chance(20) ? Durability.durable : .deferred(within: .seconds(30))
                try await roots[random.below(2)].perform(andSave: durability) { context in
                    context.refreshAllObjects()
                    context.object(with: id)["plays"] = .int(Int64(value))
                }
                expected.plays[index] = value
            case 4, 5:
                main.object(with: id)["title"] = .string("\(value)")
                expected.shown[index] = value
            case 6:
                try await main.save()
                expected.parents = expected.shown
                if combination.stack != .hybrid { expected.save() }
            case 7:
                try await container.saveMain(.deferred(within: .seconds(30)))
                expected.save()
            case 8:
                let child = main.newBackgroundChild()
                await child.perform { $0.object(with: id)["title"] = .string("\(value)") }
                expected.shown[index] = value
                if random.chance(50) {
                    try await child.save(through: .store, .deferred(within: .seconds(30)))
                    expected.save()
                } else {
                    try await child.save()
                }
            default:
                main.rollback()
                expected.shown = expected.parents
            }
            if random.chance(30) { continue }
            expected.check(main, ids, what)
            #expect(results.map { $0["plays"] } == expected.plays.sorted().map { .int(Int64($0)) }, "\(what)")
            let saved = expected
            try await container.read { saved.checkSaved($0, ids, what) }
        }
        try await container.flush()
        #expect(try await container.coordinator.verify().isEmpty)
    }

    /// The root above main in `hybrid` resolves no conflicts. It has merged the other root's save a moment later.
    private func repeatingConflicts(_ save: @MainActor () async throws -> Void) async throws {
        while true {
            do { return try await save() } catch SaveError.conflicts { await Task.yield() }
        }
    }

    @Test(arguments: combinations)
    func `S075, S107: nothing is lost when main, its children and other roots save at once`(
        _ combination: Combination
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let main = container.mainContext
        let ids = (0..<8).map { main.makeTrack("\($0)").objectID }
        try await container.saveMain()
        let rounds = Rounds.of(20, long: 2000)
        // Each track's plays are counted by one root; its title by main, or by a child of main.
        async let roots: Void = withThrowingTaskGroup(of: Void.self) { group in
            for name in 0..<2 {
                let root = container.newBatchOperationContext(name: "\(name)")
                group.addTask {
                    await root.perform { $0.mergePolicy = .objectTrump }
                    for round in 1...rounds {
                        try await root.perform(andSave: .deferred(within: .seconds(30))) { context in
                            for id in ids[name * 4..<name * 4 + 4] { context.object(with: id)["plays"] = .int(Int64(round)) }
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        main.mergePolicy = .objectTrump
        for round in 1...rounds {
            for id in ids[..<4] { main.object(with: id)["title"] = .string("main \(round)") }
            let child = main.newBackgroundChild()
            await child.perform { for id in ids[4...] { $0.object(with: id)["title"] = .string("child \(round)") } }
            if round % 3 == 0 {
                try await child.save()
            } else {
                try await repeatingConflicts { try await child.save(through: .store, .deferred(within: .seconds(30))) }
            }
            for (index, id) in ids.enumerated() {
                #expect(main.object(with: id)["title"] == .string("\(index < 4 ? "main" : "child") \(round)"))
            }
        }
        try await roots
        try await repeatingConflicts { try await container.saveMain() }
        for (index, id) in ids.enumerated() {
            #expect(main.object(with: id)["plays"] == .int(Int64(rounds)))
            #expect(main.object(with: id)["title"] == .string("\(index < 4 ? "main" : "child") \(rounds)"))
        }
        try await container.flush()
        #expect(try await container.coordinator.verify().isEmpty)
    }
}
