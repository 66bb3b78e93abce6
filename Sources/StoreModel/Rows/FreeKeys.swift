/// Keys of an entity that were leased and returned, in pages that other objects may share (S155).
///
/// Keys that an object has had, saved or not, never occur here: ids are never assigned twice (S002). A process that ends
/// without returning its keys loses what it had leased. It therefore leases only ``shareOfProcess`` keys of each
/// of the newest ``sharedPages`` partly used pages, and otherwise whole pages. The keys of an unused page cost nothing.
package struct FreeKeys: Sendable, Hashable {
    /// The free ranges, ascending. Each range is within one page, and no two ranges of a page are adjacent.
    package private(set) var ranges: [Range<ObjectKey>]

    /// The number of keys of a shared page that a process leases when it opens the store. If each process inserted one object
    /// and crashed, pages would be half full.
    package static let shareOfProcess = 2
    /// The number of partly used pages that processes share. Older pages are leased whole. Otherwise processes that insert many
    /// objects in many contexts would leave ever more partly used pages.
    package static let sharedPages = 16
    /// The maximum number of ranges. If there are more, the oldest are dropped, so that their pages stay as sparse as they are.
    package static let limit = 64

    /// Creates a set of free keys.
    /// - Parameter ranges: Ranges that satisfy the rules of ``ranges``.
    package init(_ ranges: [Range<ObjectKey>] = []) { self.ranges = ranges }

    /// The place of the first range of the newest ``sharedPages`` pages.
    private var firstSharedRange: Int {
        var first = ranges.count
        var pages = 0
        while first > 0 {
            let isOtherPage = first == ranges.count || ranges[first - 1].lowerBound.page != ranges[first].lowerBound.page
            if isOtherPage {
                if pages == Self.sharedPages { break }
                pages += 1
            }
            first -= 1
        }
        return first
    }

    /// Takes the keys for a process that opens the store: ``shareOfProcess`` keys of each of the newest ``sharedPages`` pages, and
    /// all keys of older pages. Use the last range first.
    package mutating func take() -> [Range<ObjectKey>] {
        let first = firstSharedRange
        var taken = Array(ranges[..<first])
        var rests: [Range<ObjectKey>] = []
        var page: PageNumber?
        var left = 0
        // The last page stays the last, so that new objects follow the existing objects.
        for range in ranges[first...] {
            // A page may have several ranges.
            if range.lowerBound.page != page { (page, left) = (range.lowerBound.page, Self.shareOfProcess) }
            let share = range.prefix(left)
            left -= share.count
            taken.append(share)
            rests.append(range.dropFirst(share.count))
        }
        ranges = rests.filter { !$0.isEmpty }
        return taken.filter { !$0.isEmpty }
    }

    /// Adds keys that no object has had.
    /// - Parameter next: The entity's first page that was never leased. If no key of the pages directly before it was used,
    ///   it moves back to the first of these pages.
    package mutating func giveBack(_ keys: [Range<ObjectKey>], next: inout PageNumber) {
        var merged: [Range<ObjectKey>] = []
        for range in (ranges + keys).filter({ !$0.isEmpty }).sorted(by: { $0.lowerBound < $1.lowerBound }) {
            if let last = merged.last, last.upperBound >= range.lowerBound {
                merged[merged.count - 1] = last.lowerBound..<max(last.upperBound, range.upperBound)
            } else {
                merged.append(range)
            }
        }
        if let last = merged.last, last.upperBound == PageAddress.key(page: next, slot: 0) {
            // The first page of which all keys are free.
            next = last.lowerBound.advanced(by: PageAddress.slots - 1).page
            merged.removeLast()
            let begun = last.lowerBound..<PageAddress.key(page: next, slot: 0)
            if !begun.isEmpty { merged.append(begun) }
        }
        // Pages after the first page of a range are unused. Dropping them costs only their numbers. The newest ranges are kept, because
        // new objects follow the existing objects and processes share the newest pages.
        ranges = merged.suffix(Self.limit).map { $0.lowerBound..<min($0.upperBound, $0.lowerBound.pageEnd) }
    }
}
