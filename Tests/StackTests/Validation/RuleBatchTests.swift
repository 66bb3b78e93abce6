import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Rules of properties in batches (S061, S137): a batch that breaks a rule writes nothing.
@Suite struct RuleBatchTests {
    private static func fill(_ container: PersistentContainer, _ albums: Int) async throws -> [ObjectID] {
        let worker = container.newBatchOperationContext()
        let ids = await worker.perform { context in (0..<albums).map { context.makeAlbum("a\($0)", tracks: 1).objectID } }
        try await worker.save()
        return ids
    }

    private static func errors(_ error: (any Error)?) -> ValidationErrors? {
        guard case .validation(let errors)? = error as? SaveError else { return nil }
        return errors
    }

    @Test(arguments: StoreKind.allCases)
    func `S061, S137: a batch update is refused whole, with the first errors and the number of all`(_ kind: StoreKind)
        async throws
    {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: Shelf.model)
        let coordinator = container.coordinator
        let ids = try await Self.fill(container, 250)
        let generation = try coordinator.snapshot().generation
        let error = await failure {
            try await coordinator.batchUpdate(EntityFetchRequest("Album"), set: ["title": "much too long", "rating": 9.0])
        }
        let errors = try #require(Self.errors(error), "\(String(describing: error))")
        #expect(errors.totalCount == 500)
        #expect(errors.count == 100)
        #expect(Set(errors.ruleViolations.map(\.property)) == ["title", "rating"])
        #expect(errors.allSatisfy { ids.contains($0.0) })
        let text = try #require(error.map { "\($0)" })
        #expect(text.hasPrefix("500 values are not valid, of which 100 are listed: Album(id:"))
        #expect(text.hasSuffix("and 480 more"))
        #expect(try coordinator.snapshot().generation == generation)
        let required = await failure { try await coordinator.batchUpdate(EntityFetchRequest("Album"), set: ["code": .null]) }
        #expect(Self.errors(required)?.totalCount == 250)
        // A batch is checked for what it writes only.
        try await coordinator.batchUpdate(EntityFetchRequest("Album"), set: ["rating": 5.0])
        let report = try await coordinator.validationReport()
        #expect(report.isValid && report.checkedCount == 250)
        try await container.close()
    }

    @Test(arguments: StoreKind.allCases)
    func `S061, S137: batch updates and deletions that change the number of members are validated`(_ kind: StoreKind)
        async throws
    {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: Shelf.model)
        let coordinator = container.coordinator
        let ids = try await Self.fill(container, 5)
        let deleted = await failure { try await coordinator.batchDelete(EntityFetchRequest("Track")) }
        #expect(Broken.all(in: deleted) == ids.map { Broken($0, "tracks", 0) }.sorted(), "\(String(describing: deleted))")
        let moved = await failure {
            try await coordinator.batchUpdate(EntityFetchRequest("Track"), set: ["album": .reference(ids[0].key)])
        }
        #expect(
            Broken.all(in: moved)
                == ([Broken(ids[0], "tracks", 5)] + ids.dropFirst().map { Broken($0, "tracks", 0) }).sorted())
        let cleared = await failure { try await coordinator.batchUpdate(EntityFetchRequest("Track"), set: ["album": .null]) }
        #expect(Broken.all(in: cleared)?.count == 5)
        let worker = container.newBatchOperationContext()
        let review = await worker.perform { context in
            let review = context.insert("Review")
            review.setRelatedObject("album", to: context.object(with: ids[0]))
            return review.objectID
        }
        try await worker.save()
        let required = await failure { try await coordinator.batchDelete(EntityFetchRequest("Album")) }
        #expect(Broken.all(in: required) == [Broken(review, "album", .null)], "\(String(describing: required))")
        try await coordinator.batchDelete(EntityFetchRequest("Review"))
        // The owners are exempt, because they are deleted first.
        try await coordinator.batchDelete(EntityFetchRequest("Album"))
        try await coordinator.batchDelete(EntityFetchRequest("Track"))
        #expect(try await coordinator.validationReport().checkedCount == 0)
        try await container.close()
    }

    @Test(arguments: StoreKind.allCases)
    func `S061, S137: an import stops at the save with an invalid row, by inserts and by updates`(_ kind: StoreKind)
        async throws
    {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: Shelf.model)
        let coordinator = container.coordinator
        let albums = try await Self.fill(container, 1)
        var options = BatchOptions()
        options.rowsPerSave = 10
        let rows: [[Value]] = (0..<30).map { [.string("r\($0)"), .null] }
        // Reviews need an album.
        let none = await failure {
            try await coordinator.insert(into: "Review", ["text", "album"], rows: rows, options: options)
        }
        #expect(Self.errors(none)?.totalCount == 10, "\(String(describing: none))")
        let mixed: [[Value]] = (0..<30).map { [.string("r\($0)"), $0 == 25 ? .null : .reference(albums[0].key)] }
        let stopped = await failure {
            try await coordinator.insert(into: "Review", ["text", "album"], rows: mixed, options: options)
        }
        guard case .importStopped(let saved, let cause)? = stopped as? BatchError else {
            Issue.record("\(String(describing: stopped))")
            return
        }
        #expect(saved == 20)
        #expect(Self.errors(cause)?.ruleViolations.map(\.property) == ["album"])
        // A row without the property gets its default value, null, which the rule refuses too.
        let missing = await failure { try await coordinator.insert(into: "Review", ["text"], rows: [[.string("r")]]) }
        #expect(Self.errors(missing)?.totalCount == 1)
        // Imported albums have no tracks, and their title is checked.
        let album = await failure {
            try await coordinator.insert(
                into: "Album", ["title", "code", "rating"], rows: [["much too long", "AB2", 6.0]])
        }
        #expect(Self.errors(album)?.ruleViolations.map(\.property) == ["title", "rating", "tracks"])
        let update = await failure {
            try await coordinator.insert(
                into: "Album", ["title", "code"], rows: [["x", "AB1"], ["much too long", "AB1"]], rule: .update(on: ["code"]))
        }
        #expect(Broken.all(in: update) == [Broken(albums[0], "title", "much too long")], "\(String(describing: update))")
        try await coordinator.insert(into: "Album", ["title", "code"], rows: [["x", "AB1"]], rule: .update(on: ["code"]))
        #expect(try await coordinator.validationReport().isValid)
        try await container.close()
    }
}
