import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Swift values that a context inserts as objects (S139).
@Suite struct ContextImportTests {
    private struct FullSong: Decodable {
        enum CodingKeys: String, CodingKey {
            case code, title, plays, rating, added, tags, mood, disc, mixes, original
        }
        enum Mood: String, Decodable { case calm, loud }

        var code: String
        var title: String?
        var plays: Int16
        var rating: Int
        var added: Date?
        var tags: SongTags
        var mood: Mood
        var disc: String?
        var mixes: Set<String>
        var original: String?
    }

    @Test(arguments: Combination.all)
    func `S139: decoded values become objects with all kinds of properties`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack, model: Songs.model)
        let json = """
            [{"code": "b", "plays": 3, "rating": 4, "tags": {"names": ["x"]}, "mood": "loud", "disc": "One", "mixes": ["m", "n"],
              "original": "a", "added": 10},
             {"code": "a", "title": "A", "plays": 0, "rating": 0, "tags": {"names": []}, "mood": "calm", "mixes": []}]
            """
        let worker = await container.newBackgroundContext()
        try await worker.perform { context throws in
            for name in ["m", "n"] { context.insert("Mix")["name"] = .string(name) }
            context.insert("Disc")["name"] = "One"
            let values = try JSONDecoder().decode([FullSong].self, from: Data(json.utf8))
            let songs = try context.insert(contentsOf: values, as: Song.self)
            #expect(songs.map(\.code) == ["b", "a"])
            let song = songs[0]
            #expect(song.title == "untitled" && song.plays == 3 && song.rating == 4 && song.mood == .loud)
            #expect(song.tags.names == ["x"] && song.added == Date(timeIntervalSinceReferenceDate: 10))
            #expect(song.disc?.name == "One" && song.original === songs[1] && Set(song.mixes.map(\.name)) == ["m", "n"])
            #expect(song.disc?.songs.map(\.code) == ["b"])
        }
        try await worker.save(through: .store)
        let reader = container.newBatchOperationContext()
        try await reader.perform { context throws in
            let song = try #require(try context.find(unique: \Song.code, "b"))
            #expect(song.original?.title == "A" && song.mixes.count == 2 && song.rating == 4)
        }
    }

    /// Catches: nil as a unique value by which a relationship whose value is nil finds an object.
    @Test(arguments: StoreKind.allCases)
    func `S108, S139: an import relates nothing to objects that have no unique value`(_ kind: StoreKind) async throws {
        struct Cover: Codable {
            var code: String?
            var original: String?
        }
        let bed = try TestBed(kind)
        let container = try await bed.container(model: Songs.model)
        let context = container.newBatchOperationContext()
        try await context.perform { context throws in
            let covers = [Cover(code: nil, original: nil), Cover(code: "a", original: nil), Cover(code: nil, original: "a")]
            let songs = try context.insert(contentsOf: covers, as: Song.self)
            #expect(songs.map { $0.original == nil } == [true, true, false] && songs[2].original === songs[1])
        }
        try await context.save()
        let rows: [[Value]] = [[.null, .null], [.null, .null], ["b", .null], [.null, "b"]]
        try await container.coordinator.insert(into: "Song", ["code", "original.code"], rows: rows)
        let reader = container.newBatchOperationContext()
        let codes = try await reader.perform {
            try $0.fetch(FetchRequest<Song>()).compactMap { $0.original?.code ?? $0.original.map { _ in "nil" } }
        }
        #expect(codes.sorted() == ["a", "b"])
    }

    @Test(arguments: StoreKind.allCases)
    func `S139: a value that does not fit is an error, and nothing is inserted`(_ kind: StoreKind) async throws {
        struct Misspelled: Codable { var code = "a", titel = "x" }
        struct WrongType: Codable { var code = "a", plays = "many" }
        struct NumberAsDate: Codable { var code = "a", added = 5.0 }
        struct OnlyDecodable: Decodable { var names = ["x"] }
        struct NotEncodable: Decodable { var tags = OnlyDecodable() }
        let bed = try TestBed(kind)
        let container = try await bed.container(model: Songs.model)
        let worker = await container.newBackgroundContext()
        try await worker.perform { context throws in
            func message<V: Decodable>(_ value: V) -> String {
                do {
                    try context.insert(contentsOf: [value], into: "Song")
                    return "inserted"
                } catch { return "\(error)" }
            }
            #expect(message(Misspelled()).hasPrefix("Song has no stored property titel."))
            #expect(message(WrongType()).hasPrefix("cannot set Song.plays to \"many\": it cannot store that value."))
            #expect(message(NumberAsDate()).hasPrefix("cannot set Song.added to 5.0: it cannot store that value."))
            #expect(message(NotEncodable()).hasPrefix("cannot set Song.tags: it cannot store a value of type OnlyDecodable."))
            #expect(
                message(SongValue(code: "a", disc: "none"))
                    == "cannot set Song.disc: no Disc has the name \"none\". Insert it first, or use null.")
            #expect(!context.hasChanges)
            #expect(throws: FetchError.self) { try context.insert(contentsOf: [SongValue(code: "a")], into: "None") }
            #expect(throws: FetchError.notUnique(entity: "Song", property: "plays")) {
                try context.upsert(contentsOf: [SongValue(code: "a")], unique: \Song.plays)
            }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `S139: upsert finds saved, unsaved and inherited objects, and inserts others`(_ kind: StoreKind) async throws {
        struct Stop: Error {}
        let bed = try TestBed(kind)
        let container = try await bed.container(model: Songs.model)
        let root = await container.newBackgroundContext()
        try await root.perform { context throws in
            _ = try context.upsert(unique: \Song.code, "saved") { $0.title = "1" }
        }
        try await root.save()
        try await root.perform { context throws in
            _ = try context.upsert("Song", unique: "code", "unsaved") { $0["title"] = "2" }
        }
        let child = await root.newBackgroundChild()
        try await child.perform { context throws in
            #expect(try context.upsert(unique: \Song.code, "saved").title == "1")
            #expect(try context.upsert(unique: \Song.code, "unsaved") { $0.title += "+" }.title == "2+")
            let new = try context.upsert(unique: \Song.code, "new")
            #expect(new.title == "untitled" && new.managedObject === context.insertedObjects.first)
            #expect(try context.upsert(unique: \Song.code, "new") === new)
            // nil equals nothing.
            #expect(try context.upsert(unique: \Song.code, nil) !== context.upsert(unique: \Song.code, nil))
            #expect(throws: Stop.self) {
                try context.upsert(unique: \Song.code, "failed") { song in
                    song.title = "x"
                    throw Stop()
                }
            }
            #expect(try context.find(unique: \Song.code, "failed") == nil)
            // A deleted object gives its value away.
            let deleted = try context.upsert(unique: \Song.code, "saved")
            context.delete(deleted)
            #expect(try context.upsert(unique: \Song.code, "saved") !== deleted)
        }
        try await child.save(through: .store)
        let titles = try await container.newBatchOperationContext().perform { context throws in
            try context.fetch(FetchRequest<Song>(sortBy: [.init(\.code)])).map { "\($0.code ?? "nil") \($0.title)" }
        }
        #expect(titles == ["nil untitled", "nil untitled", "new untitled", "saved untitled", "unsaved 2+"])
        #expect(try container.coordinator.store.verify() == [])
    }

    @Test(arguments: StoreKind.allCases)
    func `S139: random imports through contexts, children and batches give what a dictionary holds`(_ kind: StoreKind)
        async throws
    {
        var random = SeededGenerator()
        let bed = try TestBed(kind)
        let container = try await bed.container(model: Songs.model)
        let coordinator = container.coordinator
        try await coordinator.insert(into: "Disc", ["name"], rows: (0..<4).map { [.string("d\($0)")] })
        var expected: [String: SongValue] = [:]
        for _ in 0..<12 {
            let values = (0..<random.below(12)).map { _ in
                SongValue(
                    code: "c\(random.below(20))", title: "t\(random.below(9))", plays: random.below(9),
                    disc: random.chance(30) ? nil : "d\(random.below(4))")
            }
            for value in values { if let code = value.code { expected[code] = value } }
            switch random.below(4) {
            case 0:
                try await coordinator.insert(
                    contentsOf: values, as: Song.self, rule: .update(on: ["code"]), options: Self.options(1 + random.below(5)))
            case 1:
                let root = await container.newBackgroundContext()
                try await root.perform { _ = try $0.upsert(contentsOf: values, unique: \Song.code) }
                try await root.save(random.chance(50) ? .deferred : .durable)
            case 2:
                let root = await container.newBackgroundContext()
                let child = await root.newBackgroundChild()
                try await child.perform { _ = try $0.upsert(contentsOf: values, into: "Song", unique: "code") }
                try await child.save(through: .store)
            default:
                let rows = values.map { value -> [Value] in
                    [value.code.storeValue, value.title.storeValue, value.plays.storeValue, value.disc.storeValue]
                }
                try await coordinator.insert(
                    into: "Song", ["code", "title", "plays", "disc.name"], rows: rows, rule: .update(on: ["code"]),
                    options: Self.options(1 + random.below(5)))
            }
        }
        let shown = try await container.newBatchOperationContext().perform { context throws in
            try context.fetch(FetchRequest<Song>()).map { [$0.code, $0.title, "\($0.plays)", $0.disc?.name] }
        }
        let wanted = expected.values.map { [$0.code, $0.title, "\($0.plays ?? 0)", $0.disc] }
        #expect(Set(shown) == Set(wanted) && shown.count == wanted.count, "seed \(random.seed)")
        #expect(try coordinator.store.verify() == [])
    }

    /// Catches: a value that is no list, which is read as an empty list and removes all members.
    @Test(arguments: StoreKind.allCases)
    func `S139: a single value is no list of a relationship to many`(_ kind: StoreKind) async throws {
        struct Full: Codable { var code = "a", mixes = ["m"] }
        struct One: Codable { var code = "a", mixes = "m" }
        let bed = try TestBed(kind)
        let container = try await bed.container(model: Songs.model)
        try await container.coordinator.insert(into: "Mix", ["name"], rows: [["m"]])
        try await container.newBatchOperationContext().perform { context throws in
            let song = try context.insert(contentsOf: [Full()], as: Song.self)[0]
            #expect(throws: BatchError.self) { try context.upsert(contentsOf: [One()], unique: \Song.code) }
            #expect(song.mixes.map(\.name) == ["m"])
        }
    }

    private static func options(_ rows: Int) -> BatchOptions {
        var options = BatchOptions()
        options.rowsPerSave = rows
        return options
    }
}
