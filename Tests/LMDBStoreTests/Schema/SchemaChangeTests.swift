import Foundation
import LMDB
import PageCodec
import StoreInterface
import StoreModel
import Testing

@testable import LMDBStore

/// The effects of a changed schema on the file, and the work that it leaves for later.
@Suite struct SchemaChangeTests {
    /// 10^5 objects; 10^6 with STRATA_LONG=1.
    private static var count: Int { ProcessInfo.processInfo.environment["STRATA_LONG"] == nil ? 100_000 : 1_000_000 }

    /// Attributes added, removed, renamed, widened and made optional, an entity added, indexes added and dropped.
    private static var changed: StoreSchema {
        var schema = Samples.schema
        schema.entities[1].columns[1].name = "heading"
        schema.entities[1].columns[1].renamedFrom = "title"
        schema.entities[1].columns[1].index = .indexed
        schema.entities[1].columns[2].index = .none
        schema.entities[1].columns[5].isOptional = true
        schema.entities[1].columns.remove(at: 3)
        schema.entities[1].columns.insert(
            ColumnSchema(name: "rating", type: .int16, index: .indexed, defaultValue: .int(3)), at: 0)
        schema.entities[0].columns[1].type = .int64
        schema.entities.append(EntitySchema(name: "Album", columns: [ColumnSchema(name: "title", type: .string)]))
        schema.migration.allowedLoss = .named(["Track.\(Samples.schema.entities[1].columns[3].name)"])
        return schema
    }

    @Test func S163_anOpenWithAChangedSchemaWritesNoPageOfAnObject() throws {
        let scratch = try Scratch()
        var store: LMDBStore? = try scratch.store()
        for _ in 0..<(Self.count / 20_000) { try store?.insertTracks(20_000) }
        let before = try #require(store).environment.information().lastTransaction
        store = nil
        let start = ContinuousClock.now
        let opened = try LMDBStore.open(scratch.url, schema: Self.changed)
        let time = ContinuousClock.now - start
        // Opening is one transaction, of some pages of `meta` and of the tables' roots.
        #expect(try opened.environment.information().lastTransaction == before + 1)
        #expect(try Self.pages(of: opened, schemaNumber: 2) == 0)
        print("opening \(Self.count) objects with a changed schema: \(time)")
        let snapshot = try opened.newestSnapshot()
        let key = try #require(try snapshot.keys(StoreQuery(entity: 1, limit: 1)).first)
        #expect(try snapshot.value(1, key: key, column: 0) == .int(3))
        #expect(try snapshot.value(1, key: key, column: 2) == .string("title 0"))
        #expect(try snapshot.count(StoreQuery(entity: 1, predicate: .compare(0, .equal, to: .int(3)))) == Self.count)
        #expect(
            try snapshot.explain(StoreQuery(entity: 1, predicate: .compare(2, .equal, to: .string("title 1")))).contains("scan"))
        try opened.save { layer, _ in
            let row = Row.make(kind: .update, layer: layer.id, columnCount: 6)
            row[0] = .int(4)
            layer.put(row, entity: 1, key: key)
        }
        #expect(try Self.pages(of: opened, schemaNumber: 2) == 1, "a write brings its page to the new schema")
    }

    private static func pages(of store: LMDBStore, schemaNumber: UInt32) throws -> Int {
        let snapshot = try store.newestSnapshot()
        var count = 0
        try snapshot.forEachPage(1) { _, bytes in
            let page = try ObjectPage(bytes, layout: store.layouts[1], check: .header)
            if page.schemaNumber == schemaNumber { count += 1 }
            return .next
        }
        return count
    }

    @Test func S163_anIndexIsBuiltInStepsBesideSavesAndAcrossOpens() throws {
        let scratch = try Scratch()
        var store: LMDBStore? = try scratch.store()
        let keys = try #require(store).insertTracks(64 * 300)
        store = nil
        var opened: LMDBStore? = try LMDBStore.open(scratch.url, schema: Self.changed)
        let query = StoreQuery(entity: 1, predicate: .compare(2, .equal, to: .string("changed")))
        // A few steps, each with a save before and behind the present place of the build.
        for step in 0..<4 {
            let progress = try #require(try opened?.continueMigration())
            #expect(!progress.activity.isEmpty)
            try opened?.save { layer, transaction in
                for key in [keys[step], keys[keys.count - 1 - step]] {
                    let row = Row.make(kind: .update, layer: layer.id, columnCount: 6)
                    row[2] = .string("changed")
                    layer.put(row, entity: 1, key: key)
                }
                layer.put(Row.make(kind: .delete, layer: layer.id, columnCount: 0), entity: 1, key: keys[1000 * (step + 1)])
            }
            #expect(try opened?.snapshot().count(query) == 2 * (step + 1), "until the index is ready, a scan answers")
        }
        opened = nil
        opened = try LMDBStore.open(scratch.url, schema: Self.changed)
        let again = try #require(opened)
        #expect(again.unfinished.first != nil, "what was left is found again")
        while let progress = try again.continueMigration() { #expect(progress.completed <= max(progress.total, 1)) }
        let snapshot = try again.newestSnapshot()
        #expect(try snapshot.explain(query).contains("index on heading"))
        #expect(try snapshot.count(query) == 8)
        #expect(try snapshot.count(StoreQuery(entity: 1, predicate: .compare(0, .equal, to: .int(3)))) == keys.count - 4)
        let findings = try again.verify()
        #expect(findings == [])
        // Dropped sub-databases are empty.
        let rest = try again.tamper { transaction in
            try transaction.statistics(transaction.open("index.1.3", .bytesToIntegers)).entries
                + transaction.statistics(transaction.open("index.1.2", .bytesToIntegers)).entries
        }
        #expect(rest == 0)
    }

    /// Catches: a query on an older state that uses an index which was complete only later, and so misses objects. The state is read
    /// for the first time after the store has seen the end of the build.
    @Test func S163_aStateFromBeforeTheEndOfABuildIsReadWithoutTheIndex() throws {
        let scratch = try Scratch()
        do { try scratch.store().insertTracks(64 * 4) }
        let store = try LMDBStore.open(scratch.url, schema: Self.changed)
        let before = try ReadTransaction(store.environment)
        while try store.continueMigration() != nil {}
        let after = try store.newestSnapshot()
        let query = StoreQuery(entity: 1, predicate: .compare(2, .equal, to: .string("title 1")))
        #expect(try after.explain(query).contains("index"))
        let older = try LMDBSnapshot(store, before)
        #expect(try older.explain(query).contains("scan"))
        #expect(try older.keys(query) == after.keys(query))
        #expect(try !older.keys(query).isEmpty)
        // The index of the newest state is used again.
        #expect(try store.newestSnapshot().explain(query).contains("index"))
    }

    @Test func S163_aStoreThatWasMigratedElsewhereWritesNoMore() throws {
        let scratch = try Scratch()
        let store = try scratch.store()
        try store.insertTracks(3)
        // As another process would.
        try store.tamper { try MetaTable.put(2, key: MetaTable.Key.schemaNumber, meta: store.tables.meta, in: $0) }
        let error = #expect(throws: StoreError.self) { try store.insertTracks(1) }
        #expect(error?.code == .schemaTooNew)
    }

    @Test func S160_theHistoryFromBeforeAMigrationIsToldInTheNewPositions() throws {
        let scratch = try Scratch()
        var store: LMDBStore? = try scratch.store()
        let keys = try #require(store).insertTracks(2)
        try store?.save { layer, _ in
            let row = Row.make(kind: .update, layer: layer.id, columnCount: 6)
            row[1] = .string("x")
            row[3] = .double(9)
            layer.put(row, entity: 1, key: keys[0])
        }
        store = nil
        var schema = Self.changed
        schema.entities.swapAt(1, 2)
        schema.links[0].source = 2
        schema.links[0].destination = 2
        let opened = try LMDBStore.open(scratch.url, schema: schema)
        let change = try #require(try opened.history(after: 1, limit: 10)?.first?.change(of: 2))
        #expect(change.updatedKeys == [keys[0]])
        var columns = ColumnSet()
        columns.insert(2)
        #expect(change.pages[0].columns == columns, "what was removed since is left out")
    }

    /// Catches: an opening that has room for fewer tables than the changed model drops.
    @Test func `S165: many entities are dropped at once, and a compact copy is made of what is left`() async throws {
        let scratch = try Scratch()
        let schema = StoreSchema(
            entities: (0..<80).map {
                EntitySchema(name: "Entity\($0)", columns: [ColumnSchema(name: "name", type: .string)])
            })
        try LMDBStore.open(scratch.url, schema: schema).shutDown()
        let opened = try LMDBStore.open(scratch.url, schema: StoreSchema(entities: [schema.entities[0]]))
        while try opened.continueMigration() != nil {}
        _ = try await opened.compactCopy(to: scratch.folder.appendingPathComponent("copy")) { _ in }
        #expect(try opened.verify() == [])
    }

    /// Catches: a number in the name of a dropped table that has no keys, for which the program stopped.
    @Test(arguments: ["pages.65535", "pages.65536", "pages.\(Int.max)", "pages.-1"])
    func `a dropped table with any number in its name is emptied`(_ name: String) throws {
        let scratch = try Scratch()
        let first = try scratch.store()
        try first.insertTracks(1)
        // The code of tables whose keys are numbers.
        try first.tamper { transaction in
            try [UInt8(1)].withUnsafeBytes {
                try MetaTable.put($0, key: MetaTable.Key.drop + name, meta: first.tables.meta, in: transaction)
            }
        }
        try first.shutDown()
        let again = try scratch.store()
        #expect(try again.continueMigration() != nil)
        while try again.continueMigration() != nil {}
        #expect(try again.verify() == [])
    }
}
