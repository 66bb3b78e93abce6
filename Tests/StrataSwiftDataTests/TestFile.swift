import StrataSwiftData

/// A file of a store for one test, which can be opened again.
struct TestFile {
    var url = FileManager.default.temporaryDirectory.appending(path: "strata-\(UUID().uuidString)/test.store")
    /// The kind of the file.
    var store = ModelConfiguration.Store.lmdb

    /// Runs a test, and removes the file afterwards.
    static func use(_ store: ModelConfiguration.Store = .lmdb, _ body: (TestFile) async throws -> Void) async throws {
        let file = TestFile(store: store)
        defer { try? FileManager.default.removeItem(at: file.url.deletingLastPathComponent()) }
        try await body(file)
    }

    var configuration: ModelConfiguration { ModelConfiguration(url: url, store: store) }

    func open(_ types: any PersistentModel.Type...) throws -> ModelContainer {
        try ModelContainer(for: Schema(types), configurations: configuration)
    }
}

/// The stores in which tests keep their models.
enum TestStore: CaseIterable {
    case memory, lmdb, sqlite

    private var file: TestFile { TestFile(store: self == .sqlite ? .sqlite : .lmdb) }

    private func open(_ file: TestFile, _ types: [any PersistentModel.Type]) throws -> ModelContainer {
        let configuration = self == .memory ? ModelConfiguration(isStoredInMemoryOnly: true) : file.configuration
        return try ModelContainer(for: Schema(types), configurations: configuration)
    }

    /// Runs a test with a new container, which is closed afterwards. Its file is removed.
    func use(_ types: any PersistentModel.Type..., body: (ModelContainer) async throws -> Void) async throws {
        let file = file
        defer { try? FileManager.default.removeItem(at: file.url.deletingLastPathComponent()) }
        let container = try open(file, types)
        try await body(container)
        try await container.close()
    }

    /// Runs a test of the main actor as ``use(_:body:)`` does.
    @MainActor
    func useOnMain(_ types: any PersistentModel.Type..., body: @MainActor (ModelContainer) async throws -> Void) async throws {
        let file = file
        defer { try? FileManager.default.removeItem(at: file.url.deletingLastPathComponent()) }
        let container = try open(file, types)
        try await body(container)
        try await container.close()
    }
}

/// Returns a container in memory.
func inMemory(_ types: any PersistentModel.Type...) throws -> ModelContainer {
    try ModelContainer(for: Schema(types), configurations: ModelConfiguration(isStoredInMemoryOnly: true))
}
