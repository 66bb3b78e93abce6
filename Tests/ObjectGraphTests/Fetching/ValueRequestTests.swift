import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Requests for values of a model type, by key paths.
@Suite struct ValueRequestTests {
    private static func fill(_ context: ManagedObjectContext) {
        let singer = context.insert("Singer")
        singer["name"] = .string("Joni")
        for (title, plays, rating) in [("a", 1, nil), ("b", 2, 4.0), ("c", 3, 5.0)] as [(String, Int, Double?)] {
            let song = context.insert("Song")
            song["title"] = .string(title)
            song["plays"] = .int(Int64(plays))
            song["rating"] = rating.storeValue
            if title != "a" { song.setRelatedObject("singer", to: singer) }
        }
    }

    @Test func S133_keyPathsNameTheSameAsAttributes() async throws {
        let container = try await TestBed(.memory).container(model: Model(Song.self, Singer.self))
        try await container.newBackgroundContext().perform { context throws in
            Self.fill(context)
            let some = FetchRequest<Song>(where: #Predicate { $0.plays > 1 })
            #expect(try context.sum(\Song.plays, of: some) == 5)
            #expect(try context.sum(\Song.rating) == 9)
            #expect(try context.minimum(\Song.title) == "a")
            #expect(try context.maximum(\Song.rating) == 5)
            #expect(try context.minimum(\Song.rating, of: FetchRequest(where: #Predicate { $0.plays == 1 })) == nil)
            #expect(try context.average(\Song.rating) == 4.5)
            let request = ValueRequest<Song>(
                [.property(\.singer, \.name), .count.named("songs"), .max(\.plays)], where: #Predicate { $0.plays > 0 },
                groupBy: [.property(\.singer, \.name)], having: ModelColumn<Song>.count.named("songs").is(.greater, 1),
                sortBy: [.init(.max(\.plays), .descending)])
            let rows = try context.fetch(request)
            #expect(rows.map(\.values) == [[.string("Joni"), .int(2), .int(3)]])
            #expect(rows.first?["songs", as: Int.self] == 2)
            // A group is made by the property of a column, whatever the column is called.
            let singer = ModelColumn<Song>.property(\.singer, \.name)
            for name in ["voice", "title"] {
                let named = try context.fetch(ValueRequest<Song>([singer.named(name), .count], groupBy: [singer.named(name)]))
                let plain = try context.fetch(ValueRequest<Song>([singer, .count], groupBy: [singer]))
                #expect(named.map(\.values) == plain.map(\.values) && named.count == 2)
            }
            let titles = try context.fetch(ValueRequest<Song>([.property(\.title)], sortBy: [.init(.property(\.title))]))
            #expect(titles.map { $0.value(\Song.title) } == ["a", "b", "c"])
            #expect(throws: FetchError.self) { try context.fetch(ValueRequest<Song>([.property(\.shoutedTitle)])) }
        }
    }
}
