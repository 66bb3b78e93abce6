import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Batch deletions that a context begins, while it and other contexts have unsaved changes.
@Suite struct BatchDeletionNowTests {
    private static let beatles = EntityFetchRequest("Artist", matching: .equal("name", .string("Beatles")))

    /// Saves an artist with two albums, and another artist.
    private static func fill(_ context: ManagedObjectContext) throws {
        let artist = context.makeArtist("Beatles")
        for title in ["Help!", "Revolver"] {
            let album = context.insert("Album")
            album["title"] = .string(title)
            album.setRelatedObject("artist", to: artist)
        }
        context.makeArtist("Kinks")
        try context.saveNow()
    }

    private static func names(_ context: ManagedObjectContext) throws -> [String] {
        let values = try context.objects("Artist").map { $0["name"] } + context.objects("Album").map { $0["title"] }
        return values.map { if case .string(let text) = $0 { text } else { "" } }.sorted()
    }

    @Test(arguments: StoreKind.allCases)
    func `S051, S068: a batch deletion follows delete rules, and every context shows it`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let (mine, clean) = (Carrier(container), Carrier(container, "clean"))
        try await mine.onThread { try Self.fill($0) }
        #expect(try await clean.onThread { try Self.names($0) } == ["Beatles", "Help!", "Kinks", "Revolver"])
        #expect(try await MainActor.run { try Self.names(container.mainContext) }.count == 4)
        try await mine.onThread { context in
            let help = try #require(try context.objects("Album").first { $0["title"] == "Help!" })
            help["title"] = "changed"
            let kinks = try #require(try context.objects("Artist").first { $0["name"] == "Kinks" })
            kinks["born"] = 1963
            context.makeArtist("Beatles")
            let result = try context.batchDeleteNow(Self.beatles)
            #expect(result.deletedCount == 1)
            #expect(help.isDeleted && !help.hasChanges)
            #expect(context.updatedObjects.map(\.objectID) == [kinks.objectID])
            #expect(try Self.names(context) == ["Beatles", "Kinks"], "the unsaved artist stays")
        }
        #expect(try await clean.onThread { try Self.names($0) } == ["Kinks"])
        #expect(try await MainActor.run { try Self.names(container.mainContext) } == ["Kinks"])
        try await mine.onThread { context in
            context.mergePolicy = .objectTrump
            try context.saveNow()
        }
        #expect(try await clean.onThread { try Self.names($0) } == ["Beatles", "Kinks"], "no deleted object was written again")
        try await container.flush()
        #expect(try await container.coordinator.verify().isEmpty)
    }

    @Test(arguments: StoreKind.allCases)
    func `S043, S062: a batch deletion that a delete rule denies changes nothing`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let (mine, other) = (Carrier(container), Carrier(container, "other"))
        try await mine.onThread { context in
            try Self.fill(context)
            let album = try #require(try context.objects("Album").first { $0["title"] == "Help!" })
            context.makeTrack("Yesterday").setRelatedObject("album", to: album)
            try context.saveNow()
            album["title"] = "changed"
            #expect(throws: SaveError.self) { try context.batchDeleteNow(Self.beatles) }
            #expect(!album.isDeleted && album["title"] == "changed" && context.updatedObjects.count == 1)
            #expect(try Self.names(context) == ["Beatles", "Kinks", "Revolver", "changed"])
        }
        #expect(try await other.onThread { try Self.names($0) } == ["Beatles", "Help!", "Kinks", "Revolver"])
        #expect(try container.coordinator.historyNow().filter { !$0.changes.isEmpty }.count <= 2)
        try await container.flush()
        #expect(try await container.coordinator.history().count == 2)
    }

    @Test(arguments: StoreKind.allCases)
    func `a batch deletion also takes objects whose deletion is unsaved, and no rollback undoes it`(
        _ kind: StoreKind
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let mine = Carrier(container)
        try await mine.onThread { context in
            try Self.fill(context)
            let artist = try #require(try context.objects("Artist").first { $0["name"] == "Beatles" })
            context.delete(artist)
            try context.batchDeleteNow(Self.beatles)
            #expect(!context.hasChanges && artist.isDeleted)
            #expect(try Self.names(context) == ["Kinks"])
            try context.saveNow()
            context.rollback()
            #expect(try Self.names(context) == ["Kinks"], "a rollback does not undo a batch deletion")
        }
        try await container.flush()
    }

    /// Catches: changes before the batch deletion that belong to no group, so that undo takes back the group before.
    @Test(arguments: StoreKind.allCases)
    func `S162: changes beside a batch deletion stay one group for undo`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        try await Carrier(container).onThread { context in
            let (kept, gone) = (context.makeTrack("kept"), context.makeTrack("gone", plays: 9))
            try context.saveNow()
            context.undoHistory = UndoHistory()
            context.makeTrack("new")
            context.processPendingChanges()
            kept["plays"] = 1
            gone["title"] = "changed"
            try context.batchDeleteNow(EntityFetchRequest("Track", matching: .ids([gone.objectID])))
            context.processPendingChanges()
            #expect(try context.trackTitles() == ["kept", "new"])
            _ = try context.undoHistory?.undo(onConflict: .skip)
            #expect(kept["plays"] == 0)
            #expect(try context.trackTitles() == ["kept", "new"])
        }
    }
}
