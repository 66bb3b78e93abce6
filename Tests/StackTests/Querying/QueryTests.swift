import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Every kind of condition on every store and stack, over saved objects and over the same objects unsaved.
@Suite struct QueryTests {
    /// Inserts the albums Blue (tracks a, b) and Red (track É), the single track d, and the playlist p with a and d.
    private static func fill(_ context: ManagedObjectContext) {
        let playlist = context.insert("Playlist")
        playlist["name"] = .string("p")
        let artist = context.makeArtist("Ann")
        var tracks: [String: ManagedObject] = [:]
        for (title, plays) in [("alpha", 1), ("Beta", 5), ("Éclair", 9), ("d", 5)] {
            tracks[title] = context.makeTrack(title, plays: plays)
        }
        tracks["alpha"]?["isrc"] = .string("I1")
        tracks["alpha"]?["rating"] = .double(3)
        for (title, names) in [("Blue", ["alpha", "Beta"]), ("Red", ["Éclair"])] {
            let album = context.insert("Album")
            album["title"] = .string(title)
            if title == "Blue" { album.setRelatedObject("artist", to: artist) }
            for name in names { tracks[name]?.setRelatedObject("album", to: album) }
        }
        for name in ["alpha", "d"] { tracks[name]?.setRelatedObjects("playlists", to: [playlist]) }
    }

    private static let ofTracks: [(Condition, [String])] = [
        (.compare("plays", .greater, to: .int(4)), ["Beta", "d", "Éclair"]),
        (.compare("plays", .notEqual, to: .int(5)), ["alpha", "Éclair"]),
        (.between("plays", .int(1), and: .int(5)), ["Beta", "alpha", "d"]),
        (.isIn("plays", [.int(1), .int(9)]), ["alpha", "Éclair"]),
        (.isIn("plays", [.double(1), .double(5.5), .uint(9), .uint(.max)]), ["alpha", "Éclair"]),
        (.isIn("rating", [.int(3), .int(.max), .uint(4)]), ["alpha"]), (.isIn("rating", [.double(.nan), .string("3")]), []),
        (.isNil("isrc"), ["Beta", "d", "Éclair"]), (.not(.isNil("isrc")), ["alpha"]),
        (.isNil("album"), ["d"]),
        (.string("title", .contains, pattern: "et", sensitivity: .sensitive), ["Beta"]),
        (.string("title", .contains, pattern: "A", sensitivity: .insensitive), ["Beta", "alpha", "Éclair"]),
        (.string("title", .hasPrefix, pattern: "É", sensitivity: .sensitive), ["Éclair"]),
        (.string("title", .hasPrefix, pattern: "é", sensitivity: .insensitive), ["Éclair"]),
        (.string("title", .hasSuffix, pattern: "a", sensitivity: .sensitive), ["Beta", "alpha"]),
        (.string("title", .equals, pattern: "BETA", sensitivity: .insensitive), ["Beta"]),
        (.all([.equal("plays", .int(5)), .not(.equal("title", .string("d")))]), ["Beta"]),
        (.any([.equal("plays", .int(1)), .equal("title", .string("d"))]), ["alpha", "d"]),
        (.equal("album.title", .string("Blue")), ["Beta", "alpha"]),
        (.equal("album.artist.name", .string("Ann")), ["Beta", "alpha"]),
        (.isNil("album.artist"), ["d", "Éclair"]),
        (.related("playlists", .any, where: .equal("name", .string("p"))), ["alpha", "d"]),
        (.related("playlists", .none, where: .always), ["Beta", "Éclair"]),
    ]

    private static let ofAlbums: [(Condition, [String])] = [
        (.related("tracks", .any, where: .equal("plays", .int(9))), ["Red"]),
        (.related("tracks", .all, where: .compare("plays", .less, to: .int(6))), ["Blue"]),
        (.related("tracks", .none, where: .equal("plays", .int(9))), ["Blue"]),
        (.relatedCount("tracks", where: .always, .equal, to: 2), ["Blue"]),
        (.relatedCount("tracks", where: .compare("plays", .greater, to: .int(4)), .greaterOrEqual, to: 1), ["Blue", "Red"]),
        (.relatedCount("artist.albums", where: .always, .equal, to: 1), ["Blue"]),
    ]

    private static func expectAll(_ context: ManagedObjectContext) throws {
        for (entity, cases) in [("Track", ofTracks), ("Album", ofAlbums)] {
            for (condition, titles) in cases {
                let request = EntityFetchRequest(entity, matching: condition, sortBy: [AttributeSort("title")])
                let found = try context.fetch(request).map { $0["title"] }
                #expect(found == titles.map { .string($0) }, "\(condition)")
                #expect(try context.count(request) == titles.count, "\(condition)")
            }
        }
    }

    @Test(arguments: Combination.all)
    func S134_conditionsSelectTheSameSavedAndUnsaved(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let context = await container.newBackgroundContext()
        try await context.perform { context throws in
            Self.fill(context)
            try Self.expectAll(context)
        }
        try await context.save(through: .store)
        try await context.perform { try Self.expectAll($0) }
        let other = await container.newBackgroundContext()
        try await other.perform { context throws in
            try Self.expectAll(context)
            // One object is changed and changed back, so that half of the answer comes from a layer.
            for track in try context.fetch(EntityFetchRequest("Track", matching: .equal("plays", .int(5)))) {
                track["plays"] = .int(50)
                track["plays"] = .int(5)
            }
            try Self.expectAll(context)
        }
    }

    @Test func S134_whatIsNotSupportedIsNamed() async throws {
        try await TestBed(.memory).container().newBackgroundContext().perform { context in
            #expect(throws: FetchError.unknownProperty(entity: "Track", property: "genre")) {
                try context.fetch(EntityFetchRequest("Track", matching: .equal("genre", .int(1))))
            }
            #expect(throws: FetchError.unknownProperty(entity: "Album", property: "year")) {
                try context.count(EntityFetchRequest("Track", matching: .equal("album.year", .int(1))))
            }
        }
    }

    @Test func S135_explainTellsOfUnsavedObjects() async throws {
        let bed = try TestBed(.lmdb)
        let container = try await bed.container()
        let context = container.coordinator.newBackgroundContext()
        await context.perform { context in
            for number in 0..<100 { context.makeTrack("\(number)", plays: number) }
        }
        try await context.save()
        try await context.perform { context throws in
            let request = EntityFetchRequest("Track", matching: .equal("plays", .int(7)))
            #expect(try context.explain(request) == "index on plays, equality")
            context.makeTrack("new")
            #expect(try context.explain(request) == "index on plays, equality; and 1 unsaved or recently saved objects")
            let byAlbum = EntityFetchRequest("Track", matching: .equal("album.title", .string("x")))
            #expect(
                try context.explain(byAlbum) == "index on album, by Album found first; and 1 unsaved or recently saved objects")
            context.insert("Album")["title"] = .string("x")
            #expect(try context.explain(byAlbum).hasPrefix("every object"))
        }
    }

    /// Catches: a look-up that evaluates every unsaved object, so that a loop of upserts takes quadratic time.
    @Test(arguments: StoreKind.allCases)
    func `S135, S139: a look-up of a unique value evaluates one of many unsaved objects`(_ kind: StoreKind) async throws {
        @Sendable func expectOne(_ context: ManagedObjectContext) throws {
            for number in [0, 70, 199] {
                let request = EntityFetchRequest("Track", matching: .equal("isrc", .string("\(number)")))
                let text = try context.explain(request)
                #expect(text.hasSuffix("; and by a unique value, also unsaved or recently saved: 1"), "\(text)")
                #expect(try context.count(request) == 1)
            }
        }
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let context = container.coordinator.newBackgroundContext()
        try await context.perform { context throws in
            for number in 0..<200 { try context.upsert("Track", unique: "isrc", .string("\(number)")) }
            try expectOne(context)
        }
        try await context.save()
        try await context.perform { context throws in
            for track in try context.objects("Track") { track["plays"] = .int(5) }
            try expectOne(context)
        }
    }

    /// Gives a track a code, and then changes or deletes it. No two tracks have the same code.
    private static func changeTrack(_ context: ManagedObjectContext, _ random: inout SeededGenerator) throws {
        let code = Value.string("c\(random.below(12))")
        let track = try context.upsert("Track", unique: "isrc", code)
        switch random.below(5) {
        case 0: context.delete(track)
        case 1: track["isrc"] = .null
        case 2:
            let others = try context.objects("Track").filter { $0 !== track }
            guard let other = others.randomElement(using: &random) else { return }
            let moved = other["isrc"]
            other["isrc"] = code
            track["isrc"] = moved
        default: track["plays"] = .int(Int64(random.below(5)))
        }
    }

    private static func plays(_ track: ManagedObject) -> Int64 {
        if case .int(let number) = track["plays"] { number } else { 0 }
    }

    /// Compares a look-up of unique values with what all objects show.
    private static func expectLookup(_ context: ManagedObjectContext, _ random: inout SeededGenerator) throws {
        let codes = (0...random.below(3)).map { _ in Value.string("c\(random.below(14))") }
        let least = Int64(random.below(3))
        let offset = random.below(2)
        let limit: Int? = random.chance(50) ? random.below(3) : nil
        let hasCode: Condition = codes.count == 1 ? .equal("isrc", codes[0]) : .isIn("isrc", codes)
        let condition = Condition.all([hasCode, .compare("plays", .greaterOrEqual, to: .int(least))])
        let request = EntityFetchRequest(
            "Track", matching: condition, sortBy: [AttributeSort("plays", .descending)], limit: limit, offset: offset)
        let selected = try context.objects("Track").filter { codes.contains($0["isrc"]) && Self.plays($0) >= least }
        let sorted = selected.enumerated().sorted { a, b in
            (Self.plays(a.element), b.offset) > (Self.plays(b.element), a.offset)
        }
        let expected = sorted.dropFirst(offset).prefix(limit ?? .max).map { $0.element.objectID }
        #expect(try context.fetch(request).map(\.objectID) == expected, "\(request)")
        #expect(try context.count(request) == expected.count, "\(request)")
    }

    /// Catches: an index of a layer that misses a changed object, or a limit that counts stored objects which have other values now.
    @Test(arguments: Combination.all)
    func `S130, S139: equality on a unique attribute selects what the objects show`(_ combination: Combination) async throws {
        var random = SeededGenerator()
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        for _ in 0..<Rounds.of(6, long: 60) {
            let context = await container.newBackgroundContext()
            let seed = random.next()
            try await context.perform { context throws in
                var random = SeededGenerator(seed: seed)
                for _ in 0..<20 {
                    try Self.changeTrack(context, &random)
                    try Self.expectLookup(context, &random)
                }
            }
            try await context.save(through: .store, random.chance(50) ? .deferred : .durable)
        }
    }
}
