import StoreInterface
import StoreModel
import Testing

/// The keys that are returned to a store, and the keys that the next process takes.
@Suite struct FreeKeysTests {
    @Test func `rests that lie at the end of what was leased end the lease`() {
        var free = FreeKeys()
        var next: PageNumber = 1025
        // Three keys of page 1 and one of page 2 are in use. The pages after them are unused.
        free.giveBack([67..<128, 129..<192, 192..<ObjectKey(1025 * 64)], next: &next)
        #expect(next == 3)
        #expect(free.ranges == [67..<128, 129..<192])
    }

    @Test func `pages that others have leased behind are not counted back`() {
        var free = FreeKeys()
        var next: PageNumber = 2049
        free.giveBack([130..<ObjectKey(1025 * 64)], next: &next)
        #expect(next == 2049)
        #expect(free.ranges == [130..<192])
    }

    @Test func `S155: a process takes two keys of each page`() {
        var free = FreeKeys([67..<128, 140..<192, 255..<256])
        #expect(free.take() == [67..<69, 140..<142, 255..<256])
        #expect(free.ranges == [69..<128, 142..<192])
        #expect(free.take() == [69..<71, 142..<144])
        var last = FreeKeys([127..<128])
        #expect(last.take() == [127..<128])
        #expect(last.ranges.isEmpty && last.take().isEmpty)
    }

    @Test func `S155: a process takes two keys of a page with several ranges`() {
        var free = FreeKeys([67..<68, 70..<71, 73..<128])
        #expect(free.take() == [67..<68, 70..<71])
        #expect(free.ranges == [73..<128])
    }

    @Test func `S155: pages before the newest sixteen are taken whole`() {
        let ranges = (1...20).map { (page: Int) -> Range<ObjectKey> in ObjectKey(page * 64 + 8)..<ObjectKey(page * 64 + 64) }
        let whole = Array(ranges[..<4])
        let shares = ranges[4...].map { $0.prefix(2) }
        let rests = ranges[4...].map { $0.dropFirst(2) }
        var free = FreeKeys(ranges)
        #expect(free.take() == whole + shares)
        #expect(free.ranges == rests)
    }

    /// Catches: a limit that counts ranges, so that a page with many of them leaves no room for other pages.
    @Test func `S155: a page with many ranges counts as one`() {
        let older = (1...16).map { (page: Int) -> Range<ObjectKey> in ObjectKey(page * 64 + 8)..<ObjectKey(page * 64 + 64) }
        let newest = (0..<16).map { (place: Int) -> Range<ObjectKey> in
            ObjectKey(17 * 64 + place * 2)..<ObjectKey(17 * 64 + place * 2 + 1)
        }
        var free = FreeKeys(older + newest)
        #expect(free.take() == older[..<1] + older[1...].map { $0.prefix(2) } + newest[..<2])
    }

    /// Catches: a limit that keeps the oldest ranges, so that the newest pages stay sparse.
    @Test func `S155: of more than 64 ranges, the newest are kept`() {
        let ranges = (1...FreeKeys.limit + 6).map { (page: Int) -> Range<ObjectKey> in
            ObjectKey(page * 64 + 8)..<ObjectKey(page * 64 + 64)
        }
        var free = FreeKeys(Array(ranges[..<FreeKeys.limit]))
        // Other processes have leased the pages after these ranges.
        var next: PageNumber = 1025
        free.giveBack(Array(ranges[FreeKeys.limit...]), next: &next)
        #expect(next == 1025)
        #expect(free.ranges == Array(ranges[6...]))
        let taken = free.take()
        #expect(taken.last == ranges.last?.prefix(FreeKeys.shareOfProcess))
    }

    @Test func `a page of which all keys come back is not begun`() {
        var free = FreeKeys([66..<128])
        var next: PageNumber = 2
        free.giveBack([64..<66], next: &next)
        #expect(next == 1 && free.ranges.isEmpty)
    }
}
