@_spi(Fuzzing) import PageCodec
import StoreInterface
import StoreModel
import TestSupport
import Testing

@Suite struct ChangeSetCodecTests {
    @Test func changeSetsComeBackAsTheyWere() throws {
        var random = SeededGenerator(test: "change sets")
        for _ in 0..<500 {
            let set = random.changeSet()
            let decoded = try ChangeSetCodec.encode(set).withUnsafeBytes { try ChangeSetCodec.decode($0) }
            #expect(decoded == set, "seed \(random.seed)")
        }
    }

    @Test func everyChangedOrMissingByteIsAnError() {
        var random = SeededGenerator(test: "corrupt change sets")
        for _ in 0..<60 {
            let bytes = ChangeSetCodec.encode(random.changeSet())
            for place in bytes.indices {
                var corrupt = bytes
                corrupt[place] ^= UInt8(1 << random.below(8))
                #expect(throws: PageError.self) { try corrupt.withUnsafeBytes { try ChangeSetCodec.decode($0) } }
                #expect(throws: PageError.self) { try bytes[..<place].withUnsafeBytes { try ChangeSetCodec.decode($0) } }
            }
        }
    }

    @Test func anyBodyBehindAValidChecksumIsReadOrRefused() {
        var random = SeededGenerator(test: "any change set body")
        for _ in 0..<3000 {
            var bytes = ChangeSetCodec.encode(random.changeSet())
            for _ in 0..<random.below(4) + 1 {
                bytes[random.below(bytes.count)] = UInt8(truncatingIfNeeded: random.next())
            }
            ChecksumRepair.changeSet(&bytes)
            _ = bytes.withUnsafeBytes { bytes in try? ChangeSetCodec.decode(bytes) }
        }
    }

    @Test func aChangeSetHasTheDocumentedBytes() {
        var set = ChangeSet(
            generation: 300, metadata: SaveMetadata(author: "é", contextName: "main", time: 1_000_000, processID: 300))
        set.entities = [
            .init(
                entity: 2,
                pages: [
                    .init(number: 1, inserted: ~0, updated: 0, deleted: 0, columns: ColumnSet()),
                    .init(
                        number: 3, inserted: 0, updated: 3 << 5, deleted: 3, columns: ColumnSet(low: 0x81),
                        groups: [
                            .init(slots: 1 << 5, columns: ColumnSet(low: 0x80)),
                            .init(slots: 1 << 6, columns: ColumnSet(low: 1)),
                        ]),
                ])
        ]
        set.links = [.init(link: 1, sources: [64, 66], destinations: [])]
        set.tombstones = [
            .init(
                entity: 2, key: 192,
                values: [
                    .init(column: 0, value: .string("a")), .init(column: 7, value: .int(-2)), .init(column: 8, value: .null),
                ])
        ]
        #expect(
            hex(ChangeSetCodec.encode(set)) == "02ac0202c3a9046d61696ec0843dac02" + "010202" + "0102"
                + "027c6000000000000000" + "03000000000000008101"
                + "010102" + "2000000000000000" + "800100" + "4000000000000000" + "0100"
                + "0101" + "024002" + "00" + "0102c00103" + "00060161" + "0703feffffffffffffff" + "0800" + "32a5e821")
    }

    @Test func rowsOfTheFirstVersionAreRead() throws {
        let bytes: [UInt8] = [
            0x01, 0xac, 0x02, 0x02, 0xc3, 0xa9, 0x01, 0x02, 0x02, 0x01, 0x02, 0x02, 0x74, 0x05, 0x03, 0, 0, 0, 0, 0, 0, 0, 0x81,
            0x01, 0x01, 0x01, 0x02, 0x40, 0x02, 0x00, 0x34, 0x7d, 0x63, 0xde,
        ]
        let set = try bytes.withUnsafeBytes { try ChangeSetCodec.decode($0) }
        #expect(set.generation == 300 && set.metadata == SaveMetadata(author: "é"))
        #expect(set.entities.first?.pages.last?.columns == ColumnSet(low: 0x81))
        #expect(set.links == [.init(link: 1, sources: [64, 66], destinations: [])])
    }
}

extension SeededGenerator {
    mutating func mask() -> UInt64 {
        switch below(4) {
        case 0: 0
        case 1: ~0
        case 2: 1 << UInt64(below(64))
        default: next()
        }
    }

    mutating func changeSet() -> ChangeSet {
        var set = ChangeSet(
            generation: Generation(rawValue: next() >> UInt64(below(64))),
            metadata: SaveMetadata(
                author: chance(50) ? "" : text(), contextName: chance(50) ? "" : text(),
                time: Int64(bitPattern: next() >> UInt64(below(64))), processID: Int32(truncatingIfNeeded: next())))
        for entity in 0..<below(4) {
            var page: UInt64 = 0
            let pages = (0..<below(5)).map { _ in
                page += UInt64(below(300)) + 1
                return ChangeSet.PageChange(
                    number: PageNumber(rawValue: page), inserted: mask(), updated: mask(), deleted: mask(),
                    columns: ColumnSet(low: mask(), high: chance(20) ? mask() : 0),
                    groups: chance(70)
                        ? [] : (0...below(3)).map { _ in .init(slots: mask(), columns: ColumnSet(low: mask(), high: mask())) })
            }
            set.entities.append(.init(entity: EntityIndex(rawValue: entity * 2), pages: pages))
        }
        for key in 0..<below(3) {
            let values: [Value] = [
                .null, .bool(chance(50)), .int(-3), .uint(next()), .double(0.5), .string(text()),
                .reference(ObjectKey(rawValue: next())),
            ]
            set.tombstones.append(
                .init(
                    entity: EntityIndex(rawValue: below(4)), key: ObjectKey(rawValue: UInt64(key)),
                    values: (0..<below(4)).map { .init(column: ColumnIndex(rawValue: $0), value: values[below(values.count)]) }))
        }
        for link in 0..<LinkIndex(rawValue: below(3)) {
            set.links.append(
                .init(
                    link: link, sources: (0..<below(6)).map { _ in ObjectKey(rawValue: next() >> UInt64(below(64))) }.sorted(),
                    destinations: (0..<below(6)).map { _ in ObjectKey(rawValue: next() >> UInt64(below(64))) }.sorted()))
        }
        return set
    }
}
