#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The incarnations of a store, oldest first, which distinguish a restored copy from the original store (S168).
///
/// A copy of a store has the same UUID, and the same objects under the same ids. Once both are written to, one save number
/// denotes a different save in each. The first opening of a copy for writing therefore begins a new incarnation. The file
/// stores it with the earlier incarnations.
public struct StoreLineage: Sendable, Hashable, Codable {
    /// A period in the life of a store, which a copy begins.
    public struct Incarnation: Sendable, Hashable, Codable {
        /// The id of the incarnation.
        public let id: UUID
        /// The newest save of the copy when the incarnation began. The incarnation's own saves have greater numbers.
        public let start: Generation

        /// Creates an incarnation that begins after a save.
        public init(id: UUID, start: Generation) {
            self.id = id
            self.start = start
        }
    }

    /// The UUID of the store, which its copies share.
    public let store: UUID
    /// The incarnations that copies began.
    public private(set) var copies: [Incarnation]

    /// Creates a lineage. `copies` are in order, oldest first. The incarnation before the first of them has the store's own
    /// UUID.
    public init(store: UUID, copies: [Incarnation] = []) {
        self.store = store
        self.copies = copies
    }

    /// The incarnation that the next save belongs to.
    public var current: UUID { copies.last?.id ?? store }

    /// Returns the incarnation that made a save.
    public func incarnation(of generation: Generation) -> UUID {
        copies.last { $0.start < generation }?.id ?? store
    }

    /// Returns the newest save that this store and an incarnation have in common. Returns `.max` for the current incarnation,
    /// and nil for an incarnation that this lineage does not contain.
    public func newestShared(with incarnation: UUID) -> Generation? {
        if incarnation == current { return .max }
        if incarnation == store { return copies.first?.start }
        guard let place = copies.firstIndex(where: { $0.id == incarnation }) else { return nil }
        return copies[place + 1].start
    }

    /// Begins a new incarnation after a save.
    public mutating func begin(after generation: Generation, id: UUID? = nil) {
        copies.append(Incarnation(id: id ?? .random(), start: generation))
    }
}

extension PageAddress {
    /// Returns the first page whose keys a copy of a store assigns to new objects.
    ///
    /// The original continues after `page`. The distance is at least 2^39 pages, more than any store leases. It is random, so
    /// that two copies of one store do not assign the same keys either. After about a hundred generations of copies it gets
    /// shorter.
    /// - Parameter page: The first page that was never leased.
    package static func firstPageOfCopy(after page: PageNumber) -> PageNumber {
        let end = PageNumber(rawValue: 1 << 47)
        guard page < end else { return page }
        let reach = min(1 << 40, page.distance(to: end) / 4)
        return page.advanced(by: .random(in: reach / 2...reach))
    }
}
