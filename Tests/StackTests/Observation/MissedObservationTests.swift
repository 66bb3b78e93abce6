import ObjectGraph
import StoreModel
import TestSupport
import Testing

/// Changes of objects that no change set of a save contains.
@Suite @MainActor struct MissedObservationTests {
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
}
