import Foundation
import ObjectGraph
import StoreInterface
import StoreModel

/// The examples in the documentation comments of requests and their results, compiled. The architecture tests compare both.
private enum FetchingExamples {
    static func requests(_ context: ManagedObjectContext) throws {
        do {
            // Sources/ObjectGraph/Fetching/Requests/FetchRequest.swift
            let request = FetchRequest<Track>(
                where: #Predicate { $0.playCount > 100 }, sortBy: [.init(\.title)], limit: 20)
            let titles = try context.fetch(request).map(\.title)
            // end
            print(titles)
        }
        do {
            // Sources/ObjectGraph/Fetching/Requests/FetchRequest.swift
            let request = EntityFetchRequest(
                "Track", matching: .compare("playCount", .greater, to: 100), sortBy: [.init("title")], limit: 20)
            let titles = try context.fetch(request).map { $0["title"] }
            // end
            print(titles)
        }
        do {
            // Sources/ObjectGraph/Fetching/Requests/FetchRequest.swift
            let popular = FetchRequest<Track>(where: #Predicate { $0.playCount > 100 })
            let live = popular.filter(#Predicate { $0.title.contains("live") })
            // end
            print(live)
        }
        // Sources/ObjectGraph/Fetching/Predicates/Condition.swift
        let live = FetchRequest<Track>(
            matching: .all([
                .string("title", .hasSuffix, pattern: "(live)", sensitivity: .insensitive), .not(.equal("isrc", "")),
            ]))
        // end
        print(live)
        // Sources/ObjectGraph/Fetching/Requests/FetchedBatches.swift
        let tracks = try context.fetchInBatches(FetchRequest<Track>(sortBy: [.init(\.title)]))
        let middle = tracks[tracks.count / 2]  // creates the objects of one batch
        // end
        print(middle.title)
        do {
            // Sources/ObjectGraph/Fetching/Requests/FetchError.swift
            do {
                print(try context.fetch(EntityFetchRequest("Track", sortBy: [.init("titel")])))
            } catch FetchError.unknownProperty(let entity, let property) {
                print("\(entity) has no property \(property)")
            }
            // end
        }
    }

    static func finding(_ context: ManagedObjectContext) throws {
        // Sources/ObjectGraph/Fetching/Requests/ManagedObjectContext+Finding.swift
        let played = try context.fetch(where: #Predicate<Track> { $0.playCount > 0 }, sortBy: [.init(\.title)])
        // end
        // Sources/ObjectGraph/Fetching/Requests/ManagedObjectContext+Finding.swift
        let longest = try context.first(where: #Predicate<Track> { $0.playCount > 0 }, sortBy: [.init(\.playCount, .descending)])
        // end
        // Sources/ObjectGraph/Fetching/Requests/ManagedObjectContext+Finding.swift
        let track = try context.find(unique: \Track.isrc, "FRZ039800212")
        // end
        print(played.count, longest ?? track as Any)
    }

    static func rows(_ context: ManagedObjectContext) throws {
        // Sources/ObjectGraph/Fetching/Values/ManagedObjectContext+Rows.swift
        struct Summary: Decodable {
            var album: ObjectID?
            var plays: Int
        }

        let request = ValueRequest<Track>(
            [.property(\.album), .sum(\.playCount).named("plays")], groupBy: [.property(\.album)])
        let summaries = try context.rows(request, as: Summary.self)
        // end
        print(summaries)
        // Sources/ObjectGraph/Fetching/Values/ManagedObjectContext+Rows.swift
        for (title, plays) in try context.rows(\Track.title, \.playCount, where: #Predicate { $0.playCount > 100 }) {
            print(title, plays)
        }
        // end
    }

    static func importing(_ context: ManagedObjectContext, _ json: Data) throws {
        // Sources/ObjectGraph/Importing/ManagedObjectContext+Importing.swift
        struct Song: Decodable {
            var title: String
            var album: String?  // The unique title of an album.
        }

        let songs = try JSONDecoder().decode([Song].self, from: json)
        try context.insert(contentsOf: songs, as: Track.self)
        // end
        // Sources/ObjectGraph/Importing/ManagedObjectContext+Importing.swift
        try context.upsert(contentsOf: songs, unique: \Track.isrc)
        // end
        // Sources/ObjectGraph/Importing/ManagedObjectContext+Upserting.swift
        let track = try context.upsert(unique: \Track.isrc, "FRZ039800212") { track in
            track.title = "Baguette"
        }
        // end
        print(track)
    }

    private struct TrackValue: Decodable, Sendable {
        var title: String
    }

    static func imports(_ coordinator: PersistentStoreCoordinator, _ rows: [[Value]]) async throws {
        let songs = [TrackValue(title: "Baguette")]
        // Sources/ObjectGraph/Importing/PersistentStoreCoordinator+Importing.swift
        try await coordinator.insert(contentsOf: songs, as: Track.self, rule: .update(on: ["isrc"]))
        // end
        // Sources/ObjectGraph/Coordination/Batches/BatchRequest.swift
        try await coordinator.insert(into: "Track", ["title"], rows: rows) { progress in
            print("\(progress.savedRows) of \(progress.totalRows ?? 0) rows")
        }
        // end
    }

    static func batches(_ coordinator: PersistentStoreCoordinator, _ album: ObjectID) async throws {
        do {
            // Sources/ObjectGraph/Coordination/Batches/BatchChange.swift
            let change = BatchChange.set(\Track.album, \.title, to: "Live")
            // end
            print(change)
        }
        // Sources/ObjectGraph/Coordination/Batches/BatchChange.swift
        try await coordinator.batchUpdate(
            FetchRequest<Track>(where: #Predicate { $0.playCount > 100 }), .set(\.playCount, to: 0), .set(\.album, to: album))
        // end
    }

    static func sorts(_ request: inout FetchRequest<Track>, _ named: inout EntityFetchRequest) {
        // Sources/ObjectGraph/Fetching/Sorting/SortBy.swift
        request.sortBy = [.init(\.playCount, .descending), .init(\.title, comparing: .caseInsensitive)]
        // end
        // Sources/ObjectGraph/Fetching/Sorting/SortBy.swift
        named.sortBy = [.init("playCount", .descending), .init("title", comparing: .caseInsensitive)]
        // end
    }

    @MainActor static func streams(_ context: ManagedObjectContext, _ importer: BackgroundContext, _ track: Track) async throws {
        var plays = 0
        // Sources/ObjectGraph/Fetching/Streams/FetchStream.swift
        for try await track in context.stream(FetchRequest<Track>()) { plays += track.playCount }
        // end
        // Sources/ObjectGraph/Contexts/Executors/BackgroundStream.swift
        let titles = importer.stream(FetchRequest<Track>()) { $0.title }
        for try await title in titles { print(title) }
        // end
        var bytes = Data()
        // Sources/ObjectGraph/Fetching/Streams/ValueStream.swift
        for try await part in try context.stream(track, \.recording) { bytes.append(part) }
        // end
        print(plays, bytes)
    }

    static func values(_ context: ManagedObjectContext) throws {
        do {
            // Sources/ObjectGraph/Fetching/Values/ValueRequest.swift
            let request = ValueRequest<Track>([.property(\.album), .sum(\.playCount)], groupBy: [.property(\.album)])
            let rows = try context.fetch(request)
            // end
            for row in rows {
                // Sources/ObjectGraph/Fetching/Values/ResultRow.swift
                let album = row.objectID("album")
                let plays = row["sum(playCount)", as: Int.self]
                // end
                print(album as Any, plays as Any)
            }
        }
        // Sources/ObjectGraph/Fetching/Values/ResultColumn.swift
        let plays = ResultColumn.sum("playCount").named("plays")
        // end
        // Sources/ObjectGraph/Fetching/Values/ModelColumn.swift
        let columns: [ModelColumn<Track>] = [.property(\.album, \.title), .sum(\.playCount).named("plays")]
        // end
        // Sources/ObjectGraph/Fetching/Values/ValueRequest.swift
        let request = EntityValueRequest(
            "Track", fetching: [.property("album"), plays], groupBy: ["album"], having: plays.is(.greater, 100))
        let rows = try context.fetch(request)
        // end
        print(rows, columns)
    }

    @MainActor static func liveResults(_ context: ManagedObjectContext) throws {
        var rows: [ObjectID] = []
        // Sources/ObjectGraph/LiveResults/FetchedResultsController.swift
        let results = try FetchedResultsController(FetchRequest<Track>(sortBy: [.init(\.title)]), context: context)
        results.onChange = { update in rows = update.snapshot.ids }
        try results.performFetch()
        // end
        let (difference, snapshot) = (ResultDifference(), results.snapshot)
        // Sources/ObjectGraph/LiveResults/ResultDifference.swift
        for position in (difference.deletions + difference.moves.map(\.from)).sorted(by: >) { rows.remove(at: position) }
        for position in (difference.insertions + difference.moves.map(\.to)).sorted() {
            rows.insert(snapshot[position], at: position)
        }
        // end
        // Sources/ObjectGraph/LiveResults/ResultSnapshot.swift
        let first = results.snapshot.first.map { context.object(Track.self, with: $0) }
        // end
        print(first as Any, rows)
    }

    @MainActor static func sections(_ context: ManagedObjectContext, _ update: ResultUpdate) throws {
        var sections: [[ObjectID]] = []
        do {
            // Sources/ObjectGraph/LiveResults/FetchedResultsController.swift
            let songs = try FetchedResultsController(
                FetchRequest<Track>(sortBy: [.init(\.title)]), sectionedBy: .init(\.album, by: \.title), context: context)
            try songs.performFetch()
            for section in songs.snapshot.sections { print(section.name, section.range.count) }
            // end
        }
        do {
            // Sources/ObjectGraph/LiveResults/Results.swift
            let songs = try Results(
                FetchRequest<Track>(sortBy: [.init(\.title)]), sectionedBy: .init(\.album, by: \.title), context: context)
            // end
            // Sources/ObjectGraph/LiveResults/SectionList.swift
            for section in songs.sections {
                print(section.name)
                for song in songs[section.range] { print("  \(song.title)") }
            }
            // end
        }
        // Sources/ObjectGraph/LiveResults/ResultSectionDifference.swift
        guard let difference = update.sectionDifference else { return }
        for place in (difference.deletions + difference.moves.map(\.from)).sorted(by: >) {
            sections[place.section].remove(at: place.item)
        }
        for section in difference.deletedSections.reversed() { sections.remove(at: section) }
        for section in difference.insertedSections { sections.insert([], at: section) }
        for place in (difference.insertions + difference.moves.map(\.to)).sorted() {
            let position = update.snapshot.sections[place.section].range.lowerBound + place.item
            sections[place.section].insert(update.snapshot[position], at: place.item)
        }
        // end
    }
}
