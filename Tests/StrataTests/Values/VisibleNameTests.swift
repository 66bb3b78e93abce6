import Testing

/// The names that one import makes visible.
@Suite(.enabled(if: SwiftCompiler.shared != nil, "the built modules were not found next to the tests"))
struct VisibleNameTests {
    private func expectNoErrors(_ source: String, flags: [String] = []) async throws {
        let compiler = try #require(SwiftCompiler.shared)
        let messages = try await compiler.messages(about: source, flags: flags)
        #expect(messages.filter { $0.contains("error: ") || $0.contains("warning: ") } == [])
    }

    @Test func `S173: a file that imports SwiftData's spelling sees Observation`() async throws {
        try await expectNoErrors(
            """
            import StrataSwiftData

            @Model final class Track {
                var title = ""
                init() {}
            }
            @Observable final class Screen {
                var tracks: [Track] = []
                @ObservationIgnored var context: ModelContext?
            }
            func watch(_ screen: Screen) -> [String] {
                withObservationTracking { screen.tracks.map(\\.title) } onChange: {}
            }
            """)
    }

    @Test(arguments: [[], ["-default-isolation", "MainActor"]])
    func `S173: a model in SwiftData's spelling needs no further import for the members of its expansion`(
        flags: [String]
    ) async throws {
        try await expectNoErrors(
            """
            import StrataSwiftData

            struct Place: Codable { var city = "" }
            @Model final class Track {
                #Index<Track>([\\.title])
                #Unique<Track>([\\.title, \\.number])
                @Attribute(.unique, originalName: "code") var isrc: String
                @Attribute(.preserveValueOnDeletion) var title = ""
                var number = 1
                @Relationship(maximumModelCount: 1) var artist: Artist?
                init(isrc: String) { self.isrc = isrc }
            }
            @Model class Artist {
                var name: String
                @Relationship(deleteRule: .cascade, minimumModelCount: 1, inverse: \\Track.artist) var tracks: [Track] = []
                init(name: String) { self.name = name }
            }
            @Model final class Singer: Artist {
                var range = 3
                override init(name: String) { super.init(name: name) }
            }
            func use(_ context: ModelContext) throws {
                let track = Track(isrc: "a")
                context.insert(track)
                try context.save()
                let name = "b"
                let tracks = FetchDescriptor<Track>(predicate: #Predicate { $0.artist?.name == name }, sortBy: [SortDescriptor(\\.title)])
                print(try context.fetch(tracks), track == track, Set([track]).count, track.id, track.hasChanges)
            }
            """, flags: flags + ["-enable-upcoming-feature", "MemberImportVisibility"])
    }

    @Test func `the modules of which members are visible show no other names`() async throws {
        let compiler = try #require(SwiftCompiler.shared)
        let messages = try await compiler.messages(
            about: """
                import StrataSwiftData

                func use(_ context: ManagedObjectContext, _ index: Row) {}
                """)
        for name in ["ManagedObjectContext", "Row"] {
            #expect(messages.contains { $0.contains("cannot find type '\(name)'") })
        }
    }
}
