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
}
