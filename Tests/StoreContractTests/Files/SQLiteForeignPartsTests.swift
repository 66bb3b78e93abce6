import Foundation
import StoreContract
import StoreInterface
import StoreModel
import Testing

@testable import SQLiteStore

/// Migrations of SQLite files to whose tables another program has added something.
@Suite struct SQLiteForeignPartsTests {
    private let folder: TemporaryFolder
    private var url: URL { folder.url.appendingPathComponent("store.sqlite") }

    init() throws { folder = try TemporaryFolder() }

    private static func schema(_ more: ColumnSchema...) -> StoreSchema {
        StoreSchema(entities: [
            EntitySchema(
                name: "Item",
                columns: [
                    ColumnSchema(name: "note", type: .string, index: .indexed), ColumnSchema(name: "size", type: .int32),
                ] + more),
            EntitySchema(name: "Other", columns: [ColumnSchema(name: "text", type: .string)]),
        ])
    }

    private static let extended = schema(ColumnSchema(name: "flag", type: .bool))

    private func change(_ script: String) throws {
        let connection = try SQLiteConnection(path: url.path, role: .writer)
        try connection.withLock { try connection.runScript(script) }
    }

    private func names() throws -> [String] {
        let connection = try SQLiteConnection(path: url.path, role: .observer)
        return try connection.withLock {
            try connection.texts(
                "SELECT name FROM sqlite_master WHERE type IN ('index', 'trigger') AND sql IS NOT NULL ORDER BY name")
        }
    }

    private func fill() throws {
        let store = try SQLiteStore(url: url, schema: Self.schema())
        try ContractStore.save(store, durability: .durable) { $0.insert(0, key: 64, values: [.string("one"), .int(1)]) }
        try store.shutDown()
    }

    @Test(arguments: [
        ("ALTER TABLE Item ADD COLUMN extra TEXT", "the column extra of the table Item"),
        ("CREATE TRIGGER mine AFTER INSERT ON Item BEGIN SELECT 1; END", "the trigger mine of the table Item"),
    ])
    func `a model change does not discard a foreign column or trigger unasked`(_ script: String, _ words: String) throws {
        try fill()
        try change(script)
        let error = #expect(throws: StoreError.self) { try SQLiteStore(url: url, schema: Self.extended) }
        #expect(error?.code == .schemaMismatch)
        #expect(error?.message.contains(words) == true, "\(String(describing: error))")
        let store = try SQLiteStore(url: url, schema: Self.schema())
        #expect(try store.snapshot().value(0, key: 64, column: 0) == .string("one"))
    }

    @Test func `a model change keeps foreign indexes of every table`() throws {
        try fill()
        try change("CREATE INDEX mine ON Item (size); CREATE UNIQUE INDEX hers ON Other (text) WHERE id > 5")
        let store = try SQLiteStore(url: url, schema: Self.extended)
        #expect(try names() == ["Item_note", "hers", "mine"])
        #expect(try store.verify() == [])
        #expect(try store.snapshot().value(0, key: 64, column: 1) == .int(1))
    }

    @Test func `a model change that drops the column of a foreign index is refused`() throws {
        try fill()
        try change("CREATE INDEX mine ON Item (size)")
        var schema = Self.schema()
        schema.entities[0].columns.remove(at: 1)
        schema.migration.allowedLoss = .everything
        let error = #expect(throws: StoreError.self) { try SQLiteStore(url: url, schema: schema) }
        #expect(error?.code == .schemaMismatch)
        #expect(error?.message.contains("the index mine") == true, "\(String(describing: error))")
        try change("DROP INDEX mine")
        let store = try SQLiteStore(url: url, schema: schema)
        #expect(try store.snapshot().value(0, key: 64, column: 0) == .string("one"))
    }

    /// Catches: an error of SQLite at each opening, which names no remedy.
    @Test(arguments: [
        ("CREATE TABLE item_SIZE (x)", "the table item_SIZE", "DROP TABLE item_SIZE"),
        ("CREATE VIEW item_SIZE AS SELECT 1", "the view item_SIZE", "DROP VIEW item_SIZE"),
        ("CREATE TABLE fresh (x)", "the table fresh", "DROP TABLE fresh"),
        ("CREATE VIEW fresh AS SELECT 1", "the view fresh", "DROP VIEW fresh"),
        ("CREATE INDEX fresh ON Other (text)", "the index fresh", "DROP INDEX fresh"),
    ])
    func `a model change that needs the name of a foreign table or view is refused`(
        _ script: String, _ words: String, _ remedy: String
    ) throws {
        try fill()
        try change(script)
        var schema = Self.schema()
        schema.entities[0].columns[1].index = .indexed
        schema.entities.append(EntitySchema(name: "Fresh", columns: [ColumnSchema(name: "text", type: .string)]))
        let error = #expect(throws: StoreError.self) { try SQLiteStore(url: url, schema: schema) }
        #expect(error?.code == .schemaMismatch)
        #expect(error?.message.contains(words + ", whose name the model needs") == true, "\(String(describing: error))")
        try change(remedy)
        let store = try SQLiteStore(url: url, schema: schema)
        #expect(try store.snapshot().value(0, key: 64, column: 0) == .string("one"))
        #expect(try store.verify() == [])
    }

    /// Catches: an index that has the name of a table which every file has.
    @Test func `a model whose index would be called like a table of the store is created, and changed`() throws {
        var schema = StoreSchema(entities: [
            EntitySchema(
                name: "Strata",
                columns: ["meta", "state", "keys", "history"].map { ColumnSchema(name: $0, type: .string, index: .indexed) })
        ])
        let before = try SQLiteStore(url: url, schema: schema)
        try ContractStore.save(before, durability: .durable) {
            $0.insert(0, key: 64, values: (0..<4).map { .string("\($0)") })
        }
        #expect(try before.verify() == [])
        try before.shutDown()
        schema.entities[0].columns.append(ColumnSchema(name: "flag", type: .bool))
        let after = try SQLiteStore(url: url, schema: schema)
        #expect(try after.snapshot().value(0, key: 64, column: 3) == .string("3"))
        #expect(try after.verify() == [])
    }

    /// Catches: an error of SQLite at each opening, which names no remedy.
    @Test func `a model change that needs the name of a foreign index is refused`() throws {
        try fill()
        try change("CREATE INDEX item_SIZE ON Other (text)")
        var schema = Self.schema()
        schema.entities[0].columns[1].index = .indexed
        let error = #expect(throws: StoreError.self) { try SQLiteStore(url: url, schema: schema) }
        #expect(error?.code == .schemaMismatch)
        #expect(
            error?.message.contains("the index item_SIZE, whose name the model needs") == true, "\(String(describing: error))")
        try change("DROP INDEX item_SIZE")
        let store = try SQLiteStore(url: url, schema: schema)
        #expect(try store.snapshot().value(0, key: 64, column: 0) == .string("one"))
    }
}
