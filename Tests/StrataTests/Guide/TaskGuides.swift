import Foundation
import Observation
import Strata
import Synchronization
import Testing

// The code of the articles on tasks, compiled. The architecture tests compare both.

enum Articles {
    enum Mood: String, Codable, Sendable { case calm, wild }

    // Sources/Strata/Strata.docc/DefiningModels.md
    @Model final class Song {
        @Attribute(.unique) var isrc: String
        @Attribute(.length(1...80)) var title: String
        @Attribute(.indexed, .range(0...)) var plays = 0
        var released: Date?
        var genres: [String] = []
        @Transient var isPlaying = false

        #Index<Song>([\.released, \.title])
    }
    // end

    // Sources/Strata/Strata.docc/RelatingObjects.md
    @Model final class Band {
        @Attribute(.unique) var name: String
        @Relationship(deleteRule: .cascade, inverse: \Album.band) var albums: [Album] = []
    }

    @Model final class Album {
        var title: String
        var band: Band?
        @Relationship(.ordered, deleteRule: .nullify, inverse: \Piece.album) var pieces: [Piece] = []
    }

    @Model final class Piece {
        var title: String
        @Attribute(.indexed) var plays = 0
        var album: Album?
    }
    // end

    @MainActor static func objects(_ context: ManagedObjectContext, _ file: URL) async throws {
        // Sources/Strata/Strata.docc/DefiningModels.md
        let container = try await PersistentContainer(for: Song.self, store: .lmdb(file))
        let song = Song(isrc: "FRZ039800212", title: "Baguette")
        container.mainContext.insert(song)
        song.genres = ["pop"]
        try await container.mainContext.save()
        // end
        struct SongRow: Codable { var isrc: String, title: String }
        let rows = [SongRow(isrc: "FRZ039800212", title: "Sun"), SongRow(isrc: "FRZ039800213", title: "Rain")]
        let context = container.mainContext
        // Sources/Strata/Strata.docc/WorkingInBackground.md
        try context.upsert(unique: \Song.isrc, "FRZ039800212") { $0.title = "Baguette" }
        try context.upsert(contentsOf: rows, unique: \Song.isrc)
        // end
        #expect(try context.fetch(FetchRequest<Song>(sortBy: [.init(\.title)])).map(\.title) == ["Rain", "Sun"])
    }

    @MainActor static func relating(_ context: ManagedObjectContext) async throws {
        // Sources/Strata/Strata.docc/RelatingObjects.md
        let album = Album(title: "Live", band: Band(name: "Air"))
        context.insert(album)  // inserts the band too
        album.pieces = [Piece(title: "Intro"), Piece(title: "Sun")]
        album.pieces.swapAt(0, 1)
        context.delete(album)  // the pieces stay, without an album
        // end
    }

    @MainActor static func fetching(_ context: ManagedObjectContext, band: String) throws {
        // Sources/Strata/Strata.docc/FetchingObjects.md
        let popular = FetchRequest<Piece>(
            where: #Predicate { $0.plays > 100 && $0.album?.band?.name == band },
            sortBy: [.init(\.plays, .descending), .init(\.title)], limit: 20)
        let pieces = try context.fetch(popular)
        let count = try context.count(popular)
        // end
        _ = (pieces, count)
        // Sources/Strata/Strata.docc/FetchingObjects.md
        let air = try context.find(unique: \Band.name, "Air")
        let newest = try context.first(where: #Predicate<Piece> { $0.title.starts(with: "Su") })
        // end
        _ = (air, newest)
        // Sources/Strata/Strata.docc/FetchingObjects.md
        let total = try context.sum(\.plays, of: FetchRequest<Piece>())
        let perAlbum = ValueRequest<Piece>(
            [.property(\.album, \.title), .sum(\.plays)], groupBy: [.property(\.album, \.title)])
        for row in try context.fetch(perAlbum) { print(row) }
        print(try context.explain(popular))
        // end
        _ = total
        // Sources/Strata/Strata.docc/FetchingObjects.md
        let unplayed = ValueRequest<Piece>(
            [.property(\.album, \.title), .count], where: #Predicate { $0.plays == 0 },
            groupBy: [.property(\.album, \.title)])
        for (album, count) in try context.rows(unplayed, as: (String?, Int).self) { print(album ?? "no album", count) }
        let pairs = try context.rows(\Piece.title, \.plays, where: #Predicate { $0.plays > 0 }, limit: 10)
        // end
        _ = pairs
        // Sources/Strata/Strata.docc/FetchingObjects.md
        let plays = ModelColumn<Piece>.sum(\.plays)
        let played = ValueRequest<Piece>(
            [.property(\.album, \.title), plays], groupBy: [.property(\.album, \.title)],
            having: plays.is(.greater, 100), sortBy: [.init(plays, .descending)], limit: 10)
        // end
        #expect(try context.fetch(played).isEmpty)
    }

    @MainActor static func observing(_ context: ManagedObjectContext, show: @MainActor ([Piece]) -> Void) async throws {
        // Sources/Strata/Strata.docc/ObservingResults.md
        let pieces = try Results(
            FetchRequest<Piece>(where: #Predicate { $0.plays > 0 }, sortBy: [.init(\.title)]), context: context)
        show(Array(pieces))
        for await update in pieces.updates {
            print(update.difference)
            show(Array(pieces))
        }
        // end
        // Sources/Strata/Strata.docc/ObservingResults.md
        let songs = try Results(
            FetchRequest<Piece>(sortBy: [.init(\.title)]), sectionedBy: .init(\.album, by: \.title), context: context)
        for section in songs.sections {
            print(section.name)
            for song in songs[section.range] { print("  \(song.title)") }
        }
        // end
    }

    @MainActor static func applyingDifferences(_ pieces: Results<Piece>) async {
        // Sources/Strata/Strata.docc/ObservingResults.md
        var rows = pieces.snapshot.ids
        for await update in pieces.updates {
            let (next, difference) = (update.snapshot.ids, update.difference)
            let removed = difference.deletions + difference.moves.map(\.from)
            for position in removed.sorted(by: >) { rows.remove(at: position) }
            let inserted = difference.insertions + difference.moves.map(\.to)
            for position in inserted.sorted() { rows.insert(next[position], at: position) }
            print("show \(rows.count) rows, and draw \(difference.updates) again")
        }
        // end
    }

    @MainActor static func observingProperties(_ piece: Piece) {
        // Sources/Strata/Strata.docc/ObservingResults.md
        withObservationTracking {
            print(piece.title, piece.plays)
        } onChange: {
            print("the title or the number of plays changes")
        }
        // end
    }

    @MainActor static func saving(_ context: ManagedObjectContext) async throws {
        // Sources/Strata/Strata.docc/SavingAndConflicts.md
        context.mergePolicy = .error
        do {
            try await context.save()
        } catch SaveError.conflicts(let conflicts) {
            for conflict in conflicts { print(conflict) }
            context.mergePolicy = .objectTrump  // our values replace those of the store, property by property
            try await context.save()
        } catch SaveError.validation(let errors) {
            for violation in errors.ruleViolations { print(violation.message) }
        }
        // end
    }

    static func settling(_ context: ManagedObjectContext) {
        // Sources/Strata/Strata.docc/SavingAndConflicts.md
        context.mergePolicy = .custom { conflicts in
            var resolutions: [ObjectID: ConflictResolution] = [:]
            for conflict in conflicts {
                let plays = conflict.properties.first { $0.name == "plays" }
                if case .int(let ours) = plays?.ours, case .int(let theirs) = plays?.theirs {
                    resolutions[conflict.objectID] = .values(["plays": .int(max(ours, theirs))])
                } else {
                    resolutions[conflict.objectID] = .objectTrump
                }
            }
            return resolutions
        }
        // end
    }

    @MainActor static func previewing(_ context: ManagedObjectContext) async throws {
        // Sources/Strata/Strata.docc/SavingAndConflicts.md
        let preview = await context.previewSave()
        print(preview)  // the changes, the conflicts, and the error that the save would throw
        if preview.failure == nil { try await context.save() }
        // end
        #expect(preview.failure == nil)
    }

    static func writing(_ container: PersistentContainer, id: ObjectID) async throws {
        // Sources/Strata/Strata.docc/SavingAndConflicts.md
        try await container.write(retrying: 5) { context in
            try context.existingObject(Piece.self, with: id).plays += 1
        }
        // end
    }

    @MainActor static func background(_ container: PersistentContainer, titles: [String]) async throws {
        // Sources/Strata/Strata.docc/WorkingInBackground.md
        let importer = container.newBackgroundContext(name: "import")
        let id = await importer.perform { context in
            let pieces = titles.map { Piece(title: $0) }
            for piece in pieces { context.insert(piece) }
            return pieces.first?.id
        }
        try await importer.save()
        if let id { print(container.mainContext.object(Piece.self, with: id).title) }
        // end
        // Sources/Strata/Strata.docc/WorkingInBackground.md
        struct Row: Codable, Sendable { var title: String }
        try await container.coordinator.insert(contentsOf: titles.map { Row(title: $0) }, as: Piece.self) { progress in
            print("\(progress)")
        }
        // end
        // Sources/Strata/Strata.docc/WorkingInBackground.md
        let names = try await container.read { context in
            try context.fetch(FetchRequest<Piece>(sortBy: [.init(\.title)])).map(\.title)
        }
        // end
        _ = names
        // Sources/Strata/Strata.docc/WorkingInBackground.md
        try await container.suspend()
        // The process is frozen here, and goes on later.
        await container.resume()
        // end
    }

    // Sources/Strata/Strata.docc/MigratingStores.md
    enum FirstVersion {
        @Model final class Track {
            var name: String
        }

        static var model: Model { get throws { try Model(Track.self, version: SchemaVersion(1, 0, 0)) } }
    }

    enum SecondVersion {
        @Model final class Track {
            @Attribute(renamedFrom: "name") var title: String
            @Attribute(.indexed) var sortTitle: String = ""
        }

        static var model: Model { get throws { try Model(Track.self, version: SchemaVersion(2, 0, 0)) } }
    }
    // end

    static func migrating(_ file: URL) async throws -> PersistentContainer {
        // Sources/Strata/Strata.docc/MigratingStores.md
        let plan = MigrationPlan([
            .custom(
                from: try FirstVersion.model, to: try SecondVersion.model,
                didMigrate: { context in
                    for track in try context.fetch(FetchRequest<SecondVersion.Track>()) {
                        track.sortTitle = track.title.lowercased()
                    }
                })
        ])
        let container = try await PersistentContainer(
            model: SecondVersion.model, store: .lmdb(file), migrationPlan: plan)
        // end
        return container
    }

    static func carryingNames() throws -> MigrationPlan {
        // Sources/Strata/Strata.docc/MigratingStores.md
        let names = Mutex<[ObjectID: String]>([:])
        let plan = MigrationPlan([
            .custom(
                from: try FirstVersion.model, to: try SecondVersion.model,
                willMigrate: { context in
                    for track in try context.fetch(FetchRequest<FirstVersion.Track>()) {
                        names.withLock { $0[track.id] = track.name }
                    }
                },
                didMigrate: { context in
                    for track in try context.fetch(FetchRequest<SecondVersion.Track>()) {
                        track.sortTitle = names.withLock { $0[track.id] } ?? ""
                    }
                })
        ])
        // end
        return plan
    }

    // Sources/Strata/Strata.docc/LargeData.md
    @Model final class Recording {
        var title: String
        @Attribute(.indexed) var seconds = 0
        var sound: Data
    }
    // end

    @MainActor static func largeData(_ container: PersistentContainer, _ recording: Recording) async throws {
        let context = container.mainContext
        // Sources/Strata/Strata.docc/LargeData.md
        var count = 0
        for try await part in try context.stream(recording, \.sound) { count += part.count }
        // end
        #expect(count == 100_000)
        // Sources/Strata/Strata.docc/LargeData.md
        var seconds = 0
        for try await recording in context.stream(FetchRequest<Recording>()) { seconds += recording.seconds }
        // end
        #expect(seconds == 60)
        // Sources/Strata/Strata.docc/LargeData.md
        let all = try context.fetchInBatches(FetchRequest<Recording>(sortBy: [.init(\.title)]))
        let first = all.first?.title
        // end
        #expect(first == "long")
        // Sources/Strata/Strata.docc/LargeData.md
        let total = try context.fetch(
            EntityValueRequest("Recording", fetching: [.count, .sum("seconds").named("seconds")]))
        // end
        #expect(total.first?.values == [2, 60])
        // Sources/Strata/Strata.docc/LargeData.md
        let result = try await container.coordinator.batchDelete(
            FetchRequest<Recording>(where: #Predicate { $0.seconds == 0 }))
        print(result.deletedCount)
        // end
        #expect(result.deletedCount == 1)
    }

    @MainActor static func backingUp(_ container: PersistentContainer, to backup: URL) async throws -> HistoryToken {
        // Sources/Strata/Strata.docc/BackupAndHistory.md
        let token = try await container.coordinator.backup(to: backup, existing: .replace)
        print("the copy has the saves up to \(token.generation)")
        // end
        let context = container.mainContext
        // Sources/Strata/Strata.docc/BackupAndHistory.md
        context.transactionAuthor = "editor"
        try await context.save()
        var request = HistoryRequest(after: token)
        request.excludedAuthors = ["server"]
        for transaction in try await container.coordinator.history(request) {
            for change in transaction.changes { print(transaction.id, change) }
        }
        // end
        // Sources/Strata/Strata.docc/BackupAndHistory.md
        let deleted = try await container.coordinator.deleteHistory(before: token)
        // end
        #expect(deleted > 0)
        // Sources/Strata/Strata.docc/BackupAndHistory.md
        let findings = try await container.coordinator.verify()
        for finding in findings { print(finding) }
        try await container.coordinator.compact()
        // end
        #expect(findings.isEmpty)
        return token
    }

    static func following(_ container: PersistentContainer) async throws {
        // Sources/Strata/Strata.docc/BackupAndHistory.md
        try container.followOtherProcesses()
        for await newest in container.coordinator.remoteChanges {
            print("the newest save is \(newest.generation)")
        }
        // end
    }

    static func restoring(_ container: PersistentContainer, _ file: URL, from backup: URL) async throws {
        // Sources/Strata/Strata.docc/BackupAndHistory.md
        try await container.close()
        try await PersistentContainer.restore(.lmdb(file), from: backup)
        // end
    }

    static func checkingVersions(_ file: URL, _ folder: URL, _ plan: MigrationPlan) async throws {
        // Sources/Strata/Strata.docc/MigratingStores.md
        let changes = try await SecondVersion.model.changes(opening: .lmdb(file), migrationPlan: plan)
        for line in changes.lines { print(line) }
        if let refusal = changes.refusal { print(refusal) }
        // end
        // Sources/Strata/Strata.docc/MigratingStores.md
        let history = ModelHistory(model: try SecondVersion.model, migrationPlan: plan) { .lmdb($0) }
        for report in try await history.check(fixtures: folder) { print(report) }
        // end
    }
}

@Suite struct TaskGuideTests {
    /// A store, and the file of an LMDB store for the articles that open one themselves.
    @MainActor private func use(
        _ types: any PersistentModel.Type..., body: @MainActor (PersistentContainer, URL) async throws -> Void
    )
        async throws
    {
        let folder = FileManager.default.temporaryDirectory.appending(path: "strata-guide-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let container = try await PersistentContainer(model: Model(types), store: .lmdb(folder.appending(path: "store")))
        try await body(container, folder.appending(path: "other"))
        try await container.close()
    }

    @MainActor @Test func `the articles on models, relationships, fetching and background work run`() async throws {
        try await use(Articles.Band.self, Articles.Album.self, Articles.Piece.self) { container, file in
            let context = container.mainContext
            try await Articles.objects(context, file)
            try await Articles.background(container, titles: ["Sun", "Intro"])
            #expect(try context.count(FetchRequest<Articles.Piece>()) == 4)
            try await Articles.relating(context)
            try await Articles.previewing(context)
            try await Articles.saving(context)
            try Articles.fetching(context, band: "Air")
            let piece = try #require(try context.first(where: #Predicate<Articles.Piece> { $0.title == "Sun" }))
            try await Articles.writing(container, id: piece.id)
            #expect(piece.plays == 1)
            Articles.observingProperties(piece)
        }
    }

    @MainActor @Test func `the articles on large data, backups and the history run`() async throws {
        try await use(Articles.Recording.self) { _, file in
            let container = try await PersistentContainer(for: Articles.Recording.self, store: .lmdb(file))
            let recording = Articles.Recording(title: "short", sound: Data(count: 100_000))
            container.mainContext.insert(recording)
            container.mainContext.insert(Articles.Recording(title: "long", seconds: 60, sound: Data()))
            try await container.mainContext.save()
            let backup = file.deletingLastPathComponent().appending(path: "backup")
            container.mainContext.insert(Articles.Recording(title: "late", seconds: 1, sound: Data()))
            let token = try await Articles.backingUp(container, to: backup)
            #expect(token.generation == 1)
            // The loop over saves of other processes ends with the container.
            let follower = Task { try await Articles.following(container) }
            follower.cancel()
            try await follower.value
            try await Articles.restoring(container, file, from: backup)
            let restored = try await PersistentContainer(for: Articles.Recording.self, store: .lmdb(file))
            let first = try #require(
                try restored.mainContext.first(where: #Predicate<Articles.Recording> { $0.title == "short" }))
            try await Articles.largeData(restored, first)
            try await restored.close()
        }
    }

    @MainActor @Test func `the article on migration carries the names over and computes the new attribute`() async throws {
        try await use(Articles.Song.self) { _, file in
            let first = try await PersistentContainer(model: Articles.FirstVersion.model, store: .lmdb(file))
            first.mainContext.insert(Articles.FirstVersion.Track(name: "Sun"))
            try await first.mainContext.save()
            try await first.close()
            let fixtures = file.deletingLastPathComponent().appending(path: "fixtures")
            try FileManager.default.createDirectory(at: fixtures, withIntermediateDirectories: true)
            try FileManager.default.copyItem(at: file, to: fixtures.appending(path: "1.0.strata"))
            let plan = MigrationPlan([
                .lightweight(from: try Articles.FirstVersion.model, to: try Articles.SecondVersion.model)
            ])
            try await Articles.checkingVersions(file, fixtures, plan)
            let second = try await Articles.migrating(file)
            let track = try #require(try second.mainContext.first(where: #Predicate<Articles.SecondVersion.Track> { _ in true }))
            #expect(track.title == "Sun" && track.sortTitle == "sun")
            try await second.close()
            let copy = file.deletingLastPathComponent().appending(path: "copy")
            try FileManager.default.copyItem(at: fixtures.appending(path: "1.0.strata"), to: copy)
            let carried = try await PersistentContainer(
                model: Articles.SecondVersion.model, store: .lmdb(copy), migrationPlan: Articles.carryingNames())
            let found = try #require(
                try carried.mainContext.first(where: #Predicate<Articles.SecondVersion.Track> { _ in true }))
            #expect(found.title == "Sun" && found.sortTitle == "Sun")
            try await carried.close()
        }
    }
}
