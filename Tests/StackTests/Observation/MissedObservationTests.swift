import ObjectGraph
import StoreModel
import TestSupport
import Testing

/// Changes of objects that no change set of a save contains.
@Suite @MainActor struct MissedObservationTests {
    /// A value that cannot be stored.
    private struct Refused: Codable, Sendable {
        struct Reason: Error {}
        init() {}
        init(from decoder: any Decoder) throws { throw Reason() }
        func encode(to encoder: any Encoder) throws { throw Reason() }
    }

    /// Returns a track with an unsaved change in the main context, which another context has deleted.
    private static func changeDeletedTrack(
        in main: ManagedObjectContext, of container: PersistentContainer
    ) async throws -> ManagedObject {
        let track = main.makeTrack("a")
        try await main.save(through: .store)
        track["title"] = "b"
        let id = track.objectID
        try await container.coordinator.newBackgroundContext().perform(andSave: .durable) { $0.delete($0.object(with: id)) }
        main.refreshAllObjects()
        try await until("the main context shows the deletion") { try main.count(EntityFetchRequest("Track")) == 0 }
        return track
    }

    @Test(arguments: StoreKind.allCases)
    func `S146, S106: dropping the changes of an object that is deleted elsewhere notifies its observers`(_ kind: StoreKind)
        async throws
    {
        for (isRollback, isObserved) in [(true, true), (true, false), (false, true), (false, false)] {
            let bed = try TestBed(kind)
            let container = try await bed.container(.siblings)
            let main = container.mainContext
            let track = try await Self.changeDeletedTrack(in: main, of: container)
            #expect(track["title"] == "b" && !track.isDeleted)
            let watches = isObserved ? [Watch { _ = track["title"] }, Watch { _ = track.isDeleted }] : []
            if isRollback { main.rollback() } else { main.refresh(track, mergeChanges: false) }
            #expect(watches.map(\.count) == (isObserved ? [1, 1] : []))
            #expect(track.isDeleted && track["title"] == "")
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `S068: an observed object counts as deleted once the save that deletes it is awaited`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(.siblings)
        let track = container.mainContext.makeTrack("a")
        try await container.mainContext.save()
        let watch = Watch { _ = track.isDeleted }
        let id = track.objectID
        try await container.newBackgroundContext().perform(andSave: .durable) { $0.delete($0.object(with: id)) }
        #expect(track.isDeleted)
        #expect(watch.count == 1)
    }

    @Test(arguments: Combination.all)
    func `S146: observers of a parent's new object are notified when a child's save through it deletes the object`(
        _ combination: Combination
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let main = container.mainContext
        let track = main.makeTrack("a")
        let child = main.newBackgroundChild()
        let watches = [Watch { _ = track["title"] }, Watch { _ = track.isDeleted }]
        let id = track.objectID
        try await child.perform(andSave: .durable) { _ in }
        try await child.perform { $0.delete(try $0.existingObject(with: id)) }
        try await child.save(through: .store)
        #expect(track.isDeleted)
        #expect(watches.map(\.count) == [1, 1])
    }

    @Test(arguments: StoreKind.allCases)
    func `S162, S146: undoing an insertion notifies the observers of the object after a suspension too`(_ kind: StoreKind)
        async throws
    {
        let bed = try TestBed(kind)
        let container = try await bed.container(.siblings)
        let main = container.mainContext
        main.undoHistory = UndoHistory()
        _ = try main.count(EntityFetchRequest("Track"))
        try await container.suspend()
        await container.resume()
        let track = main.makeTrack("a")
        main.processPendingChanges()
        let watches = [Watch { _ = track["title"] }, Watch { _ = track.isDeleted }]
        try main.undoHistory?.undo()
        #expect(watches.map(\.count) == [1, 1])
    }

    @Test(arguments: StoreKind.allCases)
    func `S022: a child's object counts as deleted once a save has dropped its changes`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(.siblings)
        let main = container.mainContext
        let track = main.makeTrack("a")
        let child = main.newChild(name: "child")
        let copy = child.object(with: track.objectID)
        copy["title"] = "b"
        main.delete(track)
        try await child.refreshFromParent()
        let watches = [Watch { _ = copy["title"] }, Watch { _ = copy.isDeleted }]
        try await child.save(through: .store)
        #expect(copy.isDeleted && !child.hasChanges && watches.map(\.count) == [1, 1])
    }

    @Test(arguments: StoreKind.allCases)
    func `S120: a move to an unknown state is noticed without registered objects too`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(.siblings)
        let main = container.mainContext
        let child = main.newChild(name: "child")
        var notices: [ContextNotice] = []
        let token = child.observe { notices.append($0) }
        main.makeTrack("a")
        try await main.save()
        try await child.refreshFromParent()
        #expect(try child.count(EntityFetchRequest("Track")) == 1)
        #expect(notices.map(\.kind) == [.objectsDidChange] && notices[0].changes.isEmpty)
        token.cancel()
    }

    @Test(arguments: StoreKind.allCases)
    func `S106, S022: an object that was deleted during a suspension counts as deleted, with changes too`(_ kind: StoreKind)
        async throws
    {
        let bed = try TestBed(kind)
        let container = try await bed.container(.siblings)
        let main = container.mainContext
        main.automaticallyMergesChanges = false
        let track = main.makeTrack("a")
        try await main.save()
        let id = track.objectID
        track["plays"] = 7
        try await container.newBackgroundContext().perform(andSave: .durable) { $0.delete($0.object(with: id)) }
        try await container.suspend()
        await container.resume()
        #expect(try main.count(EntityFetchRequest("Track")) == 0)
        #expect(track.isDeleted)
    }

    @Test(arguments: StoreKind.allCases)
    func `S007: an object with unsaved pairs has no changes once it is deleted elsewhere`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(.siblings)
        let main = container.mainContext
        let (playlist, track) = (main.insert("Playlist"), main.makeTrack("a"))
        try await main.save()
        playlist.add(track, to: "tracks")
        #expect(playlist.isUpdated)
        let id = playlist.objectID
        try await container.newBackgroundContext().perform(andSave: .durable) { $0.delete($0.object(with: id)) }
        main.refreshAllObjects()
        #expect(playlist.isDeleted && !main.updatedObjects.contains(playlist))
        #expect(!playlist.isUpdated && !playlist.hasChanges)
    }

    /// Gives "c" an unsaved position in the book "a", "b", "c", and moves the main context to a state in which another context has moved "c"
    /// to the returned book of "x", "y" and "z". The main context does not merge that state.
    private static func missMove(_ container: PersistentContainer) async throws -> ManagedObject {
        let (main, other) = (container.mainContext, container.newBatchOperationContext(name: "other"))
        (main.automaticallyMergesChanges, main.mergePolicy) = (false, .storeTrump)
        let book = try await Books.make(["a", "b", "c"], in: other)
        let next = try await Books.make(["x", "y", "z"], in: other)
        main.refreshAllObjects()
        main.object(with: book).arrangeChapters(["c", "a", "b"])
        main.processPendingChanges()
        try await Books.move("c", of: book, to: next, in: other)
        try await other.save()
        // A suspension moves the context without a merge.
        try await container.suspend()
        await container.resume()
        return main.object(with: next)
    }

    /// Catches: a list that shows another order after a save that drops a position in another list (S046).
    @Test(arguments: StoreKind.allCases)
    func `S046, S146: a position that a save drops notifies the observers of the list`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(.siblings, model: try Books.model())
        let list = try await Self.missMove(container)
        let before = list.chapterTitles
        #expect(Set(before) == ["c", "x", "y", "z"])
        let watch = Watch { _ = list.relatedObjects("chapters") }
        try await container.mainContext.save()
        #expect(list.chapterTitles == ["x", "y", "z", "c"])
        #expect(watch.count == (before == list.chapterTitles ? 0 : 1))
    }

    /// Catches: a value that observers set between the checks of a save and its writing, which is saved unchecked.
    @Test(arguments: StoreKind.allCases)
    func `S060, S061: a save also checks what the observers of a list change when it drops a position`(_ kind: StoreKind)
        async throws
    {
        let bed = try TestBed(kind)
        let container = try await bed.container(.siblings, model: try Books.model())
        let (main, list) = (container.mainContext, try await Self.missMove(container))
        let collection = try main.collection("refused", of: Refused.self)
        let watch = Watch({ _ = list.relatedObjects("chapters") }, note: { collection["key"] = Refused() })
        await #expect(throws: CollectionError.self) { try await main.save() }
        #expect(watch.count == 1)
        collection["key"] = nil
        try await main.save()
        #expect(!main.hasChanges && watch.count == 1)
    }
}
