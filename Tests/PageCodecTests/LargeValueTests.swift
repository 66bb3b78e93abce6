import PageCodec
import StoreInterface
import StoreModel
import TestSupport
import Testing

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Keeps chunks in memory, as a store keeps them in a table.
private final class Chunks: LargeValueSource {
    var chunks: [UInt64: [UInt8]] = [:]
    // Safe because each buffer is freed with the source.
    private var lent: [UnsafeMutableRawBufferPointer] = []

    deinit { for room in lent { room.deallocate() } }

    func largeChunk(_ entity: EntityIndex, key: UInt64) throws(PageError) -> UnsafeRawBufferPointer? {
        guard let bytes = chunks[key] else { return nil }
        let room = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 8)
        room.copyBytes(from: bytes)
        lent.append(room)
        return UnsafeRawBufferPointer(room)
    }

    func add(_ bytes: [UInt8], number: UInt64, isPacked: Bool) throws -> LargeValueRecord {
        let packer = try LargeChunkPacker.take()
        defer { LargeChunkPacker.give(packer) }
        return try bytes.withUnsafeBytes { bytes in
            try packer.write(bytes, number: number) { _, _ in
                isPacked
            } put: { key, byteCount, fill in
                chunks[key] = [UInt8](unsafeUninitializedCapacity: byteCount) { room, count in
                    fill(UnsafeMutableRawBufferPointer(room))
                    count = byteCount
                }
            }
        }
    }
}

@Suite struct LargeValueTests {
    private static let entity = EntitySchema(
        name: "Artist",
        columns: [ColumnSchema(name: "name", type: .string), ColumnSchema(name: "photo", type: .data, isOptional: true)])

    /// Returns a page with the values that the limit leaves in it. The other values are in the source.
    private func page(
        _ rows: [Int: [Value]], limit: Int, into source: Chunks, _ layout: PageLayout, old: [UInt8] = [], isPacked: Bool = false
    ) throws -> [UInt8] {
        let layer = Layer(schema: StoreSchema(entities: [Self.entity]))
        for (slot, values) in rows {
            let row = Row.make(kind: .insert, layer: layer.id, columnCount: values.count)
            for (column, value) in values.enumerated(as: ColumnIndex.self) { row[column] = value }
            row.version = .committed(5)
            layer.put(row, entity: 0, key: PageAddress.key(page: 0, slot: slot))
        }
        let changes = try #require(layer.entity(0)?.page(0))
        return try old.withUnsafeBytes { bytes in
            let old =
                bytes.isEmpty ? nil : try ObjectPage(bytes, layout: layout, check: .full, large: LargeValues(source, entity: 0))
            var draft = try PageDraft(old: old, changes: changes, layout: layout, limit: limit)
            for place in draft.largeValues {
                let bytes: [UInt8] =
                    switch rows[place.slot]?[place.column] {
                    case .string(let text)?: Array(text.utf8)
                    case .data(let data)?: Array(data)
                    default: []
                    }
                let number = UInt64(source.chunks.count + 1)
                draft.place(try source.add(bytes, number: number, isPacked: isPacked), at: place)
            }
            return try draft.merge(old: old).withBytes { Array($0) }
        }
    }

    @Test func aPageWithAValueElsewhereHasTheDocumentedBytes() throws {
        let source = Chunks()
        let layout = try PageLayout(Self.entity, schemaNumber: 7)
        let bytes = try page(
            [0: [.string("Ada"), .null], 2: [.string("Berta"), .data(Data([1, 2, 3, 4, 5]))]], limit: 4, into: source, layout)
        let expected = [
            "53545047 0100 0000 8ab3a3c7cf0cce48",
            "a8000000 07000000 0500000000000000",  // byte count, schema, presence
            "0500000000000000 a8000000 00 08 0200",  // base generation, generations, their width, capacity, columns
            "40000000 0d 01 02 00", "70000000 0e 01 03 00",  // directory
            "0400000000000000",  // name: of slot 2 there is a record
            "00 03 03 1b 1b 1b 1b 1b 1b 416461", "0100000000000000 0500000000000000 09d55188574f8743", "00000000",
            "0100000000000000", "0400000000000000",  // photo: nulls, then the out-of-line word
            "00 00 00 18 18 18 18 18 18", "0200000000000000 0500000000000000 1654c14f475daa14", "00000000000000",
        ].joined().filter { $0 != " " }
        #expect(hex(bytes) == expected)
        let chunk = try #require(source.chunks[LargeChunk.key(1, 0)])
        #expect(hex(chunk) == "0500000000000000" + "9638d25fed3e7b16" + "4265727461")
        #expect(LargeChunk.key(1, 0) == 0x10000)
        try bytes.withUnsafeBytes {
            let page = try ObjectPage($0, layout: layout, check: .full, large: LargeValues(source, entity: 0))
            #expect(try page.value(2, 0) == .string("Berta"))
            #expect(try page.value(2, 1) == .data(Data([1, 2, 3, 4, 5])))
            #expect(try page.value(0, 0) == .string("Ada"))
            #expect(try page.value(0, 1) == .null)
            let blind = try ObjectPage($0, layout: layout, check: .full)
            #expect(throws: PageError.self) { try blind.value(2, 0) }
            #expect(try blind.value(0, 0) == .string("Ada"))
        }
    }

    @Test(arguments: [false, true]) func valuesAndConditionsAreThoseOfAPageThatHoldsAll(_ isPacked: Bool) throws {
        var random = SeededGenerator(test: "large values")
        let layout = try PageLayout(Self.entity, schemaNumber: 7)
        let long = String(repeating: "ab", count: 32_760)
        let texts = ["", "a", "abc", "abcd", "abcde", "Abcdé", "abcdE", "abd", long, long + "c"]
        for _ in 0..<2 {
            let source = Chunks()
            var rows: [Int: [Value]] = [:]
            for slot in stride(from: 0, to: 64, by: 11) {
                let text = texts[Int(random.next() % UInt64(texts.count))]
                rows[slot] = [.string(text), random.next() % 4 == 0 ? .null : .data(Data(text.utf8.reversed()))]
            }
            let whole = try page(rows, limit: .max, into: source, layout)
            let split = try page(rows, limit: 3, into: source, layout, isPacked: isPacked)
            try whole.withUnsafeBytes { whole in
                try split.withUnsafeBytes { split in
                    let whole = try ObjectPage(whole, layout: layout, check: .full)
                    let split = try ObjectPage(split, layout: layout, check: .full, large: LargeValues(source, entity: 0))
                    for slot in rows.keys {
                        for column in 0..<2 as Range<ColumnIndex> {
                            #expect(try whole.value(slot, column) == split.value(slot, column))
                        }
                    }
                    for text in texts {
                        for predicate in Self.predicates(text) {
                            let condition = CompiledPredicate(predicate)
                            #expect(
                                try condition.mask(of: whole, number: 0) == condition.mask(of: split, number: 0), "\(predicate)")
                        }
                    }
                }
            }
        }
    }

    private static func predicates(_ text: String) -> [StorePredicate] {
        let comparisons: [StorePredicate.Comparison] = [.equal, .notEqual, .less, .lessOrEqual, .greater, .greaterOrEqual]
        let matches: [StorePredicate.StringMatch] = [.equals, .contains, .hasPrefix, .hasSuffix]
        return comparisons.flatMap {
            [.compare(0, $0, to: .string(text)), .compare(1, $0, to: .data(Data(text.utf8))), .compare(1, $0, to: .null)]
        }
            + matches.flatMap { match in
                [
                    .string(0, match, pattern: String(text.suffix(50)), sensitivity: .sensitive),
                    .string(0, match, pattern: String(text.suffix(50)), sensitivity: .insensitive),
                ]
            } + [.isIn(0, [.string(text)]), .isIn(1, [.null, .data(Data(text.utf8))])]
    }

    @Test func anUpdateKeepsTheRecordsThatItDoesNotTouch() throws {
        let source = Chunks()
        let layout = try PageLayout(Self.entity, schemaNumber: 7)
        let old = try page(
            [1: [.string("first large"), .null], 2: [.string("second large"), .null]], limit: 4, into: source, layout)
        let new = try page(
            [2: [.string("tiny"), .null], 9: [.string("third large"), .null]], limit: 4, into: source, layout, old: old)
        #expect(source.chunks.count == 3)
        try new.withUnsafeBytes {
            let page = try ObjectPage($0, layout: layout, check: .full, large: LargeValues(source, entity: 0))
            #expect(try page.largeValue(1, 0)?.number == 1)
            #expect(try page.largeValue(2, 0) == nil)
            #expect(try page.largeValue(9, 0)?.number == 3)
            #expect(try page.value(1, 0) == .string("first large"))
            #expect(try page.value(2, 0) == .string("tiny"))
        }
        // The same objects written at once have the same bytes.
        let rows: [Int: [Value]] = [
            1: [.string("first large"), .null], 2: [.string("tiny"), .null], 9: [.string("third large"), .null],
        ]
        #expect(try page(rows, limit: 4, into: Chunks(), layout).count == new.count)
    }

    @Test func everyDamageOfAChunkIsAnErrorAndNeverATrap() throws {
        let source = Chunks()
        let record = try source.add(Array(repeating: 65, count: 3000), number: 3, isPacked: true)
        let values = LargeValues(source, entity: 0)
        let key = LargeChunk.key(3, 0)
        let sound = try #require(source.chunks[key])
        #expect(try values.data(record) == Data(repeating: 65, count: 3000))
        for offset in sound.indices {
            for bit in 0..<8 {
                source.chunks[key] = sound
                source.chunks[key]?[offset] ^= 1 << UInt8(bit)
                #expect(throws: PageError.self) { try values.data(record) }
            }
        }
        for count in 0..<sound.count {
            source.chunks[key] = Array(sound[..<count])
            #expect(throws: PageError.self) { try values.data(record) }
        }
        source.chunks[key] = sound
        #expect(throws: PageError.self) { try values.data(LargeValueRecord(number: 3, byteCount: 1 << 30, hash: 0)) }
        #expect(throws: PageError.self) { try values.data(LargeValueRecord(number: 4, byteCount: 3000, hash: 0)) }
    }
}
