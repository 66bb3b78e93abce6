import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Derived attributes: the writer keeps their values (S200).
@Suite struct DerivedAttributeTests {
    private static func album(_ id: ObjectID, _ container: PersistentContainer) async throws -> [String: Value] {
        try await container.coordinator.refresh()
        return try await container.coordinator.newBackgroundContext().perform { context in
            let album = try context.existingObject(with: id)
            return Dictionary(uniqueKeysWithValues: RecordLibrary.derived.map { ($0, album[$0]) })
        }
    }

    /// Catches: a value that is not computed for new objects, after changes at the far end of a path, or after deletions.
    @Test(arguments: Combination.all)
    func `S200: each kind of derived attribute follows the values that it is derived from`(_ combination: Combination)
        async throws
    {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack, model: RecordLibrary.model)
        let worker = await container.newBackgroundContext()
        let id = await worker.perform { context in
            let artist = context.makeArtist(named: "Ella")
            artist.setRelatedObject("mentor", to: context.makeArtist(named: "Chick"))
            let album = context.makeRecord("Été")
            album.setRelatedObject("artist", to: artist)
            for number in 1...3 {
                context.makeSong("t\(number)", length: Int64(number), rating: Double(number), on: album)
            }
            let tag = context.insert("Tag")
            tag["weight"] = 7
            album.setRelatedObjects("tags", to: [tag])
            #expect(album["trackCount"] == 0 && album["artistName"].isNull, "derived values are those of the last save")
            return album.objectID
        }
        try await worker.save(through: .store)
        let first = try await Self.album(id, container)
        #expect(first["trackCount"] == 3 && first["totalLength"] == 6 && first["longest"] == 3 && first["firstTitle"] == "t1")
        #expect(first["meanRating"] == 2.0 && first["ratingSum"] == 6.0 && first["tagCount"] == 1 && first["heaviest"] == 7)
        #expect(first["artistName"] == "Ella" && first["mentorName"] == "Chick")
        #expect(first["searchTitle"] == "ete" && first["lowerTitle"] == "été")
        // A child that does not merge shows values of the store when it is moved to its parent's state.
        if combination.stack == .hybrid { try await worker.refreshFromParent() }
        try await worker.perform { context in
            let album = try context.existingObject(with: id)
            #expect(album["trackCount"] == 3, "the context that saved shows the value")
            album.relatedObject("artist")?.relatedObject("mentor")?["name"] = "Webb"
            let tracks = album.relatedObjects("tracks")
            tracks[0]["length"] = 10
            context.delete(tracks[2])
            album.relatedObjects("tags")[0]["weight"] = 9
        }
        try await worker.save(through: .store)
        let second = try await Self.album(id, container)
        #expect(second["trackCount"] == 2 && second["totalLength"] == 12 && second["longest"] == 10)
        #expect(second["mentorName"] == "Webb" && second["heaviest"] == 9 && second["meanRating"] == 1.5)
        try await worker.perform { context in
            let album = try context.existingObject(with: id)
            if let artist = album.relatedObject("artist") {
                album.setRelatedObject("artist", to: nil)
                context.delete(artist)
            }
            album.setRelatedObjects("tracks", to: [])
            album.setRelatedObjects("tags", to: [])
        }
        try await worker.save(through: .store)
        let third = try await Self.album(id, container)
        #expect(
            third["trackCount"] == 0 && third["totalLength"] == 0 && third["longest"] == .null && third["meanRating"] == .null)
        #expect(
            third["artistName"] == .null && third["mentorName"] == .null && third["tagCount"] == 0 && third["heaviest"] == .null)
        #expect(try await RecordLibrary.differences(in: container) == [])
        try await container.close()
    }

    /// Irises in meadows, with names that contain dots, also that of a derived attribute whose name is a path.
    private static func irises() throws -> Model {
        func text(_ name: String, _ derivation: Derivation? = nil) -> PropertyDescription {
            .attribute(AttributeDescription(name: name, type: .string, isOptional: derivation != nil, derivation: derivation))
        }
        return try Model([
            EntityDescription(
                name: "Iris",
                properties: [
                    text("Species.Name"), text("search", .folded("Species.Name")),
                    text("place", .value(at: "found.in.Meadow.Name")),
                    text("found.in.Meadow.Name", .value(at: "found.in.Meadow.Name")),
                    .attribute(AttributeDescription(name: "Sepal.Length", type: .double)),
                    .relationship(
                        RelationshipDescription(
                            name: "found.in", destination: "Meadow", inverse: "all.irises", cardinality: .toOne)),
                ]),
            EntityDescription(
                name: "Meadow",
                properties: [
                    text("Meadow.Name"),
                    .attribute(AttributeDescription(name: "n", type: .int64, derivation: .count(of: "all.irises"))),
                    .attribute(
                        AttributeDescription(name: "longest", type: .double, derivation: .maximum(of: "all.irises.Sepal.Length"))),
                    .relationship(
                        RelationshipDescription(
                            name: "all.irises", destination: "Iris", inverse: "found.in", cardinality: .toMany)),
                ]),
        ])
    }

    /// Catches: a path that is cut at each dot. The columns of imported files have names with dots.
    @Test(arguments: StoreKind.allCases)
    func `S200: attributes are derived from properties whose names contain dots`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(.siblings, model: Self.irises())
        let worker = container.coordinator.newBackgroundContext()
        let ids = try await worker.perform(andSave: .durable) { context in
            let (meadow, iris) = (context.insert("Meadow"), context.insert("Iris"))
            meadow["Meadow.Name"] = "Lake"
            iris["Species.Name"] = "SETOSA"
            iris["Sepal.Length"] = 5.5
            iris.setRelatedObject("found.in", to: meadow)
            return [iris.objectID, meadow.objectID]
        }
        try await worker.perform { context in
            let (iris, meadow) = (try context.existingObject(with: ids[0]), try context.existingObject(with: ids[1]))
            #expect(iris["search"] == "setosa" && iris["place"] == "Lake" && iris["found.in.Meadow.Name"] == "Lake")
            #expect(meadow["n"] == 1 && meadow["longest"] == 5.5)
        }
        #expect(try container.coordinator.store.verify() == [])
        try await container.close()
    }

    /// Catches: a count that a context computes from its own state, and a conflict about an object that only got a derived value.
    @Test(arguments: StoreKind.allCases, [MergePolicy.error, .storeTrump, .objectTrump, .overwrite, .rollback])
    func `S200: contexts that each add a track save under every policy, and the count is right`(
        _ kind: StoreKind, _ policy: MergePolicy
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(.siblings, model: RecordLibrary.model)
        let contexts = (0..<3).map { _ in container.coordinator.newBackgroundContext() }
        let id = await contexts[0].perform { $0.makeRecord("A").objectID }
        try await contexts[0].save()
        for (number, context) in contexts.enumerated() {
            try await context.perform { context in
                context.mergePolicy = policy
                context.refreshAllObjects()
                context.makeSong("t\(number)", length: 1, on: try context.existingObject(with: id))
            }
        }
        for context in contexts { try await context.save() }
        #expect(try await Self.album(id, container)["trackCount"] == 3)
        // An edit of the album meets derived changes only.
        try await contexts[0].perform { context in
            let album = try context.existingObject(with: id)
            album["title"] = "B"
            context.detectConflicts(for: album)
        }
        try await contexts[1].perform { context in
            context.refreshAllObjects()
            context.makeSong("u", length: 5, on: try context.existingObject(with: id))
        }
        try await contexts[1].save()
        try await contexts[0].save()
        let last = try await Self.album(id, container)
        #expect(last["trackCount"] == 4 && last["totalLength"] == 8 && last["lowerTitle"] == "b")
        #expect(try await RecordLibrary.differences(in: container) == [])
        try await container.close()
    }

    /// Catches: a conflict that is overlooked because the object also has derived changes, and an error that lists a derived value.
    @Test(arguments: StoreKind.allCases)
    func `S200: a real conflict stays one, and does not list derived values`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(.siblings, model: RecordLibrary.model)
        let (a, b) = (container.coordinator.newBackgroundContext(), container.coordinator.newBackgroundContext())
        let id = await a.perform { $0.makeRecord("A").objectID }
        try await a.save()
        try await b.perform { context in
            context.refreshAllObjects()
            let album = try context.existingObject(with: id)
            album["title"] = "B"
            context.makeSong("t", on: album)
        }
        try await a.perform { try $0.existingObject(with: id)["title"] = "C" }
        try await b.save()
        do {
            try await a.save()
            Issue.record("the title was changed by both")
        } catch SaveError.conflicts(let conflicts) {
            #expect(conflicts.map { $0.properties.map(\.name) } == [["title"]])
        }
        try await container.close()
    }

    /// Catches: batches that write around the computation, and imports that store the values that they bring.
    @Test(arguments: StoreKind.allCases)
    func `S200: batches keep derived values, and cannot set them`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(.siblings, model: RecordLibrary.model)
        let coordinator = container.coordinator
        let albums = try await coordinator.insert(
            into: "Album", ["title", "trackCount"], rows: [["A", 99], ["B", 99]]
        ).insertedIDs
        let rows: [[Value]] = (0..<10).map { ["t\($0)", .int(Int64($0)), 1.5, .reference(albums[$0 % 2].key)] }
        try await coordinator.insert(into: "Track", ["title", "length", "rating", "album"], rows: rows)
        #expect(try await RecordLibrary.differences(in: container) == [])
        try await coordinator.batchUpdate(
            EntityFetchRequest("Track", matching: .compare("length", .less, to: .int(5))), set: ["length": 100])
        try await coordinator.batchUpdate(EntityFetchRequest("Album"), set: ["title": "Étude"])
        #expect(try await RecordLibrary.differences(in: container) == [])
        try await coordinator.batchDelete(EntityFetchRequest("Track", matching: .equal("title", .string("t3"))))
        #expect(try await RecordLibrary.differences(in: container) == [])
        await #expect(throws: BatchError.self) {
            try await coordinator.batchUpdate(EntityFetchRequest("Album"), set: ["trackCount": 1])
        }
        try await coordinator.batchDelete(EntityFetchRequest("Album"))
        #expect(try await RecordLibrary.differences(in: container) == [])
        try await container.close()
    }

    /// Catches: saves whose history and notices leave dependants out, so that lists sorted by a derived attribute do not move.
    @Test(arguments: Combination.all) @MainActor
    func `S200: the history has the dependants of a save, and live results move`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack, model: RecordLibrary.model)
        let main = container.mainContext
        main.automaticallyMergesChanges = true
        let ids = ["A", "B"].map { main.makeRecord($0).objectID }
        try await container.saveMain()
        let request = EntityFetchRequest("Album", sortBy: [AttributeSort("trackCount", .descending), AttributeSort("title")])
        let results = try FetchedResultsController(request, context: main)
        try results.performFetch()
        #expect(results.snapshot.ids == ids)
        let token = container.coordinator.currentHistoryToken
        let worker = container.newBackgroundContext()
        try await worker.perform { context in
            context.refreshAllObjects()
            context.makeSong("t", on: try context.existingObject(with: ids[1]))
        }
        try await worker.save(through: .store)
        try await until("the list moves") { results.snapshot.ids == ids.reversed() }
        // The context's own save moves the list too.
        let first = try main.existingObject(with: ids[0])
        for number in 0..<2 { main.makeSong("own \(number)", on: first) }
        try await container.saveMain()
        try await until("the list moves back") { results.snapshot.ids == ids }
        #expect(first["trackCount"] == 2)
        let history = try await container.coordinator.history(.init(after: token))
        let updated = history.flatMap { $0.changeSet.updatedIDs(in: container.coordinator.storeIdentity) }
        #expect(Set(updated).isSuperset(of: ids))
        try await container.close()
    }

    /// Catches: a context that moves to the state after its own save, and does not tell its list what the writer has added. A context that
    /// merges gets the same from the announcement of its parent, unless the answer to the save comes before it.
    @Test(arguments: Combination.all) @MainActor
    func `S200: live results of a context that does not merge move after its own save`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack, model: RecordLibrary.model)
        let main = container.mainContext
        main.automaticallyMergesChanges = false
        let records = ["A", "B"].map { main.makeRecord($0) }
        try await container.saveMain()
        let request = EntityFetchRequest("Album", sortBy: [AttributeSort("trackCount", .descending), AttributeSort("title")])
        let results = try FetchedResultsController(request, context: main)
        try results.performFetch()
        var refreshed: [ObjectID] = []
        let token = main.addObserver { refreshed += $0.refreshed }
        defer { main.removeObserver(token) }
        for (number, record) in records.reversed().enumerated() {
            for _ in 0...number { main.makeSong("own", on: record) }
            try await container.saveMain()
            try await until("the list moves") { results.snapshot.ids.first == record.objectID }
            #expect(record["trackCount"] == .int(Int64(number + 1)))
            #expect(refreshed.contains(record.objectID))
        }
        try await container.close()
    }

    /// Catches: a child whose view moves with its parent's save, but whose list is not told about derived values.
    @Test(arguments: StoreKind.allCases) @MainActor
    func `S200: a live result of a child follows the derived values of its parent's save`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(.siblings, model: RecordLibrary.model)
        let main = container.mainContext
        let ids = ["A", "B"].map { main.makeRecord($0).objectID }
        try await container.saveMain()
        let child = main.newChild()
        child.automaticallyMergesChanges = true
        let request = EntityFetchRequest("Album", sortBy: [AttributeSort("trackCount", .descending), AttributeSort("title")])
        let results = try FetchedResultsController(request, context: child)
        try results.performFetch()
        #expect(results.snapshot.ids == ids)
        main.makeSong("t", on: try main.existingObject(with: ids[1]))
        try await container.saveMain()
        try await until("the child's list moves") { results.snapshot.ids == ids.reversed() }
        try await container.close()
    }

    /// Catches: a deferred save whose values are not computed before they are read, or are lost by the flush.
    @Test(arguments: StoreKind.allCases, [ContextStack.siblings, .split])
    func `S200: deferred saves show derived values at once and after the flush`(_ kind: StoreKind, _ stack: ContextStack)
        async throws
    {
        let bed = try TestBed(kind)
        let container = try await bed.container(stack, model: RecordLibrary.model)
        let context = await container.newBackgroundContext()
        let id = await context.perform { $0.makeRecord("A").objectID }
        try await context.save(.deferred(within: .seconds(600)))
        for number in 1...5 {
            try await context.perform { context in
                context.makeSong("t\(number)", length: 2, on: try context.existingObject(with: id))
            }
            try await context.save(number == 3 ? .durable : .deferred(within: .seconds(600)))
            let count = try await context.perform { try $0.existingObject(with: id)["trackCount"] }
            #expect(count == .int(Int64(number)))
        }
        try await container.flush()
        #expect(try await RecordLibrary.differences(in: container) == [])
        try await container.close()
    }

    /// Catches: undo that writes old derived values, or takes a derived value that changed since for a conflict.
    @Test(arguments: StoreKind.allCases)
    func `S200: undo reverts what derived values come from, and meets no conflict about them`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(.siblings, model: RecordLibrary.model)
        let context = container.coordinator.newBackgroundContext()
        let before = try container.coordinator.snapshot()
        await context.perform { context in
            context.transactionAuthor = "me"
            context.undoHistory = UndoHistory()
            let album = context.makeRecord("A")
            context.makeSong("t", length: 1, on: album)
        }
        try await context.save()
        try await context.perform { context in _ = try #require(context.undoHistory).undo() }
        try await context.save()
        try await context.perform { context in
            #expect(try context.count(EntityFetchRequest("Album")) == 0)
            try #require(context.undoHistory).redo()
        }
        try await context.save()
        #expect(try await RecordLibrary.differences(in: container) == [])
        _ = try await container.undoChanges(by: "me", since: before)
        #expect(try await RecordLibrary.differences(in: container) == [])
        try await container.close()
    }

    @Test func `S200: a model with a derivation that cannot be computed is refused`() throws {
        func model(_ attribute: AttributeDescription) throws -> Model {
            try Model([
                EntityDescription(
                    name: "Album",
                    properties: [
                        .attribute(.init(name: "title", type: .string)), .attribute(attribute),
                        .attribute(.init(name: "other", type: .int64, derivation: .count(of: "tracks"))),
                        .relationship(.init(name: "tracks", destination: "Track", inverse: "album", cardinality: .toMany)),
                    ]),
                EntityDescription(
                    name: "Track",
                    properties: [
                        .attribute(.init(name: "length", type: .int64)),
                        .relationship(.init(name: "album", destination: "Album", inverse: "tracks", cardinality: .toOne)),
                    ]),
            ])
        }
        let wrong: [AttributeDescription] = [
            .init(name: "x", type: .int64, derivation: .count(of: "title")),
            .init(name: "x", type: .string, derivation: .count(of: "tracks")),
            .init(name: "x", type: .int64, index: .unique, derivation: .count(of: "tracks")),
            .init(name: "x", type: .int64, rules: [.required], derivation: .count(of: "tracks")),
            .init(name: "x", type: .int32, derivation: .sum(of: "tracks.length")),
            .init(name: "x", type: .int64, derivation: .sum(of: "tracks")),
            .init(name: "x", type: .int64, derivation: .value(at: "tracks.length")),
            .init(name: "x", type: .int64, derivation: .value(at: "title")),
            .init(name: "x", type: .string, derivation: .folded("other")),
            .init(name: "x", type: .string, derivation: .folded("missing")),
            .init(name: "x", type: .int64, derivation: .minimum(of: "tracks.album")),
        ]
        for attribute in wrong {
            #expect(throws: ModelError.self, "\(attribute.derivation.map(String.init(describing:)) ?? "")") {
                try model(attribute)
            }
        }
        _ = try model(.init(name: "x", type: .int64, derivation: .sum(of: "tracks.length")))
    }

    /// Catches: a save that is refused because a difference does not fit, although the sum does.
    @Test(arguments: StoreKind.allCases)
    func `S200: a sum of integers is refused only if it does not fit itself`(_ kind: StoreKind) async throws {
        let album = EntityDescription(
            name: "Album",
            properties: [
                .relationship(.init(name: "tracks", destination: "Track", inverse: "album", cardinality: .toMany)),
                .attribute(.init(name: "length", type: .int64, derivation: .sum(of: "tracks.length"))),
            ])
        let track = EntityDescription(
            name: "Track",
            properties: [
                .attribute(.init(name: "length", type: .int64)),
                .relationship(.init(name: "album", destination: "Album", inverse: "tracks", cardinality: .toOne)),
            ])
        let bed = try TestBed(kind)
        let container = try await bed.container(model: Model([album, track]))
        let context = container.coordinator.newBackgroundContext()
        let (id, tracks) = await context.perform { context in
            let album = context.insert("Album")
            let tracks = (0..<2).map { _ in context.insert("Track") }
            for track in tracks { track.setRelatedObject("album", to: album) }
            return (album.objectID, tracks.map(\.objectID))
        }
        for lengths: (Int64, Int64) in [(.min, 0), (.max, 0), (-5, .max), (.max, .min), (.min, 7)] {
            await context.perform { context in
                context.object(with: tracks[0])["length"] = .int(lengths.0)
                context.object(with: tracks[1])["length"] = .int(lengths.1)
            }
            try await context.save()
            let sum = try await context.perform { context throws in try context.existingObject(with: id)["length"] }
            #expect(sum == .int(lengths.0 + lengths.1))
        }
        await context.perform { $0.object(with: tracks[1])["length"] = -1 }
        await #expect(throws: StoreError.self) { try await context.save() }
        await context.perform { context in context.delete(context.object(with: tracks[0])) }
        try await context.save()
        #expect(try await context.perform { context throws in try context.existingObject(with: id)["length"] } == -1)
    }

    /// Catches: an imported value of a derived attribute, which shows until the save, and conflicts with saves of others.
    @Test(arguments: StoreKind.allCases) @MainActor
    func `S200: a value that a context imports for a derived attribute is no change`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(.siblings, model: RecordLibrary.model)
        struct Row: Decodable {
            var title = "B"
            var trackCount = 99
        }
        let new = try container.mainContext.insert(contentsOf: [Row()], into: "Album")[0]
        #expect(new["trackCount"] == 0)
        try await container.saveMain()
        #expect(new["trackCount"] == 0)
        try await container.close()
    }

    /// Catches: a derivation that is dropped, because an entity beside it declares the attribute without one.
    @Test func `S200: a subentity's derived attribute is refused beside a sibling's plain one`() {
        let derived = AttributeDescription(name: "upper", type: .string, derivation: .lowercased("name"))
        let plain = AttributeDescription(name: "upper", type: .string)
        for (first, second) in [(derived, plain), (plain, derived)] {
            #expect(throws: ModelError.self) {
                try Model([
                    EntityDescription(name: "Trip", properties: [.attribute(.init(name: "name", type: .string))]),
                    EntityDescription(name: "BusinessTrip", properties: [.attribute(first)], superentity: "Trip"),
                    EntityDescription(name: "PrivateTrip", properties: [.attribute(second)], superentity: "Trip"),
                ])
            }
        }
    }
}
