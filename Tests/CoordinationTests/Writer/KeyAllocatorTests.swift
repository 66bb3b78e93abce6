import Dispatch
import Platform
import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

@Suite struct KeyAllocatorTests {
    private static let lease = KeyAllocator.firstLease * PageAddress.slots
    private static let leaseEnd = ObjectKey(64 + lease)

    /// Takes keys until there are none. Returns the ranges in order, and the positions at which a refill was requested.
    private static func takeAll(_ keys: KeyAllocator, _ entity: EntityIndex = 0) -> (ranges: [Range<ObjectKey>], low: [Int]) {
        var ranges: [Range<ObjectKey>] = []
        var low: [Int] = []
        while true {
            switch keys.take(entity) {
            case .keys(let range): ranges.append(range)
            case .keysLow(let range):
                low.append(ranges.count)
                ranges.append(range)
            case .empty: return (ranges, low)
            }
        }
    }

    @Test func `S002: keys are handed out by page, in order, each once`() {
        let keys = KeyAllocator(entityCount: 2)
        keys.add(100..<300, 1)
        let none = Self.takeAll(keys)
        #expect(none.ranges.isEmpty)
        #expect(Self.takeAll(keys, 1).ranges == [100..<128, 128..<192, 192..<256, 256..<300])
    }

    @Test func anAllocatorThatRunsLowAsksForARefillOnce() {
        let keys = KeyAllocator(entityCount: 2)
        #expect(keys.wanted().map(\.entity) == [0, 1], "nothing was allocated yet")
        keys.add(64..<Self.leaseEnd, 0)
        keys.add(64..<Self.leaseEnd, 1)
        let (ranges, low) = Self.takeAll(keys)
        #expect(ranges.count == KeyAllocator.firstLease)
        // The next lease is twice as large, and a quarter of it is low.
        #expect(low == [KeyAllocator.firstLease / 2 + 1])
        #expect(keys.wanted().map(\.entity) == [0] && keys.wanted().map(\.pages) == [2 * KeyAllocator.firstLease])
        keys.refillFailed()
        #expect(keys.wanted().map(\.entity) == [0], "an empty allocator needs keys in any case")
        keys.add(Self.leaseEnd..<ObjectKey(64 + 3 * Self.lease), 0)
        #expect(keys.wanted().isEmpty)
    }

    /// Catches: a refill that is never requested again after one that failed.
    @Test func aRefillThatFailedIsRequestedAgain() {
        let keys = KeyAllocator(entityCount: 1)
        keys.add(64..<Self.leaseEnd, 0)
        func isLow() -> Bool { if case .keysLow = keys.take(0) { true } else { false } }
        for _ in 0...KeyAllocator.firstLease / 2 { #expect(!isLow()) }
        #expect(isLow())
        #expect(!isLow(), "one refill is under way")
        keys.refillFailed()
        #expect(isLow())
        keys.refillFailed()
        keys.markWanted(0)
        #expect(keys.wanted().map(\.entity) == [0] && !isLow())
    }

    @Test func leasesDoubleUpToALimit() {
        let keys = KeyAllocator(entityCount: 1)
        var (start, pages): (ObjectKey, [Int]) = (64, [])
        for _ in 0..<10 {
            _ = Self.takeAll(keys)
            let count = keys.wanted()[0].pages
            pages.append(count)
            let end = start.advanced(by: count * PageAddress.slots)
            keys.add(start..<end, 0)
            start = end
        }
        #expect(pages == (0..<10).map { min(KeyAllocator.firstLease << $0, KeyAllocator.maximumLease) })
    }

    /// Catches: keys that are lost or handed out twice when a lease does not follow the one before.
    @Test func `S002: no key is lost between two leases, shared keys and returned ones`() {
        let keys = KeyAllocator(entityCount: 1)
        keys.add(shared: [70..<75, 80..<90], 0)
        keys.add(128..<400, 0)
        var taken = [keys.take(0), keys.take(0), keys.take(0)].compactMap { taken -> Range<ObjectKey>? in
            switch taken {
            case .keys(let range), .keysLow(let range): range
            case .empty: nil
            }
        }
        #expect(taken == [80..<90, 70..<75, 128..<192])
        keys.giveBack(180..<192, 0)
        keys.giveBack(0..<0, 0)
        taken[2] = 128..<180
        // Another process has leased the pages between the two ranges.
        keys.add(1024..<1100, 0)
        taken += Self.takeAll(keys).ranges
        let expected = Array(70..<75) + Array(80..<90) + Array(128..<400) + Array(1024..<1100) as [ObjectKey]
        #expect(taken.flatMap(Array.init).sorted() == expected)
        #expect(taken.allSatisfy { $0.lowerBound.page == $0.upperBound.advanced(by: -1).page })
    }

    @Test func `S155: a drained allocator is empty and gives back what has been leased`() throws {
        let keys = KeyAllocator(entityCount: 2)
        let drained = keys.drain()
        #expect(drained == nil)
        keys.add(64..<256, 1)
        _ = keys.take(1)
        keys.giveBack(100..<128, 1)
        // These keys were never leased.
        keys.giveBack(KeyAllocator.unleased(), 0)
        let rests = try #require(keys.drain())
        #expect(rests == [[], [100..<128, 128..<256]])
        let (first, second) = (Self.takeAll(keys, 0), Self.takeAll(keys, 1))
        #expect(first.ranges.isEmpty && second.ranges.isEmpty)
    }

    @Test func `S002: threads never take the same keys`() {
        let keys = KeyAllocator(entityCount: 1)
        keys.add(64..<Self.leaseEnd, 0)
        let taken = Mutex<[Range<ObjectKey>]>([])
        DispatchQueue.concurrentPerform(iterations: 8) { number in
            let (ranges, _) = Self.takeAll(keys)
            taken.withLock { $0 += ranges }
            if number % 2 == 0, let last = ranges.last {
                taken.withLock { $0.removeAll { $0 == last } }
                keys.giveBack(last, 0)
            }
        }
        let all = taken.withLock { $0 } + Self.takeAll(keys).ranges
        #expect(all.flatMap(Array.init).sorted() == Array(64..<Self.leaseEnd))
    }
}
