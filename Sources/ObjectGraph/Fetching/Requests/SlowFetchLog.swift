import Logging
import StoreInterface
import StoreModel

/// Logs fetches that take long, with their plans (S174).
struct SlowFetchLog: Sendable {
    let threshold: Duration
    let logger: Logger

    /// Runs a fetch and logs it if it was slow.
    func timing<R>(_ query: StoreQuery, from source: FetchSource, view: LayeredView, _ fetch: () throws -> R) rethrows -> R {
        let clock = source.clock
        let start = clock.now
        let (result, examined) = try ExaminedObjects.counting(fetch)
        let taken = Duration.nanoseconds(Int64(clamping: clock.now.uptimeNanoseconds - start.uptimeNanoseconds))
        if taken >= threshold { report(taken, query: query, from: source, view: view, result: result, examined: examined) }
        return result
    }

    private func report<R>(
        _ taken: Duration, query: StoreQuery, from source: FetchSource, view: LayeredView, result: R, examined: Int?
    ) {
        let (name, context) = (source.name, source.context)
        let keys = result as? [ObjectKey] ?? (result as? OrderedData)?.keys ?? (result as? BatchSource)?.keys
        let count = keys?.count ?? (result as? [SortCandidate])?.count ?? result as? Int
        let looked = examined.map { ", examined \($0) objects" } ?? ""
        let found = count.map { " and found \($0)" } ?? ""
        let plan = (try? view.explain(query)) ?? "unknown"
        logger.warning("a fetch of \(name) in the context \(context) took \(taken)\(looked)\(found); plan: \(plan)")
    }
}

/// The names in the message about a slow fetch, and the clock that measures it, for threads that may not use the context.
struct FetchSource: Sendable {
    /// The name of the entity or of the keyed collection.
    let name: String
    let context: String
    let clock: any WriterClock

    init(_ context: ManagedObjectContext, _ name: String) {
        self.name = name
        self.context = context.name
        clock = context.configuration.writer.clock
    }
}

/// The log of slow queries of a live result, which also runs its query off the context's executor.
struct LiveFetchLog: Sendable {
    private let source: FetchSource
    /// Returns the log that is on now. Does not keep the coordinator alive.
    private let log: @Sendable () -> SlowFetchLog?

    init(_ context: ManagedObjectContext, _ entity: EntityIndex) {
        source = FetchSource(context, context.storedModel.entities[entity].name)
        log = { [weak coordinator = context.configuration.coordinator] in coordinator?.slowFetches.withLock { $0 } }
    }

    /// Runs a query and logs it if the log is on and the query was slow.
    func timing<R>(_ query: StoreQuery, view: LayeredView, _ fetch: () throws -> R) rethrows -> R {
        guard let log = self.log() else { return try fetch() }
        return try log.timing(query, from: source, view: view, fetch)
    }
}

extension PersistentContainer {
    /// Logs each fetch and count of this container's contexts that takes at least as long as a threshold: its time, its context, the
    /// number of objects that the store compared with the condition, the number of objects found, and its plan as in `explain`.
    ///
    /// ```swift
    /// container.logFetches(slowerThan: .milliseconds(50))
    /// ```
    /// A live result logs its query: when it is fetched, and each time the whole query runs again. Updates that are computed from the
    /// changes alone are not logged. A range of a keyed collection logs each read of its keys, with the name of the collection. A stream
    /// and `forEachBatch` log each read of pages, with the plan of the whole request. With a sort, they find all objects at the beginning,
    /// and log that once. While the log is off, a fetch costs one more atomic read.
    /// - Parameters:
    ///   - threshold: The shortest time to log; nil turns the log off, as it is at first.
    ///   - logger: Receives messages of level `warning`, on the executor of the context. Messages about live results may come on another
    ///     thread.
    public func logFetches(slowerThan threshold: Duration?, to logger: Logger = Logger(label: "strata.fetches")) {
        coordinator.logFetches(slowerThan: threshold, to: logger)
        if backgroundCoordinator !== coordinator { backgroundCoordinator.logFetches(slowerThan: threshold, to: logger) }
    }
}

extension PersistentStoreCoordinator {
    /// Logs slow fetches of this coordinator's contexts: see ``PersistentContainer/logFetches(slowerThan:to:)``.
    public func logFetches(slowerThan threshold: Duration?, to logger: Logger = Logger(label: "strata.fetches")) {
        slowFetches.withLock { $0 = threshold.map { SlowFetchLog(threshold: $0, logger: logger) } }
        watchesFetches.store(threshold != nil || instruments != nil, ordering: .relaxed)
    }
}
