import Foundation
import StoreInterface
import StoreModel
import Testing

@Suite struct SmallTypesTests {
    @Test func aColumnSetIsASetOfTheNumbersBelow128() {
        var set = ColumnSet()
        var reference: Set<ColumnIndex> = []
        for column in [0, 1, 63, 64, 65, 127, 63, 5] as [ColumnIndex] {
            set.insert(column)
            reference.insert(column)
        }
        set.remove(64)
        set.remove(7)
        reference.remove(64)
        var seen: [ColumnIndex] = []
        set.forEach { seen.append($0) }
        #expect(seen == reference.sorted())
        #expect(set.count == reference.count)
        #expect((0..<128 as Range<ColumnIndex>).allSatisfy { set.contains($0) == reference.contains($0) })
        var union = ColumnSet(first: 3)
        union.formUnion(set)
        #expect(union.count == reference.union([0, 1, 2]).count)
    }

    @Test(arguments: [0, 1, 63, 64, 65, 127, 128]) func theFirstColumnsAreAsManyAsAsked(_ count: Int) {
        let set = ColumnSet(first: count)
        #expect(set.count == count)
        #expect((0..<128 as Range<ColumnIndex>).allSatisfy { set.contains($0) == ($0.rawValue < count) })
    }

    /// Catches: identities made by Foundation's `UUID()`, which are all the same in such a process.
    @Test func `incarnations differ in a process without free descriptors`() async {
        await #expect(processExitsWith: .success) {
            var opened: [Int32] = []
            while let next = Optional(open("/dev/null", O_RDONLY)), next >= 0 { opened.append(next) }
            // The address sanitizer needs one to look for leaks when the process ends.
            defer { for descriptor in opened { close(descriptor) } }
            var lineage = StoreLineage(store: UUID.random())
            var ids: Set<UUID> = [lineage.store]
            for generation in 1...9 as ClosedRange<Generation> {
                lineage.begin(after: generation)
                ids.insert(lineage.current)
            }
            try #require(ids.count == 10)
            try #require(ids.allSatisfy { $0.uuid.6 >> 4 == 4 && $0.uuid.8 >> 6 == 2 })
        }
    }

    @Test func slotsAreWalkedInOrder() {
        #expect(Array(SlotIterator(1 | 1 << 5 | 1 << 63)) == [0, 5, 63])
        #expect(Array(SlotIterator(0)).isEmpty)
        #expect(PageAddress.key(page: 3, slot: 9) == 201)
        #expect(PageAddress.page(of: 201) == 3)
        #expect(PageAddress.slot(of: 201) == 9)
    }

    @Test func stringsMatchByCodePoints() {
        typealias M = StorePredicate.StringMatch
        func matches(_ match: M, _ text: String, _ pattern: String, insensitive: Bool = false) -> Bool {
            match.matches(text, pattern: pattern, sensitivity: insensitive ? .insensitive : .sensitive)
        }
        #expect(matches(.contains, "abcab", "cab"))
        #expect(matches(.contains, "aab", "ab"))
        #expect(!matches(.contains, "ab", "abc"))
        #expect(matches(.contains, "", ""))
        #expect(matches(.hasPrefix, "abc", "ab"))
        #expect(!matches(.hasPrefix, "abc", "b"))
        #expect(matches(.hasSuffix, "abc", "bc"))
        #expect(!matches(.hasSuffix, "c", "bc"))
        #expect(matches(.equals, "ÄB", "äb", insensitive: true))
        #expect(!matches(.equals, "é", "e\u{301}"))
        #expect(matches(.hasPrefix, "e\u{301}x", "e"))
    }

    @Test func aColumnAcceptsWhatItsTypeHolds() {
        func accepts(_ type: ColumnType, _ value: Value) -> Bool { ColumnSchema(name: "c", type: type).accepts(value) }
        #expect(accepts(.int8, .int(-128)) && !accepts(.int8, .int(128)))
        #expect(accepts(.uint16, .int(65535)) && !accepts(.uint16, .int(-1)))
        #expect(accepts(.uint64, .uint(.max)) && !accepts(.uint64, .int(1)))
        #expect(!accepts(.string, .null))
        #expect(ColumnSchema(name: "c", type: .string, isOptional: true).accepts(.null))
    }

    @Test func aStoreIdentityFindsItsUUID() {
        let uuid = UUID()
        #expect(StoreIdentity(uuid) == StoreIdentity(uuid))
        #expect(StoreIdentity(uuid).uuid == uuid)
        #expect(StoreIdentity(uuid) != StoreIdentity(UUID()))
    }
}
