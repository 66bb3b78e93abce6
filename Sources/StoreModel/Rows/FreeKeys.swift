/// Keys of an entity that were leased and returned, in pages that other objects may share (S155).
///
/// Keys that an object has had, saved or not, never occur here: ids are never assigned twice (S002). A process that ends
/// without returning its keys loses what it had leased. It therefore leases only ``shareOfProcess`` keys of a partly used
/// page, and otherwise whole pages. The keys of an unused page cost nothing.
package struct FreeKeys: Sendable, Hashable {
    /// The free ranges, ascending. Each range is within one page, and no two ranges of a page are adjacent.
    package private(set) var ranges: [Range<ObjectKey>]

    /// The number of keys of a shared page that a process leases when it opens the store. If each process inserted one object
    /// and crashed, pages would be half full.
    package static let shareOfProcess = 2
    /// The maximum number of ranges. Further ranges are dropped, so that their pages stay as sparse as they are.
    package static let limit = 64

    /// Creates a set of free keys.
    /// - Parameter ranges: Ranges that satisfy the rules of ``ranges``.
    package init(_ ranges: [Range<ObjectKey>] = []) { self.ranges = ranges }

    /// Takes the keys for a process that opens the store: some keys of the last page, and all keys of the other pages. Use
    /// the last range first.
    package mutating func take() -> [Range<ObjectKey>] {
        // The last page comes first, so that new objects follow the existing objects.
        guard let shared = ranges.last else { return [] }
        let end = min(shared.lowerBound.advanced(by: Self.shareOfProcess), shared.upperBound)
        let taken = ranges.dropLast() + [shared.lowerBound..<end]
        ranges = end < shared.upperBound ? [end..<shared.upperBound] : []
        return Array(taken)
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
        // Pages after the first page of a range are unused. Dropping them costs only their numbers.
        ranges = merged.prefix(Self.limit).map { $0.lowerBound..<min($0.upperBound, $0.lowerBound.pageEnd) }
    }
}
