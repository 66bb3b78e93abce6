internal import Platform

/// A kind of request from a context to its parent, at one level. Hops are counted by it.
@_spi(Routing) public struct RequestHop: Sendable, Hashable {
    /// The kind of a request.
    public enum Kind: String, Sendable, CaseIterable {
        /// All values of one object.
        case fault
        /// The objects of one to-many relationship.
        case relationship
        /// A fetch, a count or an aggregate.
        case fetch
        /// A child's changes.
        case save
        /// Versions and descriptions.
        case other
    }

    /// The kind of the request.
    public var kind: Kind
    /// 1 for a request to a root context, 2 for one to a child of a root.
    public var level: Int

    /// Creates a kind of request at one level.
    public init(_ kind: Kind, level: Int) {
        self.kind = kind
        self.level = level
    }
}

/// Counts the requests of all contexts of a coordinator to their parents.
final class HopCounts: Sendable {
    private let counts = Mutex<[RequestHop: Int]>([:])

    func add(_ kind: RequestHop.Kind, level: Int) {
        counts.withLock { $0[RequestHop(kind, level: level), default: 0] += 1 }
    }

    var all: [RequestHop: Int] { counts.withLock { $0 } }
}

extension PersistentStoreCoordinator {
    /// The route of a new root context; nil with `Routing.snapshot`.
    var rootRoute: (any RequestRoute)? { hops.map { AncestorRoute(entityCount: model.entities.count, hops: $0) } }
}

extension PersistentContainer {
    /// The requests that contexts have sent to their parents since the container was opened. Empty with `Routing.snapshot`, where
    /// contexts ask no other context.
    @_spi(Routing) public var requestHops: [RequestHop: Int] {
        let coordinators = backgroundCoordinator === coordinator ? [coordinator] : [coordinator, backgroundCoordinator]
        return coordinators.compactMap { $0.hops?.all }.reduce(into: [:]) { sum, counts in sum.merge(counts, uniquingKeysWith: +)
        }
    }
}
