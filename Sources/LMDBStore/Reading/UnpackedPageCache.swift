import PageCodec
internal import Platform
import StoreInterface
import StoreModel

/// The common identity of equal packed pages: snapshots between which a page did not change share one unpacked page.
struct PageIdentity: Hashable {
    private var entity: EntityIndex
    private var number: PageNumber
    private var checksum: UInt64
    private var byteCount: Int

    init(_ page: PackedPage, entity: EntityIndex, number: PageNumber) {
        self.entity = entity
        self.number = number
        // The checksum of the raw bytes, so a page that was rewritten and packed again with other bytes has another identity.
        checksum = page.checksum
        byteCount = page.unpackedByteCount
    }
}

/// A cache of a store's unpacked pages with a maximum size in bytes. It contains no raw pages, which are read in the map.
///
/// Eviction uses the clock algorithm: pages used since the hand last passed stay. A lock serializes calls, for well under 1
/// µs. Only readers of packed pages use the cache.
final class UnpackedPageCache: Sendable {
    fileprivate struct Slot {
        var identity: PageIdentity
        var page: UnpackedPage
        var wasUsed: Bool
    }

    fileprivate struct State {
        var places: [PageIdentity: Int] = [:]
        var slots: [Slot] = []
        var hand = 0
        var byteCount = 0
        var use = CacheUse()
    }

    /// The approximate size of an entry besides the page's bytes.
    fileprivate static let overhead = 160

    let maximumByteCount: Int
    private let state = Mutex(State())

    init(maximumByteCount: Int) { self.maximumByteCount = max(maximumByteCount, 0) }

    /// The current size of the cache in bytes, never more than the maximum. Pages in use by readers count only while the
    /// cache keeps them.
    var byteCount: Int { state.withLock { $0.byteCount } }

    /// The look-ups so far.
    var use: CacheUse { state.withLock { $0.use } }

    func page(_ identity: PageIdentity, for use: PageUse) -> UnpackedPage? {
        state.withLock { state in
            guard let place = state.places[identity] else {
                state.use.misses += 1
                return nil
            }
            state.use.hits += 1
            if use == .reading { state.slots[place].wasUsed = true }
            return state.slots[place].page
        }
    }

    func insert(_ page: UnpackedPage, _ identity: PageIdentity, for use: PageUse) {
        let size = page.bytes.count + Self.overhead
        // A single page is not worth evicting a quarter of the cache.
        guard size <= maximumByteCount / 4 else { return }
        // Evicted pages are released outside the lock, because freeing takes longer than a lookup.
        let gone = state.withLock { state -> [UnpackedPage] in
            guard state.places[identity] == nil else { return [] }
            if use == .scanning, state.byteCount + size > maximumByteCount { return [] }
            var gone: [UnpackedPage] = []
            while state.byteCount + size > maximumByteCount, !state.slots.isEmpty { gone.append(state.evict()) }
            state.places[identity] = state.slots.count
            state.slots.append(Slot(identity: identity, page: page, wasUsed: use == .reading))
            state.byteCount += size
            return gone
        }
        withExtendedLifetime(gone) {}
    }
}

extension UnpackedPageCache.State {
    /// Removes the next page that was not used since the hand passed it. Precondition: there is a page.
    fileprivate mutating func evict() -> UnpackedPage {
        while true {
            if hand >= slots.count { hand = 0 }
            guard slots[hand].wasUsed else { break }
            slots[hand].wasUsed = false
            hand += 1
        }
        let slot = slots[hand]
        places[slot.identity] = nil
        byteCount -= slot.page.bytes.count + UnpackedPageCache.overhead
        // The last slot moves to the free position, so that the slots stay dense.
        if let last = slots.popLast(), hand < slots.count {
            slots[hand] = last
            places[last.identity] = hand
        }
        return slot.page
    }
}
