import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

@Suite struct PrefetchTests {
    /// Runs in a root, and in a child that sees unsaved objects.
    @Test(arguments: Combination.all)
    func S025_relatedObjectsAreReadTogetherWithTheResult(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let first = await container.newBackgroundContext()
        let (artist, playlist) = await first.perform { context in
            let (artist, playlist) = (context.makeArtist("a"), context.insert("Playlist"))
            let album = context.insert("Album")
            album.setRelatedObject("artist", to: artist)
            for number in 0..<5 {
                let track = context.makeTrack("\(number)")
                track.setRelatedObject("album", to: album)
                track.setRelatedObjects("playlists", to: [playlist])
            }
            return (artist.objectID, playlist.objectID)
        }
        try await first.save(through: .store)
        let context = await container.newBackgroundContext()
        try await context.perform { context throws in
            context.makeTrack("new").setRelatedObject("album", to: nil)
            func holds(_ id: ObjectID) -> Bool { context.layerStack.pages.holds(id.entity, id.key.page) }
            var request = EntityFetchRequest("Track")
            #expect(try context.fetch(request).count == 6)
            #expect(!holds(artist) && !holds(playlist))
            request.relationshipKeyPathsForPrefetching = ["album.artist", "playlists"]
            #expect(try context.fetch(request).count == 6)
            #expect(holds(artist) && holds(playlist))
        }
    }
}
