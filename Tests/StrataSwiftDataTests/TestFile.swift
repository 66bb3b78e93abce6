import StrataSwiftData

/// A file of a store for one test, which can be opened again.
struct TestFile {
    var url = FileManager.default.temporaryDirectory.appending(path: "strata-\(UUID().uuidString)/test.store")

    /// Runs a test, and removes the file afterwards.
    static func use(_ body: (TestFile) async throws -> Void) async throws {
        let file = TestFile()
        defer { try? FileManager.default.removeItem(at: file.url.deletingLastPathComponent()) }
        try await body(file)
    }

    func open(_ types: any PersistentModel.Type...) throws -> ModelContainer {
        try ModelContainer(for: Schema(types), configurations: ModelConfiguration(url: url))
    }
}

/// Returns a container in memory.
func inMemory(_ types: any PersistentModel.Type...) throws -> ModelContainer {
    try ModelContainer(for: Schema(types), configurations: ModelConfiguration(isStoredInMemoryOnly: true))
}
