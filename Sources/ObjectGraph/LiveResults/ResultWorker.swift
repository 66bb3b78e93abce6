import Dispatch
internal import Platform
import StoreInterface

/// Keeps a ``LiveQuery`` up to date on a queue of its own, so that the context's executor only hands over and takes delivery.
///
/// Bursts are coalesced: changes that arrive while it computes, while a delivery has not been taken, or within the interval after
/// a delivery are answered together. A queue and not an actor, because reading a store may wait for the disk.
final class ResultWorker: ViewObserver {
    /// What leaves the worker, in order. Called on the context's executor.
    enum Delivery: Sendable {
        case update(ResultUpdate)
        case failure(any Error)
    }

    private struct State {
        /// The context's executor; weak, because the context holds the worker.
        weak var host: (any ContextExecutor)?
        var live: LiveQuery?
        /// Counts fetches: what was computed for an earlier one is dropped.
        var fetch = 0
        /// The newest view that the live query has not seen.
        var view: LayeredView?
        /// All that changed on the way to it; nil when that is not known.
        var changes: [ChangeSet]? = []
        /// Saves of the context on the way, which changed nothing that it shows as a rule.
        var saved: [ChangeSet] = []
        /// From the scheduling of a computation until its delivery was taken.
        var isBusy = false
        var isStopped = false
        var interval: Duration
        var delivered = ContinuousClock.now - .seconds(1)
        /// Delivered lists are dropped here and not where they are shown: the last of a large one costs O(result).
        var shown: [ResultSnapshot] = []

        mutating func begin() {
            fetch += 1
            live = nil
            view = nil
            changes = []
            saved = []
        }
    }

    /// What one computation needs.
    private struct Step {
        var live: LiveQuery
        var view: LayeredView
        var changes: [ChangeSet]?
        var saved: [ChangeSet]
        var fetch: Int
    }

    private let queue = DispatchQueue(label: "strata.live-results", target: ResultWorker.shared)
    /// All controllers compute one after another: they read the same snapshot, whose look-ups take turns anyway, and fifty threads
    /// waiting for one lock would take the processor from the import.
    private static let shared = DispatchQueue(label: "strata.live-results.shared", qos: .userInitiated)
    private let state: Mutex<State>
    private let store: StoreIdentity
    private let deliver: @Sendable (Delivery, Int) -> Void

    /// - Parameter deliver: called on the context's executor with the number of the fetch that it belongs to.
    init(
        host: any ContextExecutor, store: StoreIdentity, interval: Duration, deliver: @escaping @Sendable (Delivery, Int) -> Void
    ) {
        state = Mutex(State(host: host, interval: interval))
        self.store = store
        self.deliver = deliver
    }

    func setInterval(_ interval: Duration) { state.withLock { $0.interval = interval } }

    /// Begins to follow from a computed result. Returns the number of the fetch.
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

    /// Computes off the calling executor. Nothing is delivered before ``endFetch(_:_:)``.
    func compute(_ query: StoreQuery, in view: LayeredView) async throws -> LiveQuery {
        try await withCheckedThrowingContinuation { continuation in
            queue.async { continuation.resume(with: Result { try LiveQuery(query, in: view) }) }
        }
    }

    /// Begins to follow, unless another fetch has begun since: then false.
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
        // The list may be large: let the queue drop it.
        queue.async { withExtendedLifetime(live) {} }
    }

    /// Delivers the error, and nothing after it.
    func contextDidClose(_ error: any Error) {
        let (host, fetch) = state.withLock { ($0.host, $0.fetch) }
        stop()
        host?.enqueue { [self] _ in deliver(.failure(error), fetch) }
    }

    /// Returns when the changes that have arrived are answered, and the answers delivered.
    func untilIdle() async {
        while state.withLock({ $0.isBusy }) {
            await withCheckedContinuation { continuation in queue.async { continuation.resume() } }
            await Task.yield()
        }
    }

    // MARK: On the context's executor

    /// O(1).
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

    /// The last delivery was taken; now there may be a next.
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
            let (seconds, attoseconds) = delay.components
            let nanoseconds = Int(seconds) * 1_000_000_000 + Int(attoseconds / 1_000_000_000)
            queue.asyncAfter(deadline: .now() + .nanoseconds(nanoseconds)) { self.compute() }
        }
    }

    /// One step from the last view to the newest. On the queue.
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
            // What changed since the last good view is then found by comparing.
            let host = state.withLock { state in
                state.changes = nil
                state.delivered = .now
                return state.host
            }
            if let host { send(.failure(error), fetch, host) }
        }
    }

    /// Keeps the result; gives the way to the context when there is something to deliver.
    private func finish(_ live: LiveQuery, _ fetch: Int, snapshot: ResultSnapshot?) -> (any ContextExecutor)? {
        let (host, dropped) = state.withLock { state -> ((any ContextExecutor)?, [ResultSnapshot]) in
            if state.fetch == fetch, !state.isStopped { state.live = live }
            guard let snapshot, let host = state.host else {
                state.isBusy = false
                return (nil, [])
            }
            state.delivered = .now
            state.shown.append(snapshot)
            // The one before the last may still be shown until the last is taken.
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
