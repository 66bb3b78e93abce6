import Foundation
import SQLiteStore
import StoreContract
import StoreInterface
import StoreModel
import Testing

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// Promises that only the store on SQLite makes.
@Suite struct SQLiteFileTests {
    private func open(_ url: URL) throws -> SQLiteStore { try SQLiteStore(url: url, schema: Sample.schema) }

    private func code(_ url: URL) -> StoreError.Code? {
        let error = #expect(throws: StoreError.self) { try open(url) }
        #expect(error?.message.contains("\n") == false)
        return error?.code
    }

    /// Primary result codes of SQLite.
    private enum SQLiteCode {
        static let inputOutput: Int32 = 10
        static let full: Int32 = 13
        static let notADatabase: Int32 = 26
    }

    @Test func `the cause of an error is SQLite's code and message`() throws {
        let folder = try TemporaryFolder()
        let garbage = folder.url.appendingPathComponent("garbage")
        try Data(repeating: 0x5a, count: 10_000).write(to: garbage)
        let error = #expect(throws: StoreError.self) { try open(garbage) }
        let cause = try #require(error?.cause as? SQLiteError)
        #expect(cause.code == SQLiteCode.notADatabase)
        #expect(cause.description == "file is not a database (SQLite 26)")
        var lines: [String] = []
        #expect(throws: StoreError.self) { try Self.opened(garbage, schema: Sample.schema) { lines.append($0) } }
        #expect(lines == ["SQLite's code is 26"])
    }

    private static func opened(_ url: URL, schema: StoreSchema, log: (String) -> Void) throws -> SQLiteStore {
        // Sources/SQLiteStore/Connections/SQLiteError.swift
        do {
            return try SQLiteStore(url: url, schema: schema)
        } catch let error as StoreError {
            if let cause = error.cause as? SQLiteError { log("SQLite's code is \(cause.code)") }
            throw error
        }
        // end
    }

    @Test func whatIsNoStoreIsRefusedWithALine() throws {
        let folder = try TemporaryFolder()
        #expect(code(folder.url) == .cannotOpen)
        let garbage = folder.url.appendingPathComponent("garbage")
        try Data(repeating: 0x5a, count: 10_000).write(to: garbage)
        #expect(code(garbage) == .notAStore)
        let short = folder.url.appendingPathComponent("short")
        try Data("hello".utf8).write(to: short)
        #expect(code(short) == .notAStore)
        #expect(code(folder.url.appendingPathComponent("missing/store.sqlite")) == .cannotOpen)
        let headerOnly = folder.url.appendingPathComponent("header")
        try (Data("SQLite format 3\0".utf8) + Data(repeating: 0x5a, count: 10_000)).write(to: headerOnly)
        #expect(code(headerOnly) != nil)
    }

    /// The work of a second process: opens the file, reads the owners' keys, and closes it.
    static func owners(_ path: String) throws -> [ObjectKey] {
        try SQLiteStore(url: URL(fileURLWithPath: path), schema: Sample.schema).snapshot().all(Sample.owner)
    }

    @Test func aSecondOpeningHereDoesNotLetAnotherProcessRemoveTheLogOfTheFirst() async throws {
        let folder = try TemporaryFolder()
        let url = folder.url.appendingPathComponent("store.sqlite")
        let first = try open(url)
        try ContractStore.save(first, durability: .durable) { $0.insertOwner(64, "before") }
        let second = try open(url)
        #expect(try StoreDescription.sqlite(url).migration?.storedSchema() == Sample.schema.withoutHints)
        await #expect(processExitsWith: .success) { [path = url.path as String] in
            try #require(try SQLiteFileTests.owners(path) == [64])
        }
        try ContractStore.save(first, durability: .durable) { $0.insertOwner(65, "after") }
        await #expect(processExitsWith: .success) { [path = url.path as String] in
            try #require(try SQLiteFileTests.owners(path) == [64, 65])
        }
        #expect(try second.snapshot().all(Sample.owner) == [64, 65])
    }

    @Test func `S066: a durable transaction after deferred saves writes to the log, though it changes nothing`() throws {
        let folder = try TemporaryFolder()
        let url = folder.url.appendingPathComponent("store.sqlite")
        let store = try open(url)
        func logBytes() throws -> Int { try Data(contentsOf: URL(fileURLWithPath: url.path + "-wal")).count }
        try ContractStore.save(store, durability: .deferred) { $0.insertOwner(64, "deferred") }
        let before = try logBytes()
        try store.write(.durable) { _ in }
        // SQLite syncs the log only with a commit that adds to it.
        #expect(try logBytes() > before)
        #expect(try store.snapshot().generation == 1)
        #expect(try store.verify() == [])
    }

    private func code(_ body: () throws -> Void) -> StoreError.Code? {
        do {
            try body()
            return nil
        } catch { return (error as? StoreError)?.code }
    }

    /// A migrated copy replaces the file only if the file is unchanged since the copy, and only if it is not open.
    @Test func aFileThatWasChangedOrIsOpenIsNotReplaced() throws {
        let folder = try TemporaryFolder()
        let url = folder.url.appendingPathComponent("store.sqlite")
        var store: SQLiteStore? = try open(url)
        try ContractStore.save(try #require(store)) { $0.insertOwner(64, "before") }
        let migration = try #require(StoreDescription.sqlite(url).migration)
        let copy = try migration.makeCopy()
        // The store is idle, with all of its log in the file.
        #expect(code { try copy.replaceOriginal() } == .inUseElsewhere)
        try ContractStore.save(try #require(store)) { $0.insertOwner(65, "after") }
        store = nil
        #expect(code { try copy.replaceOriginal() } == .inUseElsewhere)
        copy.discard()
        store = try open(url)
        #expect(try store?.snapshot().all(Sample.owner) == [64, 65])
        store = nil
        let second = try migration.makeCopy()
        try second.replaceOriginal()
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.url.path).filter { !$0.hasSuffix("-signal") }
        #expect(names == ["store.sqlite"])
        #expect(try open(url).snapshot().all(Sample.owner) == [64, 65])
    }

    @Test func aBackupWithoutRoomSaysSo() async throws {
        let folder = try TemporaryFolder()
        let url = folder.url.appendingPathComponent("store.sqlite")
        try ContractStore.save(try open(url)) { layer in
            for key in 64..<5000 as Range<ObjectKey> { layer.insertOwner(key, "owner \(key)") }
        }
        await #expect(processExitsWith: .success) { [url = url as URL] in
            let store = try SQLiteStore(url: url, schema: Sample.schema)
            signal(SIGXFSZ, SIG_IGN)
            var limit = rlimit(rlim_cur: 1 << 16, rlim_max: rlim_t.max)
            try #require(setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0)
            let copy = url.appendingPathExtension("copy")
            let error = #expect(throws: StoreError.self) { try store.backup(to: copy, existing: .refuse) }
            try #require(error?.code == .full, "\(String(describing: error))")
            let cause = try #require(error?.cause as? SQLiteError)
            try #require([SQLiteCode.inputOutput, SQLiteCode.full].contains(cause.code & 0xff), "\(cause)")
            try #require(!FileManager.default.fileExists(atPath: copy.path))
        }
    }

    @Test func namesThatSQLiteCannotTellApartAreMadeDifferent() throws {
        let folder = try TemporaryFolder()
        let columns = ["id", "version", "Name", "name", "a \"quoted\" one", "select"]
            .map { ColumnSchema(name: $0, type: .string, index: .indexed) }
        let schema = StoreSchema(
            entities: ["table", "Table", "strata_meta", "sqlite_x"].map { EntitySchema(name: $0, columns: columns) })
        let store = try SQLiteStore(url: folder.url.appendingPathComponent("s"), schema: schema)
        try ContractStore.save(store) { layer in
            for entity in schema.entityIndices {
                layer.insert(entity, key: 64, values: (0..<6).map { .string("\(entity) \($0)") })
            }
        }
        for entity in schema.entityIndices {
            #expect(try store.snapshot().pageValues(entity, 64) == (0..<6).map { .string("\(entity) \($0)") })
        }
        #expect(try store.verify() == [])
    }

    /// Catches: a quotation mark that is not doubled, because a mark that combines with it makes it another character.
    @Test func `S173: names may have marks that combine with a quotation mark`() throws {
        let folder = try TemporaryFolder()
        let url = folder.url.appendingPathComponent("s")
        let columns = ["a\"\u{301}b", "\u{301}c", "d'\u{301}", "\"\"\u{301}"]
            .map { ColumnSchema(name: $0, type: .string, index: .indexed) }
        let schema = StoreSchema(entities: ["t\"\u{301}", "\u{301}u"].map { EntitySchema(name: $0, columns: columns) })
        let values = ["w", "x", "y", "z"].map { Value.string($0) }
        do {
            let store = try SQLiteStore(url: url, schema: schema)
            try ContractStore.save(store) { layer in
                for entity in schema.entityIndices { layer.insert(entity, key: 64, values: values) }
            }
            #expect(try store.verify() == [])
            #expect(try !store.tableSizes().isEmpty)
            try store.shutDown()
        }
        let again = try SQLiteStore(url: url, schema: schema)
        for entity in schema.entityIndices { #expect(try again.snapshot().pageValues(entity, 64) == values) }
        #expect(try again.verify() == [])
    }

    @Test func S135_explainNamesTheIndex() throws {
        let contract = try ContractStore(.sqlite)
        let snapshot = try contract.snapshot()
        func plan(_ predicate: StorePredicate) throws -> String {
            try snapshot.explain(StoreQuery(entity: Sample.item, predicate: predicate))
        }
        #expect(try plan(.compare(Sample.number, .equal, to: .int(3))).contains("Item_number"))
        #expect(try plan(.compare(Sample.ratio, .greater, to: .double(3))).contains("Item_ratio"))
        #expect(try plan(.string(Sample.name, .hasPrefix, pattern: "abc", sensitivity: .sensitive)).contains("Item_name"))
        #expect(try plan(.keys([1, 2])).contains("PRIMARY KEY"))
        #expect(try plan(.compare(Sample.note, .equal, to: .string("x"))).contains("SCAN"))
    }

    @Test func aLongListAndADeepConditionWork() throws {
        let contract = try ContractStore(.sqlite)
        try contract.save { layer in for key in 64..<164 as Range<ObjectKey> { layer.insertItem(key, name: "n\(key)") } }
        let snapshot = try contract.snapshot()
        func count(_ predicate: StorePredicate) throws -> Int {
            try snapshot.count(StoreQuery(entity: Sample.item, predicate: predicate))
        }
        #expect(try count(.keys(Set(100..<100_000))) == 64)
        #expect(try count(.isIn(Sample.name, Set((150..<9000).map { .string("n\($0)") }))) == 14)
        #expect(try count(.isIn(Sample.name, Set((150..<60_000).map { .string("n\($0)") }))) == 14)
        #expect(try count(.or((100..<3000).map { .compare(Sample.name, .equal, to: .string("n\($0)")) })) == 64)
    }
}
