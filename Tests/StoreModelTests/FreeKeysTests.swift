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

    @Test func `a process takes two keys of the last page and all of the others`() {
        var free = FreeKeys([67..<128, 140..<192])
        #expect(free.take() == [67..<128, 140..<142])
        #expect(free.ranges == [142..<192])
        #expect(free.take() == [142..<144])
        var last = FreeKeys([127..<128])
        #expect(last.take() == [127..<128])
        #expect(last.ranges.isEmpty && last.take().isEmpty)
    }

    @Test func `a page of which all keys come back is not begun`() {
        var free = FreeKeys([66..<128])
        var next: PageNumber = 2
        free.giveBack([64..<66], next: &next)
        #expect(next == 1 && free.ranges.isEmpty)
    }
}
