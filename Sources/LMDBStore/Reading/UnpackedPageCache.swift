import PageCodec
internal import Platform

/// What two packed pages have in common that are the same: the snapshots in which a page did not change share one unpacked page.
struct PageIdentity: Hashable {
    private var entity: Int
    private var number: UInt64
    private var checksum: UInt64
    private var byteCount: Int

    init(_ page: PackedPage, entity: Int, number: UInt64) {
        self.entity = entity
        self.number = number
        // Of the raw bytes, so a page that was written and packed again with other bytes has another.
        checksum = page.checksum
        byteCount = page.unpackedByteCount
    }
}

/// Unpacked pages of one store, at most so many bytes of them. Raw pages are never here: they are read in the map.
///
/// A clock: what was used since the hand last passed stays. Calls take turns behind a lock, for well under 1 µs; only readers of
/// packed pages come here.
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
    }

    /// What an entry takes beside the page's bytes, about.
    fileprivate static let overhead = 160

    let maximumByteCount: Int
    private let state = Mutex(State())

    init(maximumByteCount: Int) { self.maximumByteCount = max(maximumByteCount, 0) }

    /// Bytes that are kept now, never more than the maximum. Pages in use by readers count only while they are kept.
    var byteCount: Int { state.withLock { $0.byteCount } }

    func page(_ identity: PageIdentity, for use: PageUse) -> UnpackedPage? {
        state.withLock { state in
            guard let place = state.places[identity] else { return nil }
            if use == .reading { state.slots[place].wasUsed = true }
            return state.slots[place].page
        }
    }

    func insert(_ page: UnpackedPage, _ identity: PageIdentity, for use: PageUse) {
        let size = page.bytes.count + Self.overhead
        // One page is not worth a quarter of all others.
        guard size <= maximumByteCount / 4 else { return }
        // What has to go is let go of outside of the lock: freeing takes longer than looking.
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
    /// Takes out the next page that was not used since the hand passed it. Precondition: there is a page.
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
        // The last one takes its place, so that the slots stay dense.
        if let last = slots.popLast(), hand < slots.count {
            slots[hand] = last
            places[last.identity] = hand
        }
        return slot.page
    }
}
