import Testing

/// Objects and contexts do not leave their executor: such code does not compile (S170).
@Suite(.enabled(if: SwiftCompiler.shared != nil, "the built modules were not found next to the tests"))
struct IsolationTests {
    private static let prelude = """
        import Strata
        import Synchronization

        @Model final class Track {
            var title: String
            @Relationship var others: [Track]
        }
        struct Carrier: Error { var track: Track }
        actor Keeper { var track: Track?; func keep(_ track: Track) { self.track = track } }
        func use(_ track: Track) async {}

        """

    /// Code that types and captures alone forbid: the body of a function with a background context `work` and a container.
    static let forbiddenByTypes = [
        "_ = try await work.perform { try $0.fetch(FetchRequest<Track>()) }",
        "_ = try await work.perform { context throws -> Track? in try context.fetch(FetchRequest<Track>()).first }",
        "_ = try await work.perform { try $0.fetch(FetchRequest<Track>())[0...] }",
        "_ = try await work.perform { try $0.fetch(FetchRequest<Track>()).lazy.map { $0 } }",
        "_ = try await work.perform { Dictionary(grouping: try $0.fetch(FetchRequest<Track>()), by: \\.title) }",
        "_ = try await work.perform { (try $0.fetch(FetchRequest<Track>())[0], 1) }",
        "_ = try await work.perform { Set(try $0.fetch(FetchRequest<Track>())) }",
        "_ = try await work.perform { try $0.fetch(FetchRequest<Track>())[0] as Any }",
        "_ = try await work.perform { try $0.fetch(FetchRequest<Track>())[0] as AnyObject }",
        "_ = try await work.perform { try $0.fetch(FetchRequest<Track>())[0] as any Sendable }",
        "_ = try await work.perform { try $0.fetch(FetchRequest<Track>())[0] as any PersistentModel }",
        "_ = try await work.perform { try $0.fetch(FetchRequest<Track>())[0].managedObject }",
        "_ = try await work.perform { try $0.fetch(EntityFetchRequest(\"Track\")) }",
        "_ = await work.perform { $0 }",
        "_ = await work.perform { [$0] }",
        "_ = await work.perform { context in { context.hasChanges } }",
        "_ = await work.perform { $0.insert(\"Track\") }",
        "_ = await work.perform { _ in Track(title: \"new\") }",
        "var out: Track?; await work.perform { $0.insert(\"Track\"); out = Track(title: \"a\") }; _ = out",
        "let track = Track(title: \"a\"); await work.perform { $0.insert(track) }; print(track.title)",
        "let context = await container.mainContext; print(context.hasChanges)",
        "try await onMain { let track = try $0.fetch(FetchRequest<Track>())[0]; await work.perform { $0.delete(track) } }",
        "let stream = AsyncStream<Track>.makeStream(); await work.perform { _ in _ = stream.continuation }",
        "_ = try await work.perform { _, context in await Task.yield(); return try context.fetch(FetchRequest<Track>()) }",
        "_ = try await work.perform(andSave: .durable) { try $0.fetch(FetchRequest<Track>()) }",
        "_ = try await container.read { try $0.fetch(FetchRequest<Track>()).first }",
        "_ = try await container.write { context in context }",
    ]

    /// Code that the check of isolation regions forbids.
    static let forbiddenByRegions = [
        "try await work.perform { let track = try $0.fetch(FetchRequest<Track>())[0]; Task { print(track.title) } }",
        "try await work.perform { let track = try $0.fetch(FetchRequest<Track>())[0]; Task.detached { print(track.title) } }",
        "await work.perform { context in Task { print(context.hasChanges) } }",
        "await work.perform { let track = Track(title: \"a\"); $0.insert(track); Task { print(track.title) } }",
        "await work.perform { let track = Track(title: \"a\"); $0.insert(track); Task { @MainActor in print(track.title) } }",
        "await work.perform { context in Task { @MainActor in print(context.hasChanges) } }",
        "await work.perform { _, context in await Task.yield(); Task { print(context.hasChanges) } }",
        "try await work.perform { let track = try $1.fetch(FetchRequest<Track>())[0]; await use(track) }",
        "try await work.perform { let track = try $1.fetch(FetchRequest<Track>())[0]; await Keeper().keep(track) }",
        "try await container.write { context in Task { @MainActor in print(context.hasChanges) } }",
        "await work.perform { _, context in async let count = context.hasChanges; _ = await count }",
        """
        let box = Mutex<[Track]>([])
        try await work.perform { context in let tracks = try context.fetch(FetchRequest<Track>()); box.withLock { $0 = tracks } }
        """,
        """
        let keeper = Keeper()
        try await work.perform { let track = try $0.fetch(FetchRequest<Track>())[0]; Task { await keeper.keep(track) } }
        """,
        "try await onMain { let tracks = try $0.fetch(FetchRequest<Track>()); Task.detached { print(tracks.count) } }",
        "try await onMain { let track = try $0.fetch(FetchRequest<Track>())[0]; await use(track) }",
        "try await onMain { let track = try $0.fetch(FetchRequest<Track>())[0]; await Keeper().keep(track) }",
        "try await onMain { main in Task.detached { print(main.hasChanges) } }",
    ]

    /// Code that must compile.
    static let allowed = [
        "_ = try await work.perform { try $0.fetch(FetchRequest<Track>()).map(\\.title) }",
        "_ = try await work.perform { try $0.fetch(FetchRequest<Track>()).map(\\.id) }",
        "_ = try await work.perform { try $0.count(FetchRequest<Track>()) }",
        "await work.perform { $0.insert(Track(title: \"a\")) }; try await work.save()",
        "try await work.perform { [container] in let track = try $1.fetch(FetchRequest<Track>())[0]; _ = container; try await $1.save(); print(track.title) }",
        "_ = try await work.perform(andSave: .durable) { context in let track = Track(title: \"a\"); context.insert(track); return track.id }",
        "_ = try await container.read { try $0.fetch(FetchRequest<Track>()).map(\\.title) }",
        "try await container.write(retrying: 2) { context in context.insert(Track(title: \"a\")) }",
        "try await onMain { let track = try $0.fetch(FetchRequest<Track>())[0]; try await $0.save(); print(track.title) }",
        "try await onMain { main in let track = Track(title: \"a\"); Task { @MainActor in print(track.title) } }",
    ]

    @Test func S170_objectsLeaveAContextByNoResultOrCapture() async throws {
        try await expectErrors(in: Self.forbiddenByTypes)
    }

    @Test func S170_objectsLeaveAContextByNoTaskOrActor() async throws {
        try await expectErrors(in: Self.forbiddenByRegions)
    }

    /// Without this test, the other tests could fail for an unrelated reason.
    @Test func S170_idsAndValuesLeaveAContext() async throws {
        let compiler = try #require(SwiftCompiler.shared)
        let errors = try await compiler.messages(about: Self.source(Self.allowed)).filter { $0.contains("error:") }
        #expect(errors == [])
    }

    private func expectErrors(in attempts: [String]) async throws {
        let compiler = try #require(SwiftCompiler.shared)
        let messages = try await compiler.messages(about: Self.source(attempts)).filter { $0.contains(" error: ") }
        #expect(messages.filter { !$0.hasPrefix("attempt-") } == [], "what stands around the attempts compiles")
        for (number, attempt) in attempts.enumerated() {
            #expect(messages.contains { $0.hasPrefix("attempt-\(number):") }, "this compiles: \(attempt)")
        }
    }

    /// Puts all attempts into one file. Each attempt is a function, and its messages have its number as their file.
    private static func source(_ attempts: [String]) -> String {
        attempts.enumerated().reduce(into: prelude) { text, attempt in
            text += """
                #sourceLocation(file: "attempt-\(attempt.offset)", line: 1)
                func attempt\(attempt.offset)(
                    _ work: BackgroundContext, _ container: PersistentContainer,
                    _ onMain: (@MainActor (ManagedObjectContext) async throws -> Void) async throws -> Void
                ) async throws {
                \(attempt.element)
                }
                #sourceLocation()

                """
        }
    }
}
