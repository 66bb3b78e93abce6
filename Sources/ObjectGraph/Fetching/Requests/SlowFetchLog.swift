import Logging
import StoreInterface
import StoreModel

/// Logs fetches that take long, with their plans (S174).
struct SlowFetchLog: Sendable {
    let threshold: Duration
    let logger: Logger

    /// Runs a fetch and logs it if it was slow.
    func timing<R>(_ query: StoreQuery, in context: ManagedObjectContext, view: LayeredView, _ fetch: () throws -> R) rethrows
        -> R
    {
        let clock = context.configuration.writer.clock
        let start = clock.now
        let (result, examined) = try ExaminedObjects.counting(fetch)
        let taken = Duration.nanoseconds(Int64(clamping: clock.now.uptimeNanoseconds - start.uptimeNanoseconds))
        if taken >= threshold { report(taken, query: query, in: context, view: view, result: result, examined: examined) }
        return result
    }

    private func report<R>(
        _ taken: Duration, query: StoreQuery, in context: ManagedObjectContext, view: LayeredView, result: R,
        examined: Int?
    ) {
        let entity = context.storedModel.entities[query.entity].name
        let count = (result as? [ObjectKey])?.count ?? result as? Int
        let looked = examined.map { ", examined \($0) objects" } ?? ""
        let found = count.map { " and found \($0)" } ?? ""
        let plan = (try? view.explain(query)) ?? "unknown"
        logger.warning("a fetch of \(entity) in the context \(context.name) took \(taken)\(looked)\(found); plan: \(plan)")
    }
}

extension PersistentContainer {
    /// Logs each fetch and count of this container's contexts that takes at least as long as a threshold: its time, its context, the
    /// number of objects that the store compared with the condition, the number of objects found, and its plan as in `explain`.
    ///
    /// ```swift
    /// container.logFetches(slowerThan: .milliseconds(50))
    /// ```
    /// While it is off, a fetch costs one more atomic read.
    /// - Parameters:
    ///   - threshold: The shortest time to log; nil turns the log off, as it is at first.
    ///   - logger: Receives messages of level `warning`, on the executor of the context.
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
