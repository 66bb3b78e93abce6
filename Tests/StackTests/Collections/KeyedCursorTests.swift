import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Cursors whose collection changes between two entries (S191).
@Suite struct KeyedCursorTests {
    typealias Entries = [String: Int]

    private static func key(_ number: Int) -> String { String("\(number + 1000)".dropFirst()) }

    /// A collection, the entries that it must show, and the keys that a running cursor has not returned yet.
    @MainActor private final class Walk {
        var random: SeededGenerator
        let container: PersistentContainer
        let numbers: KeyedCollection<String, Int>
        let isRooted: Bool
        var saved: Entries = [:]
        var shown: Entries = [:]
        /// The keys that have been there since the cursor was made, and that it has not returned.
        var owed: Set<String> = []

        init(_ random: SeededGenerator, _ container: PersistentContainer, isRooted: Bool) throws {
            self.random = random
            self.container = container
            self.isRooted = isRooted
            numbers = try container.collection("numbers", of: Int.self)
        }

        func set(_ key: String, _ value: Int?) throws {
            try numbers.setValue(value, forKey: key)
            shown[key] = value
            if value == nil { owed.remove(key) }
        }

        func save() async throws {
            try await container.saveMain(random.chance(70) ? .durable : .deferred(within: .seconds(30)))
            saved = shown
        }

        func saveElsewhere() async throws {
            let (key, value) = (KeyedCursorTests.key(random.below(300)), random.chance(40) ? nil : random.below(1 << 40))
            let worker = await container.makeBackgroundContext(name: "worker")
            try await worker.perform { try $0.collection("numbers", of: Int.self).setValue(value, forKey: key) }
            try await worker.save()
            container.mainContext.refreshAllObjects()
            saved[key] = value
            shown = saved
            if value == nil { owed.remove(key) }
        }

        /// Changes the collection between two entries.
        func change() async throws {
            switch random.below(9) {
            case 0..<3: try set(KeyedCursorTests.key(random.below(300)), random.below(1 << 40))
            case 3..<6: try set(KeyedCursorTests.key(random.below(300)), nil)
            case 6: try await save()
            case 7:
                container.mainContext.rollback()
                shown = saved
                owed.formIntersection(saved.keys)
            default: if isRooted, shown == saved { try await saveElsewhere() }
            }
        }
    }

    @MainActor @Test(arguments: Combination.all)
    func `S191: a cursor returns each entry as the context shows it then, while keys change`(
        _ combination: Combination
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let isRooted = combination.stack == .siblings || combination.stack == .split
        let walk = try Walk(SeededGenerator(), container, isRooted: isRooted)
        for number in 0..<300 where number % 3 != 0 { try walk.set(Self.key(number), number) }
        try await walk.save()
        for round in 0..<Rounds.of(3, long: 300) {
            let what = "\(combination), STRATA_SEED=\(walk.random.seed), round \(round)"
            let isAscending = walk.random.chance(50)
            let changes = walk.random.below(3) * 8
            walk.owed = Set(walk.shown.keys)
            var cursor = walk.numbers.all.cursor(isAscending ? .ascending : .descending)
            var last: String?
            while true {
                if walk.random.chance(changes) { try await walk.change() }
                guard let (key, value) = try cursor.next() else { break }
                try #require(walk.shown[key] == value, "\(key), \(what)")
                if let last { try #require(isAscending ? last < key : key < last, "\(last), \(key), \(what)") }
                last = key
                walk.owed.remove(key)
            }
            try #require(walk.owed.isEmpty, "\(walk.owed.sorted()), \(what)")
            let shown = walk.shown.sorted { $0.key < $1.key }
            try #require(
                try walk.numbers.all.entries().elementsEqual(shown) { $0.key == $1.key && $0.value == $1.value }, "\(what)")
            try #require(try walk.numbers.all.keys(.descending) == shown.reversed().map(\.key), "\(what)")
            var visited: [String] = []
            try walk.numbers["100"..."200"].forEach { key, value in
                try #require(walk.shown[key] == value, "\(what)")
                visited.append(key)
            }
            try #require(visited == shown.map(\.key).filter { ("100"..."200").contains($0) }, "\(what)")
        }
        try await container.saveMain()
        #expect(try await container.coordinator.verify().isEmpty)
    }

    @MainActor @Test(arguments: StoreKind.allCases)
    func `S191: a cursor and forEach visit a key that was inserted far ahead`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let numbers = try container.collection("numbers", of: Int.self)
        for number in 0..<100 { numbers[Self.key(number)] = number }
        try await container.saveMain()
        var visited: [String] = []
        try numbers.all.forEach { key, value in
            if visited.isEmpty { numbers["900"] = 900 }
            numbers[key] = value + 1
            visited.append(key)
        }
        #expect(visited == (0..<100).map(Self.key) + ["900"])
        #expect(try numbers.all.entries().map(\.value) == Array(1...100) + [901])
    }

    @MainActor @Test(arguments: StoreKind.allCases)
    func `S190: keys longer than an index keeps are ordered, found and removed by their whole bytes`(_ kind: StoreKind)
        async throws
    {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let numbers = try container.collection("n", of: Int?.self)
        let start = String(repeating: "k", count: 500)
        // With the name, the bytes of the keys end around the 510 that an index keeps.
        let keys = (0..<16).map { start + String(repeating: "k", count: $0) } + [start + "kkkkkkkkkl", "a", "l"]
        for (number, key) in keys.enumerated() { try numbers.setValue(.some(number), forKey: key) }
        for isSaved in [false, true] {
            if isSaved { try await container.saveMain() }
            #expect(try numbers.all.keys() == keys.sorted())
            #expect(try numbers.all.keys(.descending, limit: 5) == keys.sorted().suffix(5).reversed())
            #expect(try numbers[keys[3]..<keys[14]].entries().map(\.value) == Array(3..<14))
            #expect(try numbers["b"..<keys[2]].keys() == [keys[0], keys[1]])
            for (number, key) in keys.enumerated() { #expect(try numbers.value(forKey: key) == .some(number)) }
        }
        #expect(try numbers[keys[0]...keys[15]].removeAll() == 16)
        #expect(try numbers.all.keys() == ["a", start + "kkkkkkkkkl", "l"])
        try await container.saveMain()
        #expect(try numbers.all.keys() == ["a", start + "kkkkkkkkkl", "l"])
    }

    /// Catches: an entry that a merge has given to another object, and that counts as removed.
    @MainActor @Test(arguments: StoreKind.allCases)
    func `S191, S192: a cursor returns an unsaved key that another context has saved meanwhile`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(.siblings)
        let numbers = try container.collection("numbers", of: Int.self)
        try numbers.setValue(1, forKey: "a")
        try numbers.setValue(2, forKey: "k")
        var cursor = numbers.all.cursor()
        #expect(try cursor.next()?.key == "a")
        try await container.newBatchOperationContext().perform(andSave: .durable) { context in
            try context.collection("numbers", of: Int.self).setValue(3, forKey: "k")
        }
        container.mainContext.refreshAllObjects()
        #expect(try numbers.value(forKey: "k") == 2)
        let next = try cursor.next()
        #expect(next?.key == "k" && next?.value == 2)
        #expect(try cursor.next() == nil)
        try await container.close()
    }
}
