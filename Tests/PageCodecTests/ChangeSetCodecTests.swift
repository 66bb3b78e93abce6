@_spi(Fuzzing) import PageCodec
import StoreInterface
import Testing

@Suite struct ChangeSetCodecTests {
    @Test func changeSetsComeBackAsTheyWere() throws {
        var random = RandomSource("change sets")
        for _ in 0..<500 {
            let set = random.changeSet()
            let decoded = try ChangeSetCodec.encode(set).withUnsafeBytes { try ChangeSetCodec.decode($0) }
            #expect(decoded == set, "seed \(random.seed)")
        }
    }

    @Test func everyChangedOrMissingByteIsAnError() {
        var random = RandomSource("corrupt change sets")
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
        var random = RandomSource("any change set body")
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
        var set = ChangeSet(generation: 300, author: "é")
        set.entities = [
            .init(
                entity: 2,
                pages: [
                    .init(number: 1, inserted: ~0, updated: 0, deleted: 0, columns: ColumnSet()),
                    .init(number: 3, inserted: 0, updated: 1 << 5, deleted: 3, columns: ColumnSet(low: 0x81)),
                ])
        ]
        set.links = [.init(link: 1, sources: [64, 66], destinations: [])]
        #expect(
            hex(ChangeSetCodec.encode(set)) == "01ac0202c3a9" + "010202" + "0102" + "02740503000000000000008101"
                + "0101" + "024002" + "00" + "347d63de")
    }
}

extension RandomSource {
    mutating func mask() -> UInt64 {
        switch below(4) {
        case 0: 0
        case 1: ~0
        case 2: 1 << UInt64(below(64))
        default: next()
        }
    }

    mutating func changeSet() -> ChangeSet {
        var set = ChangeSet(generation: next() >> UInt64(below(64)), author: chance(50) ? "" : text())
        for entity in 0..<below(4) {
            var page: UInt64 = 0
            let pages = (0..<below(5)).map { _ in
                page += UInt64(below(300)) + 1
                return ChangeSet.PageChange(
                    number: page, inserted: mask(), updated: mask(), deleted: mask(),
                    columns: ColumnSet(low: mask(), high: chance(20) ? mask() : 0))
            }
            set.entities.append(.init(entity: entity * 2, pages: pages))
        }
        for link in 0..<below(3) {
            set.links.append(
                .init(
                    link: link, sources: (0..<below(6)).map { _ in next() >> UInt64(below(64)) }.sorted(),
                    destinations: (0..<below(6)).map { _ in next() >> UInt64(below(64)) }.sorted()))
        }
        return set
    }
}
