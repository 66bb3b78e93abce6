/// Keys of an entity that were leased and given back, in pages that other objects may share (S155).
///
/// A key that an object has had is never among them, saved or not: ids are never given out twice (S002). A process that ends without giving
/// back loses what it had leased. That is why it leases only ``shareOfProcess`` keys of a page that others continue, and otherwise whole
/// pages: the keys of a page that was not begun cost nothing.
package struct FreeKeys: Sendable, Hashable {
    /// Ascending; each within one page, no two of them adjacent within one.
    package private(set) var ranges: [Range<ObjectKey>]

    /// How many keys of a shared page a process leases when it opens the store. If each inserted one object and died, pages would be half
    /// full.
    package static let shareOfProcess: ObjectKey = 2
    /// More are dropped: so many pages may stay as sparse as they are.
    package static let limit = 64

    /// - Parameter ranges: as ``ranges``.
    package init(_ ranges: [Range<ObjectKey>] = []) { self.ranges = ranges }

    /// Takes the keys of a process that opens the store: some of the last page, all of the others. The last range is to be used first.
    package mutating func take() -> [Range<ObjectKey>] {
        // The last one first, so that what is inserted next comes behind what was there.
        guard let shared = ranges.last else { return [] }
        let end = min(shared.lowerBound + Self.shareOfProcess, shared.upperBound)
        let taken = ranges.dropLast() + [shared.lowerBound..<end]
        ranges = end < shared.upperBound ? [end..<shared.upperBound] : []
        return Array(taken)
    }

    /// Adds keys that nothing has had.
    /// - Parameter next: the entity's first page that was never leased. Pages before it of which no key was used are no longer leased then.
    package mutating func giveBack(_ keys: [Range<ObjectKey>], next: inout UInt64) {
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
            next = PageAddress.page(of: last.lowerBound + 63)
            merged.removeLast()
            let begun = last.lowerBound..<PageAddress.key(page: next, slot: 0)
            if !begun.isEmpty { merged.append(begun) }
        }
        // Pages behind the first of a range are not begun: to forget them costs only their numbers.
        ranges = merged.prefix(Self.limit).map { $0.lowerBound..<min($0.upperBound, ($0.lowerBound | 63) + 1) }
    }
}
