import StrataSwiftData
import Testing

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// Containers whose configuration does not allow saves.
@Suite struct ReadOnlyTests {
    /// Saves one item in a new file, and closes it.
    static func fill(_ file: TestFile) async throws {
        let container = try file.open(ToDo.self)
        do {
            let context = ModelContext(container)
            context.insert(ToDo("kept"))
            try context.save()
        }
        try await container.close()
    }

    private func use(_ store: ModelConfiguration.Store, _ body: (TestFile) async throws -> Void) async throws {
        try await TestFile.use(store) { file in
            try await Self.fill(file)
            try await body(file)
        }
    }

    static func open(_ file: TestFile) throws -> ModelContainer {
        let configuration = ModelConfiguration(url: file.url, allowsSave: false, store: file.store)
        return try ModelContainer(for: ToDo.self, configurations: configuration)
    }

    private func attributes(_ path: String) throws -> [String] {
        let found = try FileManager.default.attributesOfItem(atPath: path)
        return ["\(found[.size] ?? 0)", "\(found[.modificationDate] ?? Date.distantPast)"]
    }

    /// Checks that nothing can be saved, and that reading works.
    static func check(_ container: ModelContainer) throws {
        let context = ModelContext(container)
        let item = try #require(try context.fetch(FetchDescriptor<ToDo>()).first)
        item.title = "changed"
        context.insert(ToDo("new"))
        let message = { (error: any Error) in "\(error)".contains("allowsSave: true") && "\(error)".contains("cannot save to") }
        #expect(performing: { try context.save() }, throws: message)
        #expect(context.hasChanges && item.title == "changed")
        #expect(performing: { try context.delete(model: ToDo.self) }, throws: message)
        #expect(performing: { try container.erase() }, throws: message)
        context.rollback()
        #expect(try context.fetch(FetchDescriptor<ToDo>()).map(\.title) == ["kept"])
    }

    @Test(arguments: ModelConfiguration.Store.allCases)
    func `a file opens read-only, saves throw, and the file does not change`(_ store: ModelConfiguration.Store) async throws {
        try await use(store) { file in
            let before = try attributes(file.url.path)
            let bytes = try Data(contentsOf: file.url)
            let container = try Self.open(file)
            try Self.check(container)
            try await container.close()
            #expect(try attributes(file.url.path) == before)
            #expect(try Data(contentsOf: file.url) == bytes)
        }
    }

    /// SQLite opens a file in both ways at once.
    @Test func `a file of LMDB that this process has open for writing is not opened read-only, and the reverse`() async throws {
        try await use(.lmdb) { file in
            let container = try file.open(ToDo.self)
            #expect(performing: { try Self.open(file) }, throws: { "\($0)".contains("this process has it open for writing") })
            try await container.close()
            let readOnly = try Self.open(file)
            #expect(performing: { try file.open(ToDo.self) }, throws: { "\($0)".contains("this process has it open read-only") })
            try await readOnly.close()
        }
    }

    @Test(arguments: ModelConfiguration.Store.allCases)
    func `a missing file throws, and neither it nor its folder is created`(_ store: ModelConfiguration.Store) async throws {
        try await TestFile.use(store) { file in
            #expect(throws: (any Error).self) { try Self.open(file) }
            #expect(!FileManager.default.fileExists(atPath: file.url.deletingLastPathComponent().path))
        }
    }

    @Test(arguments: ModelConfiguration.Store.allCases)
    func `the error of a refused save names the file as it is spelled on disk`(_ store: ModelConfiguration.Store) async throws {
        var file = TestFile(store: store)
        file.url.deleteLastPathComponent()
        file.url.append(path: "my trips ä.store")
        defer { try? FileManager.default.removeItem(at: file.url.deletingLastPathComponent()) }
        try await Self.fill(file)
        let container = try Self.open(file)
        let path = file.url.path
        #expect(container.debugDescription.contains(path))
        #expect(performing: { try container.erase() }, throws: { "\($0)".contains("cannot save to \(path): ") })
        try await container.close()
    }

    @Test func `a store in memory refuses saves, too`() throws {
        let container = try ModelContainer(
            for: ToDo.self, configurations: ModelConfiguration(isStoredInMemoryOnly: true, allowsSave: false))
        let context = ModelContext(container)
        context.insert(ToDo("a"))
        #expect(throws: SwiftDataError.self) { try context.save() }
        #expect(context.hasChanges)
    }
}

/// A folder that cannot be written. The superuser can write everywhere, so the test runs in another process, as another user.
@Suite(.enabled(if: geteuid() == 0, "only the superuser can become another user")) struct ReadOnlyFolderTests {
    @Test func `S166: a file opens read-only in a folder where nothing can be written`() async throws {
        let file = TestFile()
        defer { try? FileManager.default.removeItem(at: file.url.deletingLastPathComponent()) }
        try await ReadOnlyTests.fill(file)
        let folder = file.url.deletingLastPathComponent()
        let manager = FileManager.default
        let names = try manager.contentsOfDirectory(atPath: folder.path).sorted()
        for name in names {
            try manager.setAttributes([.posixPermissions: 0o444], ofItemAtPath: folder.appending(path: name).path)
        }
        try manager.setAttributes([.posixPermissions: 0o555], ofItemAtPath: folder.path)
        await #expect(processExitsWith: .success) { [url = file.url as URL] in
            try #require(setgid(65_534) == 0 && setuid(65_534) == 0)
            let container = try ReadOnlyTests.open(TestFile(url: url))
            try ReadOnlyTests.check(container)
            try await container.close()
        }
        #expect(try manager.contentsOfDirectory(atPath: folder.path).sorted() == names)
    }
}
