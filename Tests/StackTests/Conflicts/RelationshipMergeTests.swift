import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Relationships in a context before its save: both ends agree, regardless of which context changed them.
@Suite struct RelationshipMergeTests {
    private static func container(_ bed: TestBed) async throws -> (PersistentContainer, BackgroundContext, [ObjectID]) {
        let container = try await bed.container()
        let worker = container.coordinator.newBackgroundContext()
        let ids = await worker.perform { context in
            let artists = ["a", "b", "c"].map { context.makeArtist($0) }
            let profiles = (0..<2).map { _ in context.insert("Profile") }
            artists[2].setRelatedObject("profile", to: profiles[0])
            return (artists + profiles).map(\.objectID)
        }
        try await worker.save()
        return (container, worker, ids)
    }

    @Test(arguments: StoreKind.allCases)
    func `S044: a reference that is written by name updates the other end at once`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let (container, worker, ids) = try await Self.container(bed)
        try await worker.perform { context throws in
            let objects = try ids.map { try context.existingObject(with: $0) }
            let (a, b, c, profile, other) = (objects[0], objects[1], objects[2], objects[3], objects[4])
            a["profile"] = .reference(profile.objectID.key)
            #expect(profile.relatedObject("artist") === a && c.relatedObject("profile") == nil)
            profile["artist"] = .reference(b.objectID.key)
            #expect(a.relatedObject("profile") == nil && b.relatedObject("profile") === profile)
            let attribute = try #require(context.model.entity(named: "Artist")?.attribute(named: "name"))
            b[attribute: attribute] = .string("renamed")
            b["profile"] = .reference(other.objectID.key)
            #expect(profile["artist"] == .null && other.relatedObject("artist") === b)
            b["profile"] = .null
            #expect(other.relatedObject("artist") == nil)
            a["mentor"] = .reference(b.objectID.key)
            #expect(b.relatedObjects("pupils") == [a])
            a["mentor"] = .reference(c.objectID.key)
            #expect(b.relatedObjects("pupils").isEmpty && c.relatedObjects("pupils") == [a])
            try IntegrityExplorer.check(context, "\(kind)")
        }
        try await worker.save()
        try await IntegrityTests.check(container)
    }

    @Test(arguments: StoreKind.allCases)
    func `S050: a reference by name to an object that does not exist is refused at the save`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let (_, worker, ids) = try await Self.container(bed)
        await worker.perform { $0.object(with: ids[0])["profile"] = .reference(9999) }
        let error = await #expect(throws: SaveError.self) { try await worker.save() }
        guard case .danglingReference(_, "Artist.profile", let target)? = error else {
            Issue.record("another error: \(String(describing: error))")
            return
        }
        #expect(target.key == 9999)
    }

    /// The context's own change to the profile of "c", while another root assigns the profile to "b".
    enum OwnChange: CaseIterable { case givesItToA, takesItAway, givesTheOwnerAnother }

    private static func make(_ change: OwnChange, _ context: ManagedObjectContext, _ ids: [ObjectID]) {
        let (a, c) = (context.object(with: ids[0]), context.object(with: ids[2]))
        switch change {
        case .givesItToA: a.setRelatedObject("profile", to: context.object(with: ids[3]))
        case .takesItAway: c.setRelatedObject("profile", to: nil)
        case .givesTheOwnerAnother: c.setRelatedObject("profile", to: context.object(with: ids[4]))
        }
    }

    @Test(arguments: StoreKind.allCases, OwnChange.allCases)
    func `S052: a refreshed context shows one owner of a one-to-one relationship before it saves`(
        _ kind: StoreKind, _ change: OwnChange
    ) async throws {
        for seals in [false, true] {
            let bed = try TestBed(kind)
            let (container, ours, ids) = try await Self.container(bed)
            let theirs = container.coordinator.newBackgroundContext()
            await theirs.perform { context in
                context.object(with: ids[1]).setRelatedObject("profile", to: context.object(with: ids[3]))
                context.object(with: ids[2]).setRelatedObject("profile", to: context.object(with: ids[4]))
            }
            await ours.perform { context in
                Self.make(change, context, ids)
                if seals { _ = context.newBackgroundChild() }
            }
            try await theirs.save()
            let shown = try await ours.perform { context throws in
                context.refreshAllObjects()
                try IntegrityExplorer.check(context, "\(kind), \(change)")
                return ids.prefix(3).map { context.object(with: $0).relatedObject("profile")?.objectID }
            }
            try await ours.save()
            let saved = try await container.coordinator.newBackgroundContext().perform { context throws in
                try ids.prefix(3).map { try context.existingObject(with: $0).relatedObject("profile")?.objectID }
            }
            #expect(shown == saved, "\(change): the save writes what the context has shown")
            try await IntegrityTests.check(container, "\(change)")
        }
    }

    /// Catches: a main context that shows what its root holds over a newer state as it was before, with two owners of one partner.
    @MainActor @Test(arguments: StoreKind.allCases, [ContextStack.masterMainWorker, .hybrid])
    func `S024, S052: a refreshed main shows one owner of an object that main has given away in its root and others in the store`(
        _ kind: StoreKind, _ stack: ContextStack
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(stack)
        let main = container.mainContext
        main.automaticallyMergesChanges = false
        let (a, b, profile) = (main.makeArtist("a"), main.makeArtist("b"), main.insert("Profile"))
        try await main.save(through: .store)
        let ids = [b.objectID, profile.objectID]
        a.setRelatedObject("profile", to: profile)
        try await main.save()
        try await container.newBatchOperationContext().perform(andSave: .durable) { context in
            context.object(with: ids[0]).setRelatedObject("profile", to: context.object(with: ids[1]))
        }
        main.refreshAllObjects()
        #expect(a.relatedObject("profile") === profile && b.relatedObject("profile") == nil)
        #expect(profile.relatedObject("artist") === a)
        try IntegrityExplorer.check(main, "\(kind), \(stack)")
        try await main.save(through: .store)
        #expect(a.relatedObject("profile") === profile && b.relatedObject("profile") == nil)
        try await IntegrityTests.check(container, "\(kind), \(stack)")
    }

    @Test(arguments: Combination.all)
    func `S052: a parent shows one owner after a child has given an object of the parent to another`(
        _ combination: Combination
    ) async throws {
        for refreshes in [false, true] {
            let bed = try TestBed(combination.store)
            let container = try await bed.container(combination.stack)
            let parent = await container.newBackgroundContext()
            let ids = await parent.perform { context in
                let artists = ["a", "b"].map { context.makeArtist($0) }
                return (artists + [context.insert("Profile")]).map(\.objectID)
            }
            try await parent.save(through: .store)
            let child = await parent.perform { $0.newBackgroundChild() }
            await child.perform { $0.object(with: ids[0]).setRelatedObject("profile", to: $0.object(with: ids[2])) }
            await parent.perform { $0.object(with: ids[1]).setRelatedObject("profile", to: $0.object(with: ids[2])) }
            if refreshes {
                try await child.refreshFromParent()
                try await child.perform { try IntegrityExplorer.check($0, "\(combination), the child") }
            }
            try await child.save()
            try await parent.perform { context throws in
                try IntegrityExplorer.check(context, "\(combination)")
                #expect(context.object(with: ids[2]).relatedObject("artist")?.objectID == ids[0], "the child's changes win")
            }
            try await parent.save(through: .store)
            try await IntegrityTests.check(container, "\(combination)")
        }
    }

    @Test(arguments: Combination.all)
    func `S054: an object that is deleted before it was ever saved shows its last values`(
        _ combination: Combination
    ) async throws {
        for seals in [false, true] {
            let bed = try TestBed(combination.store)
            let container = try await bed.container(combination.stack)
            let worker = await container.newBackgroundContext()
            try await worker.perform { context throws in
                let track = context.makeTrack("t", plays: 7)
                let album = context.insert("Album")
                track.setRelatedObject("album", to: album)
                if seals { _ = context.newBackgroundChild() }
                context.delete(track)
                #expect(track.isDeleted && context.deletedObjects.isEmpty)
                #expect(track["title"] == .string("t") && track["plays"] == .int(7) && track["rating"] == .double(2.5))
                #expect(track.relatedObject("album") === album)
                track["title"] = .string("ignored")
                #expect(track["title"] == .string("t") && track.changedValues.isEmpty)
                context.processPendingChanges()
                #expect(track["title"] == .string("t"))
                #expect(try context.objects("Track").isEmpty && album.relatedObjects("tracks").isEmpty)
                context.rollback()
                #expect(try context.objects("Track").isEmpty && !context.hasChanges)
            }
            try await worker.save(through: .store)
        }
    }

    @Test(arguments: Combination.all)
    func `S056: a child's notice names no object whose deletion the store has left out`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let parent = await container.newBackgroundContext()
        let killer = container.coordinator.newBackgroundContext()
        let (gone, kept) = await parent.perform { ($0.makeTrack("gone").objectID, $0.makeTrack("kept").objectID) }
        try await parent.save(through: .store)
        let child = await parent.perform { $0.newBackgroundChild() }
        let counter = Counter()
        try await child.perform { context throws in
            _ = context.addObserver { counter.note($0) }
            context.delete(try context.existingObject(with: gone))
            context.delete(try context.existingObject(with: kept))
        }
        try await killer.perform { context throws in
            context.refreshAllObjects()
            context.delete(try context.existingObject(with: gone))
        }
        try await killer.save()
        try await child.save(through: .store)
        let saved = counter.all.filter { $0.kind == .didSave }
        let identity = container.coordinator.store.identity
        #expect(saved.map { $0.changes.deletedIDs(in: identity) } == [[kept]])
    }
}
