import Foundation
import Platform
import StoreContract
import StoreInterface
import StoreModel
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
        try ContractStore.save(try open(), durability: .durable) { layer in
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

    @Test func `S164: a store notices a migration that changes no table`() throws {
        var old = StoreSchema(entities: [
            EntitySchema(name: "A", columns: [ColumnSchema(name: "number", type: .int32, index: .indexed)]),
            EntitySchema(name: "B", columns: []),
        ])
        let changes: [(inout StoreSchema) -> Void] = [
            { $0.entities[0].columns[0].index = .unique }, { $0.entities[0].columns[0].type = .int64 },
            { $0.entities.swapAt(0, 1) },
        ]
        for change in changes {
            let before = try open(old)
            try ContractStore.save(before) { $0.insert(0, key: 64, values: [.int(1)]) }
            _ = try before.snapshot().all(0)
            var new = old
            change(&new)
            let after = try open(new)
            #expect(
                refusal { try ContractStore.save(before) { $0.insert(0, key: 65, values: [.int(1)]) } }?.code == .schemaTooNew)
            #expect(refusal { _ = try before.snapshot() }?.code == .schemaTooNew)
            try before.shutDown()
            try after.shutDown()
            for suffix in ["", "-wal", "-shm", "-signal"] { try? FileManager.default.removeItem(atPath: url.path + suffix) }
            old.version.major += 1
        }
    }

    @Test func `a schema in the file that leads nowhere is damage, not a crash`() throws {
        try fill()
        let sound = try #require(try value("SELECT value FROM strata_meta WHERE name = 'schema'"))
        for (part, bad) in [("\"destination\":0", "\"destination\":9"), ("\"destination\":0", "\"destination\":-1")]
        where sound.contains(part) {
            let text = sound.replacing(part, with: bad)
            try change("UPDATE strata_meta SET value = '\(text)' WHERE name = 'schema'")
            var other = Sample.schema
            other.entities.append(EntitySchema(name: "Other", columns: []))
            for schema in [Sample.schema, other] {
                #expect(refusal { _ = try SQLiteStore(url: url, schema: schema) }?.code == .damaged)
                #expect(refusal { _ = try SQLiteStore(url: url, schema: schema, readOnly: true) }?.code == .damaged)
            }
        }
        #expect(sound.contains("\"destination\":0"))
    }

    @Test func `the highest id that SQLite knows ends a scan`() throws {
        try fill()
        try change("INSERT INTO Owner (id, version, title) SELECT 9223372036854775807, version, title || '2' FROM Owner LIMIT 1")
        let store = try open()
        #expect(try store.snapshot().all(Sample.owner) == [64, 9_223_372_036_854_775_807])
    }

    @Test func `a save beside a writer of another program is busy, and later saves succeed`() throws {
        try fill()
        let store = try open()
        try store.writer.withLock { try store.writer.runScript("PRAGMA busy_timeout = 1") }
        let connection = try SQLiteConnection(path: url.path, role: .writer)
        try connection.withLock { try connection.runScript("BEGIN IMMEDIATE") }
        #expect(refusal { try ContractStore.save(store) { $0.insertOwner(65, "busy") } }?.code == .storeBusy)
        try connection.withLock { try connection.runScript("COMMIT") }
        try ContractStore.save(store) { $0.insertOwner(65, "free") }
        #expect(try store.snapshot().all(Sample.owner) == [64, 65])
    }

    @Test func `a value beyond SQLite's limit is refused, not saved as null`() throws {
        try fill()
        let connection = try SQLiteConnection(path: url.path, role: .writer)
        try connection.withLock {
            try connection.runScript("CREATE TABLE sized (bytes BLOB)")
            let statement = try connection.statement("INSERT INTO sized VALUES (?)")
            statement.bind(.data(Data(count: 1_000_000_001)), 1)
            #expect(refusal { try statement.run() }?.code == .valueTooLarge)
            statement.bind(.data(Data(count: 999)), 1)
            try statement.run()
            #expect(try connection.integer("SELECT COUNT(*) FROM sized WHERE bytes IS NOT NULL") == 1)
        }
    }

    @Test func `a backup never copies another file that took the store's name`() throws {
        try fill()
        let store = try open()
        let copy = folder.url.appendingPathComponent("copy.sqlite")
        try FileManager.default.moveItem(atPath: url.path, toPath: url.path + ".away")
        #expect(
            refusal { _ = try store.backup(to: copy, existing: .refuse, cancellation: Cancellation()) }?.code == .fileReplaced)
        #expect(!FileManager.default.fileExists(atPath: copy.path))
        #expect(!FileManager.default.fileExists(atPath: url.path))
    }

    @Test func `a backup does not replace a store that is open, also not through a link`() throws {
        try fill()
        let store = try open()
        let other = folder.url.appendingPathComponent("other.sqlite")
        let link = folder.url.appendingPathComponent("link.sqlite")
        let opened = try SQLiteStore(url: other, schema: Sample.schema)
        try FileManager.default.createSymbolicLink(at: link, withDestinationURL: other)
        for target in [other, link] {
            let error = refusal { _ = try store.backup(to: target, existing: .replace, cancellation: Cancellation()) }
            #expect([.cannotOpen, .inUseElsewhere].contains(error?.code), "\(String(describing: error))")
        }
        try ContractStore.save(opened, durability: .durable) { $0.insertOwner(64, "kept") }
        #expect(try opened.snapshot().all(Sample.owner) == [64])
        try opened.shutDown()
        _ = try store.backup(to: link, existing: .replace, cancellation: Cancellation())
        #expect(try SQLiteStore(url: other, schema: Sample.schema).snapshot().all(Sample.item) == [64])
    }

    @Test func `a migration whose copy was removed leaves the original`() throws {
        try fill()
        let copy = try MigratableSQLiteFile(url).makeCopy()
        let made = try FileManager.default.contentsOfDirectory(atPath: folder.url.path).filter { $0.contains(".partial-") }
        for name in made { try FileManager.default.removeItem(at: folder.url.appendingPathComponent(name)) }
        // The stage opens the copy, and so creates an empty store.
        try (copy.store.open(Sample.schema) as? SQLiteStore)?.shutDown()
        let error = refusal { try copy.replaceOriginal() }
        #expect(error?.code == .inUseElsewhere)
        copy.discard()
        #expect(try open().snapshot().all(Sample.owner) == [64])
    }

    /// Catches: a copy that mistakes a write-back of the log for a save. A store that is being released writes its log back.
    @Test func `S164: a file whose log is written back while it is copied is migrated`() throws {
        try fill()
        let results = Mutex<[Result<[ObjectKey]?, any Error>]>([])
        DispatchQueue.concurrentPerform(iterations: 2) { number in
            if number == 0 {
                for _ in 0..<60 {
                    let result = Result { try copiedOwners() }
                    results.withLock { $0.append(result) }
                }
            } else {
                // Writes a page without a change, and the log back.
                while results.withLock({ $0.count < 60 }) {
                    try? change("UPDATE strata_keys SET next = next; PRAGMA wal_checkpoint(TRUNCATE)")
                }
            }
        }
        for result in results.withLock({ $0 }) { #expect(try result.get() == [64]) }
    }

    private func copiedOwners() throws -> [ObjectKey]? {
        let copy = try MigratableSQLiteFile(url).makeCopy()
        defer { copy.discard() }
        let store = try copy.store.open(Sample.schema) as? SQLiteStore
        defer { try? store?.shutDown() }
        return try store?.snapshot().all(Sample.owner)
    }

    @Test func `a dropped column is named when the store is opened`() throws {
        try fill()
        try change("DROP INDEX Item_flag_second_note; ALTER TABLE Item DROP COLUMN second")
        let error = refusal { _ = try open() }
        #expect(error?.code == .damaged)
        #expect(error?.message.contains("table Item has no column second") == true, "\(String(describing: error))")
    }

    @Test(arguments: SnapshotConnections.allCases)
    func `a column that is dropped while the store is open is named by the next snapshot and save`(
        _ connections: SnapshotConnections
    ) throws {
        try fill()
        let store = try SQLiteStore(url: url, schema: Sample.schema, connections: connections)
        #expect(try store.snapshot().all(Sample.item) == [64])
        try change("DROP INDEX Item_flag_second_note; ALTER TABLE Item DROP COLUMN second")
        let error = refusal { _ = try store.snapshot() }
        #expect(error?.code == .damaged)
        #expect(error?.message.contains("no column second") == true, "\(String(describing: error))")
        #expect(refusal { try ContractStore.save(store) { $0.insertOwner(70, "late") } }?.code == .damaged)
    }

    @Test(arguments: ["strata_state", "strata_keys", "strata_history"])
    func `a dropped table of the store itself is named`(_ table: String) throws {
        try fill()
        let store = try open()
        try change("DROP TABLE \(table)")
        #expect(refusal { _ = try open() }?.message.contains("table \(table) is gone") == true)
        #expect(refusal { _ = try store.snapshot() } != nil)
    }

    /// Catches: a view that has no end, for example over numbers that are counted, and with which opening would never end.
    @Test(arguments: ["strata_state", "Owner", "Item.tags"])
    func `a view in place of a table is named`(_ table: String) throws {
        try fill()
        let store = try open()
        try change("ALTER TABLE \"\(table)\" RENAME TO other; CREATE VIEW \"\(table)\" AS SELECT * FROM other")
        for error in [refusal { _ = try open() }, refusal { _ = try store.snapshot() }] {
            #expect(error?.code == .damaged)
            #expect(error?.message.contains("table \(table) is a view") == true, "\(String(describing: error))")
        }
    }

    @Test func `a file whose description is a view belongs to another program`() throws {
        try fill()
        try change("ALTER TABLE strata_meta RENAME TO other; CREATE VIEW strata_meta AS SELECT * FROM other")
        #expect(refusal { _ = try open() }?.code == .notAStore)
        #expect(refusal { _ = try SQLiteStore(url: url, schema: Sample.schema, readOnly: true) }?.code == .notAStore)
        #expect(try MigratableSQLiteFile(url).storedSchema() == nil)
    }

    @Test func `columns that another program adds to the tables of the store itself do no harm`() throws {
        try fill()
        try change(["meta", "keys", "history"].map { "ALTER TABLE strata_\($0) ADD COLUMN note TEXT" }.joined(separator: "; "))
        let store = try open()
        try ContractStore.save(store) { $0.insertOwner(65, "second") }
        _ = try store.write(.deferred) { try $0.allocateFreeKeys(Sample.owner) }
        #expect(try store.snapshot().all(Sample.owner) == [64, 65])
        #expect(try store.verify() == [])
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
        #expect(try store.snapshot().value(Sample.owner, key: 64, column: 0) == .string("owner"))
    }

    // MARK: Triggers

    /// Catches: a save that is acknowledged although a trigger has kept a row from being written.
    @Test(arguments: [
        ("INSERT ON Owner", "Owner 65", "table Owner"), ("UPDATE ON Owner", "Owner 64", "table Owner"),
        ("UPDATE ON Item", "Item 64", "table Item"), ("DELETE ON Item", "Item 65", "table Item"),
        ("INSERT ON \"Item.tags\"", "Item.tags 64, 65", "table Item.tags"),
        ("DELETE ON \"Item.tags\"", "Item.tags 64, 64", "table Item.tags"),
        ("UPDATE ON strata_state", "the number of save 2", "table strata_state"),
        ("INSERT ON strata_history", "the changes of save 2", "table strata_history"),
    ])
    func `S066: a save that a trigger of another program ignores is refused, and the error names the trigger`(
        _ event: String, _ subject: String, _ table: String
    ) throws {
        try ContractStore.save(try open(), durability: .durable) { layer in
            layer.insertOwner(64, "owner")
            for key in [64, 65] as [ObjectKey] { layer.insertItem(key, name: "item") }
            layer.setLink(Sample.tags, from: 64, to: 64, linked: true)
        }
        func edit(_ layer: Layer) {
            layer.insertOwner(65, "new")
            layer.update(Sample.owner, key: 64, of: 1, values: [0: .string("renamed")])
            layer.updateItem(64, [Sample.number: .int(7)])
            layer.delete(Sample.item, 65)
            layer.setLink(Sample.tags, from: 64, to: 65, linked: true)
            layer.setLink(Sample.tags, from: 64, to: 64, linked: false)
        }
        try change("CREATE TRIGGER lazy BEFORE \(event) BEGIN SELECT RAISE(IGNORE); END")
        let store = try open()
        let error = refusal { try ContractStore.save(store, edit) }
        #expect(error?.code == .unsupported)
        for part in ["cannot save \(subject): the \(table) ignored it", "the trigger lazy", "Drop it"] {
            #expect(error?.message.contains(part) == true, "\(String(describing: error))")
        }
        #expect(try store.snapshot().generation == 1)
        #expect(try store.snapshot().all(Sample.owner) == [64])
        try change("DROP TRIGGER lazy")
        try ContractStore.save(store, edit)
        #expect(try store.snapshot().all(Sample.owner) == [64, 65])
        #expect(try store.snapshot().value(Sample.item, key: 64, column: Sample.number) == .int(7))
        #expect(try store.verify() == [])
    }

    @Test func `triggers of another program that let rows be written, and writes that change nothing, are no errors`() throws {
        try fill()
        try change(
            "CREATE TABLE seen (id); CREATE TRIGGER mine AFTER INSERT ON Owner BEGIN INSERT INTO seen VALUES (new.id); END")
        let store = try open()
        try ContractStore.save(store) { layer in
            layer.insertOwner(65, "new")
            layer.setLink(Sample.tags, from: 64, to: 65, linked: true)
        }
        // Objects that do not exist, a pair that exists, one that does not, and one without an end.
        try ContractStore.save(store) { layer in
            layer.updateItem(99, [Sample.number: .int(7)])
            layer.delete(Sample.item, 98)
            layer.setLink(Sample.tags, from: 64, to: 65, linked: true)
            layer.setLink(Sample.tags, from: 64, to: 64, linked: false)
            layer.setLink(Sample.tags, from: 64, to: 97, linked: true)
        }
        #expect(try value("SELECT group_concat(id) FROM seen") == "65")
        #expect(try store.verify() == [])
    }

    @Test(arguments: ["INSERT ON strata_keys", "INSERT ON strata_meta"])
    func `keys whose lease a trigger of another program ignores are not leased`(_ event: String) throws {
        try fill()
        try change("CREATE TRIGGER lazy BEFORE \(event) BEGIN SELECT RAISE(IGNORE); END")
        let store = try open()
        let error = refusal { _ = try store.write(.deferred) { try $0.allocateFreeKeys(Sample.owner) } }
        #expect(error?.message.contains("the trigger lazy") == true, "\(String(describing: error))")
    }

    /// Catches: a deletion of the history that is repeated without end.
    @Test func `a deletion of the history that a trigger of another program ignores is refused`() throws {
        try fill()
        try change("CREATE TRIGGER lazy BEFORE DELETE ON strata_history BEGIN SELECT RAISE(IGNORE); END")
        let store = try open()
        let error = refusal { _ = try store.write(.deferred) { try $0.deleteHistory(.through(1), limit: 10) } }
        #expect(error?.message.contains("the trigger lazy") == true, "\(String(describing: error))")
        #expect(try store.history(after: nil, limit: 10)?.count == 1)
    }

    private static func entities(_ names: [String], _ columns: [ColumnSchema]) -> StoreSchema {
        StoreSchema(entities: names.map { EntitySchema(name: $0, columns: columns) })
    }

    @Test func `entities are migrated whatever they are called`() throws {
        let names = ["strata_old_0", "StrataGoldCard", "strata_old_1", "strata_meta", "Plain", "strata_old_2_", "schema 1"]
        let text = ColumnSchema(name: "text", type: .string)
        var store: SQLiteStore? = try open(Self.entities(names, [text]))
        try ContractStore.save(try #require(store)) { layer in
            for number in names.indices(as: EntityIndex.self) { layer.insert(number, key: 64, values: [.string(names[number])]) }
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
            for (number, entity) in schema.entities.enumerated(as: EntityIndex.self) {
                #expect(
                    try snapshot.value(number, key: 64, column: ColumnIndex(rawValue: round + 1)) == .string(entity.name),
                    "\(entity.name)")
            }
            #expect(try #require(store).verify() == [])
            store = nil
        }
    }

    @Test func `a migration of one entity leaves the tables of others alone`() throws {
        let text = ColumnSchema(name: "text", type: .string)
        var store: SQLiteStore? = try open(Self.entities(["Plain", "StrataGoldCard"], [text]))
        try ContractStore.save(try #require(store)) { $0.insert(1, key: 64, values: [.string("gold")]) }
        store = nil
        var schema = Self.entities(["Plain", "StrataGoldCard"], [text])
        schema.entities[0].columns.append(ColumnSchema(name: "more", type: .bool))
        #expect(try open(schema).snapshot().value(1, key: 64, column: 0) == .string("gold"))
    }

    /// Catches: objects that seem deleted because another object of their page cannot be read, and a verification that ends there.
    @Test func `a value of a wrong type hides no other object, and the verification names it`() throws {
        try ContractStore.save(try open(), durability: .durable) { layer in
            for key in 64...68 { layer.insertOwner(ObjectKey(rawValue: UInt64(key)), "owner \(key)") }
        }
        let column = try #require(Sample.schema.entities[Sample.owner].columns.first?.name)
        try change("UPDATE Owner SET \"\(column)\" = x'00' WHERE id = 66")
        let store = try open()
        let page = try #require(try store.snapshot().page(Sample.owner, 1))
        for slot in [0, 1, 2, 3, 4] {
            if slot == 2 {
                #expect(refusal { _ = try page.value(slot, 0) }?.code == .damaged)
            } else {
                #expect(try page.value(slot, 0) == .string("owner \(64 + slot)"))
            }
        }
        #expect(try store.verify().contains { "\($0)".contains("66") })
    }

    // MARK: Numbers that no store writes

    @Test(arguments: [Int64.max, -1, 1 << 62])
    func `a generation out of range is damage when it is read`(_ number: Int64) throws {
        try fill()
        try change("UPDATE strata_state SET generation = \(number)")
        let store = try open()
        #expect(refusal { _ = try store.snapshot() }?.code == .damaged)
        #expect(refusal { try ContractStore.save(store) { $0.insertOwner(70, "late") } }?.code == .damaged)
    }

    @Test(arguments: ["18446744073709551614-18446744073709551615", "64-18446744073709551615", "9-8", "x-y", "1-2-3"])
    func `free keys that no store writes are not leased`(_ text: String) throws {
        try fill()
        try change("INSERT OR REPLACE INTO strata_meta VALUES ('free keys \(Sample.owner)', '\(text)')")
        let store = try open()
        let keys = try store.write(.deferred) { try $0.allocateFreeKeys(Sample.owner) }
        #expect(keys.allSatisfy { $0.lowerBound >= 128 && $0.upperBound <= 192 }, "\(keys)")
    }

    @Test(arguments: [
        #""links":[{"link":99,"sources":[64],"destinations":[64]}]"#, #""links":[{"link":-1,"sources":[],"destinations":[]}]"#,
    ])
    func `a history that names what the model lacks is damage, and the verification reports it`(_ links: String) throws {
        try fill()
        let text = try #require(try value("SELECT changes FROM strata_history"))
        let changed = text.replacing(#""links":[]"#, with: links)
        try #require(changed != text)
        try change("UPDATE strata_history SET changes = '\(changed)'")
        let store = try open()
        #expect(refusal { _ = try store.history(after: nil, limit: 10) }?.code == .damaged)
        #expect(try store.verify().map(\.description).contains { $0.contains("the history of save 1") })
    }

    @Test func `a file whose log cannot be left tells why, not that it is open elsewhere`() throws {
        try fill()
        let connection = try SQLiteConnection(path: url.path, role: .writer)
        connection.close()
        #expect(refusal { try connection.withoutLog { _ in } }?.code == .closed)
    }

    @Test func `verify reports values that no column of their type has`() throws {
        let columns: [(ColumnType, bad: String, good: [String])] = [
            (.double, "'many'", ["'NaN'", "1.5", "2"]), (.float, "'nan'", ["'NaN'", "0.5", "1"]),
            (.date, "x'4E614E'", ["'NaN'", "0", "-1"]), (.uuid, "x'00'", ["zeroblob(16)", "randomblob(16)", "NULL"]),
            (.int8, "128", ["-128", "127", "NULL"]), (.int16, "-32769", ["-32768", "32767", "0"]),
            (.int32, "2147483648", ["-2147483648", "2147483647", "0"]), (.uint8, "-1", ["0", "255", "NULL"]),
            (.uint16, "65536", ["0", "65535", "1"]), (.uint32, "-1", ["0", "4294967295", "1"]), (.bool, "2", ["0", "1", "NULL"]),
        ]
        let schema = StoreSchema(entities: [
            EntitySchema(name: "A", columns: columns.map { ColumnSchema(name: "c_\($0.0)", type: $0.0, isOptional: true) })
        ])
        let store = try open(schema)
        try ContractStore.save(store) { layer in
            for key in 64..<68 as Range<ObjectKey> { layer.insert(0, key: key, values: columns.map { _ in .null }) }
        }
        for (type, bad, good) in columns {
            for (place, text) in good.enumerated() { try change("UPDATE A SET c_\(type) = \(text) WHERE id = \(64 + place)") }
            #expect(try store.verify() == [], "\(type)")
            try change("UPDATE A SET c_\(type) = \(bad) WHERE id = 67")
            let found = try store.verify().map(\.description)
            #expect(found.count == 1 && found[0].contains("A 67: the value of c_\(type) is not \(type.rawValue)"), "\(found)")
            try change("UPDATE A SET c_\(type) = NULL WHERE id = 67")
        }
    }
}
