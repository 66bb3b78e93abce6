import Foundation
import Strata
import Testing

// The code of the article on changes of many objects and of the section on child contexts, compiled and run. The architecture
// tests compare both.

extension Articles {
    @MainActor static func deleting(_ context: ManagedObjectContext) async throws {
        // Sources/Strata/Strata.docc/ChangingManyObjects.md
        let count = try context.delete(where: #Predicate<Piece> { $0.plays == 0 })
        try await context.save()
        print("deleted \(count) pieces")
        // end
        #expect(count == 2)
    }

    @MainActor static func updating(_ container: PersistentContainer) async throws {
        // Sources/Strata/Strata.docc/ChangingManyObjects.md
        let result = try await container.coordinator.batchUpdate(
            FetchRequest<Piece>(where: #Predicate { $0.plays > 1 }), .set(\.plays, to: 1))
        print("updated \(result.updatedCount) pieces")
        // end
        #expect(result.updatedCount == 2)
        // Sources/Strata/Strata.docc/ChangingManyObjects.md
        try await container.coordinator.batchUpdate(
            FetchRequest<Album>(where: #Predicate { $0.band == nil }), .set(\.band, \.name, to: "Air"))
        // end
        // Sources/Strata/Strata.docc/ChangingManyObjects.md
        var options = BatchOptions()
        options.author = "clean-up"
        let deletion = try await container.coordinator.batchDelete(
            FetchRequest<Piece>(where: #Predicate { $0.plays == 1 }), options: options)
        print(deletion)  // 0 inserted, 0 updated, 2 deleted
        // end
        #expect("\(deletion)" == "0 inserted, 0 updated, 2 deleted")
    }

    @MainActor static func importing(_ container: PersistentContainer, _ context: ManagedObjectContext) async throws {
        // Sources/Strata/Strata.docc/ChangingManyObjects.md
        struct AlbumRow: Codable, Sendable {
            var title: String
            var band: String?  // the unique name of a band
        }

        let rows = [AlbumRow(title: "Moon Safari", band: "Air"), AlbumRow(title: "Sampler")]
        let albums = try context.insert(contentsOf: rows, as: Album.self)
        // end
        #expect(albums.map { $0.band?.name } == ["Air", nil])
        // Sources/Strata/Strata.docc/ChangingManyObjects.md
        struct SongRow: Codable, Sendable {
            var isrc: String
            var title: String
        }

        let songs = [SongRow(isrc: "FRZ039800212", title: "Sun"), SongRow(isrc: "FRZ039800213", title: "Rain")]
        let result = try await container.coordinator.insert(contentsOf: songs, as: Song.self, rule: .update(on: ["isrc"]))
        print(result)  // 1 inserted, 1 updated, 0 deleted
        // end
        #expect("\(result)" == "1 inserted, 1 updated, 0 deleted")
        // Sources/Strata/Strata.docc/ChangingManyObjects.md
        let task = Task {
            var options = BatchOptions()
            options.rowsPerSave = 1_000
            return try await container.coordinator.insert(contentsOf: songs, as: Song.self, options: options) { progress in
                print("saved \(progress)")  // saved 1000 of 5000 rows
            }
        }
        task.cancel()  // for example when a button is pressed
        do {
            print(try await task.value)
        } catch BatchError.importStopped(let savedRows, error: is CancellationError) {
            print("\(savedRows) songs are saved")
        } catch is CancellationError {
            print("no song is saved")
        }
        // end
    }

    @MainActor static func backgroundChild(_ container: PersistentContainer) async throws {
        // Sources/Strata/Strata.docc/WorkingInBackground.md
        let titles = container.mainContext.newBackgroundChild(name: "titles")
        try await titles.perform(andSave: .durable) { context in
            for piece in try context.fetch(FetchRequest<Piece>()) { piece.title = piece.title.uppercased() }
        }
        try await container.mainContext.save()
        // end
    }

    @MainActor static func mainChild(_ container: PersistentContainer) async throws {
        // Sources/Strata/Strata.docc/WorkingInBackground.md
        let importer = container.newBackgroundContext(name: "import")
        let id = await importer.perform { context in
            let piece = Piece(title: "Sun")
            context.insert(piece)
            return piece.id
        }
        let sheet = await importer.newMainChild(name: "sheet")
        sheet.object(Piece.self, with: id).title = "Moon"
        try await sheet.save()
        try await importer.save()
        // end
    }
}

@Suite struct ChangeGuideTests {
    @MainActor private func open() async throws -> PersistentContainer {
        try await PersistentContainer(
            for: Articles.Band.self, Articles.Album.self, Articles.Piece.self, Articles.Song.self, store: .memory)
    }

    @MainActor @Test func `the article on changing many objects runs`() async throws {
        let container = try await open()
        let context = container.mainContext
        context.insert(Articles.Band(name: "Air"))
        context.insert(Articles.Album(title: "Live"))
        context.insert(Articles.Song(isrc: "FRZ039800212", title: "Baguette"))
        for plays in [0, 0, 2, 3] { context.insert(Articles.Piece(title: "Sun", plays: plays)) }
        try await Articles.deleting(context)
        try await Articles.updating(container)
        try await Articles.importing(container, context)
        try await context.save()
        try await container.read { context in
            let albums = try context.fetch(FetchRequest<Articles.Album>(sortBy: [.init(\.title)]))
            #expect(albums.map(\.title) == ["Live", "Moon Safari", "Sampler"])
            #expect(albums.map { $0.band?.name } == ["Air", "Air", nil])
            let songs = try context.fetch(FetchRequest<Articles.Song>(sortBy: [.init(\.isrc)]))
            #expect(songs.map(\.title) == ["Sun", "Rain"])
            #expect(try context.count(FetchRequest<Articles.Piece>()) == 0)
        }
        try await container.close()
    }

    @MainActor @Test func `the custom policy of the article on conflicts keeps the greater number of plays`() async throws {
        let container = try await open()
        let piece = Articles.Piece(title: "Sun")
        container.mainContext.insert(piece)
        try await container.mainContext.save()
        let id = piece.id
        let importer = container.newBackgroundContext(name: "import")
        try await importer.perform { context in
            Articles.settling(context)
            try context.existingObject(Articles.Piece.self, with: id).plays = 3
        }
        try await container.write { try $0.existingObject(Articles.Piece.self, with: id).plays = 5 }
        try await importer.save()
        let plays = try await container.read { try $0.existingObject(Articles.Piece.self, with: id).plays }
        #expect(plays == 5)
        try await container.close()
    }

    @MainActor @Test func `the examples of child contexts save through their parents`() async throws {
        let container = try await open()
        container.mainContext.insert(Articles.Piece(title: "intro"))
        try await container.mainContext.save()
        try await Articles.backgroundChild(container)
        try await Articles.mainChild(container)
        let titles = try await container.read { context in
            try context.fetch(FetchRequest<Articles.Piece>(sortBy: [.init(\.title)])).map(\.title)
        }
        #expect(titles == ["INTRO", "Moon"])
        try await container.close()
    }
}
