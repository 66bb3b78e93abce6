import Foundation
import StoreContract
import StoreInterface
import Testing

@testable import SQLiteStore

/// SQLite files that other programs have changed, and SQLite files that Strata did not create.
@Suite struct SQLiteForeignChangeTests {
    private let folder: TemporaryFolder
    private var url: URL { folder.url.appendingPathComponent("store.sqlite") }

    init() throws { folder = try TemporaryFolder() }

    private func open(_ schema: StoreSchema = Sample.schema) throws -> SQLiteStore { try SQLiteStore(url: url, schema: schema) }

    /// Changes the file like another program, with a connection of its own.
    private func change(_ script: String) throws {
        let connection = try SQLiteConnection(path: url.path, role: .writer)
        try connection.withLock { try connection.runScript(script) }
    }

    private func value(_ sql: String) throws -> String? {
        let connection = try SQLiteConnection(path: url.path, role: .observer)
        return try connection.withLock { try connection.texts(sql).first }
    }

    private func fill() throws {
        try ContractStore.save(try open(), .durable) { layer in
            layer.insertOwner(64, "owner")
            layer.insertItem(64, name: "item")
        }
    }

    private func refusal(_ body: () throws -> Void) -> StoreError? { #expect(throws: StoreError.self) { try body() } }

    @Test(arguments: ["DELETE", "WAL"])
    func `another program's database is refused, and stays in its journal mode byte by byte`(_ mode: String) throws {
        try change("PRAGMA journal_mode = \(mode); CREATE TABLE notes (text TEXT); INSERT INTO notes VALUES ('hers')")
        let before = try Data(contentsOf: url)
        for _ in 0..<2 {
            let error = refusal { _ = try open() }
            #expect(error?.code == .notAStore)
            #expect(error?.message.contains("another program") == true)
        }
        #expect(try Data(contentsOf: url) == before)
        #expect(try value("PRAGMA journal_mode") == mode.lowercased())
        #expect(try value("SELECT text FROM notes") == "hers")
    }

    @Test func `a database without tables that another program has marked as its own is refused`() throws {
        try change("PRAGMA user_version = 7")
        #expect(refusal { _ = try open() }?.code == .notAStore)
    }

    @Test func `a store that another program took out of the write-ahead mode opens`() throws {
        try fill()
        try change("PRAGMA journal_mode = DELETE")
        let store = try open()
        #expect(try store.snapshot().all(Sample.owner) == [64])
        try ContractStore.save(store) { $0.insertOwner(65, "second") }
        #expect(try value("PRAGMA journal_mode") == "wal")
    }

    /// Changes the file in a transaction with a journal, writes changed pages, and ends the process before the commit.
    static func endInTransaction(_ path: String) throws {
        let connection = try SQLiteConnection(path: path, role: .writer)
        try connection.withLock {
            // A cache of one page, so that changed pages are written before the commit.
            try connection.runScript(
                "PRAGMA journal_mode = DELETE; PRAGMA cache_size = 1; BEGIN IMMEDIATE; CREATE TABLE filler (bytes BLOB)")
            for _ in 0..<100 { try connection.runScript("INSERT INTO filler VALUES (randomblob(4000))") }
        }
        kill(getpid(), SIGKILL)
    }

    @Test func `S066: a store with the journal of a killed process opens as it was before the transaction`() async throws {
        try fill()
        await #expect(processExitsWith: .signal(SIGKILL)) { [path = url.path as String] in
            try SQLiteForeignChangeTests.endInTransaction(path)
        }
        #expect(FileManager.default.fileExists(atPath: url.path + "-journal"))
        let error = refusal { _ = try SQLiteStore(url: url, schema: Sample.schema, readOnly: true) }
        #expect(error?.code == .readOnly)
        #expect(error?.message.contains("Open it once for writing") == true, "\(String(describing: error))")
        let store = try open()
        #expect(try store.snapshot().all(Sample.owner) == [64])
        #expect(try store.verify() == [])
        #expect(try value("SELECT name FROM sqlite_master WHERE name = 'filler'") == nil)
    }

    @Test func `a dropped column is named when the store is opened`() throws {
        try fill()
        try change("DROP INDEX Item_flag_second_note; ALTER TABLE Item DROP COLUMN second")
        let error = refusal { _ = try open() }
        #expect(error?.code == .damaged)
        #expect(error?.message.contains("table Item has no column second") == true, "\(String(describing: error))")
    }

    @Test(arguments: [Routing.snapshot, .ancestors])
    func `a column that is dropped while the store is open is named by the next snapshot and save`(_ routing: Routing) throws {
        try fill()
        let store = try SQLiteStore(url: url, schema: Sample.schema, routing: routing)
        #expect(try store.snapshot().all(Sample.item) == [64])
        try change("DROP INDEX Item_flag_second_note; ALTER TABLE Item DROP COLUMN second")
        let error = refusal { _ = try store.snapshot() }
        #expect(error?.code == .damaged)
        #expect(error?.message.contains("no column second") == true, "\(String(describing: error))")
        #expect(refusal { try ContractStore.save(store) { $0.insertOwner(70, "late") } }?.code == .damaged)
    }

    @Test func `a dropped table is named, before a migration too`() throws {
        try fill()
        try change("DROP TABLE Owner")
        var schema = Sample.schema
        schema.entities[0].columns.append(ColumnSchema(name: "extra", type: .bool))
        for schema in [Sample.schema, schema] {
            let error = refusal { _ = try open(schema) }
            #expect(error?.code == .damaged)
            #expect(error?.message.contains("table Owner is gone") == true, "\(String(describing: error))")
        }
    }

    @Test(arguments: ["UPDATE strata_keys SET next = 64", "UPDATE strata_keys SET next = -5", "DELETE FROM strata_keys"])
    func `keys are leased behind all objects, whatever the counter says`(_ script: String) throws {
        try fill()
        try change(script)
        let store = try open()
        for expected in [128..<192, 192..<256] as [Range<ObjectKey>] {
            #expect(try store.write(.deferred) { try $0.allocateKeys(Sample.owner, pages: 1) } == expected)
        }
    }

    @Test func `a counter without keys left is damage`() throws {
        try fill()
        try change("UPDATE strata_keys SET next = \(Int64.max)")
        let store = try open()
        let error = refusal { _ = try store.write(.deferred) { try $0.allocateKeys(Sample.owner, pages: 1) } }
        #expect(error?.code == .damaged)
    }

    @Test func `an insert does not replace an object that got the same key from a counter turned back`() throws {
        try fill()
        let store = try open()
        let error = refusal { try ContractStore.save(store) { $0.insertOwner(64, "thief") } }
        #expect(error?.message.contains("strata_keys") == true)
        #expect(try store.snapshot().value(Sample.owner, 64, 0) == .string("owner"))
    }

    private static func entities(_ names: [String], _ columns: [ColumnSchema]) -> StoreSchema {
        StoreSchema(entities: names.map { EntitySchema(name: $0, columns: columns) })
    }

    @Test func `entities are migrated whatever they are called`() throws {
        let names = ["strata_old_0", "StrataGoldCard", "strata_old_1", "strata_meta", "Plain", "strata_old_2_", "schema 1"]
        let text = ColumnSchema(name: "text", type: .string)
        var store: SQLiteStore? = try open(Self.entities(names, [text]))
        try ContractStore.save(try #require(store)) { layer in
            for number in names.indices { layer.insert(number, 64, [.string(names[number])]) }
        }
        store = nil
        var columns = [text]
        for round in 0..<3 {
            // All tables are created again, or one of them.
            columns.insert(ColumnSchema(name: "new\(round)", type: .int32), at: 0)
            var schema = Self.entities(names, columns)
            if round == 2 { schema.entities.reverse() }
            store = try open(schema)
            let snapshot = try #require(store).snapshot()
            for (number, entity) in schema.entities.enumerated() {
                #expect(try snapshot.value(number, 64, round + 1) == .string(entity.name), "\(entity.name)")
            }
            #expect(try #require(store).verify() == [])
            store = nil
        }
    }

    @Test func `a migration of one entity leaves the tables of others alone`() throws {
        let text = ColumnSchema(name: "text", type: .string)
        var store: SQLiteStore? = try open(Self.entities(["Plain", "StrataGoldCard"], [text]))
        try ContractStore.save(try #require(store)) { $0.insert(1, 64, [.string("gold")]) }
        store = nil
        var schema = Self.entities(["Plain", "StrataGoldCard"], [text])
        schema.entities[0].columns.append(ColumnSchema(name: "more", type: .bool))
        #expect(try open(schema).snapshot().value(1, 64, 0) == .string("gold"))
    }
}
