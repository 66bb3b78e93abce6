import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

@Suite struct ToManyConflictTests {
    private static func setTracks(_ titles: [String], _ name: String, of playlist: ObjectID, in context: BackgroundContext)
        async throws
    {
        try await context.perform { context throws in
            let playlist = try context.existingObject(with: playlist)
            playlist["name"] = .string(name)
            playlist.setRelatedObjects(
                "tracks", to: try context.objects("Track").filter { titles.map { .string($0) }.contains($0["title"]) })
        }
    }

    private static func state(_ playlist: ObjectID, in context: BackgroundContext) async throws -> (name: Value, tracks: [Value])
    {
        try await context.perform { context throws in
            let playlist = try context.existingObject(with: playlist)
            let titles = playlist.relatedObjects("tracks").map { $0["title"] }
            return (playlist["name"], titles.sorted { $0.order($1) < 0 })
        }
    }

    /// One context replaces b by c, and the other adds d. Both rename the playlist.
    @Test(arguments: StoreKind.allCases, [MergePolicy.storeTrump, .objectTrump])
    func `S107: conflicting changes of a to-many relationship merge as differences of sets`(
        _ kind: StoreKind, _ policy: MergePolicy
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let ours = container.coordinator.newBackgroundContext()
        let theirs = container.coordinator.newBackgroundContext()
        let id = await ours.perform { context in
            context.mergePolicy = policy
            let tracks = ["a", "b", "c", "d"].map { context.makeTrack($0) }
            let playlist = context.insert("Playlist")
            playlist["name"] = .string("base")
            playlist.setRelatedObjects("tracks", to: Array(tracks[..<2]))
            return playlist.objectID
        }
        try await ours.save()
        await theirs.perform { $0.refreshAllObjects() }
        try await Self.setTracks(["a", "c"], "ours", of: id, in: ours)
        try await Self.setTracks(["a", "b", "d"], "theirs", of: id, in: theirs)
        try await theirs.save()
        try await ours.save()
        let reader = container.coordinator.newBackgroundContext()
        for context in [ours, reader] {
            let state = try await Self.state(id, in: context)
            #expect(state.tracks == ["a", "c", "d"].map { .string($0) })
            if case .objectTrump = policy {
                #expect(state.name == .string("ours"))
            } else {
                #expect(state.name == .string("theirs"))
            }
        }
    }
}
