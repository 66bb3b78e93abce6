import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Rules of properties at saves of contexts (S061), on every store and stack.
@Suite struct RuleTests {
    @Test(arguments: Combination.all)
    func `S061: one error lists each broken rule, and the save works once they are repaired`(_ combination: Combination)
        async throws
    {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack, model: Shelf.model)
        let worker = await container.newBackgroundContext()
        let (good, bad, review) = await worker.perform { context in
            let good = context.makeAlbum("good")
            let bad = context.insert("Album")
            bad["title"] = ""
            bad["rating"] = 7.5
            return (good.objectID, bad.objectID, context.insert("Review").objectID)
        }
        let generation = try container.coordinator.snapshot().generation
        let expected = [
            Broken(bad, "title", ""), Broken(bad, "rating", 7.5), Broken(bad, "code", .null), Broken(bad, "tracks", 0),
            Broken(review, "album", .null),
        ].sorted()
        for _ in 0..<2 {
            let error = await failure { try await worker.save(through: .store) }
            #expect(Broken.all(in: error) == expected, "\(String(describing: error))")
            let preview = await worker.previewSave()
            #expect(Broken.all(in: preview.failure) == expected, "S065: \(preview)")
            #expect(try container.coordinator.snapshot().generation == generation, "S062")
            await worker.perform { context in
                #expect(Set(context.insertedObjects.map(\.objectID)).isSuperset(of: [good, bad, review]), "S062")
            }
        }
        await worker.perform { context in
            let album = context.object(with: bad)
            album["title"] = "12345678"
            album["rating"] = 5.0
            album["code"] = "XY99"
            context.object(with: review).setRelatedObject("album", to: album)
            let track = context.insert("Track")
            track.setRelatedObject("album", to: album)
        }
        try await worker.save(through: .store)
        let reader = container.coordinator.newBackgroundContext()
        #expect(try await reader.perform { try $0.validationReport() }.isValid)
        #expect(await reader.perform { $0.object(with: bad)["code"] } == "XY99")
        try await container.close()
    }

    @Test func `S061: an error has one line for a person per broken rule`() async throws {
        let bed = try TestBed(.memory)
        let container = try await bed.container(model: Shelf.model)
        let worker = await container.newBackgroundContext()
        let key = await worker.perform { context in
            let bad = context.insert("Album")
            bad["title"] = "too long a title"
            bad["rating"] = .double(.nan)
            bad["code"] = "x"
            for _ in 0..<4 { context.insert("Track").setRelatedObject("album", to: bad) }
            return bad.objectID.key
        }
        let error = try #require(await failure { try await worker.save() } as? SaveError)
        guard case .validation(let errors) = error else {
            Issue.record("\(error)")
            return
        }
        #expect(
            errors.ruleViolations.map(\.message) == [
                "title must have 1 to 8 characters, has 16", "rating must be from 0 to 5, is nan",
                "code must match [A-Z]{2}[0-9]+", "tracks must have 1 to 3 objects, has 4",
            ])
        #expect(
            "\(errors[0].1)"
                == "Album(id: \(key)).title \"too long a title\" breaks .length(1...8): title must have 1 to 8 characters, has 16"
        )
        #expect("\(error)".hasPrefix("1 object(s) are not valid: Album(id: \(key)).title"))
        #expect(!"\(error)".contains("\n"))
        #expect(errors.allSatisfy { $0.0.key == key })
        try await container.close()
    }

    @Test(arguments: Combination.all)
    func `S061: the owner of a member that was moved, deleted, linked or unlinked is validated`(_ combination: Combination)
        async throws
    {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack, model: Shelf.model)
        let worker = await container.newBackgroundContext()
        let (one, three, list) = await worker.perform { context in
            let one = context.makeAlbum("one")
            let three = context.makeAlbum("three", tracks: 3)
            let list = context.insert("Playlist")
            list.setRelatedObjects("items", to: one.relatedObjects("tracks"))
            for number in 0..<2 {
                let tag = context.insert("Tag")
                tag["name"] = .string("tag \(number)")
                one.add(tag, to: "tags")
            }
            return (one.objectID, three.objectID, list.objectID)
        }
        try await worker.save(through: .store)
        /// Makes changes, expects that a save refuses them, and drops them.
        func refused(_ expected: [Broken], _ change: @escaping @Sendable (ManagedObjectContext) throws -> Void) async throws {
            try await worker.perform { try change($0) }
            let error = await failure { try await worker.save(through: .store) }
            #expect(Broken.all(in: error) == expected.sorted(), "\(String(describing: error))")
            await worker.perform { $0.rollback() }
        }
        try await refused([Broken(one, "tracks", 0), Broken(three, "tracks", 4)]) { context in
            try context.object("Track", "title", "one 0").setRelatedObject("album", to: context.object(with: three))
        }
        try await refused([Broken(one, "tracks", 0), Broken(list, "items", 0)]) { context in
            context.delete(try context.object("Track", "title", "one 0"))
        }
        try await refused([Broken(one, "tracks", 0)]) {
            try $0.object("Track", "title", "one 0").setRelatedObject("album", to: nil)
        }
        try await refused([Broken(one, "tags", 3)]) { context in
            let tag = context.insert("Tag")
            tag.add(context.object(with: one), to: "albums")
        }
        try await refused([Broken(list, "items", 0)]) { $0.object(with: list).setRelatedObjects("items", to: []) }
        // A deleted owner is exempt, and a member that is replaced keeps the number.
        try await worker.perform { context in
            for track in context.object(with: three).relatedObjects("tracks") { context.delete(track) }
            context.delete(context.object(with: three))
            let track = context.insert("Track")
            track.setRelatedObject("album", to: context.object(with: one))
            context.object(with: list).setRelatedObjects("items", to: [track])
            context.delete(try context.object("Track", "title", "one 0"))
        }
        try await worker.save(through: .store)
        #expect(try await container.coordinator.validationReport().isValid)
        try await container.close()
    }

    @Test(arguments: Combination.all)
    func `S061: a deletion that would clear a required reference is refused`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack, model: Shelf.model)
        let worker = await container.newBackgroundContext()
        let (album, review) = await worker.perform { context in
            let album = context.makeAlbum("a", tracks: 1)
            let review = context.insert("Review")
            review.setRelatedObject("album", to: album)
            return (album.objectID, review.objectID)
        }
        try await worker.save(through: .store)
        await worker.perform { context in context.delete(context.object(with: album)) }
        let error = await failure { try await worker.save(through: .store) }
        #expect(Broken.all(in: error) == [Broken(review, "album", .null)], "\(String(describing: error))")
        await worker.perform { context in context.delete(context.object(with: review)) }
        try await worker.save(through: .store)
        #expect(try await container.coordinator.validationReport().isValid)
        try await container.close()
    }

    @Test(arguments: Combination.parented)
    func `S061: a child's save is refused, and two children together are refused by the save above them`(
        _ combination: Combination
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack, model: Shelf.model)
        let (a, b) = (await container.newBackgroundContext(), await container.newBackgroundContext())
        let album = await a.perform { $0.makeAlbum("a", tracks: 2).objectID }
        try await a.save(through: .store)
        try await b.refreshFromParent()
        // One level up, without the store.
        try await a.perform { try $0.object("Track", "title", "a 0")["title"] = "renamed" }
        await a.perform { $0.object(with: album)["title"] = "" }
        let refused = await failure { try await a.save() }
        #expect(Broken.all(in: refused) == [Broken(album, "title", "")])
        await MainActor.run { #expect(!container.mainContext.hasChanges, "nothing reached the parent") }
        await a.perform { $0.rollback() }
        // Each child leaves one track.
        try await a.perform { $0.delete(try $0.object("Track", "title", "a 0")) }
        try await b.perform { $0.delete(try $0.object("Track", "title", "a 1")) }
        try await a.save()
        try await b.save()
        let above = await failure { try await container.saveMain() }
        #expect(Broken.all(in: above) == [Broken(album, "tracks", 0)], "\(String(describing: above))")
        await MainActor.run {
            #expect(container.mainContext.hasChanges, "S062")
            let track = container.mainContext.insert("Track")
            track.setRelatedObject("album", to: container.mainContext.object(with: album))
        }
        try await container.saveMain()
        #expect(try await container.coordinator.validationReport().isValid)
        try await container.close()
    }

    @Test(arguments: Combination.parented)
    func `S061: children that save through to the store are validated against the newest state`(_ combination: Combination)
        async throws
    {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack, model: Shelf.model)
        let (a, b) = (await container.newBackgroundContext(), await container.newBackgroundContext())
        let album = await a.perform { $0.makeAlbum("a", tracks: 2).objectID }
        try await a.save(through: .store)
        try await b.refreshFromParent()
        try await a.perform { $0.delete(try $0.object("Track", "title", "a 0")) }
        try await b.perform { $0.delete(try $0.object("Track", "title", "a 1")) }
        try await a.save(through: .store)
        let error = await failure { try await b.save(through: .store) }
        #expect(Broken.all(in: error) == [Broken(album, "tracks", 0)], "\(String(describing: error))")
        #expect(try await container.coordinator.validationReport().isValid)
        try await container.close()
    }

    static let policies: [MergePolicy] = [.error, .storeTrump, .objectTrump, .overwrite, .rollback]

    @Test(arguments: Combination.rooted, [0, 1, 2, 3, 4])
    func `S061: no merge policy lets two roots break a rule together`(_ combination: Combination, _ policy: Int)
        async throws
    {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack, model: Shelf.model)
        let (a, b) = (await container.newBackgroundContext(), await container.newBackgroundContext())
        let album = await a.perform { $0.makeAlbum("a", tracks: 2).objectID }
        try await a.save()
        try await b.perform { context in
            context.mergePolicy = Self.policies[policy]
            context.refreshAllObjects()
            context.delete(try context.object("Track", "title", "a 1"))
        }
        try await a.perform { try $0.object("Track", "title", "a 0").setRelatedObject("album", to: nil) }
        try await a.save()
        let error = await failure { try await b.save() }
        #expect(Broken.all(in: error) == [Broken(album, "tracks", 0)], "\(String(describing: error))")
        #expect(try await container.coordinator.validationReport().isValid)
        try await container.close()
    }

    @Test(arguments: Combination.rooted)
    func `S061: values that a custom merge policy writes follow the rules`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack, model: Shelf.model)
        let (a, b) = (await container.newBackgroundContext(), await container.newBackgroundContext())
        let album = await a.perform { $0.makeAlbum("a").objectID }
        try await a.save()
        await b.perform { context in
            context.refreshAllObjects()
            context.mergePolicy = .custom { conflicts in
                conflicts.reduce(into: [:]) { $0[$1.objectID] = .values(["title": "much too long"]) }
            }
            context.object(with: album)["title"] = "b"
        }
        await a.perform { $0.object(with: album)["title"] = "c" }
        try await a.save()
        let error = await failure { try await b.save() }
        #expect(Broken.all(in: error) == [Broken(album, "title", "much too long")], "\(String(describing: error))")
        let reader = container.coordinator.newBackgroundContext()
        #expect(await reader.perform { $0.object(with: album)["title"] } == "c")
        try await container.close()
    }

    @Test(arguments: Combination.all)
    func `S061, S062: after a refused save, an undo makes the context valid again`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack, model: Shelf.model)
        let worker = await container.newBackgroundContext()
        await worker.perform { $0.undoHistory = UndoHistory() }
        let album = await worker.perform { $0.makeAlbum("a", tracks: 1).objectID }
        try await worker.save(through: .store)
        try await worker.perform { context in
            context.delete(try context.object("Track", "title", "a 0"))
            context.object(with: album)["title"] = "b"
        }
        #expect(await failure { try await worker.save(through: .store) } is SaveError)
        try await worker.perform { context in
            try context.undoHistory?.undo()
            #expect(context.object(with: album)["title"] == "a")
            #expect(context.object(with: album).validationErrors().isEmpty)
            #expect(!context.hasChanges)
            try context.undoHistory?.redo()
            #expect(Broken.all(of: context.object(with: album).ruleViolations) == [Broken(album, "tracks", 0)])
        }
        #expect(await failure { try await worker.save(through: .store) } is SaveError)
        try await container.close()
    }

    @Test(arguments: StoreKind.allCases)
    func `S061: the errors of an object are known at any time`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: Shelf.model)
        let worker = await container.newBackgroundContext()
        let album = try await worker.perform { context in
            let album = context.makeAlbum("a", tracks: 1)
            #expect(album.validationErrors().isEmpty)
            album["title"] = ""
            #expect(album.ruleViolations.map(\.message) == ["title must have 1 to 8 characters, has 0"])
            #expect(throws: RuleViolation.self) { try album.validate("title") }
            try album.validate("rating")
            try album.validate("tracks")
            album["title"] = "b"
            return album.objectID
        }
        try await worker.save()
        await worker.perform { context in
            let saved = context.object(with: album)
            #expect(saved.validationErrors().isEmpty)
            for track in saved.relatedObjects("tracks") { context.delete(track) }
            #expect(saved.ruleViolations.map(\.property) == ["tracks"])
            #expect(throws: RuleViolation.self) { try saved.validate("tracks") }
            context.delete(saved)
            #expect(saved.validationErrors().isEmpty, "a deleted object is exempt")
        }
        try await worker.save()
        await worker.perform { #expect($0.object(with: album).validationErrors().isEmpty, "S022") }
        try await container.close()
    }

    /// The child validates no update of an object that it sees as deleted.
    @Test(arguments: StoreKind.allCases, [true, false])
    func `S061, S106: an update of an object that its parent deleted and rolled back follows the rules`(
        _ kind: StoreKind, _ isThrough: Bool
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: Shelf.model)
        let root = container.coordinator.newBackgroundContext()
        let album = await root.perform { $0.makeAlbum("a").objectID }
        try await root.save()
        let child = await root.perform { $0.newBackgroundChild() }
        await child.perform { $0.object(with: album)["title"] = "" }
        await root.perform { $0.delete($0.object(with: album)) }
        try await child.refreshFromParent()
        await root.perform { $0.rollback() }
        let error = await failure {
            if isThrough {
                try await child.save(through: .store)
            } else {
                try await child.save()
                try await root.save()
            }
        }
        #expect(Broken.all(in: error) == [Broken(album, "title", "")], "\(String(describing: error))")
        #expect(try await container.coordinator.validationReport().isValid)
        try await container.close()
    }

    @Test @MainActor func `S061, S146: a view that shows the errors of an object follows its properties`() async throws {
        let bed = try TestBed(.memory)
        let container = try await bed.container(model: Shelf.model)
        let album = container.mainContext.makeAlbum("a", tracks: 1)
        let watch = Watch { _ = album.validationErrors() }
        album["title"] = ""
        #expect(watch.count == 1)
        container.mainContext.insert("Track").setRelatedObject("album", to: album)
        #expect(watch.count == 2)
        let unrelated = container.mainContext.makeAlbum("b")
        unrelated["title"] = "c"
        #expect(watch.count == 2)
        try await container.close()
    }

    @Test(arguments: ContextStack.allCases)
    func `S061: contexts that read through their ancestors follow the rules`(_ stack: ContextStack) async throws {
        let bed = try TestBed(.sqlite)
        let container = try await bed.container(stack, model: Shelf.model, routing: .ancestors)
        let worker = await container.newBackgroundContext()
        let album = await worker.perform { $0.makeAlbum("a", tracks: 2).objectID }
        try await worker.save(through: .store)
        try await worker.perform { context in
            for number in 0..<2 { context.delete(try context.object("Track", "title", "a \(number)")) }
            context.object(with: album)["title"] = ""
        }
        let expected = [Broken(album, "title", ""), Broken(album, "tracks", 0)].sorted()
        #expect(await worker.perform { Broken.all(of: $0.object(with: album).ruleViolations) } == expected)
        for _ in 0..<2 {
            let error = await failure { try await worker.save(through: .store) }
            #expect(Broken.all(in: error) == expected, "\(String(describing: error))")
        }
        await worker.perform { context in
            context.insert("Track").setRelatedObject("album", to: context.object(with: album))
            context.object(with: album)["title"] = "b"
        }
        try await worker.save(through: .store)
        #expect(try await container.coordinator.validationReport().isValid)
        try await container.close()
    }

    @Test(arguments: StoreKind.allCases)
    func `S061: an update is validated with all properties of its object, and other objects are not`(_ kind: StoreKind)
        async throws
    {
        let bed = try TestBed(kind)
        let lax = try await bed.container(model: Shelf.lax)
        let filler = await lax.newBackgroundContext()
        let (invalid, valid) = await filler.perform { context in
            (context.makeAlbum("too long a title").objectID, context.makeAlbum("short").objectID)
        }
        try await filler.save()
        // A memory store lives as long as a container has it open.
        let container = try await bed.container(model: Shelf.model)
        let worker = await container.newBackgroundContext()
        await worker.perform { $0.object(with: valid)["rating"] = 1.0 }
        try await worker.save()
        await worker.perform { $0.object(with: invalid)["rating"] = 1.0 }
        let error = await failure { try await worker.save() }
        #expect(Broken.all(in: error) == [Broken(invalid, "title", "too long a title")], "\(String(describing: error))")
        try await lax.close()
        try await container.close()
    }

    @Test(arguments: StoreKind.allCases)
    func `S022, S061: an updated object whose record is gone is not validated`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: Shelf.model)
        let (a, b) = (await container.newBackgroundContext(), await container.newBackgroundContext())
        let album = await a.perform { $0.makeAlbum("a", tracks: 1).objectID }
        try await a.save()
        await b.perform { context in
            context.refreshAllObjects()
            context.mergePolicy = .rollback
            context.object(with: album)["title"] = "b"
        }
        await a.perform { $0.delete($0.object(with: album)) }
        try await a.save()
        await b.perform { context in
            context.refreshAllObjects()
            context.insert("Tag")["name"] = "t"
        }
        try await b.save()
        try await container.close()
    }
}

extension ManagedObject {
    var ruleViolations: [RuleViolation] { validationErrors().compactMap { $0 as? RuleViolation } }
}
