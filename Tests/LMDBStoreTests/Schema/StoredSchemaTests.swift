import StoreInterface
import StoreModel
import Testing

@_spi(Fuzzing) @testable import LMDBStore

/// The schema in a file may be any bytes.
@Suite struct StoredSchemaTests {
    private func isRead(_ change: (inout StoredSchema) -> Void) throws -> Bool {
        var schema = StoredSchema(first: Samples.schema)
        change(&schema)
        return try Array(schema.json()).withUnsafeBytes { StoredSchema(json: $0) != nil }
    }

    @Test func aSchemaWithNumbersThatCannotBeIsRefused() throws {
        #expect(try isRead { _ in })
        let changes: [(inout StoredSchema) -> Void] = [
            { $0.entities[1].columns[2].number = 1 }, { $0.entities[0].number = 1 },
            {
                $0.links.append($0.links[0])
                $0.schema.links.append($0.schema.links[0])
            },
            { $0.schema.entities[1].indexes = [IndexSchema(columns: [])] },
            { $0.schema.entities[1].indexes = [IndexSchema(columns: [0, 6])] },
            { $0.entities[1].nextColumn = .max }, { $0.entities[1].nextColumn = 5 }, { $0.nextEntity = .max },
            { $0.nextEntity = 1 }, { $0.nextLink = .max }, { $0.nextLink = 0 }, { $0.nextLink = -1 },
        ]
        for (number, change) in changes.enumerated() { #expect(try !isRead(change), "change \(number)") }
    }

    @Test func twoIndexesOverTheSameColumnsAreNoTrap() throws {
        var schema = StoredSchema(first: Samples.schema)
        schema.schema.entities[1].indexes = [IndexSchema(columns: [0, 2]), IndexSchema(columns: [0, 2])]
        let bytes = [Array(try schema.json())]
        #expect(try SchemaBytes.read(bytes, then: schema.schema, history: ChangeSet(generation: 1)))
    }

    /// Catches: the rests of an entity with the highest number that a key can have, behind which no key follows.
    @Test(arguments: [(0xFFFF, ["tails: has 1 entries for 0 packed pages"]), (0x1_0000, [])])
    func `an entity in a file may have any number`(_ number: Int, _ findings: [String]) throws {
        let scratch = try Scratch()
        var schema = StoredSchema(first: Samples.schema)
        schema.entities[Samples.artist].number = number
        schema.nextEntity = number + 1
        let first = try scratch.store()
        try first.tamper { transaction in
            for (name, kind) in StoredTables(schema).all { _ = try transaction.open(name, kind) }
            try StoredSchemas.put(schema, number: 1, meta: first.tables.meta, in: transaction)
        }
        try first.shutDown()
        let store = try scratch.store()
        try store.insertTracks(1)
        try store.tamper { transaction in
            try [UInt8(1)].withUnsafeBytes { try transaction.put(store.tables.pageOverflow, key: UInt64.max, value: $0) }
        }
        #expect(try store.verify().map(\.description) == findings)
    }

    /// Catches: bits of a page that are read as numbers of eight bytes, behind the end of the page.
    @Test(arguments: [ColumnType.uint64, .int64, .string, .uuid])
    func `a column that was of another type in an older version is refused`(_ type: ColumnType) throws {
        let scratch = try Scratch()
        let first = try scratch.store()
        try first.insertTracks(1)
        var changed = Samples.schema
        changed.entities[Samples.track].columns[5].type = type
        var version = StoredSchema(first: Samples.schema)
        version.schema = changed
        try first.tamper { transaction in
            try StoredSchemas.put(version, number: 2, meta: first.tables.meta, in: transaction)
            try MetaTable.put(2, key: MetaTable.Key.schemaNumber, meta: first.tables.meta, in: transaction)
        }
        try first.shutDown()
        let error = #expect(throws: StoreError.self) { try LMDBStore.open(scratch.url, schema: changed) }
        #expect(error?.code == .damaged)
        #expect(error?.message.contains("the schema in its meta table") == true, "\(String(describing: error))")
    }
}
