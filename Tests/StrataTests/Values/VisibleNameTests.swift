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
}
