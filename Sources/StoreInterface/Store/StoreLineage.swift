#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The incarnations of a store, oldest first: how a restored copy is told from the store that it was copied from (S168).
///
/// A copy of a store has the same UUID, and the same objects under the same ids. Once both are written to, one save number stands for
/// different saves in each. So the first opening of a copy for writing begins a new incarnation, which the file keeps with those before.
public struct StoreLineage: Sendable, Hashable, Codable {
    public struct Incarnation: Sendable, Hashable, Codable {
        public let id: UUID
        /// The newest save of the copy when the incarnation began: its own saves have greater numbers.
        public let start: Generation

        public init(id: UUID, start: Generation) {
            self.id = id
            self.start = start
        }
    }

    public let store: UUID
    /// Those that copies began.
    public private(set) var copies: [Incarnation]

    /// `copies` are in order, oldest first. The incarnation before the first of them has the store's own UUID.
    public init(store: UUID, copies: [Incarnation] = []) {
        self.store = store
        self.copies = copies
    }

    /// The incarnation that the next save belongs to.
    public var current: UUID { copies.last?.id ?? store }

    /// The incarnation that made a save.
    public func incarnation(of generation: Generation) -> UUID {
        copies.last { $0.start < generation }?.id ?? store
    }

    /// The newest save that this store and an incarnation have in common; `.max` for the current incarnation, nil for one that is not
    /// among this store's.
    public func newestShared(with incarnation: UUID) -> Generation? {
        if incarnation == current { return .max }
        if incarnation == store { return copies.first?.start }
        guard let place = copies.firstIndex(where: { $0.id == incarnation }) else { return nil }
        return copies[place + 1].start
    }

    /// Begins a new incarnation after a save.
    public mutating func begin(after generation: Generation, id: UUID = UUID()) {
        copies.append(Incarnation(id: id, start: generation))
    }
}

extension ObjectStore {
    public var lineage: StoreLineage { StoreLineage(store: identity.uuid) }
}

extension PageAddress {
    /// The first page whose keys a copy of a store gives to new objects.
    ///
    /// The original goes on after `page`. The distance is at least 2^39 pages, more than any store leases, and random, so that two copies of one
    /// store do not give out the same keys either. After about a hundred generations of copies it gets shorter.
    /// - Parameter page: the first page that was never leased.
    package static func firstPageOfCopy(after page: UInt64) -> UInt64 {
        let end: UInt64 = 1 << 47
        guard page < end else { return page }
        let reach = min(1 << 40, (end - page) / 4)
        return page + UInt64.random(in: reach / 2...reach)
    }
}
