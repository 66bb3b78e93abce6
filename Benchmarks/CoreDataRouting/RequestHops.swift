internal import Platform

/// A kind of request from a context to its parent, at one level. Hops are counted by it.
public struct RequestHop: Sendable, Hashable {
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

/// Counts the requests of all contexts of a container to their parents. With the routing `snapshot` there are none.
public final class RequestHops: Sendable {
    private let all = Mutex<[RequestHop: Int]>([:])
    private let server = Mutex<(@Sendable (RequestHop, Int) -> Void)?>(nil)

    public init() {}

    /// The number of requests so far.
    public var counts: [RequestHop: Int] { all.withLock { $0 } }

    /// Calls a handler on the executor of each context that serves a request, with the number of its objects. For the objects that a
    /// root context saves to the store the level is 0. The handler can do the work that Core Data does there.
    public func onServing(_ handler: (@Sendable (RequestHop, _ objects: Int) -> Void)?) { server.withLock { $0 = handler } }

    func add(_ kind: RequestHop.Kind, level: Int) {
        all.withLock { $0[RequestHop(kind, level: level), default: 0] += 1 }
    }

    /// Calls the handler, on the executor that serves a request for a number of objects.
    func serve(_ kind: RequestHop.Kind, level: Int, objects: Int) {
        guard objects > 0, let handler = server.withLock({ $0 }) else { return }
        handler(RequestHop(kind, level: level), objects)
    }
}
