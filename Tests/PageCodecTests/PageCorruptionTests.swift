@_spi(Fuzzing) import PageCodec
import StoreInterface
import StoreModel
import TestSupport
import Testing

@Suite struct PageCorruptionTests {
    /// Any change of one bit, and any cut, is detected. A page is never read as another page.
    @Test func everyChangedBitIsFoundByTheChecksum() throws {
        var random = SeededGenerator(test: "changed bits")
        for _ in 0..<30 {
            let schema = random.schema()
            guard let bytes = try random.page(schema) else { continue }
            let layout = try PageLayout(schema, schemaNumber: 7)
            for _ in 0..<200 {
                var corrupt = bytes
                corrupt[random.below(bytes.count)] ^= UInt8(1 << random.below(8))
                #expect(throws: PageError.self, "seed \(random.seed)") {
                    try corrupt.withUnsafeBytes { _ = try ObjectPage($0, layout: layout, check: .checksum) }
                }
                let cut = bytes[..<random.below(bytes.count)]
                #expect(throws: PageError.self, "seed \(random.seed)") {
                    try cut.withUnsafeBytes { _ = try ObjectPage($0, layout: layout, check: .header) }
                }
            }
        }
    }

    /// The damage is such that only the header is checked. Whatever is then read, masked or merged is a value or an error.
    @Test func damagedPagesAreReadWithoutATrap() throws {
        var random = SeededGenerator(test: "damaged pages")
        for _ in 0..<60 {
            let schema = random.schema(columns: random.below(6) + 1)
            guard let bytes = try random.page(schema) else { continue }
            let layout = try PageLayout(schema, schemaNumber: 7)
            for _ in 0..<60 {
                var corrupt = bytes
                for _ in 0..<random.below(5) + 1 {
                    let place = random.chance(60) ? random.below(min(bytes.count, 140)) : random.below(bytes.count)
                    corrupt[place] = random.chance(50) ? UInt8(truncatingIfNeeded: random.next()) : corrupt[place] ^ 1
                }
                let predicate = CompiledPredicate(random.predicate(schema, depth: 2))
                var reference = PageReference(schema)
                let changes = reference.change(&random, generation: 5)
                corrupt.withUnsafeBytes { use($0, layout, predicate, changes) }
            }
        }
    }

    private func use(
        _ bytes: UnsafeRawBufferPointer, _ layout: PageLayout, _ predicate: CompiledPredicate, _ changes: LayerPage?
    ) {
        guard let page = try? ObjectPage(bytes, layout: layout, check: .header) else { return }
        var repaired = Array(bytes)
        ChecksumRepair.page(&repaired)
        let isSound = repaired.withUnsafeBytes { (try? ObjectPage($0, layout: layout, check: .full)) != nil }
        for slot in SlotIterator(page.presence) {
            _ = try? page.version(slot)
            for column in layout.entity.columnIndices {
                let value = try? page.value(slot, column)
                #expect(value != nil || !isSound, "the full check promises that reads do not throw")
            }
        }
        _ = try? predicate.mask(of: page, number: 5)
        guard let changes, let merge = try? PageMerge(old: page, changes: changes, layout: layout) else { return }
        #expect(merge.byteCount < bytes.count + 1_000_000)
    }

    /// Returns the change of one object to the name Eve.
    private func changes(_ entity: EntitySchema, _ kind: RowKind, key: ObjectKey) throws -> LayerPage {
        let layer = Layer(schema: StoreSchema(entities: [entity]))
        let row = Row.make(kind: kind, layer: layer.id, columnCount: 1)
        row[0] = .string("Eve")
        layer.put(row, entity: 0, key: key)
        return try #require(layer.entity(0)?.page(0))
    }

    @Test func aStringThatEndsBeyondItsSectionIsAnErrorOfEveryUse() throws {
        let entity = EntitySchema(name: "Artist", columns: [ColumnSchema(name: "name", type: .string)])
        var bytes = try page(entity, [0: [.string("Ada")], 2: [.string("é")]], versions: [0: 1, 2: 1])
        // The directory ends at 56. Nine offsets of one byte follow, and the fourth of them is the end of the third slot.
        #expect(bytes[59] == 5)
        bytes[59] = 200
        let layout = try PageLayout(entity, schemaNumber: 7)
        let condition = CompiledPredicate(.compare(0, .less, to: .string("b")))
        let changes = try changes(entity, .update, key: 0)
        try bytes.withUnsafeBytes {
            let page = try ObjectPage($0, layout: layout, check: .header)
            #expect(try page.value(0, 0) == .string("Ada"))
            #expect(throws: PageError.self) { try page.value(2, 0) }
            #expect(throws: PageError.self) { try condition.mask(of: page, number: 0) }
            #expect(throws: PageError.self) { try PageMerge(old: page, changes: changes, layout: layout) }
        }
        ChecksumRepair.page(&bytes)
        #expect(throws: PageError.self) { try bytes.withUnsafeBytes { _ = try ObjectPage($0, layout: layout, check: .full) } }
    }

    /// Catches: strings that share their bytes, of which a merge would write more than the room that it has.
    @Test func overlappingStringsAreAnErrorOfAMerge() throws {
        let entity = EntitySchema(name: "Artist", columns: [ColumnSchema(name: "name", type: .string)])
        var bytes = try page(entity, [0: [.string("Ada")], 2: [.string("é")]], versions: [0: 1, 2: 1])
        // The offsets of one byte begin at 56. The empty slot between the two is not read.
        #expect(bytes[56...59] == [0, 3, 3, 5])
        (bytes[57], bytes[58]) = (5, 0)
        let layout = try PageLayout(entity, schemaNumber: 7)
        let changes = try changes(entity, .insert, key: 4)
        try bytes.withUnsafeBytes {
            let page = try ObjectPage($0, layout: layout, check: .header)
            #expect(throws: PageError.self) { try PageMerge(old: page, changes: changes, layout: layout) }
        }
    }

    @Test func anEmptyOrTinyBufferIsAnError() throws {
        let layout = try PageLayout(EntitySchema(name: "Thing", columns: []), schemaNumber: 7)
        #expect(throws: PageError.self) {
            try ObjectPage(UnsafeRawBufferPointer(start: nil, count: 0), layout: layout, check: .full)
        }
        for count in 0..<80 {
            #expect(throws: PageError.self) {
                try [UInt8](repeating: 0, count: count).withUnsafeBytes { _ = try ObjectPage($0, layout: layout, check: .full) }
            }
        }
    }
}

extension SeededGenerator {
    /// Returns a random page of schema 7, or nil if it would be empty.
    mutating func page(_ schema: EntitySchema) throws -> [UInt8]? {
        var reference = PageReference(schema)
        guard let changes = reference.change(&self, generation: 3) else { return nil }
        let bytes = try merge([], changes, PageLayout(schema, schemaNumber: 7))
        return bytes.isEmpty ? nil : bytes
    }
}
