import PageCodec
import StoreInterface
import StoreModel
import Testing

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The bytes that `Docs/Internals/FileFormat.md` describes. A change here is a change of the file format.
@Suite struct PageFormatTests {
    @Test func aPageHasTheDocumentedBytes() throws {
        let entity = EntitySchema(
            name: "Artist",
            columns: [
                ColumnSchema(name: "name", type: .string), ColumnSchema(name: "age", type: .int32, isOptional: true),
                ColumnSchema(name: "isLoved", type: .bool),
            ])
        let bytes = try page(
            entity, [0: [.string("Ada"), .int(-2), .bool(true)], 2: [.string("é"), .null, .bool(false)]], versions: [0: 9, 2: 12])
        let expected = [
            "53545047 0100 0000 44b08d58b539aa40",  // magic, format, flags, checksum
            "78000000 07000000 0500000000000000",  // byte count, schema, presence
            "0900000000000000 70000000 01 08 0300",  // base generation, generations, their width, capacity, columns
            "48000000 0d 01 00 00", "58000000 04 01 01 00", "68000000 01 08 00 00",  // directory
            "00 03 03 05 05 05 05 05 05 416461 c3a9 0000",  // name: offsets, heap, padding
            "0400000000000000 fe00000000000000",  // age: nulls, cells
            "0100000000000000",  // isLoved
            "0000030000000000",  // generations
        ].joined().filter { $0 != " " }
        #expect(hex(bytes) == expected)
    }

    @Test func everyTypeHasItsDocumentedBytes() throws {
        let uuid = UUID(uuid: (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15))
        let cases: [(ColumnType, Value, String)] = [
            (.bool, .bool(true), "08 0100000000000000"), (.int8, .int(-1), "01 ff"), (.int16, .int(-129), "02 7fff"),
            (.int32, .int(1 << 20), "04 00001000"), (.int64, .int(.min), "08 0000000000000080"), (.int64, .int(0), "00"),
            (.uint8, .int(255), "01 ff"), (.uint16, .int(256), "02 0001"), (.uint32, .int(1 << 31), "04 00000080"),
            (.uint64, .uint(.max), "08 ffffffffffffffff"), (.reference, .reference(300), "02 2c01"),
            (.float, .double(1), "04 0000803f"), (.double, .double(1), "08 000000000000f03f"), (.double, .double(0), "00"),
            (.date, .double(-0.0), "08 0000000000000080"), (.uuid, .uuid(uuid), "10 000102030405060708090a0b0c0d0e0f"),
        ]
        for (type, value, expected) in cases {
            let entity = EntitySchema(name: "One", columns: [ColumnSchema(name: "c", type: type, destination: 0)])
            let bytes = try page(entity, [0: [value]], versions: [0: 1])
            let parts = expected.split(separator: " ")
            #expect(hex(bytes[53..<54]) == parts[0], "width of \(type)")
            let cell = parts.count > 1 ? String(parts[1]) : ""
            #expect(hex(bytes[56..<(56 + cell.utf8.count / 2)]) == cell, "cell of \(type)")
        }
    }

    @Test func S163_aPageOfAnOlderSchemaGivesNewColumnsTheirValueFromThen() throws {
        let old = EntitySchema(name: "Artist", columns: [ColumnSchema(name: "age", type: .int8)])
        let new = EntitySchema(
            name: "Artist", columns: old.columns + [ColumnSchema(name: "name", type: .string, isOptional: true)])
        let bytes = try page(old, [1: [.int(5)]], versions: [1: 3])
        let layout = try PageLayout(
            new, schemaNumber: 8, older: [.init(schemaNumber: 7, entity: old, sources: [.stored(0), .constant(.null)])])
        try bytes.withUnsafeBytes {
            let page = try ObjectPage($0, layout: layout, check: .full)
            #expect(try page.value(1, 0) == .int(5))
            #expect(try page.value(1, 1) == .null)
            let mask = try CompiledPredicate(.compare(1, .equal, to: .null)).mask(of: page, number: 0)
            #expect(mask == 0b10)
        }
        #expect(throws: PageError.self) {
            try bytes.withUnsafeBytes { _ = try ObjectPage($0, layout: PageLayout(new, schemaNumber: 7), check: .header) }
        }
        #expect(throws: PageError.self) {
            try bytes.withUnsafeBytes { _ = try ObjectPage($0, layout: PageLayout(old, schemaNumber: 8), check: .header) }
        }
    }

    @Test func aMergeOverAnOlderSchemaWritesTheNewOne() throws {
        let old = EntitySchema(name: "Artist", columns: [ColumnSchema(name: "age", type: .int8)])
        let new = EntitySchema(name: "Artist", columns: old.columns + [ColumnSchema(name: "plays", type: .int16)])
        let bytes = try page(old, [1: [.int(5)], 2: [.int(6)]], versions: [1: 3, 2: 3])
        let layer = Layer(schema: StoreSchema(entities: [new]))
        let row = Row.make(kind: .update, layer: layer.id, columnCount: 2)
        row[1] = .int(77)
        layer.put(row, entity: 0, key: 2)
        let layout = try PageLayout(
            new, schemaNumber: 8, older: [.init(schemaNumber: 7, entity: old, sources: [.stored(0), .constant(.int(9))])])
        let merged = try merge(bytes, #require(layer.entity(0)?.page(0)), layout)
        try merged.withUnsafeBytes {
            let page = try ObjectPage($0, layout: layout, check: .full)
            #expect(page.schemaNumber == 8)
            #expect(try page.value(1, 1) == .int(9))
            #expect(try page.value(2, 1) == .int(77))
            #expect(try page.value(2, 0) == .int(6))
        }
    }

    @Test func aPageOfFormat2DiffersInVersionAndChecksumWhichCoversItsPlace() throws {
        let entity = EntitySchema(name: "Artist", columns: [ColumnSchema(name: "age", type: .int8)])
        let layer = Layer(schema: StoreSchema(entities: [entity]))
        let row = Row.make(kind: .insert, layer: layer.id, columnCount: 1)
        row[0] = .int(7)
        layer.put(row, entity: 0, key: 3)
        let changes = try #require(layer.entity(0)?.page(0))
        func bytes(_ layout: PageLayout, _ number: PageNumber) throws -> [UInt8] {
            try PageMerge(old: nil, changes: changes, layout: layout, number: number).withBytes { Array($0) }
        }
        let old = try bytes(PageLayout(entity, schemaNumber: 7), 5)
        let layout = try PageLayout(entity, schemaNumber: 7, entityNumber: 1)
        let new = try bytes(layout, 5)
        #expect(Array(new[..<4]) == Array(old[..<4]) && Array(new[16...]) == Array(old[16...]))
        #expect(Array(old[4..<6]) == [1, 0] && Array(new[4..<6]) == [2, 0])
        let checksums = try Set([
            Array(old[8..<16]), Array(new[8..<16]), Array(bytes(layout, 6)[8..<16]),
            Array(bytes(PageLayout(entity, schemaNumber: 7, entityNumber: 2), 5)[8..<16]),
        ])
        #expect(checksums.count == 4)
        func check(_ page: [UInt8], _ layout: PageLayout, _ number: PageNumber) throws {
            try page.withUnsafeBytes { _ = try ObjectPage($0, layout: layout, number: number, check: .full) }
        }
        try check(new, layout, 5)
        #expect(throws: PageError.self) { try check(new, layout, 6) }
        #expect(throws: PageError.self) { try check(old, layout, 5) }
        #expect(throws: PageError.self) { try check(new, PageLayout(entity, schemaNumber: 7), 5) }
        let packer = try PagePacker(dictionary: nil, number: 0, level: 1)
        let packed = try #require(try new.withUnsafeBytes { try packer.pack($0, place: layout.place(5)) })
        func unpacked(_ number: PageNumber) throws -> [UInt8] {
            try packed.withUnsafeBytes { try PackedPage($0, place: layout.place(number)).unpacked(nil) }
        }
        #expect(try unpacked(5) == new)
        #expect(throws: PageError.self) { try unpacked(6) }
    }

    @Test func aValueThatDoesNotFitIsRefusedByName() throws {
        let entity = EntitySchema(
            name: "Artist", columns: [ColumnSchema(name: "age", type: .int8), ColumnSchema(name: "name", type: .string)])
        for (values, column) in [
            ([Value.int(128), .string("")], "Artist.age"), ([.int(1), .null], "Artist.name"),
            ([.int(1), .int(1)], "Artist.name"),
            ([.double(1), .string("")], "Artist.age"),
        ] {
            let error = #expect(throws: PageError.self) { try page(entity, [3: values], versions: [3: 1]) }
            #expect(error?.field == column)
        }
    }
}

/// Returns a page of schema 7 with rows by slot.
func page(_ entity: EntitySchema, _ rows: [Int: [Value]], versions: [Int: Generation]) throws -> [UInt8] {
    let layer = Layer(schema: StoreSchema(entities: [entity]))
    for (slot, values) in rows {
        let row = Row.make(kind: .insert, layer: layer.id, columnCount: values.count)
        for (column, value) in values.enumerated(as: ColumnIndex.self) { row[column] = value }
        row.version = .committed(versions[slot] ?? 0)
        layer.put(row, entity: 0, key: PageAddress.key(page: 0, slot: slot))
    }
    return try merge([], #require(layer.entity(0)?.page(0)), PageLayout(entity, schemaNumber: 7))
}
