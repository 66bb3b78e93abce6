import Foundation
import Strata
import TestSupport
import Testing

// Sources/Strata/Macros.swift
@Model final class Concert {
    var title: String
    @Relationship var venue: Venue?
    @Relationship(deleteRule: .cascade, inverse: \Ticket.concert) var tickets: [Ticket]
    @Derived(from: \Concert.venue?.city) var city: String?
    @Derived(count: \Concert.tickets) @Attribute(.indexed) var ticketCount: Int
    @Derived(sum: \Ticket.price, in: \Concert.tickets) var income: Int
    @Derived(folded: \Concert.title) var searchTitle: String
}

@Model final class Venue {
    var city: String
}

@Model final class Ticket {
    var price: Int
    var concert: Concert?
}
// end

/// Derived attributes of macro models (S200).
@Suite struct DerivedModelTests {
    @Test @MainActor func `S200: the macro derives attributes, which have no setter`() async throws {
        let container = try await PersistentContainer(for: Concert.self, Venue.self, Ticket.self, store: .memory)
        let main = container.mainContext
        let venue = Venue(city: "Ulm")
        let concert = Concert(title: "Été", venue: venue, tickets: [])
        #expect(concert.ticketCount == 0 && concert.city == nil && concert.searchTitle == "")
        main.insert(concert)
        for price in [10, 20] { main.insert(Ticket(price: price, concert: concert)) }
        try await main.save()
        #expect(concert.ticketCount == 2 && concert.income == 30 && concert.city == "Ulm" && concert.searchTitle == "ete")
        venue.city = "Bonn"
        try await main.save()
        #expect(concert.city == "Bonn")
        let found = try main.fetch(
            FetchRequest<Concert>(
                where: #Predicate { $0.ticketCount > 1 && $0.searchTitle.contains("ete") }, sortBy: [.init(\.city)]))
        #expect(found == [concert])
        try await container.close()
    }

    @Test(.enabled(if: SwiftCompiler.shared != nil, "the built modules were not found next to the tests"))
    func `S200: assigning a derived attribute does not compile`() async throws {
        let compiler = try #require(SwiftCompiler.shared)
        let source = """
            import Strata
            @Model final class Album {
                var title: String
                var tracks: [Song]
                @Derived(count: \\Album.tracks) var trackCount: Int
            }
            @Model final class Song { var album: Album? }
            func use(_ album: Album) -> Int { album.trackCount }

            """
        #expect(try await compiler.messages(about: source).filter { $0.contains("error: ") } == [])
        let wrong = try await compiler.messages(about: source + "func change(_ album: Album) { album.trackCount = 1 }")
        let errors = wrong.filter { $0.contains("error: ") }
        #expect(errors.count == 1 && errors[0].contains("trackCount") && errors[0].contains("get-only"), "\(errors)")
    }
}
