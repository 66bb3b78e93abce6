import Dispatch
internal import Platform
import StoreInterface

/// Keeps a ``LiveQuery`` up to date on a queue of its own, so that the context's executor only hands over views and receives updates.
///
/// Bursts are coalesced. Changes that arrive during a computation, before a delivery was received, or within the interval after
/// a delivery are computed together. This uses a queue instead of an actor, because reading a store may wait for the disk.
final class ResultWorker: ViewObserver {
    /// A result of the worker, delivered in order on the context's executor.
    enum Delivery: Sendable {
        case update(ResultUpdate)
        case failure(any Error)
    }

    private struct State {
        /// The context's executor. The reference is weak, because the context retains the worker.
        weak var host: (any ContextExecutor)?
        var live: LiveQuery?
        /// The number of fetches. Results for an earlier fetch are dropped.
        var fetch = 0
        /// The newest view to which the live query has not advanced.
        var view: LayeredView?
        /// All changes up to that view; nil if they are unknown.
        var changes: [ChangeSet]? = []
        /// The context's saves up to that view, which usually do not change the result.
        var saved: [ChangeSet] = []
        /// Whether a computation is scheduled or running, or its delivery has not been received.
        var isBusy = false
        var isStopped = false
        var interval: Duration
        var delivered = ContinuousClock.now - .seconds(1)
        /// The last delivered snapshots. They are released on the queue, because releasing the last reference to a large list costs
        /// O(result).
        var shown: [ResultSnapshot] = []

        mutating func begin() {
            fetch += 1
            live = nil
            view = nil
            changes = []
            saved = []
        }
    }

    /// The input of one computation.
    private struct Step {
        var live: LiveQuery
        var view: LayeredView
        var changes: [ChangeSet]?
        var saved: [ChangeSet]
        var fetch: Int
    }

    private let queue = DispatchQueue(label: "strata.live-results", target: ResultWorker.shared)
    /// A queue on which all controllers compute one after another. They read the same snapshot, whose look-ups are serialized anyway.
    /// With many threads waiting for one lock, an import would get less processor time.
    private static let shared = DispatchQueue(label: "strata.live-results.shared", qos: .userInitiated)
    private let state: Mutex<State>
    private let store: StoreIdentity
    private let deliver: @Sendable (Delivery, Int) -> Void

    /// - Parameter deliver: A closure called on the context's executor with a delivery and the number of its fetch.
    init(
        host: any ContextExecutor, store: StoreIdentity, interval: Duration, deliver: @escaping @Sendable (Delivery, Int) -> Void
    ) {
        state = Mutex(State(host: host, interval: interval))
        self.store = store
        self.deliver = deliver
    }

    func setInterval(_ interval: Duration) { state.withLock { $0.interval = interval } }

    /// Starts to follow from a computed result. Returns the number of the fetch.
    func follow(_ live: LiveQuery) -> Int {
        state.withLock { state in
            state.begin()
            state.live = live
            return state.fetch
        }
    }

    /// Announces a background fetch, so that views that arrive from now on are kept for it. Returns its number.
    func beginFetch() -> Int {
        state.withLock { state in
            state.begin()
            return state.fetch
        }
    }

    /// Runs a query off the calling executor. Nothing is delivered before ``endFetch(_:_:)``.
    func compute(_ query: StoreQuery, in view: LayeredView) async throws -> LiveQuery {
        try await withCheckedThrowingContinuation { continuation in
            queue.async { continuation.resume(with: Result { try LiveQuery(query, in: view) }) }
        }
    }

    /// Starts to follow the result. Returns false if another fetch has begun since.
    func endFetch(_ live: LiveQuery, _ number: Int) -> Bool {
        let isCurrent = state.withLock { state in
            if state.fetch == number { state.live = live }
            return state.fetch == number
        }
        schedule()
        return isCurrent
    }

    func stop() {
        let live = state.withLock { state in
            state.isStopped = true
            defer {
                state.live = nil
                state.view = nil
                state.shown = []
            }
            return state.live
        }
        // The list may be large, so release it on the queue.
        queue.async { withExtendedLifetime(live) {} }
    }

    /// Delivers the error, and nothing after it.
    func contextDidClose(_ error: any Error) {
        let (host, fetch) = state.withLock { ($0.host, $0.fetch) }
        stop()
        host?.enqueue { [self] _ in deliver(.failure(error), fetch) }
    }

    /// Waits until the changes that have arrived are computed, and their updates delivered.
    func untilIdle() async {
        while state.withLock({ $0.isBusy }) {
            await withCheckedContinuation { continuation in queue.async { continuation.resume() } }
            await Task.yield()
        }
    }

    // MARK: On the context's executor

    /// Records the new view and its changes, and schedules a computation. O(1).
    func viewDidChange(_ view: LayeredView, _ changes: ChangeSet?, saved: ChangeSet) {
        state.withLock { state in
            guard !state.isStopped else { return }
            state.view = view
            if !saved.isEmpty { state.saved.append(saved) }
            if let changes {
                if !changes.isEmpty { state.changes?.append(changes) }
            } else {
                state.changes = nil
            }
        }
        schedule()
    }

    /// Schedules the next computation after the last delivery was received.
    private func taken() {
        state.withLock { $0.isBusy = false }
        schedule()
    }

    // MARK: Computing

    private func schedule() {
        let delay: Duration? = state.withLock { state in
            guard !state.isBusy, !state.isStopped, state.view != nil, state.live != nil else { return nil }
            state.isBusy = true
            return max(.zero, state.delivered + state.interval - ContinuousClock.now)
        }
        guard let delay else { return }
        if delay == .zero {
            queue.async { self.compute() }
        } else {
            queue.asyncAfter(deadline: .now() + .nanoseconds(delay.nanoseconds)) { self.compute() }
        }
    }

    /// Advances from the last view to the newest. Runs on the queue.
    private func compute() {
        let work = state.withLock { state -> Step? in
            guard !state.isStopped, let live = state.live, let view = state.view else {
                state.isBusy = false
                return nil
            }
            defer {
                state.view = nil
                state.changes = []
                state.saved = []
            }
            return Step(live: live, view: view, changes: state.changes, saved: state.saved, fetch: state.fetch)
        }
        guard let work else { return }
        let fetch = work.fetch
        var live = work.live
        do {
            let difference = try live.advance(to: work.view, changes: work.changes, saved: work.saved)
            let snapshot = ResultSnapshot(live, store: store)
            let host = finish(live, fetch, snapshot: difference.isEmpty ? nil : snapshot)
            if let host { send(.update(ResultUpdate(snapshot: snapshot, difference: difference)), fetch, host) }
        } catch {
            // Forget the changes, so that the next computation compares with the last good view.
            let host = state.withLock { state in
                state.changes = nil
                state.delivered = .now
                return state.host
            }
            if let host { send(.failure(error), fetch, host) }
        }
    }

    /// Stores the result. Returns the context's executor if there is an update to deliver.
    private func finish(_ live: LiveQuery, _ fetch: Int, snapshot: ResultSnapshot?) -> (any ContextExecutor)? {
        let (host, dropped) = state.withLock { state -> ((any ContextExecutor)?, [ResultSnapshot]) in
            if state.fetch == fetch, !state.isStopped { state.live = live }
            guard let snapshot, let host = state.host else {
                state.isBusy = false
                return (nil, [])
            }
            state.delivered = .now
            state.shown.append(snapshot)
            // The snapshot before the last may be in use until the last delivery is received.
            let old = Array(state.shown.dropLast(3))
            state.shown = state.shown.suffix(3)
            return (host, old)
        }
        withExtendedLifetime(dropped) {}
        if host == nil { schedule() }
        return host
    }

    private func send(_ delivery: Delivery, _ fetch: Int, _ host: any ContextExecutor) {
        host.enqueue { [self] _ in
            deliver(delivery, fetch)
            taken()
        }
    }
}
