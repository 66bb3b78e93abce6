import Foundation
import Strata
import Testing

// Code of the article on fetching, compiled and run: decoded rows, comparisons, computed conditions and printed objects.
// The architecture tests compare both.

extension Articles {
    @MainActor static func comparing(_ context: ManagedObjectContext) throws {
        // Sources/Strata/Strata.docc/FetchingObjects.md
        let byTitle = FetchRequest<Piece>(sortBy: [.init(\.title, comparing: .localizedStandard)])
        let titles = try context.fetch(byTitle).map(\.title)  // Étude, sun 9, Sun 10
        let albums = FetchRequest<Album>(sortBy: [.init(\.title, comparing: .numeric), .init(\.band, by: \.name)])
        let query = "etude"
        let found = FetchRequest<Piece>(where: #Predicate { $0.title.localizedStandardContains(query) })
        // end
        #expect(titles == ["Étude", "sun 9", "Sun 10"])
        #expect(try context.fetch(albums).map(\.title) == ["Disc 2", "Disc 10"])
        #expect(try context.fetch(found).map(\.title) == ["Étude"])
    }

    // Sources/Strata/Strata.docc/FetchingObjects.md
    enum Genre: String, Codable, CaseIterable, Sendable { case jazz, rock }

    struct Venue: Codable {
        var city: String
        var halls: [String] = []
    }

    @Model final class Concert {
        var title: String
        var seats: Int
        var sold = 0
        var isFree = false
        var genre: Genre?
        var venue: Venue
    }
    // end

    @MainActor static func computing(_ context: ManagedObjectContext) throws {
        // Sources/Strata/Strata.docc/FetchingObjects.md
        let (city, hall) = ("Oslo", "Main")
        let live = FetchRequest<Concert>(where: #Predicate { $0.title.contains(/^Live.*[0-9]$/) })
        let nearlyFull = FetchRequest<Concert>(where: #Predicate { $0.seats - $0.sold < 10 })
        let open = FetchRequest<Concert>(where: #Predicate { $0.isFree ? $0.sold < 50 : $0.sold < $0.seats })
        let nearby = FetchRequest<Concert>(where: #Predicate { $0.venue.city == city && $0.venue.halls.contains(hall) })
        let (query, genre) = ("", "rock")
        let matching = FetchRequest<Concert>(where: #Predicate { query.isEmpty || $0.title.contains(query) })
        let named = FetchRequest<Concert>(where: #Predicate { $0.title.count > 4 && $0.genre?.rawValue == genre })
        print(try context.explain(nearlyFull))
        // end
        for (request, number) in [(live, 1), (nearlyFull, 1), (open, 1), (nearby, 2), (matching, 3), (named, 1)] {
            #expect(try context.count(request) == number, "\(request)")
        }
    }

    @MainActor static func decoding(_ context: ManagedObjectContext) throws {
        // Sources/Strata/Strata.docc/FetchingObjects.md
        struct AlbumPlays: Decodable {
            var album: String?
            var plays: Int
        }
        let playsPerAlbum = ValueRequest<Piece>(
            [.property(\.album, \.title).named("album"), .sum(\.plays).named("plays")],
            groupBy: [.property(\.album, \.title)])
        for row in try context.rows(playsPerAlbum, as: AlbumPlays.self) { print(row.album ?? "no album", row.plays) }
        // end
        let found = try context.rows(playsPerAlbum, as: AlbumPlays.self)
        #expect(found.count == 1 && found.first?.album == nil && found.first?.plays == 0)
    }

    @MainActor static func printing(_ context: ManagedObjectContext) throws {
        // Sources/Strata/Strata.docc/FetchingObjects.md
        let band = Band(name: "Air")
        print(band)  // Band(not inserted, name: "Air")
        let request = FetchRequest<Piece>(where: #Predicate { $0.plays > 100 }, sortBy: [.init(\.title)], limit: 20)
        print(request)  // Piece where plays > 100 sorted by title, at most 20
        for row in try context.fetch(ValueRequest<Piece>([.property(\.title), .property(\.plays)])) {
            print(row)  // (title: "Sun", plays: 3)
        }
        // end
        #expect("\(band)" == "Band(not inserted, name: \"Air\")")
        #expect("\(request)" == "Piece where plays > 100 sorted by title, at most 20")
        context.insert(band)
        #expect("\(band)" == "Band(id: \(band.id.key), name: \"Air\")")
        #expect(Mirror(reflecting: band).children.map { $0.label } == ["id", "name"])
    }
}

@Suite struct FetchGuideTests {
    @MainActor @Test func `the sections on comparisons, decoded rows and printed objects run`() async throws {
        let container = try await PersistentContainer(
            for: Articles.Band.self, Articles.Album.self, Articles.Piece.self, store: .memory)
        let context = container.mainContext
        for title in ["Sun 10", "Étude", "sun 9"] { context.insert(Articles.Piece(title: title)) }
        for title in ["Disc 10", "Disc 2"] { context.insert(Articles.Album(title: title)) }
        try Articles.comparing(context)
        try Articles.decoding(context)
        try Articles.printing(context)
        try await container.close()
    }

    @MainActor @Test func `the section on computed conditions runs`() async throws {
        let container = try await PersistentContainer(for: Articles.Concert.self, store: .memory)
        let context = container.mainContext
        let oslo = Articles.Venue(city: "Oslo", halls: ["Main", "Small"])
        context.insert(Articles.Concert(title: "Live 1999", seats: 100, sold: 100, genre: .rock, venue: oslo))
        context.insert(Articles.Concert(title: "Unplugged", seats: 100, isFree: true, venue: oslo))
        context.insert(
            Articles.Concert(
                title: "Live", seats: 100, sold: 80, isFree: true, genre: .rock, venue: Articles.Venue(city: "Rome")))
        try Articles.computing(context)
        try await container.close()
    }
}
