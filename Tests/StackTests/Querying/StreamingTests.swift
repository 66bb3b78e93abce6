import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Streams of large results in batches, on every store and stack, with saved and unsaved objects.
@Suite struct StreamingTests {
    /// Saves 300 tracks. The returned context has deleted some, changed others, and inserted 40.
    private static func fill(_ container: PersistentContainer) async throws -> BackgroundContext {
        let first = await container.newBackgroundContext()
        await first.perform { context in
            for number in 0..<300 { context.makeTrack("\(number)", plays: number) }
        }
        try await first.save(through: .store)
        let context = await container.newBackgroundContext()
        try await context.perform { context throws in
            for track in try context.fetch(EntityFetchRequest("Track", matching: .compare("plays", .less, to: .int(10)))) {
                context.delete(track)
            }
            for track in try context.fetch(EntityFetchRequest("Track", matching: .compare("plays", .greater, to: .int(290)))) {
                track["plays"] = .int(-1)
            }
            for number in 0..<40 { context.makeTrack("own \(number)", plays: 1000 + number) }
            let playlist = context.insert("Playlist")
            playlist["name"] = .string("own")
            for track in try context.fetch(EntityFetchRequest("Track", matching: .compare("plays", .greater, to: .int(270)))) {
                playlist.add(track, to: "tracks")
            }
        }
        return context
    }

    private static func requests() -> [EntityFetchRequest] {
        let some = Condition.compare("plays", .greaterOrEqual, to: .int(100))
        let byPlays = [AttributeSort("plays", .descending)]
        return [
            EntityFetchRequest("Track"), EntityFetchRequest("Track", matching: some),
            EntityFetchRequest("Track", matching: some, sortBy: byPlays),
            EntityFetchRequest("Track", matching: some, sortBy: byPlays, limit: 77, offset: 33),
            EntityFetchRequest("Track", matching: some, limit: 77, offset: 33),
            EntityFetchRequest("Track", limit: 0), EntityFetchRequest("Track", offset: 1000),
            // Answered from unsaved objects and links.
            EntityFetchRequest(
                "Track", matching: .related("playlists", .any, where: .equal("name", .string("own"))), limit: 50, offset: 3),
            EntityFetchRequest("Track", matching: .all([some, .related("playlists", .none, where: .always)])),
        ]
    }

    @Test(arguments: Combination.all)
    func S136_aStreamGivesWhatAFetchGivesABatchAtATime(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let context = try await Self.fill(container)
        for (number, request) in Self.requests().enumerated() {
            for batchSize in [1, 50, 100_000] where batchSize > 1 || request.limit != nil {
                var request = request
                request.fetchBatchSize = batchSize
                request.includesPendingChanges = number % 3 != 2
                let asked = request
                let expected = try await context.perform { try $0.fetchIDs(asked) }
                let inBatches = try await context.perform { context throws in
                    var ids: [ObjectID] = []
                    try context.forEachBatch(of: asked) { batch in
                        #expect(!batch.isEmpty && batch.count <= batchSize)
                        ids += batch.map(\.objectID)
                    }
                    return ids
                }
                // The context's deleted objects are left out of the state below its changes.
                let shown = try await context.perform { context throws in
                    expected.filter { (try? context.existingObject(with: $0)) != nil }
                }
                #expect(inBatches == shown, "\(asked)")
                var streamed: [ObjectID] = []
                for try await id in context.stream(asked, { $0.objectID }) { streamed.append(id) }
                #expect(streamed == shown, "\(asked)")
            }
        }
    }

    @Test(arguments: StoreKind.allCases) @MainActor
    func S136_aStreamHoldsOneBatchAndTheStateOfItsBeginning(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let main = container.mainContext
        for number in 0..<500 { main.makeTrack("\(number)", plays: number) }
        try await main.save()
        var request = EntityFetchRequest("Track")
        request.fetchBatchSize = 64
        var seen = 0
        var most = 0
        for try await track in main.stream(request) {
            seen += 1
            // Each object is changed after it is read, and sometimes saved. Other objects are inserted and deleted meanwhile.
            track["plays"] = .int(-1)
            if seen == 100 {
                main.makeTrack("late")
                let last = try main.fetch(EntityFetchRequest("Track", matching: .equal("title", .string("499"))))
                main.delete(last[0])
            }
            if seen % 64 == 0 { try await main.save() }
            most = max(most, main.registeredObjects.count)
        }
        #expect(seen == 499, "without the late one, and without the one that was deleted before it came")
        #expect(most <= 3 * 64, "objects of earlier batches are gone")
        #expect(try main.count(EntityFetchRequest("Track", matching: .equal("plays", .int(-1)))) == 499)
    }

    @Test @MainActor func S136_aStreamThatCannotBeAnsweredThrows() async throws {
        let main = try await TestBed(.memory).container().mainContext
        await #expect(throws: FetchError.unknownEntity("Nobody")) {
            for try await _ in main.stream(EntityFetchRequest("Nobody")) {}
        }
    }

    @Test(arguments: Combination.all)
    func S025_batchesAreMadeWhenTheyAreAskedFor(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let context = try await Self.fill(container)
        try await context.perform { context throws in
            var request = EntityFetchRequest("Track", sortBy: [AttributeSort("plays")])
            request.fetchBatchSize = 20
            context.retainsRegisteredObjects = true
            let before = context.registeredObjects.count
            let result = try context.fetchInBatches(request)
            #expect(result.count == 330)
            #expect(context.registeredObjects.count == before, "no object is made before it is asked for")
            #expect(result[0]["plays"] == .int(-1))
            _ = result[150]["title"]
            #expect(context.registeredObjects.count <= before + 2 * 20, "two batches")
            context.retainsRegisteredObjects = false
            #expect(result[329]["title"] == .string("own 39"), "unsaved objects are in it")
            #expect(result.map(\.objectID) == (try context.fetchIDs(request)))
            request.relationshipKeyPathsForPrefetching = ["album.nothing"]
            #expect(throws: FetchError.unknownProperty(entity: "Album", property: "nothing")) {
                try context.fetchInBatches(request)
            }
            #expect(throws: FetchError.unknownProperty(entity: "Album", property: "nothing")) { try context.fetch(request) }
        }
    }

    /// Catches: a batch that was read ahead and is shown as it was.
    @Test(arguments: StoreKind.allCases, [1, 256]) @MainActor
    func `S136: a stream leaves out objects that are deleted while their batch is read`(_ kind: StoreKind, _ size: Int)
        async throws
    {
        let bed = try TestBed(kind)
        let main = try await bed.container().mainContext
        for title in ["a", "b", "c"] { main.makeTrack(title) }
        try await main.save()
        var request = EntityFetchRequest("Track")
        request.fetchBatchSize = size
        var titles: [Value] = []
        for try await track in main.stream(request) {
            titles.append(track["title"])
            guard titles.count == 1 else { continue }
            for last in try main.fetch(EntityFetchRequest("Track", matching: .equal("title", "c"))) { main.delete(last) }
        }
        #expect(titles == ["a", "b"])
    }

    /// Catches: objects that the context has forgotten, whose use stops the program.
    @Test(arguments: StoreKind.allCases, [false, true]) @MainActor
    func `S047, S136: a stream goes on after a reset or rollback`(_ kind: StoreKind, _ rollsBack: Bool) async throws {
        let bed = try TestBed(kind)
        let main = try await bed.container().mainContext
        for title in ["a", "b"] { main.makeTrack(title) }
        try await main.save()
        if rollsBack { main.makeTrack("own") }
        var titles: [Value] = []
        for try await track in main.stream(EntityFetchRequest("Track")) {
            titles.append(track["title"])
            guard titles.count == 1 else { continue }
            if rollsBack { main.rollback() } else { main.reset() }
        }
        #expect(titles == ["a", "b"])
    }

    @Test(arguments: StoreKind.allCases) @MainActor
    func `S025: a result in batches reads from the context after a reset and a rollback`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let main = try await bed.container().mainContext
        main.makeTrack("a")
        try await main.save()
        main.makeTrack("b")
        let all = try main.fetchInBatches(EntityFetchRequest("Track", sortBy: [AttributeSort("title")]))
        #expect(all.map { $0["title"] } == ["a", "b"])
        main.rollback()
        #expect(all[1].isDeleted)
        main.reset()
        #expect(all[0]["title"] == "a")
        #expect(try main.fetch(EntityFetchRequest("Track")).first === all[0], "S001")
    }
}
