import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Live results of contexts that move to a state whose differences are unknown, or that move while they save.
@Suite @MainActor struct MovedResultsTests {
    private nonisolated static let albums = EntityFetchRequest("Album", sortBy: [AttributeSort("title")])
    private nonisolated static let playlists = EntityFetchRequest("Playlist", sortBy: [AttributeSort("name")])

    /// A saved track in the first of two albums, and in a playlist.
    private struct Library: Sendable {
        let track: ObjectID
        let secondAlbum: ObjectID

        @MainActor init(in container: PersistentContainer) async throws {
            let main = container.mainContext
            let albums = ["a", "b"].map { title in
                let album = main.insert("Album")
                album["title"] = .string(title)
                return album
            }
            let (track, playlist) = (main.makeTrack("t"), main.insert("Playlist"))
            track.setRelatedObject("album", to: albums[0])
            playlist.add(track, to: "tracks")
            try await container.saveMain()
            self.track = track.objectID
            secondAlbum = albums[1].objectID
        }

        /// Lets another context move the track to the second album, remove it from the playlist, and save.
        func moveTrack(in container: PersistentContainer) async throws {
            let (id, album) = (track, secondAlbum)
            let other = container.coordinator.newBackgroundContext(name: "other")
            try await other.perform(andSave: .durable) { context in
                let track = context.object(with: id)
                track.setRelatedObject("album", to: context.object(with: album))
                track.setRelatedObjects("playlists", to: [])
            }
        }
    }

    /// Results of the albums and the playlists, with the numbers of their differences.
    private static func follow(_ context: ManagedObjectContext) throws -> [(results: Results<ManagedObject>, watch: Watch)] {
        try [albums, playlists].map { request in
            let results = try Results(request, context: context)
            return (results, Watch { _ = results.count })
        }
    }

    /// Catches: albums and playlists that count as unchanged, because only their columns are compared.
    @Test(arguments: StoreKind.allCases)
    func `S140, S143, S145: a move to a chosen snapshot reports objects that have gained or lost members, and no others`(
        _ kind: StoreKind
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let main = container.mainContext
        main.automaticallyMergesChanges = false
        let library = try await Library(in: container)
        let followed = try Self.follow(main)
        try await library.moveTrack(in: container)
        main.read(from: try container.coordinator.snapshot())
        #expect(followed.map { $0.results.count } == [2, 1])
        #expect(followed.map { $0.watch.take() } == [1, 1])
        let other = container.coordinator.newBackgroundContext(name: "other")
        try await other.perform(andSave: .durable) { _ = $0.makeTrack("of no album") }
        main.read(from: try container.coordinator.snapshot())
        #expect(followed.map { $0.results.count } == [2, 1])
        #expect(followed.map { $0.watch.take() } == [0, 0])
        try await container.close()
    }

    @Test(arguments: StoreKind.allCases)
    func `S140, S145: a move to a chosen snapshot reports an object whose members have another order`(_ kind: StoreKind)
        async throws
    {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: try Books.model())
        let main = container.mainContext
        main.automaticallyMergesChanges = false
        let other = container.coordinator.newBackgroundContext(name: "other")
        let book = try await Books.make(["a", "b", "c"], in: other)
        main.refreshAllObjects()
        let results = try Results(EntityFetchRequest("Book"), context: main)
        let watch = Watch { _ = results.count }
        try await Books.arrange(book, "cab", in: other)
        try await other.save()
        main.read(from: try container.coordinator.snapshot())
        #expect(results.map(\.chapterTitles) == [["c", "a", "b"]])
        #expect(watch.take() == 1)
        try await container.close()
    }

    @Test(arguments: Combination.all)
    func `S072, S145: a child's refresh reports objects that have gained or lost members`(_ combination: Combination) async throws
    {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let main = container.mainContext
        let library = try await Library(in: container)
        let child = main.newChild(name: "child")
        let followed = try Self.follow(child)
        try await library.moveTrack(in: container)
        main.refreshAllObjects()
        try await child.refreshFromParent()
        #expect(followed.map { $0.results.count } == [2, 1])
        #expect(followed.allSatisfy { $0.watch.take() > 0 })
        try await container.close()
    }

    /// Catches: a save that moves main past another one, and does not report the objects to which that one gave other members.
    @Test(arguments: Combination.all)
    func `S110, S145: main's save reports objects that another save has given or taken members`(
        _ combination: Combination
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let main = container.mainContext
        main.automaticallyMergesChanges = false
        let library = try await Library(in: container)
        let followed = try Self.follow(main)
        try await library.moveTrack(in: container)
        main.makeArtist("own")
        try await container.saveMain()
        #expect(followed.map { $0.results.count } == [2, 1])
        #expect(followed.allSatisfy { $0.watch.take() > 0 })
        try await container.close()
    }

    /// Catches: a pair of a running save that stays in the result, although a later save has removed it.
    @Test(arguments: Combination.all)
    func `S142: a live result loses a pair that is removed before the context learns that it has saved it`(
        _ combination: Combination
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let main = container.mainContext
        main.automaticallyMergesChanges = false
        let (track, playlist) = (main.makeTrack("old"), main.insert("Playlist"))
        try await container.saveMain()
        let results = try Results(
            EntityFetchRequest("Playlist", matching: .related("tracks", .any, where: .equal("title", "old"))), context: main)
        playlist.add(track, to: "tracks")
        main.processPendingChanges()
        #expect(results.count == 1)
        var isHandedOver = false
        let token = main.observe { if $0.kind == .willSave { isHandedOver = true } }
        let saving = Task { try await container.saveMain() }
        while !isHandedOver { await Task.yield() }
        // The main actor is busy from here on, so that main learns of its save only afterwards.
        let other = container.makeConfinedContext(name: "other")
        var saved: [ManagedObject] = []
        let deadline = ContinuousClock.now + .seconds(600)
        while saved.isEmpty, ContinuousClock.now < deadline {
            saved = try other.fetch(EntityFetchRequest("Playlist")).filter { !$0.relatedObjects("tracks").isEmpty }
        }
        try #require(!saved.isEmpty, "the save is in the store")
        saved[0].setRelatedObjects("tracks", to: [])
        try other.saveNow()
        // Usually during the save. If it has ended already, the result is the same.
        main.refreshAllObjects()
        try await saving.value
        #expect(playlist.relatedObjects("tracks").isEmpty)
        #expect(results.isEmpty)
        withExtendedLifetime(token) {}
        try await container.close()
    }
}
