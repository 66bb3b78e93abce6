import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Batches on every store: their writes, the contexts that merge them, and the errors (S137).
@Suite struct BatchTests {
    private static func rows(_ count: Int, from start: Int = 0) -> [[Value]] {
        // The rows are in the order of neither isrc nor plays.
        (start..<start + count).map { number in
            [.string("t\(number)"), .string("isrc-\((number &* 7919) % 100_003)"), .int(Int64(number % 10))]
        }
    }

    private static let properties = ["title", "isrc", "plays"]

    private static func options(_ rows: Int = 1000) -> BatchOptions {
        var options = BatchOptions()
        options.rowsPerSave = rows
        options.author = "importer"
        return options
    }

    private static func count(_ container: PersistentContainer, _ predicate: Condition = .always) async throws -> Int {
        try await container.newBatchOperationContext().perform { context in
            try context.count(EntityFetchRequest("Track", matching: predicate))
        }
    }

    @Test(arguments: StoreKind.allCases) func S137_anImportOfRowsIsSavedInChunksAndStandsInTheHistory(_ kind: StoreKind)
        async throws
    {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let coordinator = container.coordinator
        let before = try coordinator.snapshot().generation
        let result = try await coordinator.insert(
            into: "Track", Self.properties, rows: Self.rows(2500), options: Self.options())
        #expect(result.insertedCount == 2500)
        #expect(Set(result.insertedIDs).count == 2500)
        #expect(result.changes.count == 3)
        #expect(try await Self.count(container) == 2500)
        #expect(try await Self.count(container, .equal("plays", .int(3))) == 250)
        let history = try #require(try coordinator.store.changes(after: before))
        #expect(history.map(\.author) == ["importer", "importer", "importer"])
        // A property that the rows do not name has its default.
        let first = try #require(result.insertedIDs.first)
        let rating = await container.newBatchOperationContext().perform { $0.object(with: first)["rating"] }
        #expect(rating == .double(2.5))
        // Leased keys that were not used are assigned later, and none twice.
        let more = try await coordinator.insert(
            into: "Track", Self.properties, rows: Self.rows(70, from: 2500), options: Self.options())
        #expect(Set(more.insertedIDs).isDisjoint(with: result.insertedIDs))
        let findings = try coordinator.store.verify()
        #expect(findings == [])
    }

    @Test(arguments: StoreKind.allCases) func S137_batchUpdateAndDeleteAreMergedByContextsThatFollow(_ kind: StoreKind)
        async throws
    {
        let bed = try TestBed(kind)
        let container = try await bed.container(.siblings)
        let coordinator = container.coordinator
        try await coordinator.insert(into: "Track", Self.properties, rows: Self.rows(300), options: Self.options())
        let reader = container.newBatchOperationContext()
        let seen = try await reader.perform { try $0.count(EntityFetchRequest("Track")) }
        #expect(seen == 300)
        let request = EntityFetchRequest("Track", matching: .equal("plays", .int(3)))
        let updated = try await coordinator.batchUpdate(request, set: ["plays": .int(33), "title": .string("x")])
        #expect(updated.updatedCount == 30)
        #expect(updated.hasChanged)
        #expect(try await Self.count(container, .equal("plays", .int(33))) == 30)
        let again = try await coordinator.batchUpdate(request, set: ["plays": .int(0)])
        #expect(!again.hasChanged)
        let deleted = try await coordinator.batchDelete(EntityFetchRequest("Track", matching: .equal("plays", .int(33))))
        #expect(Set(deleted.deletedIDs) == Set(updated.updatedIDs))
        #expect(try await Self.count(container) == 270)
        let left = try await reader.perform { context in
            for changes in updated.changes + deleted.changes { context.mergeChanges(from: changes) }
            return try context.count(EntityFetchRequest("Track"))
        }
        #expect(left == 270)
        let findings = try coordinator.store.verify()
        #expect(findings == [])
    }

    @Test(arguments: StoreKind.allCases) func S137_batchDeleteFollowsDeleteRules(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let worker = container.newBatchOperationContext()
        await worker.perform { context in
            for name in ["a", "b"] {
                let artist = context.makeArtist(name)
                let album = context.insert("Album")
                album["title"] = .string(name)
                album.setRelatedObject("artist", to: artist)
                let profile = context.insert("Profile")
                profile["text"] = .string(name)
                profile.setRelatedObject("artist", to: artist)
                let pupil = context.makeArtist("pupil of \(name)")
                pupil.setRelatedObject("mentor", to: artist)
                if name == "a" { context.makeTrack("held").setRelatedObject("album", to: album) }
            }
        }
        try await worker.save()
        let coordinator = container.coordinator
        // The track denies the deletion of the album of a, which the artist's deletion cascades to.
        await #expect(throws: SaveError.self) {
            try await coordinator.batchDelete(EntityFetchRequest("Artist", matching: .equal("name", .string("a"))))
        }
        let result = try await coordinator.batchDelete(EntityFetchRequest("Artist", matching: .equal("name", .string("b"))))
        #expect(result.deletedCount == 1)
        let left = try await container.newBatchOperationContext().perform { context in
            let pupils = try context.fetch(EntityFetchRequest("Artist", matching: .equal("name", .string("pupil of b"))))
            return [
                try context.count(EntityFetchRequest("Album")), try context.count(EntityFetchRequest("Profile")),
                pupils.filter { $0.relatedObject("mentor") == nil }.count,
            ]
        }
        #expect(left == [1, 1, 1])
        let findings = try coordinator.store.verify()
        #expect(findings == [])
    }

    @Test(arguments: StoreKind.allCases) func S137_upsertUpdatesByAUniqueConstraintAndKeepsIDs(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let coordinator = container.coordinator
        let first = try await coordinator.insert(into: "Track", Self.properties, rows: Self.rows(200), options: Self.options(64))
        // Half of the rows are known and half are new. One occurs twice, and its last values win.
        var rows = Self.rows(200, from: 100).map { [$0[0], $0[1], Value.int(77)] }
        rows.append([.string("last"), rows[150][1], .int(78)])
        rows.append([.string("no isrc"), .null, .int(79)])
        let result = try await coordinator.insert(
            into: "Track", Self.properties, rows: rows, rule: .update(on: ["isrc"]), options: Self.options(64))
        #expect(result.insertedCount == 101)
        #expect(Set(result.updatedIDs).subtracting(result.insertedIDs).isSubset(of: Set(first.insertedIDs)))
        #expect(try await Self.count(container) == 301)
        #expect(try await Self.count(container, .equal("plays", .int(77))) == 199)
        #expect(try await Self.count(container, .equal("plays", .int(78))) == 1)
        let kept = try await coordinator.insert(
            into: "Track", Self.properties, rows: Self.rows(310), rule: .keep(on: ["isrc"]), options: Self.options())
        #expect(kept.insertedCount == 10)
        #expect(kept.updatedCount == 0)
        let findings = try coordinator.store.verify()
        #expect(findings == [])
    }

    @Test(arguments: StoreKind.allCases) func S137_whatIsWrongIsRefusedAndTheCountOfSavedRowsIsTold(_ kind: StoreKind)
        async throws
    {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let coordinator = container.coordinator
        await #expect(throws: FetchError.self) { try await coordinator.insert(into: "Track", ["none"], rows: [[.int(1)]]) }
        await #expect(throws: BatchError.self) { try await coordinator.insert(into: "Track", ["plays"], rows: [[.string("x")]]) }
        await #expect(throws: BatchError.self) {
            try await coordinator.batchUpdate(EntityFetchRequest("Track"), set: ["plays": .null])
        }
        var rows = Self.rows(250)
        rows[249][1] = rows[0][1]
        do {
            try await coordinator.insert(into: "Track", Self.properties, rows: rows, options: Self.options(100))
            Issue.record("a duplicate was taken")
        } catch BatchError.importStopped(let savedRows, let error) {
            #expect(savedRows == 200)
            #expect(error is SaveError)
        }
        #expect(try await Self.count(container) == 200)
    }

    @Test(arguments: StoreKind.allCases) func S137_ofRowsAlikeTheLastOneWinsAcrossSaves(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        for round in 0..<20 {
            let rows = (1...4).map { [Value.string("x"), .string("isrc \(round)"), .int(Int64($0))] }
            let result = try await container.coordinator.insert(
                into: "Track", Self.properties, rows: rows, rule: .update(on: ["isrc"]), options: Self.options(1))
            #expect(result.changes.map(\.generation) == result.changes.map(\.generation).sorted())
            #expect(result.insertedCount == 1 && result.updatedCount == 3)
        }
        #expect(try await Self.count(container, .equal("plays", .int(4))) == 20)
        #expect(try await Self.count(container) == 20)
    }

    @Test(arguments: StoreKind.allCases) func S137_afterASaveThatFailsNoneFollows(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        var rows = Self.rows(10)
        rows[4][1] = rows[0][1]
        do {
            try await container.coordinator.insert(into: "Track", Self.properties, rows: rows, options: Self.options(2))
            Issue.record("a duplicate was taken")
        } catch BatchError.importStopped(let savedRows, let error) {
            #expect(savedRows == 4)
            #expect(error is SaveError)
        }
        let titles = try await container.newBatchOperationContext().perform { try $0.trackTitles() }
        #expect(titles == ["t0", "t1", "t2", "t3"], "exactly the rows that the error tells of")
    }

    /// Inserts an artist without a profile, and a profile.
    private static func pair(_ container: PersistentContainer) async throws -> (artist: ObjectID, profile: ObjectID) {
        let worker = container.newBatchOperationContext()
        let ids = await worker.perform { context in
            (context.makeArtist("a").objectID, context.insert("Profile").objectID)
        }
        try await worker.save()
        return ids
    }

    /// Catches: an import that leaves one end of a pair, or two objects with one partner, or whose result depends on the size of its saves.
    @Test(arguments: StoreKind.allCases)
    func `S052, S137: the last row of an import that names a partner has it, at both ends`(_ kind: StoreKind) async throws {
        var random = SeededGenerator()
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let coordinator = container.coordinator
        let profiles = try await container.newBatchOperationContext().perform(andSave: .durable) { context in
            (0..<6).map { _ in context.insert("Profile").objectID }
        }
        var expected: [String: ObjectKey?] = [:]
        for round in 0..<Rounds.of(12, long: 300) {
            let rows = (0..<1 + random.below(9)).map { _ -> (name: String, profile: ObjectKey?) in
                ("a\(random.below(8))", random.chance(25) ? nil : profiles[random.below(6)].key)
            }
            for (name, profile) in rows {
                if let profile, let owner = expected.first(where: { $0.value == profile })?.key { expected[owner] = .some(nil) }
                expected[name] = .some(profile)
            }
            var options = BatchOptions()
            options.rowsPerSave = [1, 2, 100][random.below(3)]
            options.durability = random.chance(30) ? .deferred(within: .seconds(30)) : .durable
            try await coordinator.insert(
                into: "Artist", ["name", "profile"],
                rows: rows.map { [.string($0.name), $0.profile.map { .reference($0) } ?? .null] as [Value] },
                rule: .update(on: ["name"]), options: options)
            let what = "round \(round), STRATA_SEED=\(random.seed)"
            let shown = try await container.newBatchOperationContext().perform { context throws in
                try context.fetch(EntityFetchRequest("Artist")).map { artist -> (Value, ObjectKey?, Bool) in
                    let profile = artist.relatedObject("profile")
                    return (artist["name"], profile?.objectID.key, profile.map { $0.relatedObject("artist") === artist } ?? true)
                }
            }
            try #require(shown.count == expected.count && shown.allSatisfy(\.2), "\(what)")
            for (name, profile, _) in shown {
                guard case .string(let name) = name else { continue }
                try #require(expected[name] == .some(profile), "\(name), \(what)")
            }
            try #require(try coordinator.store.verify() == [], "\(what)")
        }
        let missing = profiles[0].key.advanced(by: 500)
        await #expect(throws: SaveError.self) {
            try await coordinator.insert(into: "Artist", ["name", "profile"], rows: [["z", .reference(missing)]])
        }
    }

    @Test(arguments: StoreKind.allCases) func S137_aReferenceLeadsToAnObjectOrIsRefused(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let coordinator = container.coordinator
        let (artist, _) = try await Self.pair(container)
        let missing = artist.key.advanced(by: 17)
        let albums = ["title", "artist"]
        let result = try await coordinator.insert(
            into: "Album", albums, rows: [[.string("x"), .reference(artist.key)], [.string("y"), .null]])
        #expect(result.insertedCount == 2)
        await #expect(throws: SaveError.self) {
            try await coordinator.insert(
                into: "Album", albums, rows: [[.string("z"), .reference(artist.key)], [.string("z"), .reference(missing)]])
        }
        await #expect(throws: SaveError.self) {
            try await coordinator.batchUpdate(EntityFetchRequest("Album"), set: ["artist": .reference(missing)])
        }
        let update = try await coordinator.batchUpdate(EntityFetchRequest("Album"), set: ["artist": .reference(artist.key)])
        #expect(update.updatedCount == 2)
        let related = try await container.newBatchOperationContext().perform { context throws in
            try context.existingObject(with: artist).relatedObjects("albums").count
        }
        #expect(related == 2)
        #expect(try coordinator.store.verify() == [])
    }
}
