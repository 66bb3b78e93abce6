import StoreInterface

/// A fetch that stays true: it follows its context and says what changed, position by position.
///
/// It belongs to its context like an object does and is used on the context's executor. It sees what the context shows, unsaved
/// changes included, and follows saves of children and merges too. Computing happens off the executor; there, an update costs
/// as much as its difference and the callback (S144). Changes that come close together are answered by one update.
///
/// Dropping it ends it.
public final class FetchedResultsController<Element> {
    public let context: ManagedObjectContext
    /// What the last update brought; empty before ``performFetch()``.
    public private(set) var snapshot: ResultSnapshot
    /// Called on the context's executor with every update, after ``snapshot`` was set.
    public var onChange: ((ResultUpdate) -> Void)?
    /// Called on the context's executor when the store could not be read. ``snapshot`` stays; the next change tries again.
    public var onFailure: ((any Error) -> Void)?
    /// The least time between two updates. Longer ones spare the processor during imports; the first change after a pause is
    /// answered at once. The default is one frame at 60 Hz.
    public var minimumInterval: Duration {
        didSet { worker.setInterval(minimumInterval) }
    }

    private let query: StoreQuery
    private let worker: ResultWorker
    private let element: (ManagedObject) -> Element
    private var isObserving = false
    private var fetch = 0
    private var continuations: [Int: AsyncStream<ResultUpdate>.Continuation] = [:]
    private var nextContinuation = 0

    /// The way back from the worker.
    private final class WeakBox: @unchecked Sendable {
        // `@unchecked Sendable` is right because `controller` is set before the worker begins and otherwise used on the context's
        // executor only, where the controller lives and dies.
        weak var controller: FetchedResultsController?
    }

    private init(
        _ query: StoreQuery, entityName: String, context: ManagedObjectContext, element: @escaping (ManagedObject) -> Element
    ) throws {
        guard !query.sort.isEmpty else { throw FetchError.sortRequired(entity: entityName) }
        self.context = context
        self.query = query
        self.element = element
        minimumInterval = .milliseconds(16)
        let door = WeakBox()
        worker = ResultWorker(host: context.requiredHost, store: context.storeIdentity, interval: .milliseconds(16)) {
            door.controller?.take($0, $1)
        }
        snapshot = ResultSnapshot(LiveQuery(empty: query, in: context.view), store: context.storeIdentity)
        door.controller = self
    }

    deinit {
        worker.stop()
        if isObserving { context.removeViewObserver(worker) }
        for continuation in continuations.values { continuation.finish() }
    }

    // MARK: Fetching

    /// Runs the request now, on the context's executor, and follows the context from then on. O(result); see
    /// ``performFetchInBackground()`` for large ones. Can be called again to start over; that is no update.
    ///
    /// Throws `StoreError` when the store cannot be read.
    public func performFetch() throws {
        let live = try LiveQuery(query, in: observedView())
        fetch = worker.follow(live)
        snapshot = ResultSnapshot(live, store: context.storeIdentity)
    }

    /// The same, computed off the context's executor, which is free meanwhile.
    nonisolated(nonsending) public func performFetchInBackground() async throws {
        let view = observedView()
        let number = worker.beginFetch()
        let live = try await worker.compute(query, in: view)
        guard worker.endFetch(live, number) else { return }
        fetch = number
        snapshot = ResultSnapshot(live, store: context.storeIdentity)
    }

    /// Returns when the changes that the context has processed are answered and delivered.
    nonisolated(nonsending) func untilIdle() async { await worker.untilIdle() }

    /// What the context shows now, and everything after it.
    private func observedView() -> LayeredView {
        // The view shows changes that were not processed yet; they shall not be told of as news.
        context.processPendingChanges()
        if isObserving { context.removeViewObserver(worker) }
        isObserving = true
        return context.addViewObserver(worker)
    }

    // MARK: Reading

    /// The object at a position of ``snapshot``: registered, or a fault. O(log count).
    ///
    /// It shows the context's present values, which may be newer than the snapshot until the next update.
    public func object(at position: Int) -> Element { element(context.object(with: snapshot[position])) }

    /// All objects of ``snapshot``. O(count).
    public var fetchedObjects: [Element] { snapshot.ids.map { element(context.object(with: $0)) } }

    /// The updates from now on, in order and without gaps; ended with the controller or the iteration.
    public var updates: AsyncStream<ResultUpdate> {
        let (stream, continuation) = AsyncStream<ResultUpdate>.makeStream()
        nextContinuation += 1
        continuations[nextContinuation] = continuation
        return stream
    }

    // MARK: Delivery

    private func take(_ delivery: ResultWorker.Delivery, _ number: Int) {
        switch delivery {
        case .failure(let error):
            onFailure?(error)
        case .update(let update):
            // One that was on its way when a newer fetch began.
            guard number == fetch else { return }
            snapshot = update.snapshot
            onChange?(update)
            for (key, continuation) in continuations {
                if case .terminated = continuation.yield(update) { continuations[key] = nil }
            }
        }
    }
}

extension FetchedResultsController where Element: PersistentModel {
    /// A live result of typed objects. Reads nothing yet.
    ///
    /// Throws ``FetchError``: also ``FetchError/sortRequired(entity:)`` when the request has no sort (S140).
    public convenience init(_ request: FetchRequest<Element>, context: ManagedObjectContext) throws {
        let query = try request.storeQuery(in: context.requestScope)
        try self.init(query, entityName: "\(Element.self)", context: context) {
            context.wrapped($0, as: Element.self)
        }
    }
}

extension FetchedResultsController where Element == ManagedObject {
    /// A live result by names. Reads nothing yet.
    ///
    /// Throws ``FetchError``: also ``FetchError/sortRequired(entity:)`` when the request has no sort (S140).
    public convenience init(_ request: EntityFetchRequest, context: ManagedObjectContext) throws {
        let query = try request.storeQuery(in: context.requestScope)
        try self.init(query, entityName: request.entityName, context: context) { $0 }
    }
}
