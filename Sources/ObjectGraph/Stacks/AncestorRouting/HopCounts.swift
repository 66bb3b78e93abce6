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
    /// 1 for a request to a root context, 2 for one to a child of a root. 0 for a root's own save to the store.
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
    private let server = Mutex<(@Sendable (RequestHop, Int) -> Void)?>(nil)

    func add(_ kind: RequestHop.Kind, level: Int) {
        counts.withLock { $0[RequestHop(kind, level: level), default: 0] += 1 }
    }

    var all: [RequestHop: Int] { counts.withLock { $0 } }

    func onServing(_ handler: (@Sendable (RequestHop, Int) -> Void)?) { server.withLock { $0 = handler } }

    /// Calls the handler, on the executor that serves a request for a number of objects.
    func serve(_ kind: RequestHop.Kind, level: Int, objects: Int) {
        guard objects > 0, let handler = server.withLock({ $0 }) else { return }
        handler(RequestHop(kind, level: level), objects)
    }
}

extension PersistentStoreCoordinator {
    /// The route of a new root context; nil with `Routing.snapshot`.
    var rootRoute: (any RequestRoute)? { hops.map { AncestorRoute(entityCount: contextModel.entities.count, hops: $0) } }
}

extension PersistentContainer {
    /// The requests that contexts have sent to their parents since the container was opened. Empty with `Routing.snapshot`, where
    /// contexts ask no other context.
    @_spi(Routing) public var requestHops: [RequestHop: Int] {
        routedCoordinators.compactMap { $0.hops?.all }.reduce(into: [:]) { sum, counts in sum.merge(counts, uniquingKeysWith: +)
        }
    }

    /// Calls a handler on the executor of each context that serves a request, with the number of its objects. For the objects that a
    /// root context saves to the store the level is 0. The handler can do the work that Core Data does there. Never called
    /// with `Routing.snapshot`.
    @_spi(Routing) public func onServingRequests(_ handler: (@Sendable (RequestHop, _ objects: Int) -> Void)?) {
        for coordinator in routedCoordinators { coordinator.hops?.onServing(handler) }
    }

    private var routedCoordinators: [PersistentStoreCoordinator] {
        backgroundCoordinator === coordinator ? [coordinator] : [coordinator, backgroundCoordinator]
    }
}
