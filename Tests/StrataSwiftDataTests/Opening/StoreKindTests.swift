import StrataSwiftData
import Testing

/// The kinds of files in which containers keep their models.
@Suite struct StoreKindTests {
    @Test func `a configuration has a file of LMDB by default, and is not equal to one of SQLite`() {
        let file = TestFile().url
        #expect(ModelConfiguration().store == .lmdb && ModelConfiguration(url: file).store == .lmdb)
        #expect(ModelConfiguration("a", store: .sqlite).store == .sqlite)
        #expect(ModelConfiguration(url: file, store: .sqlite) != ModelConfiguration(url: file))
    }

    /// Catches: a configuration whose kind of file is ignored.
    @Test(arguments: ModelConfiguration.Store.allCases)
    func `a configuration chooses the kind of the file`(_ store: ModelConfiguration.Store) async throws {
        try await TestFile.use(store) { file in
            try await ReadOnlyTests.fill(file)
            let isSQLite = try Data(contentsOf: file.url).starts(with: Data("SQLite format 3".utf8))
            #expect(isSQLite == (store == .sqlite))
            let container = try file.open(ToDo.self)
            #expect(try titles(in: container) == ["kept"])
            #expect(container.configurations.map(\.store) == [store])
            try await container.close()
        }
    }

    /// Catches: a file that is replaced because it is taken for an empty one, and an error without a remedy.
    @Test(arguments: ModelConfiguration.Store.allCases, [true, false])
    func `a file of the other kind is not opened, and does not change`(
        _ store: ModelConfiguration.Store, _ allowsSave: Bool
    ) async throws {
        try await TestFile.use(store) { file in
            try await ReadOnlyTests.fill(file)
            let bytes = try Data(contentsOf: file.url)
            let other = ModelConfiguration(
                url: file.url, allowsSave: allowsSave, store: store == .lmdb ? .sqlite : .lmdb)
            let reason = store == .lmdb ? "is not an SQLite database" : "it is a file of SQLite, which the store .sqlite opens"
            #expect(
                performing: { try ModelContainer(for: ToDo.self, configurations: other) },
                throws: { "\($0)".contains(reason) })
            #expect(try Data(contentsOf: file.url) == bytes)
            let container = try file.open(ToDo.self)
            #expect(try titles(in: container) == ["kept"])
            try await container.close()
        }
    }
}
