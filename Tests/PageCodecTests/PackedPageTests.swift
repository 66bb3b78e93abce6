@_spi(Fuzzing) import PageCodec
import StoreInterface
import StoreModel
import TestSupport
import Testing

@Suite struct PackedPageTests {
    private let entity = EntitySchema(
        name: "Artist",
        columns: [ColumnSchema(name: "name", type: .string), ColumnSchema(name: "age", type: .int32, isOptional: true)])

    /// Frames depend on zstd's version. The test fixes how a page is read, and all written bytes except the frame.
    @Test func aPackedPageHasTheDocumentedBytes() throws {
        let raw = try page(entity, [0: [.string("Ada"), .int(-2)], 2: [.string("Eve"), .null]], versions: [0: 9, 2: 12])
        let golden = [
            "53545047 0100 0100 7d915e92e0722398",  // magic, format, flags, checksum of the raw page
            "70000000 07000000 0500000000000000",  // byte count, schema, presence
            "0900000000000000 68000000 00000000",  // base generation, unpacked byte count, dictionary number
            "28b52ffd 20 40",  // zstd's frame: magic, descriptor, content size
            "bd0100d40260000000010802004000" + "00000d010000500000000401010000030306416461457665000400fe0003"
                + "000000000003100004cfe17202",
        ].joined().filter { $0 != " " }
        #expect(try unpack(bytes(golden)) == raw)
        let packed = try #require(try pack(raw))
        // Byte count and frame may differ with another version of zstd.
        #expect(hex(packed[..<16]) == golden.prefix(32))
        #expect(hex(packed[20..<48]) == golden.dropFirst(40).prefix(56))
        #expect(Int(packed[16]) == packed.count)
        #expect(try unpack(packed) == raw)
    }

    @Test func everyPageComesBackAsItWas() throws {
        var random = SeededGenerator(test: "packed pages")
        for _ in 0..<200 {
            let schema = random.schema()
            guard let raw = try random.page(schema) else { continue }
            let packed = try #require(try pack(raw, level: random.below(19) + 1), "seed \(random.seed)")
            #expect(packed.withUnsafeBytes { PackedPage.isPacked($0) })
            #expect(!raw.withUnsafeBytes { PackedPage.isPacked($0) })
            #expect(try unpack(packed) == raw, "seed \(random.seed)")
            try packed.withUnsafeBytes { bytes in
                let view = try PackedPage(bytes)
                let layout = try PageLayout(schema, schemaNumber: 7)
                let page = try raw.withUnsafeBytes { try ObjectPage($0, layout: layout, check: .full).presence }
                #expect(view.presence == page)
                #expect(view.schemaNumber == 7)
                #expect(view.unpackedByteCount == raw.count)
                #expect(throws: PageError.self) { try ObjectPage(bytes, layout: layout, check: .header) }
            }
        }
    }

    @Test func aTrainedDictionaryMakesPagesSmallerAndOnlyItReadsThem() throws {
        var random = SeededGenerator(test: "dictionaries")
        var training = DictionaryTraining()
        var pages: [[UInt8]] = []
        for number in 0..<200 {
            let raw = try page(
                entity,
                Dictionary(
                    uniqueKeysWithValues: (0..<20).map { slot in
                        (slot, [.string("The quick brown artist \(random.below(1000))"), .int(Int64(number))])
                    }), versions: [:])
            raw.withUnsafeBytes { training.add($0) }
            pages.append(raw)
        }
        let bytes = try #require(training.dictionary(maximumByteCount: 8192, level: 3))
        let dictionary = try PageDictionary(bytes)
        let plain = try #require(try pack(pages[7]))
        let packed = try #require(try pack(pages[7], dictionary))
        #expect(packed.count < plain.count)
        #expect(try packed.withUnsafeBytes { try PackedPage($0).dictionaryNumber } == 3)
        #expect(try unpack(packed, dictionary) == pages[7])
        #expect(throws: PageError.self) { try unpack(packed) }
        let other = try PageDictionary(Array("The quick brown artist of another dictionary".utf8))
        #expect(throws: PageError.self) { try unpack(packed, other) }
    }

    /// Any change of one bit, and any cut, is an error or gives the same page. It is never read as another page.
    @Test func everyChangedBitIsFoundOrDoesNotMatter() throws {
        var random = SeededGenerator(test: "packed bits")
        for _ in 0..<20 {
            guard let raw = try random.page(random.schema()), let packed = try pack(raw) else { continue }
            for place in packed.indices {
                var corrupt = packed
                corrupt[place] ^= UInt8(1 << random.below(8))
                if let found = try? unpack(corrupt) {
                    #expect(found == raw, "seed \(random.seed), byte \(place)")
                }
                #expect(throws: PageError.self) { try unpack(Array(packed[..<place])) }
            }
        }
    }

    @Test func aClaimOfManyBytesIsRefusedBeforeTheyAreAllocated() throws {
        let raw = try page(entity, [0: [.string("Ada"), .int(-2)]], versions: [:])
        var packed = try #require(try pack(raw))
        for claim in [0, 48, 0x0100_0001, 0x7fff_ffff, 0xffff_ffff] as [UInt32] {
            packed.withUnsafeMutableBytes { $0.storeBytes(of: claim.littleEndian, toByteOffset: 40, as: UInt32.self) }
            #expect(throws: PageError.self) { try packed.withUnsafeBytes { _ = try PackedPage($0) } }
        }
    }

    @Test func damageIsNotPacked() throws {
        var raw = try page(entity, [0: [.string("Ada"), .int(-2)]], versions: [:])
        raw[raw.count - 1] ^= 1
        #expect(throws: PageError.self) { try pack(raw) }
    }

    @Test func bytesThatCannotBeADictionaryAreAnError() throws {
        #expect(throws: PageError.self) { try PageDictionary([]) }
        #expect(throws: PageError.self) { try PageDictionary([UInt8](repeating: 1, count: PageDictionary.maximumByteCount + 1)) }
        // The magic number of a trained dictionary, with nothing after it.
        #expect(throws: PageError.self) { try PageDictionary([0x37, 0xA4, 0x30, 0xEC, 0, 0, 0, 0, 0, 0, 0, 0]) }
    }
}

private func pack(_ raw: [UInt8], _ dictionary: PageDictionary? = nil, level: Int = 3) throws -> [UInt8]? {
    let packer = try PagePacker(dictionary: dictionary, number: 3, level: level)
    return try raw.withUnsafeBytes { try packer.pack($0) }
}

private func unpack(_ packed: [UInt8], _ dictionary: PageDictionary? = nil) throws -> [UInt8] {
    try packed.withUnsafeBytes { try PackedPage($0).unpacked(dictionary) }
}

private func bytes(_ hex: String) -> [UInt8] {
    let digits = Array(hex)
    return stride(from: 0, to: digits.count - 1, by: 2).map { UInt8(String(digits[$0...$0 + 1]), radix: 16) ?? 0 }
}
