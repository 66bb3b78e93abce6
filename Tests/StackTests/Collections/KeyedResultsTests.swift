import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Live results over ranges of keys (S192).
@Suite @MainActor struct KeyedResultsTests {
    typealias Numbers = KeyedCollection<String, Int>

    private static func text(_ entries: some Sequence<(key: String, value: Int?)>) -> [String] {
        entries.map { "\($0.key)=\($0.value.map(String.init) ?? "nil")" }
    }

    private static func text(_ range: KeyedRange<String, Int>) throws -> [String] {
        try range.entries().map { "\($0.key)=\($0.value)" }
    }

    @Test(arguments: Combination.all)
    func `S192: results over keys show changes of their context and of others, and notify readers`(
        _ combination: Combination
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let numbers = try container.collection("numbers", of: Int.self)
        numbers["a"] = 1
        numbers["c"] = 3
        let results = try KeyedResults(numbers["b"...])
        let watch = Watch { _ = results.count }
        #expect(Self.text(results) == ["c=3"])
        numbers["d"] = 4
        numbers["a"] = 2
        try await until("the unsaved value is shown") { watch.count == 1 }
        #expect(Self.text(results) == ["c=3", "d=4"])
        try await container.saveMain()
        #expect(watch.take() == 1, "a save of what is shown changes nothing")
        try await container.newBackgroundContext().perform(andSave: .durable) {
            let numbers = try $0.collection("numbers", of: Int.self)
            numbers["c"] = nil
            numbers["b"] = 20
        }
        try await until("the save of another context is shown") { Self.text(results) == ["b=20", "d=4"] }
        #expect(watch.take() >= 1)
        try await container.saveMain()
        numbers["d"] = 5
        container.mainContext.processPendingChanges()
        #expect(results.last?.value == 5)
        container.mainContext.rollback()
        #expect(Self.text(results) == ["b=20", "d=4"] && results.keys == ["b", "d"])
    }

    @Test(arguments: Combination.all)
    func `S192: results over keys equal their ranges after random changes, and their differences lead there`(
        _ combination: Combination
    ) async throws {
        var random = SeededGenerator()
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let main = container.mainContext
        main.mergePolicy = .objectTrump
        let numbers = try container.collection("numbers", of: Int.self)
        let other = try container.collection("other", of: Int.self)
        let ranges = [numbers.all, numbers["2"..<"6"], numbers.range(withPrefix: "1")]
        let limited = try KeyedResults(numbers.all, .descending, limit: 4)
        let results = try ranges.map { try KeyedResults($0) }
        let differences = results[0].differences
        for round in 0..<Rounds.of(20, long: 1000) {
            let what = "\(combination), STRATA_SEED=\(random.seed), round \(round)"
            switch random.below(8) {
            case 0..<3:
                for _ in 0..<random.below(6) {
                    numbers["\(random.below(30))"] = random.chance(60) ? random.below(3) : nil
                    other["\(random.below(30))"] = random.below(3)
                }
                main.processPendingChanges()
            case 3..<5:
                let child = main.newBackgroundChild()
                let seed = random.next()
                try await child.perform(andSave: .durable) { context in
                    var random = SeededGenerator(seed: seed)
                    let numbers = try context.collection("numbers", of: Int.self)
                    for _ in 0..<6 { numbers["\(random.below(30))"] = random.chance(60) ? random.below(3) : nil }
                }
            case 5: try await container.saveMain(random.chance(50) ? .durable : .deferred(within: .seconds(30)))
            case 6: main.rollback()
            default:
                guard combination.stack == .siblings else { continue }
                let (key, value) = ("\(random.below(30))", random.chance(60) ? random.below(3) : nil)
                let worker = container.newBackgroundContext()
                try await worker.perform { try $0.collection("numbers", of: Int.self).setValue(value, forKey: key) }
                try await worker.save()
            }
            for (range, results) in zip(ranges, results) {
                try #require(try Self.text(results) == Self.text(range), "\(what)")
                try #require(try results.keys == range.keys(), "\(what)")
                try #require(try Set(results.keys).count == range.count, "\(what)")
            }
            let newest = try numbers.all.entries(.descending, limit: 4).map { "\($0.key)=\($0.value)" }
            try #require(Self.text(limited) == newest, "\(what)")
        }
        numbers["end"] = 1
        main.processPendingChanges()
        let count = results[0].count
        try await Self.check(differences, leadTo: count)
    }

    /// Applies differences until one inserts the last of the given number of entries, a key after all others.
    private static func check(_ differences: AsyncStream<ResultDifference>, leadTo count: Int) async throws {
        var shown = 0
        for await difference in differences {
            #expect(difference.moves.isEmpty)
            try #require(difference.deletions.allSatisfy { $0 < shown })
            shown += difference.insertions.count - difference.deletions.count
            try #require((difference.insertions + difference.updates).allSatisfy { $0 < shown })
            if shown == count, difference.insertions.last == count - 1 { return }
        }
        Issue.record("the differences end at \(shown) of \(count) entries")
    }

    @Test(arguments: StoreKind.allCases)
    func `S192: a loop over results may change and remove their entries`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let numbers = try container.collection("numbers", of: Int.self)
        for number in 0..<4 { numbers["\(number)"] = number }
        let results = try KeyedResults(numbers.all)
        for position in results.indices {
            let entry = results[position]
            numbers[entry.key] = position == 2 ? 20 : nil
        }
        #expect(Self.text(results) == ["0=nil", "1=nil", "2=20", "3=nil"])
        container.mainContext.processPendingChanges()
        #expect(Self.text(results) == ["2=20"])
        container.mainContext.rollback()
        #expect(results.isEmpty && results.first == nil)
    }

    @Test(arguments: StoreKind.allCases)
    func `S192: a value that does not decode is nil in results, and its key is shown`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        try container.collection("notes", of: First.Note.self)["a"] = First.Note(title: "A")
        let notes = try container.collection("notes", of: Second.Note.self)
        let results = try KeyedResults(notes.all)
        #expect(results.keys == ["a"] && results.first?.value == nil)
    }

    private enum First { struct Note: Codable, Sendable { var title: String } }
    private enum Second { struct Note: Codable, Sendable { var pages: Int } }

    @Test(arguments: StoreKind.allCases)
    func `S192: results of a closed container keep their keys and say why they end`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let numbers = try container.collection("numbers", of: Int.self)
        numbers["a"] = 1
        try await container.saveMain()
        let results = try KeyedResults(numbers.all)
        let watch = Watch { _ = results.error }
        #expect(results.error == nil)
        try await container.close()
        try await until("the end is announced") { watch.count == 1 }
        #expect((results.error as? StoreError)?.code == .closed)
        #expect(results.keys == ["a"])
        #expect(throws: (any Error).self) { try KeyedResults(numbers.all) }
    }

    @Test(arguments: StoreKind.allCases)
    func `S167: results over keys go on after a suspension`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let numbers = try container.collection("numbers", of: Int.self)
        numbers["a"] = 1
        try await container.saveMain()
        let results = try KeyedResults(numbers.all)
        try await container.suspend()
        #expect(results.keys == ["a"])
        await container.resume()
        try await container.newBackgroundContext().perform(andSave: .durable) {
            try $0.collection("numbers", of: Int.self)["b"] = 2
        }
        #expect(Self.text(results) == ["a=1", "b=2"] && results.error == nil)
    }

    @Test(arguments: StoreKind.allCases)
    func `S192: the differences end when the results are released`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let numbers = try container.collection("numbers", of: Int.self)
        var results: KeyedResults? = try KeyedResults(numbers.all)
        let differences = try #require(results).differences
        numbers["a"] = 1
        container.mainContext.processPendingChanges()
        #expect(results?.count == 1)
        results = nil
        numbers["b"] = 2
        container.mainContext.processPendingChanges()
        var found: [ResultDifference] = []
        for await difference in differences { found.append(difference) }
        #expect(found == [ResultDifference(insertions: [0])])
    }

    @Test(arguments: StoreKind.allCases)
    func `S145: a reader that changes and reads results while it is notified sees the newest state afterwards`(
        _ kind: StoreKind
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let main = container.mainContext
        let numbers = try container.collection("numbers", of: Int.self)
        let keyed = try KeyedResults(numbers.all)
        let tracks = try Results(EntityFetchRequest("Track"), context: main)
        for change in [{ numbers["\($0)"] = $0 }, { _ = main.makeTrack("\($0)") }] as [(Int) -> Void] {
            var made = 1
            let watch = Watch({ _ = (keyed.count, tracks.count) }) {
                guard made < 3 else { return }
                made += 1
                change(made)
                main.processPendingChanges()
                _ = (keyed.count, tracks.count)
            }
            change(1)
            main.processPendingChanges()
            try #require(keyed.count + tracks.count > 0)
            withExtendedLifetime(watch) {}
        }
        #expect(keyed.count == 3 && keyed.keys == ["1", "2", "3"])
        #expect(try tracks.count == 3 && tracks.snapshot.ids == main.fetchIDs(EntityFetchRequest("Track")))
    }
}
