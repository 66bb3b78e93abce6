internal import Platform
import StoreInterface
import StoreModel

/// The allocated but unused keys of each entity.
///
/// Contexts take whole pages of keys (64), so that two contexts never insert into one page. They return unused keys.
/// The writer refills the allocator before it is empty, so that taking keys does not wait for the disk.
final class KeyAllocator: Sendable {
    private struct Supply {
        /// Whole pages of keys. The next page to hand out is first.
        var leased: Range<ObjectKey> = 0..<0
        /// Remainders of pages that contexts returned.
        var returned: [Range<ObjectKey>] = []
        /// The number of pages in the next allocation. Doubles with every allocation, up to ``maximumLease``.
        var nextLease = KeyAllocator.firstLease
        var isRefilling = false
    }

    static let firstLease = 1024
    static let maximumLease = 1 << 18

    private let supplies: Mutex<[Supply]>

    init(entityCount: Int) {
        supplies = Mutex(Array(repeating: Supply(), count: entityCount))
    }

    enum Taken {
        case keys(Range<ObjectKey>)
        /// Keys were taken, and the allocator needs a refill.
        case keysLow(Range<ObjectKey>)
        case empty
    }

    /// Takes up to one page of keys. O(1), with a lock held for some nanoseconds.
    func take(_ entity: EntityIndex) -> Taken {
        supplies.withLock { supplies in
            if let rest = supplies[entity].returned.popLast() { return .keys(rest) }
            let leased = supplies[entity].leased
            guard !leased.isEmpty else { return .empty }
            let end = min(leased.lowerBound.pageEnd, leased.upperBound)
            supplies[entity].leased = end..<leased.upperBound
            let low = leased.count < supplies[entity].nextLease * PageAddress.slots / 4
            if low, !supplies[entity].isRefilling {
                supplies[entity].isRefilling = true
                return .keysLow(leased.lowerBound..<end)
            }
            return .keys(leased.lowerBound..<end)
        }
    }

    func giveBack(_ keys: Range<ObjectKey>, _ entity: EntityIndex) {
        guard !keys.isEmpty else { return }
        supplies.withLock { $0[entity].returned.append(keys) }
    }

    /// Adds keys of pages shared with other objects. The last range is handed out first.
    func add(shared keys: [Range<ObjectKey>], _ entity: EntityIndex) {
        supplies.withLock { $0[entity].returned.append(contentsOf: keys) }
    }

    /// Removes and returns, by entity, the keys that were allocated and not handed out. Returns nil if there are none.
    func drain() -> [[Range<ObjectKey>]]? {
        let rests = supplies.withLock { supplies in
            supplies.indices.map { entity in
                let rest = supplies[entity].returned + [supplies[entity].leased]
                supplies[entity].returned = []
                supplies[entity].leased = 0..<0
                return rest.filter {
                    !$0.isEmpty && $0.lowerBound < PageAddress.key(page: PageAddress.unleased.lowerBound, slot: 0)
                }
            }
        }
        return rests.contains { !$0.isEmpty } ? rests : nil
    }

    /// Returns the number of pages to allocate for each entity that runs low. The writer calls this inside a transaction.
    func wanted() -> [(entity: EntityIndex, pages: Int)] {
        supplies.withLock { supplies in
            supplies.enumerated(as: EntityIndex.self).compactMap { entity, supply in
                let low = supply.leased.count < supply.nextLease * PageAddress.slots / 4
                return low && (supply.isRefilling || supply.leased.isEmpty) ? (entity, supply.nextLease) : nil
            }
        }
    }

    func markWanted(_ entity: EntityIndex) {
        supplies.withLock { $0[entity].isRefilling = true }
    }

    /// Adds keys whose allocation is on disk. The remainder of the previous allocation stays available.
    func add(_ keys: Range<ObjectKey>, _ entity: EntityIndex) {
        supplies.withLock { supplies in
            let rest = supplies[entity].leased
            if rest.upperBound == keys.lowerBound, !rest.isEmpty {
                supplies[entity].leased = rest.lowerBound..<keys.upperBound
            } else {
                if !rest.isEmpty { supplies[entity].returned.append(contentsOf: Self.pages(of: rest)) }
                supplies[entity].leased = keys
            }
            supplies[entity].nextLease = min(supplies[entity].nextLease * 2, Self.maximumLease)
            supplies[entity].isRefilling = false
        }
    }

    /// Returns a random page of keys beyond all allocations. There are 2^55 such pages, so two picks of the same page are not expected.
    static func unleased() -> Range<ObjectKey> {
        let pages = PageAddress.unleased
        let page = PageNumber(rawValue: .random(in: pages.lowerBound.rawValue..<pages.upperBound.rawValue))
        return PageAddress.key(page: page, slot: 0)..<PageAddress.key(page: page.next, slot: 0)
    }

    func refillFailed() {
        supplies.withLock { supplies in
            for entity in supplies.indices { supplies[entity].isRefilling = false }
        }
    }

    private static func pages(of keys: Range<ObjectKey>) -> [Range<ObjectKey>] {
        var pages: [Range<ObjectKey>] = []
        var start = keys.lowerBound
        while start < keys.upperBound {
            let end = min(start.pageEnd, keys.upperBound)
            pages.append(start..<end)
            start = end
        }
        return pages
    }
}
