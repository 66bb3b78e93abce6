import Strata
import Testing

/// Imported values of types with a raw value.
@Suite struct ImportedRawValueTests {
    struct Labels: RawRepresentable, Codable, Hashable { var rawValue: [String] }
    enum Mood: String, Codable { case calm, glad }

    @Model final class Note {
        var labels: Labels = Labels(rawValue: [])
        var mood: Mood = Mood.calm
        init() {}
    }

    private struct Imported: Codable {
        var labels: Labels
        var mood: Mood
    }

    /// Catches: bytes of a raw value that a property cannot read, because it stores the whole value as JSON.
    @Test(arguments: TestStore.allCases)
    @MainActor func `S139: an imported value with a raw value is stored as the property stores it`(_ store: TestStore)
        async throws
    {
        try await store.use { description in
            let container = try await PersistentContainer(for: Note.self, store: description)
            let context = container.mainContext
            let values = [Imported(labels: Labels(rawValue: ["x", "y"]), mood: .glad)]
            let note = try context.insert(contentsOf: values, as: Note.self)[0]
            #expect(note.labels == Labels(rawValue: ["x", "y"]) && note.mood == .glad)
            try await context.save()
            context.reset()
            let read = try context.fetch(FetchRequest<Note>())[0]
            #expect(read.labels == Labels(rawValue: ["x", "y"]) && read.mood == .glad)
            try await container.close()
        }
    }
}
