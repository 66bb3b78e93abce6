import ObjectGraph
import StoreModel
import TestSupport
import Testing

/// Live results of contexts that have seen unsaved changes of another one, of which a later save does not contain all.
@Suite struct CancelledChangeTests {
    private static let unrelated: Gallery.Query = (
        .init("Track", matching: .isNil("album"), sortBy: [.init("notes", .descending)]), nil
    )
    private static let byTitle: Gallery.Query = (.init("Track", sortBy: [.init("title")]), nil)
    private static let byAlbum: Gallery.Query = (.init("Track", sortBy: [.init("title")]), .init("album.title"))
    private static let inPlaylists: Gallery.Query = (
        .init("Track", matching: .not(.related("playlists", .none, where: .always)), sortBy: [.init("title")]), nil
    )

    @discardableResult
    private static func insert(_ entity: String, _ title: String, in context: ManagedObjectContext) -> ManagedObject {
        let object = context.insert(entity)
        object[entity == "Playlist" ? "name" : "title"] = .string(title)
        return object
    }

    private static func first(_ entity: String, in context: ManagedObjectContext) throws -> ManagedObject {
        try context.fetch(EntityFetchRequest(entity))[0]
    }

    /// Makes changes in a context, then checks a live result of `watching`.
    private static func expectEqual(
        _ query: Gallery.Query, in watching: BackgroundContext, merges: Bool? = true, after step: () async throws -> Void
    ) async throws {
        let watch = ResultWatch(query)
        try await watching.perform { context in
            if let merges { context.automaticallyMergesChanges = merges }
            try watch.start(in: context)
        }
        try await step()
        try await watching.perform { context throws in
            let difference = try watch.difference(in: context)
            #expect(difference == nil)
            watch.stop()
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `S141, S050: a live result shows what a child's deletion changes in unsaved changes of its parent`(
        _ kind: StoreKind
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(.siblings, model: Gallery.model)
        let root = container.coordinator.newBackgroundContext(name: "root")
        try await root.perform(andSave: .durable) { _ = Self.insert("Album", "a", in: $0) }
        let child = await root.newBackgroundChild()
        let grandchild = await child.newBackgroundChild()
        // The root saves changes that the child does not see, so that the child keeps its state.
        await root.perform { _ = Self.insert("Album", "b", in: $0) }
        try await child.perform { context in
            Self.insert("Track", "t", in: context).setRelatedObject("album", to: try Self.first("Album", in: context))
        }
        try await Self.expectEqual(Self.unrelated, in: child, merges: false) {
            try await grandchild.perform { $0.delete(try Self.first("Album", in: $0)) }
            try await grandchild.save(through: .store)
        }
    }

    @Test(arguments: Combination.all)
    func `S141: a live result loses a new object of a parent that another child deletes`(_ combination: Combination) async throws
    {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack, model: Gallery.model)
        let (one, other) = await MainActor.run {
            Self.insert("Track", "t", in: container.mainContext)
            return (container.mainContext.newBackgroundChild(), container.mainContext.newBackgroundChild())
        }
        try await Self.expectEqual(Self.byTitle, in: other) {
            try await one.perform { $0.delete(try Self.first("Track", in: $0)) }
            try await one.save(through: .store)
        }
    }

    @Test(arguments: Combination.all)
    func `S141, S051: a live result loses a new object of a parent when a child deletes its owner`(
        _ combination: Combination
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack, model: Gallery.model)
        let writer = container.coordinator.newBackgroundContext(name: "writer")
        try await writer.perform(andSave: .durable) { $0.insert("Artist")["name"] = .string("a") }
        let (one, other) = try await MainActor.run {
            let main = container.mainContext
            main.refreshAllObjects()
            let children = (main.newBackgroundChild(), main.newBackgroundChild())
            // The children do not see the album before the save.
            Self.insert("Album", "b", in: main).setRelatedObject("artist", to: try Self.first("Artist", in: main))
            return children
        }
        try await one.perform { $0.delete(try Self.first("Artist", in: $0)) }
        try await other.refreshFromParent()
        let grandchild = await other.newBackgroundChild()
        try await Self.expectEqual((.init("Album", sortBy: [.init("title")]), nil), in: other) {
            try await Self.expectEqual((.init("Album", sortBy: [.init("title")]), nil), in: grandchild) {
                try await one.save(through: .store)
                await other.perform { _ in }
            }
        }
    }

    @Test(arguments: Combination.all)
    func `S141: a live result loses an object of a child that its parent deletes before it saves`(
        _ combination: Combination
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack, model: Gallery.model)
        let child = await MainActor.run { container.mainContext.newBackgroundChild() }
        await MainActor.run { _ = Self.insert("Track", "a", in: container.mainContext) }
        await child.perform { _ = Self.insert("Track", "b", in: $0) }
        try await child.save()
        try await Self.expectEqual(Self.byTitle, in: child) {
            try await MainActor.run {
                let main = container.mainContext
                for track in try main.fetch(EntityFetchRequest("Track")) where track["title"] == .string("b") {
                    main.delete(track)
                }
            }
            try await container.saveMain()
        }
    }

    @Test(arguments: Combination.all)
    func `S141: a live result shows that another child takes back changes of a parent`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack, model: Gallery.model)
        let writer = container.coordinator.newBackgroundContext(name: "writer")
        try await writer.perform(andSave: .durable) { context in
            Self.insert("Track", "a", in: context)
            Self.insert("Track", "b", in: context)
            Self.insert("Playlist", "p", in: context)
        }
        let (one, other) = try await MainActor.run {
            let main = container.mainContext
            main.refreshAllObjects()
            let track = try Self.first("Track", in: main)
            track["title"] = .string("c")
            try Self.first("Playlist", in: main).setRelatedObjects("tracks", to: [track])
            return (main.newBackgroundChild(), main.newBackgroundChild())
        }
        let second = await other.newBackgroundChild()
        try await Self.expectEqual(Self.byTitle, in: other) {
            try await Self.expectEqual(Self.inPlaylists, in: second) {
                try await one.perform { context in
                    for track in try context.fetch(EntityFetchRequest("Track")) where track["title"] == .string("c") {
                        track["title"] = .string("a")
                    }
                    try Self.first("Playlist", in: context).setRelatedObjects("tracks", to: [])
                }
                try await one.save(through: .store)
                await other.perform { _ in }
            }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `S141: a child's live result shows the saves that its parent has moved past by a reset`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(.siblings, model: Gallery.model)
        let root = container.coordinator.newBackgroundContext(name: "root")
        await root.perform { $0.automaticallyMergesChanges = false }
        let child = await root.newBackgroundChild()
        let other = container.coordinator.newBackgroundContext(name: "other")
        try await Self.expectEqual(Self.byTitle, in: child) {
            try await other.perform(andSave: .durable) { _ = Self.insert("Track", "t", in: $0) }
            await root.perform { $0.reset() }
            try await root.perform(andSave: .durable) { _ = Self.insert("Album", "a", in: $0) }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `S141, S151: a child's live result shows the saves that its parent has moved past by reading a snapshot`(
        _ kind: StoreKind
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(.siblings, model: Gallery.model)
        let root = container.coordinator.newBackgroundContext(name: "root")
        await root.perform { $0.automaticallyMergesChanges = false }
        let child = await root.newBackgroundChild()
        let other = container.coordinator.newBackgroundContext(name: "other")
        try await Self.expectEqual(Self.byTitle, in: child) {
            try await other.perform(andSave: .durable) { _ = Self.insert("Track", "t", in: $0) }
            let newest = try container.coordinator.snapshot()
            await root.perform { $0.read(from: newest) }
            try await root.perform(andSave: .durable) { _ = Self.insert("Album", "a", in: $0) }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `S141: a live result of a child that begins to merge shows the saves that it has not merged`(_ kind: StoreKind)
        async throws
    {
        let bed = try TestBed(kind)
        let container = try await bed.container(.siblings, model: Gallery.model)
        let root = container.coordinator.newBackgroundContext(name: "root")
        let child = await root.newBackgroundChild()
        try await Self.expectEqual(Self.byTitle, in: child, merges: false) {
            try await root.perform(andSave: .durable) { _ = Self.insert("Track", "t", in: $0) }
            await child.perform { $0.automaticallyMergesChanges = true }
            try await root.perform(andSave: .durable) { _ = Self.insert("Album", "a", in: $0) }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `S106: nothing shows an unsaved value of an object that was deleted before a suspension`(_ kind: StoreKind) async throws
    {
        let bed = try TestBed(kind)
        let container = try await bed.container(.siblings, model: Gallery.model)
        let writer = container.coordinator.newBackgroundContext(name: "writer")
        try await writer.perform(andSave: .durable) { context in
            Self.insert("Track", "t", in: context).setRelatedObject("album", to: Self.insert("Album", "a", in: context))
        }
        let root = container.coordinator.newBackgroundContext(name: "root")
        try await root.perform { context in
            context.automaticallyMergesChanges = false
            context.refreshAllObjects()
            let (track, album) = (try Self.first("Track", in: context), try Self.first("Album", in: context))
            album["title"] = .string("b")
            // An unsaved reference to the album, which the deletion cannot clear.
            track.setRelatedObject("album", to: nil)
            track.setRelatedObject("album", to: album)
        }
        let child = await root.newBackgroundChild()
        try await writer.perform(andSave: .durable) { $0.delete(try Self.first("Album", in: $0)) }
        for context in [root, child] {
            try await container.suspend()
            try await Self.expectEqual(Self.byAlbum, in: context, merges: nil) { await container.resume() }
        }
    }
}
