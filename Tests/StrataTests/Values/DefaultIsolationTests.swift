import Testing

/// Models in a module whose default isolation is the main actor, as in Xcode's new app projects.
@Suite(.enabled(if: SwiftCompiler.shared != nil, "the built modules were not found next to the tests"))
struct DefaultIsolationTests {
    private static let models = """
        enum Mood: String, Codable { case calm }
        struct Place: Codable, Equatable { var city = "Oslo" }
        nonisolated struct Spot: Codable { var x = 0 }
        nonisolated enum Way: Codable { case straight, by(Spot) }

        @Model final class Track {
            @Attribute(.unique) var isrc: String
            var title = "a"
            var id = UUID()
            var mood: Mood = Mood.calm
            var place: Place?
            var places: [Place] = [Place()]
            var spot = Spot()
            var way: Way = Way.straight
            var artist: Artist?
            init(isrc: String) { self.isrc = isrc }
        }
        @Model class Artist {
            var name: String
            var tracks: [Track] = []
            init(name: String) { self.name = name }
        }
        @Model final class Singer: Artist {
            var range = 3
            override init(name: String) { super.init(name: name) }
        }
        """

    private func expectNoErrors(
        _ source: String, flags: [String] = ["-default-isolation", "MainActor"]
    ) async throws {
        let compiler = try #require(SwiftCompiler.shared)
        let messages = try await compiler.messages(about: source, flags: flags)
        #expect(messages.filter { $0.contains("error: ") || $0.contains("warning: ") } == [])
    }

    @Test func `S173: a model compiles in a module of the main actor, for use in every context`() async throws {
        try await expectNoErrors(
            """
            import Foundation
            import Strata

            \(Self.models)
            @Model nonisolated final class Explicit { var mood: Mood? }
            func use(_ container: PersistentContainer) throws {
                let track = Track(isrc: "a")
                container.mainContext.insert(track)
                track.places.append(Place(city: "Bergen"))
                let request = FetchRequest<Track>(where: #Predicate { $0.title == "b" }, sortBy: [.init(\\.isrc)])
                print(try container.mainContext.fetch(request).map(\\.title), try Model(Track.self, Artist.self, Singer.self))
            }
            nonisolated func work(_ worker: BackgroundContext) async throws {
                try await worker.perform { context throws in
                    for track in try context.fetch(FetchRequest<Track>()) { track.title = "c" }
                }
            }
            """)
    }

    @Test(arguments: ["Strata", "StrataSwiftData"])
    func `S173: a model of the main actor's module can be compared and described by the program`(_ module: String) async throws {
        try await expectNoErrors(
            """
            import Foundation
            import \(module)

            \(Self.models)
            nonisolated extension Track: Comparable {
                static func < (a: Track, b: Track) -> Bool { a.title < b.title }
            }
            nonisolated extension Artist: CustomStringConvertible {
                var description: String { name }
            }
            func first(_ tracks: [Track]) -> Track? { tracks.sorted().first }
            """)
    }

    /// Catches: a macro that adds `Equatable` to a model although the program declares `==`, which the compiler refuses as ambiguous.
    @Test(arguments: ["Strata", "StrataSwiftData"])
    func `S173: a model can have an operator of its own for equality`(_ module: String) async throws {
        try await expectNoErrors(
            """
            import Foundation
            import \(module)

            @Model final class Disc {
                var title = "a"
                init() {}
            }
            extension Disc: Identifiable, Hashable {
                static func == (a: Disc, b: Disc) -> Bool { a.title == b.title }
                func hash(into hasher: inout Hasher) { hasher.combine(title) }
            }
            """, flags: [])
    }

    @Test func `S173: a model in SwiftData's spelling compiles in a module of the main actor`() async throws {
        try await expectNoErrors(
            """
            import StrataSwiftData

            \(Self.models)
            func use(_ context: ModelContext) throws {
                context.insert(Track(isrc: "a"))
                try context.save()
            }
            """)
    }
}
