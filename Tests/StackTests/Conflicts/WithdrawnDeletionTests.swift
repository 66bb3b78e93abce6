import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Unsaved changes of objects that another context has deleted or dropped, in a context and in the levels above and below it.
@Suite struct WithdrawnDeletionTests {
    /// Returns a root context that drops new tracks with the code of a stored one, which it has saved.
    private static func root(of container: PersistentContainer) async throws -> BackgroundContext {
        let root = container.coordinator.newBackgroundContext()
        await root.perform { context in
            context.mergePolicy = .storeTrump
            context.makeTrack("saved")["isrc"] = "x"
        }
        try await root.save()
        return root
    }

    /// Catches: a retained object of which every later change is lost without a word.
    @Test(arguments: StoreKind.allCases, [true, false]) @MainActor
    func `S022, S162: an object whose insertion was undone is back when a child that restores it saves`(
        _ kind: StoreKind, through: Bool
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(.siblings)
        let main = container.mainContext
        main.undoHistory = UndoHistory()
        let track = main.makeTrack("a")
        main.processPendingChanges()
        let child = main.newChild(name: "child")
        child.undoHistory = UndoHistory()
        child.delete(child.object(with: track.objectID))
        child.processPendingChanges()
        try main.undoHistory?.undo()
        try await child.save()
        try child.undoHistory?.undo()
        if through { try await child.save(through: .store) } else { try await child.save() }
        #expect(try main.fetch(EntityFetchRequest("Track")) == [track])
        #expect(!track.isDeleted && track["title"] == "a")
        track["title"] = "b"
        #expect(track["title"] == "b" && main.hasChanges)
        try await main.save()
        #expect(try await container.read { try $0.trackTitles() } == ["b"])
    }

    /// Catches: a child's deletion that clears references of an object that no relationship leads to any more.
    @Test(arguments: StoreKind.allCases) @MainActor
    func `S106, S146: a child's deletion leaves the changes of an object that is deleted elsewhere as they are`(
        _ kind: StoreKind
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(.siblings, model: Gallery.model)
        let main = container.mainContext
        let (artist, album, track) = (main.insert("Artist"), main.insert("Album"), main.insert("Track"))
        (album["title"], track["title"], track["plays"]) = ("x", "a", .int(0))
        album.setRelatedObject("artist", to: artist)
        track.setRelatedObject("album", to: album)
        let other = main.insert("Album")
        other.setRelatedObject("artist", to: artist)
        try await main.save()
        track["title"] = "b"
        other["title"] = "y"
        let ids = [track.objectID, other.objectID]
        try await container.newBackgroundContext().perform(andSave: .durable) { context in
            for id in ids { context.delete(context.object(with: id)) }
        }
        main.refreshAllObjects()
        #expect(!track.isDeleted && !other.isDeleted)
        let watches = [Watch { _ = track["album"] }, Watch { _ = other.isDeleted }]
        let before = track["album"]
        let child = main.newChild(name: "child")
        child.delete(child.object(with: artist.objectID))
        child.delete(child.object(with: album.objectID))
        try await child.save()
        #expect(track["album"] == before && !track.isDeleted && !other.isDeleted)
        #expect(watches.map(\.count) == [0, 0])
        #expect(Set(main.deletedObjects) == [artist, album])
        main.refreshAllObjects()
        #expect(track["title"] == "b" && !track.isDeleted && !other.isDeleted)
    }

    @Test(arguments: StoreKind.allCases)
    func `S056, S120: no notice says that an object is back whose deletion was left out`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let worker = container.coordinator.newBackgroundContext()
        let id = await worker.perform { $0.makeTrack("a").objectID }
        try await worker.save()
        try await worker.perform { $0.delete(try $0.existingObject(with: id)) }
        let child = await worker.perform { $0.newBackgroundChild() }
        try await container.coordinator.batchDelete(EntityFetchRequest("Track"))
        let counter = Counter()
        await worker.perform { context in
            context.refreshAllObjects()
            _ = context.addObserver { counter.note($0) }
        }
        await child.perform { context in
            context.automaticallyMergesChanges = true
            _ = context.addObserver { counter.note($0) }
        }
        try await worker.save()
        await child.perform { _ in }
        let identity = container.coordinator.store.identity
        #expect(counter.all.flatMap { $0.changes.insertedIDs(in: identity) } == [])
        #expect(try await worker.perform { try $0.count(EntityFetchRequest("Track")) } == 0)
    }

    /// Catches: a later change that is kept because the object was once an update of a deleted one.
    @Test(arguments: StoreKind.allCases) @MainActor
    func `S055: a refreshed object that is deleted elsewhere and back again has changes like any other`(_ kind: StoreKind)
        async throws
    {
        let bed = try TestBed(kind)
        let container = try await bed.container(.siblings)
        let main = container.mainContext
        let (first, second, track) = (main.insert("Album"), main.insert("Album"), main.makeTrack("a"))
        (first["title"], second["title"]) = ("first", "second")
        track.setRelatedObject("album", to: first)
        try await main.save()
        let id = track.objectID
        track["title"] = "b"
        let other = container.newBatchOperationContext(name: "other")
        await other.perform { $0.undoHistory = UndoHistory() }
        try await other.perform(andSave: .durable) { $0.delete($0.object(with: id)) }
        main.refreshAllObjects()
        main.refresh(track, mergeChanges: false)
        #expect(track.isDeleted && !main.hasChanges)
        try await other.perform(andSave: .durable) { _ = try $0.undoHistory?.undo() }
        main.refreshAllObjects()
        #expect(!track.isDeleted && track.relatedObject("album") == first && !main.hasChanges)
        track.setRelatedObject("album", to: second)
        main.refresh(second, mergeChanges: false)
        #expect(track.relatedObject("album") == first && second.relatedObjects("tracks").isEmpty && !main.hasChanges)
    }

    @Test(arguments: StoreKind.allCases)
    func `S056: a grandchild's deletion of an object that the store has refused leaves nothing in its parent`(
        _ kind: StoreKind
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let root = try await Self.root(of: container)
        let child = await root.perform { $0.newBackgroundChild() }
        let id = await child.perform { context in
            let track = context.makeTrack("new")
            track["isrc"] = "x"
            return track.objectID
        }
        let grandchild = await child.perform { $0.newBackgroundChild() }
        try await grandchild.perform { context in
            context.automaticallyMergesChanges = true
            context.delete(try context.existingObject(with: id))
        }
        try await child.save(through: .store)
        await grandchild.perform { _ in }
        try await grandchild.save()
        await child.perform { context in
            #expect(!context.hasChanges && context.deletedObjects.isEmpty)
        }
        try await child.save(through: .store)
        #expect(try await container.read { try $0.trackTitles() } == ["saved"])
    }

    /// Catches: an update of an object that is back, which overwrites with values from before its deletion.
    @Test(arguments: StoreKind.allCases, [true, false])
    func `S067, S091, S106: an update of an object that is deleted elsewhere and back again keeps only its own property`(
        _ kind: StoreKind, inChild: Bool
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let (root, other) = (container.coordinator.newBackgroundContext(), container.coordinator.newBackgroundContext())
        let (id, album) = await root.perform { context in
            (context.makeTrack("first", plays: 1).objectID, context.insert("Album").objectID)
        }
        try await root.save()
        let ours = inChild ? await root.perform { $0.newBackgroundChild() } : root
        await ours.perform { $0.automaticallyMergesChanges = true }
        try await ours.perform { try $0.existingObject(with: id)["plays"] = .int(10) }
        await other.perform { context in
            context.refreshAllObjects()
            context.undoHistory = UndoHistory()
        }
        func merge() async throws {
            await root.perform { $0.refreshAllObjects() }
            if inChild { try await ours.refreshFromParent() }
        }
        try await other.perform(andSave: .durable) { $0.delete(try $0.existingObject(with: id)) }
        try await merge()
        await ours.perform { context in
            let track = context.object(with: id)
            #expect(!track.isDeleted && track["title"] == "first" && track.changedValues == ["plays": .int(10)])
        }
        try await other.perform(andSave: .durable) { _ = try $0.undoHistory?.undo() }
        try await other.perform(andSave: .durable) { context in
            let track = try context.existingObject(with: id)
            track["title"] = "newer"
            track.setRelatedObject("album", to: context.object(with: album))
        }
        try await merge()
        try await ours.perform { context in
            let track = try context.existingObject(with: id)
            #expect(track["title"] == "newer" && track["plays"] == .int(10))
            #expect(track.relatedObject("album")?.objectID == album && track.changedValues == ["plays": .int(10)])
            #expect(context.object(with: album).relatedObjects("tracks") == [track])
        }
        try await ours.save(through: .store)
        let saved = try await container.read { context in
            let track = try context.existingObject(with: id)
            return [track["title"], track["plays"]]
        }
        #expect(saved == ["newer", .int(10)])
        #expect(try await container.coordinator.verify().isEmpty)
    }

    /// Returns a root context that has changed the plays of a track and merged its deletion by another context. The context has not merged
    /// what the other has saved since: the undo of the deletion, and a newer title.
    private static func changedBeforeReturn(
        _ container: PersistentContainer
    ) async throws -> (context: BackgroundContext, track: ObjectID) {
        let (context, other) = (container.coordinator.newBackgroundContext(), container.coordinator.newBackgroundContext())
        let id = await context.perform { $0.makeTrack("first", plays: 1).objectID }
        try await context.save()
        try await context.perform { try $0.existingObject(with: id)["plays"] = .int(10) }
        await other.perform { other in
            other.refreshAllObjects()
            other.undoHistory = UndoHistory()
        }
        try await other.perform(andSave: .durable) { $0.delete(try $0.existingObject(with: id)) }
        await context.perform { $0.refreshAllObjects() }
        try await other.perform(andSave: .durable) { _ = try $0.undoHistory?.undo() }
        try await other.perform(andSave: .durable) { try $0.existingObject(with: id)["title"] = "newer" }
        return (context, id)
    }

    /// The names of the properties of which a conflict has a value of the context.
    private static func ours(_ conflict: MergeConflict) -> [String] {
        conflict.properties.filter { $0.ours != nil }.map(\.name)
    }

    /// Catches: a save that overwrites newer values with those from before a deletion, because its context has not merged that the object
    /// is back.
    @Test(arguments: StoreKind.allCases, [PolicyKind.storeTrump, .objectTrump, .overwrite, .rollback])
    func `S102, S103, S104, S105, S109: an update of an object that others have brought back is saved by the policy`(
        _ kind: StoreKind, _ policy: PolicyKind
    ) async throws {
        let answer: ConflictResolution =
            switch policy {
            case .storeTrump: .storeTrump
            case .objectTrump: .objectTrump
            case .overwrite: .overwrite
            case .rollback, .error: .rollback
            }
        let custom = MergePolicy.custom { conflicts in
            guard conflicts.count == 1, Self.ours(conflicts[0]) == ["plays"] else { return [:] }
            return [conflicts[0].objectID: answer]
        }
        for mergePolicy in [policy.mergePolicy, custom] {
            let bed = try TestBed(kind)
            let container = try await bed.container()
            let (context, id) = try await Self.changedBeforeReturn(container)
            await context.perform { $0.mergePolicy = mergePolicy }
            try await context.save()
            let saved = try await container.read { context in
                let track = try context.existingObject(with: id)
                return [track["title"], track["plays"]]
            }
            switch policy {
            case .objectTrump: #expect(saved == ["newer", .int(10)])
            case .overwrite: #expect(saved == ["first", .int(10)])
            case .storeTrump, .rollback, .error: #expect(saved == ["newer", .int(1)])
            }
            let shown = try await context.perform { context in
                let track = try context.existingObject(with: id)
                return [track["title"], track["plays"]]
            }
            #expect(shown == saved)
            #expect(try await container.coordinator.verify().isEmpty)
        }
    }

    /// Catches: a conflict that shows values from before a deletion as changes of the context.
    @Test(arguments: StoreKind.allCases)
    func `S101: the conflict about an object that others have brought back has the context's own changes`(
        _ kind: StoreKind
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let (context, id) = try await Self.changedBeforeReturn(container)
        #expect(await context.previewSave().conflicts.map(Self.ours) == [["plays"]])
        let error = try #require(await #expect(throws: SaveError.self) { try await context.save() })
        guard case .conflicts(let conflicts) = error else {
            Issue.record("another error: \(error)")
            return
        }
        #expect(conflicts.map(\.objectID) == [id])
        #expect(conflicts.map(Self.ours) == [["plays"]])
        #expect(conflicts.first?.properties.first(where: { $0.name == "title" })?.theirs == .string("newer"))
        #expect(try await container.coordinator.verify().isEmpty)
    }

    /// Catches: observers that do not hear of values which an object has again after it was back.
    @Test(arguments: StoreKind.allCases) @MainActor
    func `S146: the observers of an updated object that is back hear of its other values`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(.siblings)
        let main = container.mainContext
        let track = main.makeTrack("first")
        try await main.save()
        track["plays"] = .int(10)
        let id = track.objectID
        let other = container.newBatchOperationContext(name: "other")
        await other.perform { $0.undoHistory = UndoHistory() }
        try await other.perform(andSave: .durable) { $0.delete($0.object(with: id)) }
        main.refreshAllObjects()
        let watch = Watch { _ = track["title"] }
        try await other.perform(andSave: .durable) { _ = try $0.undoHistory?.undo() }
        try await other.perform(andSave: .durable) { $0.object(with: id)["title"] = "newer" }
        main.refreshAllObjects()
        #expect(track["title"] == "newer" && track["plays"] == .int(10))
        #expect(watch.count > 0)
    }

    /// Catches: a child that shows, without a merge, what an observer has changed in its parent during the child's save.
    @Test(arguments: StoreKind.allCases, [true, false]) @MainActor
    func `S071, S120: what an observer changes in the parent during a child's save does not change the child`(
        _ kind: StoreKind, through: Bool
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(.siblings)
        let main = container.mainContext
        let (first, second) = (main.makeTrack("first"), main.makeTrack("second"))
        try await main.save()
        let child = main.newChild()
        let (own, other) = (child.object(with: first.objectID), child.object(with: second.objectID))
        own["title"] = "edited"
        var later: ManagedObjectContext?
        let token = main.observe { notice in
            guard notice.kind == .objectsDidChange, later == nil else { return }
            second["plays"] = .int(5)
            // A child seals the change.
            later = main.newChild()
        }
        if through { try await child.save(through: .store) } else { try await child.save() }
        #expect(later != nil && second["plays"] == .int(5))
        #expect(own["title"] == "edited" && other["plays"] == .int(0), "the child has not merged")
        try await child.refreshFromParent()
        #expect(other["plays"] == .int(5))
        withExtendedLifetime(token) {}
    }

    /// Catches: a grandchild that hears of deletions which its parent does not show, or misses objects that it shows.
    @Test(arguments: StoreKind.allCases)
    func `S120: children hear of a refused object what their parent shows of it`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let root = try await Self.root(of: container)
        let child = await root.perform { $0.newBackgroundChild() }
        await child.perform { context in
            context.automaticallyMergesChanges = false
            context.makeTrack("refused")["isrc"] = "x"
        }
        let grandchild = await child.perform { $0.newBackgroundChild() }
        let counter = Counter()
        try await grandchild.perform { context in
            context.automaticallyMergesChanges = true
            let titles = try context.trackTitles().sorted()
            #expect(titles == ["refused", "saved"])
            _ = context.addObserver { counter.note($0) }
        }
        // A save of others in between, so that the child keeps its older state.
        try await container.coordinator.newBackgroundContext().perform(andSave: .durable) { _ = $0.makeTrack("other") }
        try await child.save(through: .store)
        let shown = try await child.perform { try $0.trackTitles().sorted() }
        #expect(shown == ["refused", "saved"])
        let (seen, deleted) = try await grandchild.perform { context in
            (try context.trackTitles().sorted(), counter.all.flatMap { $0.changes.deletedIDs(in: context.storeIdentity) })
        }
        #expect(seen == shown)
        #expect(deleted.isEmpty)
        #expect(try await container.read { try $0.trackTitles().sorted() } == ["other", "saved"])
    }
}
