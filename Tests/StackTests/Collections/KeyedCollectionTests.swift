import Foundation
import LMDBStore
import ObjectGraph
import SQLiteStore
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Keyed collections in one context (S190, S191, S193, S194).
@Suite struct KeyedCollectionTests {
    struct Draft: Codable, Sendable, Equatable {
        var title: String
        var words = 0
    }

    @MainActor @Test(arguments: Combination.all)
    func `S190: a collection without a model keeps its values in the order of the keys`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        do {
            let container = try await PersistentContainer(store: bed.description, stack: combination.stack)
            let drafts = try container.collection("drafts", of: Draft.self)
            drafts["spring"] = Draft(title: "Spring", words: 3)
            drafts["autumn"] = Draft(title: "Autumn")
            drafts["\u{10000}"] = Draft(title: "beyond")
            drafts["\u{FF5E}"] = Draft(title: "before")
            try await container.saveMain()
            #expect(drafts["spring"] == Draft(title: "Spring", words: 3))
            #expect(drafts["winter"] == nil)
            if bed.kind == .memory { return #expect(try drafts.all.keys() == ["autumn", "spring", "\u{FF5E}", "\u{10000}"]) }
            try await container.close()
        }
        let container = try await PersistentContainer(store: bed.description, stack: combination.stack)
        let drafts = try container.collection("drafts", of: Draft.self)
        #expect(try drafts.all.keys() == ["autumn", "spring", "\u{FF5E}", "\u{10000}"])
        #expect(drafts["autumn"]?.title == "Autumn")
        #expect(try await container.coordinator.verify().isEmpty)
    }

    @MainActor @Test(arguments: StoreKind.allCases)
    func `S190: a container of another model keeps the collections`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        try container.collection("scores", of: Int.self, key: UUID.self)[UUID()] = 7
        container.mainContext.makeTrack("a")
        try await container.saveMain()
        guard kind != .memory else { return }
        try await container.close()
        // A store that is opened without a container keeps them too.
        do {
            let store = try bed.description.open(Music.model.storeSchema)
            let coordinator = try PersistentStoreCoordinator(model: Music.model, store: store)
            let context = coordinator.newBackgroundContext()
            #expect(
                try await context.perform { try $0.collection("scores", of: Int.self, key: UUID.self).all.entries().map(\.value) }
                    == [7])
        }
        try await bed.closed()
        let again = try await bed.container()
        #expect(try again.collection("scores", of: Int.self, key: UUID.self).count == 1)
        #expect(try again.mainContext.trackTitles() == ["a"])
    }

    @MainActor @Test(arguments: StoreKind.allCases)
    func `S190: a model and the lists of changed objects do not show how keyed values are stored`(_ kind: StoreKind) async throws
    {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let context = container.mainContext
        let names = Music.model.entities.map(\.name)
        #expect(container.model.entities.map(\.name) == names && context.model.entities.map(\.name) == names)
        let scores = try context.collection("scores", of: Int.self)
        scores["a"] = 1
        #expect(context.insertedObjects.isEmpty && context.hasChanges)
        try await container.saveMain()
        scores["a"] = 2
        #expect(context.updatedObjects.isEmpty && context.hasChanges)
        scores["a"] = nil
        #expect(context.deletedObjects.isEmpty && context.hasChanges)
    }

    @MainActor @Test(arguments: StoreKind.allCases)
    func `S190: opening a collection with other types throws an error that names both`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let scores = try container.collection("scores", of: Int.self)
        // Nothing is recorded before the first value.
        _ = try container.collection("scores", of: Double.self, key: UUID.self)
        scores["a"] = 1
        for saved in [false, true] {
            if saved { try await container.saveMain() }
            let error = #expect(throws: CollectionError.self) {
                try container.collection("scores", of: Draft.self, key: UUID.self)
            }
            #expect(error?.description.contains("Int under keys of type String") == true)
            #expect(error?.description.contains("Draft under keys of type UUID") == true)
        }
        #expect(throws: CollectionError.invalidName("")) { try container.collection("", of: Int.self) }
        #expect(throws: CollectionError.invalidName("a\0b")) { try container.collection("a\0b", of: Int.self) }
    }

    private static func expect<K: CollectionKey & Comparable, V: Codable & Sendable & Equatable>(
        _ keys: [K], _ value: V, inCollection name: String, of context: ManagedObjectContext
    ) throws {
        let collection = try context.collection(name, of: V.self, key: K.self)
        #expect(try collection.all.keys() == keys.sorted(), "\(name)")
        #expect(try collection.all.keys(.descending) == keys.sorted().reversed(), "\(name)")
        for key in keys { #expect(try collection.value(forKey: key) == value, "\(name)") }
    }

    @MainActor @Test(arguments: StoreKind.allCases)
    func `S190: keys and values of each type come back, before and after a save, and keys keep their order`(
        _ kind: StoreKind
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        func check<K: CollectionKey & Comparable, V: Codable & Sendable & Equatable>(
            _ keys: [K], _ value: V, _ name: String
        ) async throws {
            let collection = try container.collection(name, of: V.self, key: K.self)
            for key in keys.shuffled() { try collection.setValue(value, forKey: key) }
            try Self.expect(keys, value, inCollection: name, of: container.mainContext)
            try await container.saveMain()
            try await container.read { try Self.expect(keys, value, inCollection: name, of: $0) }
        }
        try await check([Int.min, -1, 0, 1, Int.max], 5, "Int")
        try await check([Int8.min, -1, 0, 1, Int8.max], Int8(-5), "Int8")
        try await check([UInt64.min, 1, 255, 256, UInt64.max], UInt64.max, "UInt64")
        try await check(["", "a", "a\0", "aa", "b"], "text", "String")
        try await check((0..<9).map { _ in UUID() }, UUID(), "UUID")
        let dates = [-1e9, -0.5, 0, 0.25, 1e9, 1e12].map(Date.init(timeIntervalSinceReferenceDate:))
        try await check(dates, dates[3], "Date")
        try await check([1, 2], true, "Bool")
        try await check([1, 2], 0.1, "Double")
        try await check([1, 2], Float.infinity, "Float")
        try await check([1, 2], [Double.infinity, -.infinity, 0.1], "array")
        try await check([1, 2], Optional<String>.none, "optional")
        try await check([1, 2], Data([0, 1, 255]), "Data")
    }

    @MainActor @Test(arguments: StoreKind.allCases)
    func `S190: keys of bytes come back, before and after a save, and keep their order`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let expected: [[UInt8]] = [[], [0], [0, 255], [1], [255], [255, 255]]
        let blobs = try container.collection("blobs", of: Data.self, key: Data.self)
        for bytes in expected.shuffled() { blobs[Data(bytes)] = Data(bytes) }
        #expect(try blobs.all.keys().map(Array.init) == expected)
        try await container.saveMain()
        try await container.read { context in
            let blobs = try context.collection("blobs", of: Data.self, key: Data.self)
            #expect(try blobs.all.keys().map(Array.init) == expected)
            #expect(try blobs.all.entries().map { Array($0.value) } == expected)
        }
    }

    private static let placeKeys: [(String, Int)] = [
        ("", 0), ("a", -1), ("a", 1), ("a\0", 0), ("a\0\u{1}", 0), ("ab", 0), ("b", 0),
    ]

    private static func expectPlaces(in context: ManagedObjectContext) throws {
        let places = try context.collection("places", of: Int.self, key: (String, Int).self)
        #expect(try places.all.entries().map(\.value) == Array(placeKeys.indices))
        #expect(try places.all.keys().map(\.0) == placeKeys.map(\.0))
        #expect(try places.range(withPrefix: "a").entries().map(\.value) == [1, 2])
        #expect(try places.range(from: ("a", 0), upTo: ("ab", 0)).entries().map(\.value) == [2, 3, 4])
    }

    private static func expectDays(_ id: UUID, in context: ManagedObjectContext) throws {
        let days = try context.collection("days", of: String.self, key: (Int, UUID, String).self)
        #expect(try days.range(withPrefix: 2, id).entries().map(\.value) == ["two"])
        #expect(try days.range(withPrefix: 2).count == 2)
        #expect(days[(1, id, "x")] == "one")
    }

    @MainActor @Test(arguments: StoreKind.allCases)
    func `S190: tuples are ordered by their parts and have prefixes, before and after a save`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let places = try container.collection("places", of: Int.self, key: (String, Int).self)
        for (number, key) in Self.placeKeys.enumerated().shuffled() { places[key] = number }
        let days = try container.collection("days", of: String.self, key: (Int, UUID, String).self)
        let id = UUID()
        days[(1, id, "x")] = "one"
        days[(2, id, "y")] = "two"
        days[(2, UUID(), "y")] = "three"
        try Self.expectPlaces(in: container.mainContext)
        try Self.expectDays(id, in: container.mainContext)
        try await container.saveMain()
        try await container.read { context in
            try Self.expectPlaces(in: context)
            try Self.expectDays(id, in: context)
        }
    }

    @MainActor @Test(arguments: Combination.all)
    func `S191: ranges, prefixes and cursors show saved and unsaved entries in both directions`(
        _ combination: Combination
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let numbers = try container.collection("numbers", of: Int.self)
        func key(_ number: Int) -> String { "k\(1000 + number)" }
        for number in stride(from: 0, to: 600, by: 2) { numbers[key(number)] = number }
        try await container.saveMain()
        for number in stride(from: 1, to: 600, by: 2) { numbers[key(number)] = number }
        try numbers[key(100)...key(199)].removeAll()
        let expected = Array(0..<100) + Array(200..<600)
        #expect(try numbers.all.entries().map(\.value) == expected)
        #expect(try numbers.count == 500)
        #expect(try numbers.first?.value == 0 && numbers.last?.value == 599)
        #expect(try numbers[key(95)..<key(203)].entries().map(\.value) == [95, 96, 97, 98, 99, 200, 201, 202])
        #expect(try numbers[key(597)...].keys() == [597, 598, 599].map(key))
        #expect(try numbers[..<key(2)].keys() == [0, 1].map(key))
        #expect(try numbers[...key(2)].keys(.descending) == [2, 1, 0].map(key))
        #expect(try numbers.range(withPrefix: "k120").count == 10)
        #expect(try numbers.range(withPrefix: "x").isEmpty)
        var seen: [Int] = []
        try numbers.all.forEach { seen.append($1) }
        #expect(seen == expected)
        var cursor = numbers.all.cursor(.descending)
        var backwards: [Int] = []
        while let (_, value) = try cursor.next() { backwards.append(value) }
        #expect(backwards == expected.reversed())
        // Removing every entry that a cursor shows reaches each once.
        var removed = 0
        try numbers.all.forEach { key, _ in
            removed += 1
            try numbers.removeValue(forKey: key)
        }
        #expect(removed == 500)
        #expect(try numbers.isEmpty)
        container.mainContext.rollback()
        #expect(try numbers.count == 300)
    }

    @MainActor @Test(arguments: Combination.all)
    func `S191: one save commits objects and values, and a rollback drops both`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let plays = try container.collection("plays", of: Int.self)
        container.mainContext.makeTrack("a")
        plays["a"] = 1
        #expect(container.mainContext.hasChanges)
        try await container.saveMain()
        #expect(!container.mainContext.hasChanges)
        container.mainContext.makeTrack("b")
        plays["a"] = 2
        plays["b"] = 1
        container.mainContext.rollback()
        #expect(plays["a"] == 1 && plays["b"] == nil)
        #expect(try container.mainContext.trackTitles() == ["a"])
        plays["a"] = 1
        #expect(!container.mainContext.hasChanges)
        plays["a"] = nil
        plays["a"] = 1
        #expect(!container.mainContext.hasChanges)
        let saved = try await container.read { try $0.collection("plays", of: Int.self)["a"] }
        #expect(saved == 1)
    }

    @MainActor @Test(arguments: StoreKind.allCases)
    func `S191: a context of a snapshot shows the values of that state`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let plays = try container.collection("plays", of: Int.self)
        plays["a"] = 1
        try await container.saveMain()
        let snapshot = try container.coordinator.snapshot()
        plays["a"] = 2
        plays["b"] = 1
        try await container.saveMain()
        let old = container.coordinator.newBackgroundContext(reading: snapshot)
        let shown = try await old.perform {
            try $0.collection("plays", of: Int.self).all.entries().map { "\($0.key)\($0.value)" }
        }
        #expect(shown == ["a1"])
    }

    // MARK: Values that do not decode or encode

    /// A type of values in its first version, with another field, and with a field that older values do not have.
    enum First {
        struct Note: Codable, Sendable, Equatable { var title: String; var pages = [1, 2] }
    }
    enum Second {
        struct Note: Codable, Sendable, Equatable { var title: String; var words: Int? }
    }
    enum Third {
        struct Page: Codable, Sendable { var number: Int }
        struct Note: Codable, Sendable { var title: String; var pages: [Page] }
    }
    /// The first version with another name of a field, without and with the stored one, and with a new optional field.
    enum Renamed {
        struct Note: Codable, Sendable { var heading: String; var pages: [Int] }
    }
    enum Mapped {
        struct Note: Codable, Sendable, Equatable {
            var heading: String
            var pages = [1, 2]
            var words: Int?

            private enum CodingKeys: String, CodingKey { case heading = "title", pages, words }
        }
    }
    struct Refused: Codable, Sendable {
        struct Reason: Error {}
        func encode(to encoder: any Encoder) throws { throw Reason() }
    }

    @MainActor @Test(arguments: StoreKind.allCases)
    func `S194: a value that does not decode is an error with collection, key and field, and keeps its bytes`(
        _ kind: StoreKind
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        try container.collection("notes", of: First.Note.self)["a"] = First.Note(title: "A")
        try await container.saveMain()
        #expect(try container.collection("notes", of: Second.Note.self)["a"] == Second.Note(title: "A"))
        let notes = try container.collection("notes", of: Third.Note.self)
        let error = #expect(throws: CollectionError.self) { try notes.value(forKey: "a") }
        guard case .undecodable("notes", "\"a\"", "pages.0", _) = error else { return _ = Issue.record("\(error as Any)") }
        #expect(throws: CollectionError.self) { try notes.all.entries() }
        #expect(notes["a"] == nil)
        #expect(try notes.all.keys() == ["a"])
        #expect(try notes.bytes(forKey: "a") == Data(#"{"pages":[1,2],"title":"A"}"#.utf8))
        #expect(!container.mainContext.hasChanges)
    }

    /// Catches: values that are stored under the names of Swift's properties, whatever `CodingKeys` say.
    @MainActor @Test(arguments: StoreKind.allCases)
    func `S194: a field keeps its stored name through CodingKeys, and a new optional field is nil in older values`(
        _ kind: StoreKind
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let old = try container.collection("notes", of: First.Note.self)
        old["a"] = First.Note(title: "A")
        old["b"] = First.Note(title: "B", pages: [])
        try await container.saveMain()
        let error = #expect(throws: CollectionError.self) {
            try container.collection("notes", of: Renamed.Note.self).value(forKey: "a")
        }
        guard case .undecodable("notes", "\"a\"", "heading", _) = error else { return _ = Issue.record("\(error as Any)") }
        let notes = try container.collection("notes", of: Mapped.Note.self)
        #expect(try notes.values == [Mapped.Note(heading: "A"), Mapped.Note(heading: "B", pages: [])])
        notes["a"] = Mapped.Note(heading: "A")
        #expect(!container.mainContext.hasChanges, "the bytes are equal")
        notes["b"]?.heading = "C"
        notes["c"] = Mapped.Note(heading: "new", words: 3)
        #expect(try notes.bytes(forKey: "b") == Data(#"{"pages":[],"title":"C"}"#.utf8))
        try await container.saveMain()
        // The former version of the program reads what the new one has written.
        #expect(try old.values == [First.Note(title: "A"), First.Note(title: "C", pages: []), First.Note(title: "new")])
        let found = try await container.read { try $0.collection("notes", of: Mapped.Note.self).values }
        #expect(
            found == [Mapped.Note(heading: "A"), Mapped.Note(heading: "C", pages: []), Mapped.Note(heading: "new", words: 3)])
    }

    @MainActor @Test(arguments: StoreKind.allCases)
    func `S190: a value that cannot be stored fails the next save until it is replaced or rolled back`(
        _ kind: StoreKind
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let values = try container.collection("values", of: Refused.self)
        #expect(throws: CollectionError.self) { try values.setValue(Refused(), forKey: "a") }
        values["b"] = Refused()
        container.mainContext.makeTrack("a")
        await #expect(throws: CollectionError.self) { try await container.saveMain() }
        #expect(try await container.read { try $0.trackTitles() }.isEmpty)
        values["b"] = nil
        try await container.saveMain()
        values["b"] = Refused()
        container.mainContext.rollback()
        try await container.saveMain()
    }

    @MainActor @Test(arguments: StoreKind.allCases)
    func `S193: a large value is stored out of line, and bytes are read in a closure`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let blobs = try container.collection("blobs", of: Data.self)
        let large = Data((0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) })
        blobs["large"] = large
        blobs["empty"] = Data()
        try await container.saveMain()
        try await container.read { context in
            let blobs = try context.collection("blobs", of: Data.self)
            #expect(blobs["large"] == large)
            #expect(try blobs.withBytes(forKey: "large") { $0.count } == 3_000_000)
            #expect(try blobs.withBytes(forKey: "empty") { $0.count } == 0)
            #expect(try blobs.withBytes(forKey: "none") { $0.count } == nil)
        }
    }

    @MainActor @Test(arguments: StoreKind.allCases)
    func `S193: bytes in a closure stay whole while the closure changes the collection, and its error is the caller's`(
        _ kind: StoreKind
    ) async throws {
        struct Refused: Error {}
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let texts = try container.collection("texts", of: String.self)
        let text = String(repeating: "abc", count: 100)
        for number in 0..<200 { texts["\(number)"] = text }
        try await container.saveMain()
        try await container.read { context in
            let stored = try context.collection("texts", of: String.self)
            #expect(throws: Refused.self) { try stored.withBytes(forKey: "7") { _ in throw Refused() } }
            // Two copies at the same time would have two addresses.
            let isInPlace = try stored.withBytes(forKey: "7") { bytes in
                try stored.withBytes(forKey: "7") { $0.baseAddress == bytes.baseAddress }
            }
            if kind == .lmdb { #expect(isInPlace == true) }
            let whole = try stored.withBytes(forKey: "7") { bytes in
                try stored.removeAll()
                stored["7"] = "other"
                context.refreshAllObjects()
                return String(decoding: bytes, as: UTF8.self)
            }
            #expect(whole == text)
            #expect(try stored.withBytes(forKey: "7") { String(decoding: $0, as: UTF8.self) } == "other")
            #expect(try stored.withBytes(forKey: "8") { $0.count } == nil)
            context.rollback()
        }
    }
}
