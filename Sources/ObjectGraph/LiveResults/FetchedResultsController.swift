import StoreInterface
import StoreModel

/// A live result: the result of a request that follows its context and reports changes by position.
///
/// Use a controller on its context's executor. Its result includes unsaved changes, saves of children and merges.
/// Updates are computed off the executor. On the executor, an update costs O(difference) plus the callback (S144).
/// Changes in quick succession are combined into one update. Releasing the controller ends its updates.
///
/// ```swift
/// let results = try FetchedResultsController(FetchRequest<Track>(sortBy: [.init(\.title)]), context: context)
/// results.onChange = { update in rows = update.snapshot.ids }
/// try results.performFetch()
/// ```
public final class FetchedResultsController<Element> {
    /// The context of the result.
    public let context: ManagedObjectContext
    /// The result after the last update; empty before ``performFetch()``.
    @exclusivity(unchecked) public private(set) var snapshot: ResultSnapshot
    /// A closure called on the context's executor with every update, after ``snapshot`` was set.
    public var onChange: ((ResultUpdate) -> Void)?
    /// A closure called on the context's executor if the store could not be read. ``snapshot`` is kept, and the next change tries
    /// again.
    public var onFailure: ((any Error) -> Void)?
    /// A closure called on the context's executor when the store can be read again after a failure.
    var onRecovery: (() -> Void)?
    /// The minimum time between two updates. The default is one frame at 60 Hz.
    ///
    /// A longer interval reduces the processor time during imports. The first change after a pause is reported at once.
    public var minimumInterval: Duration {
        didSet { worker.setInterval(minimumInterval) }
    }

    /// The query, and whether objects with the same value of its first sort are a section.
    private let request: (query: StoreQuery, hasSections: Bool)
    private let worker: ResultWorker
    private let element: (ManagedObject) -> Element
    private var isObserving = false
    private var fetch = 0
    private(set) var receivers = Receivers()
    private let reference: WeakBox<FetchedResultsController>

    /// The receivers of updates besides ``onChange``.
    struct Receivers {
        /// The continuations, each with the number of the last update that its receiver had seen in the result before.
        var continuations: [Int: (seen: Int, continuation: AsyncStream<ResultUpdate>.Continuation)] = [:]
        /// The observers, each with such a number.
        var observers: [Int: (seen: Int, call: (ResultUpdate) -> Void)] = [:]
        /// The number of the last continuation or observer.
        var lastNumber = 0
        /// The updates with their numbers that they have not received yet, while ``onChange`` runs.
        var unreported: [(number: Int, update: ResultUpdate)] = []
        /// The number of the last update.
        var lastUpdate = 0
    }

    private init(
        _ query: StoreQuery, hasSections: Bool = false, context: ManagedObjectContext,
        element: @escaping (ManagedObject) -> Element
    ) {
        self.context = context
        request = (query, hasSections)
        self.element = element
        minimumInterval = .milliseconds(16)
        let reference = WeakBox<FetchedResultsController>()
        self.reference = reference
        worker = ResultWorker(
            contextExecutor: context.requiredContextExecutor, store: context.storeIdentity, interval: .milliseconds(16)
        ) {
            reference.owner?.take($0, $1)
        }
        snapshot = ResultSnapshot(
            LiveQuery(empty: query, hasSections: hasSections, in: context.layerStack.view), store: context.storeIdentity)
        reference.owner = self
    }

    deinit {
        // The rest of the result waits for the computations of other results, during which a snapshot would keep pages from reuse.
        worker.releaseViews(context.layerStack.baseState.state.closed(context.configuration.coordinator.store).view)
        worker.stop()
        if isObserving { context.removeViewObserver(worker) }
        endUpdates()
    }

    // MARK: Fetching

    /// Runs the request on the context's executor and follows the context from then on. O(result).
    ///
    /// For large results, see ``performFetchInBackground()``. Call this again to start over, which posts no update.
    ///
    /// - Throws: `StoreError` if the store cannot be read.
    public func performFetch() throws {
        let view = observedView()
        let live = try observing { try LiveQuery(request.query, hasSections: request.hasSections, log: log, in: view) }
        fetch = worker.follow(live)
        snapshot = ResultSnapshot(live, store: context.storeIdentity)
    }

    /// Runs the request off the context's executor and follows the context from then on.
    ///
    /// If several calls run at the same time, each sets ``snapshot`` before it returns, unless a later call has set it already.
    ///
    /// - Throws: `StoreError` if the store cannot be read. Then an earlier result stays, and follows the context as before. `StoreError`
    ///   `.closed` also if the container was closed meanwhile.
    nonisolated(nonsending) public func performFetchInBackground() async throws {
        // A suspension that begins meanwhile waits for the read, which would open the file again.
        let suspension = context.configuration.writer.suspension
        let isOpen = suspension.enterIfOpen()
        defer { if isOpen { suspension.leave() } }
        let view = observedView()
        let number = worker.beginFetch()
        let live: LiveQuery
        do { live = try await worker.compute(request.query, hasSections: request.hasSections, log: log, in: view) } catch {
            if worker.cancelFetch(number) { endObserving() }
            throw error
        }
        guard try worker.endFetch(live, number) else { return }
        fetch = number
        snapshot = ResultSnapshot(live, store: context.storeIdentity)
    }

    private var log: LiveFetchLog { LiveFetchLog(context, request.query.entity) }

    /// Merges saves that were announced, and delivers the changes that the context has processed. Costs one lock if there are none.
    func settle() {
        context.checkIsolation()
        worker.settle()
    }

    /// Waits until the changes that the context has processed are computed and delivered.
    nonisolated(nonsending) func untilIdle() async { await worker.untilIdle() }

    /// Runs `body`, and ends the observation if it fails and there is no result to follow, nor a fetch that may give one: the changes
    /// would be kept without a use.
    private func observing(_ body: () throws -> LiveQuery) throws -> LiveQuery {
        do { return try body() } catch {
            if worker.isIdle { endObserving() }
            throw error
        }
    }

    private func endObserving() {
        // The observation ends sequences when the context is closed.
        guard receivers.continuations.isEmpty else { return }
        context.removeViewObserver(worker)
        isObserving = false
    }

    /// Starts to observe the context, and returns its present view.
    private func observedView() -> LayeredView {
        // The view contains changes that were not processed yet. Process them now, so that they are not reported as an update.
        context.postPendingChanges()
        if isObserving { context.removeViewObserver(worker) }
        isObserving = true
        return context.addViewObserver(worker)
    }

    // MARK: Reading

    /// Returns the object at a position of ``snapshot``: a registered object, or a fault. O(log count).
    ///
    /// It has the context's present values, which may be newer than the snapshot until the next update.
    public func object(at position: Int) -> Element { object(snapshot[position]) }

    func object(_ id: ObjectID) -> Element { element(context.object(with: id)) }

    /// All objects of ``snapshot``. O(count).
    public var fetchedObjects: [Element] { snapshot.ids.map { element(context.object(with: $0)) } }

    /// The updates from now on, in order and without gaps. The sequence ends when the controller is released, the container is closed, or
    /// the iteration ends.
    ///
    /// A fetch is no update. After ``performFetch()``, the next difference belongs to the ``snapshot`` that the fetch has made.
    public var updates: AsyncStream<ResultUpdate> { updates(after: lastUpdate) }

    /// The number of the last update that ``snapshot`` contains.
    var lastUpdate: Int { receivers.lastUpdate }

    /// Returns the updates after one that the receiver has seen in the result. While ``onChange`` runs, the receiver may not have seen the last
    /// one yet.
    func updates(after seen: Int) -> AsyncStream<ResultUpdate> {
        let (stream, continuation) = AsyncStream<ResultUpdate>.makeStream()
        if context.phase.closure != nil {
            continuation.finish()
            return stream
        }
        if !isObserving {
            isObserving = true
            _ = context.addViewObserver(worker)
        }
        receivers.lastNumber += 1
        let (number, reference) = (receivers.lastNumber, reference)
        receivers.continuations[number] = (seen, continuation)
        let contextExecutor = WeakContext(contextExecutor: context.contextExecutor)
        continuation.onTermination = { _ in
            contextExecutor.contextExecutor?.enqueue { _ in reference.owner?.receivers.continuations[number] = nil }
        }
        return stream
    }

    private func endUpdates() {
        for receiver in receivers.continuations.values { receiver.continuation.finish() }
        receivers.continuations = [:]
    }

    /// Calls `observer` on the context's executor with every update until the token is cancelled or released.
    ///
    /// ``snapshot`` is set and ``onChange`` is called before. The observation also ends with the controller, which the token does not retain.
    public func observe(_ observer: @escaping (ResultUpdate) -> Void) -> ObservationToken {
        receivers.lastNumber += 1
        let (number, end, reference) = (receivers.lastNumber, ObservationEnd(), reference)
        receivers.observers[number] = (lastUpdate, { if !end.isReached { observer($0) } })
        let contextExecutor = WeakContext(contextExecutor: context.contextExecutor)
        return ObservationToken(end) {
            contextExecutor.contextExecutor?.enqueue { _ in reference.owner?.receivers.observers[number] = nil }
        }
    }

    // MARK: Delivery

    func take(_ delivery: ResultWorker.Delivery, _ number: Int) {
        // Ignore what was in delivery when a newer fetch began.
        let (isCurrent, isClosed) = (number == fetch, context.phase.closure != nil)
        switch delivery {
        case .failure(let error):
            if isCurrent || isClosed { onFailure?(error) }
            if isClosed { endUpdates() }
        case .recovery:
            onRecovery?()
        case .update(let update):
            guard isCurrent else { return }
            snapshot = update.snapshot
            receivers.lastUpdate += 1
            receivers.unreported.append((receivers.lastUpdate, update))
            onChange?(update)
            // A closure that has read the result has delivered the updates after this one, and reported this one before them.
            while !receivers.unreported.isEmpty {
                let (number, next) = receivers.unreported.removeFirst()
                for receiver in receivers.continuations.values where receiver.seen < number { receiver.continuation.yield(next) }
                let observers = receivers.observers.sorted { $0.key < $1.key }.map(\.value)
                for observer in observers where observer.seen < number { observer.call(next) }
            }
        }
    }
}

extension FetchedResultsController where Element: PersistentModel {
    /// Creates a live result of typed objects, without reading it yet.
    ///
    /// - Throws: ``FetchError``, including ``FetchError/sortRequired(entity:)`` if the request has no sort (S140).
    public convenience init(_ request: FetchRequest<Element>, context: ManagedObjectContext) throws {
        if request.sortBy.isEmpty { throw FetchError.sortRequired(entity: "\(Element.self)") }
        try self.init(anyOrder: request, context: context)
    }

    /// Creates a live result with sections, without reading it yet: objects with the same value are a section (S141).
    ///
    /// The objects are sorted by the section first, then by the request. Each update has a difference by sections too:
    /// ``ResultUpdate/sectionDifference``.
    ///
    /// ```swift
    /// let songs = try FetchedResultsController(
    ///     FetchRequest<Track>(sortBy: [.init(\.title)]), sectionedBy: .init(\.album, by: \.title), context: context)
    /// try songs.performFetch()
    /// for section in songs.snapshot.sections { print(section.name, section.range.count) }
    /// ```
    ///
    /// - Parameters:
    ///   - request: The request. It needs no sort.
    ///   - section: The property that gives an object its section, and the direction in which sections are sorted. It may be a property
    ///     of a related object. Objects without a value are a section with the value null.
    ///   - context: The context to follow.
    /// - Throws: ``FetchError``, including ``FetchError/unsupportedSections(entity:property:)`` if the sort compares strings in another
    ///   way than by code points.
    public convenience init(
        _ request: FetchRequest<Element>, sectionedBy section: SortBy<Element>, context: ManagedObjectContext
    ) throws {
        guard section.comparison == .codePoints else {
            throw FetchError.unsupportedSections(entity: "\(Element.self)", property: section.property ?? section.keyPathText)
        }
        var request = request
        if request.sortBy.first != section { request.sortBy.insert(section, at: 0) }
        self.init(try request.liveQuery(in: context.requestScope), hasSections: true, context: context) {
            context.wrapped($0, as: Element.self)
        }
    }

    /// Creates a live result that may have no sort. Then the objects are in the order of their keys.
    convenience init(anyOrder request: FetchRequest<Element>, context: ManagedObjectContext) throws {
        let query = try request.liveQuery(in: context.requestScope)
        self.init(query, context: context) { context.wrapped($0, as: Element.self) }
    }
}

extension FetchedResultsController where Element == ManagedObject {
    /// Creates a live result by names, without reading it yet.
    ///
    /// - Throws: ``FetchError``, including ``FetchError/sortRequired(entity:)`` if the request has no sort (S140).
    public convenience init(_ request: EntityFetchRequest, context: ManagedObjectContext) throws {
        if request.sortBy.isEmpty { throw FetchError.sortRequired(entity: request.entityName) }
        try self.init(anyOrder: request, context: context)
    }

    /// Creates a live result by names with sections, without reading it yet: objects with the same value are a section (S141).
    ///
    /// - Parameters:
    ///   - request: The request. It needs no sort.
    ///   - section: The attribute that gives an object its section, or a path of names to an attribute of a related object.
    ///   - context: The context to follow.
    /// - Throws: ``FetchError``, including ``FetchError/unsupportedSections(entity:property:)`` if the sort compares strings in another
    ///   way than by code points.
    public convenience init(
        _ request: EntityFetchRequest, sectionedBy section: AttributeSort, context: ManagedObjectContext
    ) throws {
        guard section.comparison == .codePoints else {
            throw FetchError.unsupportedSections(entity: request.entityName, property: section.attribute)
        }
        var request = request
        if request.sortBy.first != section { request.sortBy.insert(section, at: 0) }
        self.init(try request.liveQuery(in: context.requestScope), hasSections: true, context: context) { $0 }
    }

    /// Creates a live result that may have no sort. Then the objects are in the order of their keys.
    convenience init(anyOrder request: EntityFetchRequest, context: ManagedObjectContext) throws {
        self.init(try request.liveQuery(in: context.requestScope), context: context) { $0 }
    }
}

extension FetchRequest {
    /// Returns the query of a live result.
    fileprivate func liveQuery(in scope: RequestScope) throws -> StoreQuery {
        guard includesPendingChanges else { throw FetchError.pendingChangesRequired(entity: "\(M.self)") }
        return try storeQuery(in: scope)
    }
}

extension EntityFetchRequest {
    /// Returns the query of a live result.
    fileprivate func liveQuery(in scope: RequestScope) throws -> StoreQuery {
        guard includesPendingChanges else { throw FetchError.pendingChangesRequired(entity: entityName) }
        return try storeQuery(in: scope)
    }
}

extension FetchedResultsController: CustomStringConvertible, CustomReflectable {
    /// The number of objects after the last update, and the keys of the first: `3 objects: 12, 7, 9`.
    public var description: String { snapshot.description }

    /// The ids of the objects as children.
    public var customMirror: Mirror { Mirror(self, unlabeledChildren: snapshot, displayStyle: .collection) }
}
