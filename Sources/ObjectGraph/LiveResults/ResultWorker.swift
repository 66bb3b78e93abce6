import Dispatch
internal import Platform
import StoreInterface
import StoreModel

/// Keeps a ``LiveQuery`` up to date on a queue of its own, so that the context's executor only hands over views and receives updates.
///
/// Bursts are coalesced. Changes that arrive during a computation, before a delivery was received, or within the interval after
/// a delivery are computed together. This uses a queue instead of an actor, because reading a store may wait for the disk.
final class ResultWorker: ViewObserver {
    /// A result of the worker, delivered in order on the context's executor.
    enum Delivery: Sendable {
        case update(ResultUpdate)
        case failure(any Error)
        /// The store could be read after a failure, with the same result as before.
        case recovery
    }

    private struct State {
        /// The context's executor. The reference is weak, because the context retains the worker.
        weak var contextExecutor: (any ContextExecutor)?
        var live: LiveQuery?
        /// The number of the last fetch; 0 if there is no result to follow, and no fetch that may give one. Results for an earlier fetch are
        /// dropped.
        var fetch = 0
        /// The last number that a fetch was given. A fetch that fails gives none back.
        var lastFetch = 0
        /// The numbers of the background fetches that have not ended.
        var fetching: Set<Int> = []
        /// The view and the changes to which the live query has not advanced.
        var arrived = ArrivedChanges()
        /// Whether a computation is scheduled or running, or its delivery has not been received.
        var isBusy = false
        /// Whether the interval after an update runs. Its end schedules the next computation.
        var isPausing = false
        var isStopped = false
        /// The error of the closed context; nil before.
        var closure: (any Error)?
        /// The view that replaces the released views of background fetches up to a number; nil before the first release.
        var ended: (view: LayeredView, fetch: Int)?
        var interval: Duration
        var delivered = ContinuousClock.now - .seconds(1)
        /// The last delivered snapshots. They are released on the queue, because releasing the last reference to a large list costs
        /// O(result).
        var shown: [ResultSnapshot] = []
        /// The input of the running computation, and its number. A later computation that includes the same input replaces it.
        var running: Step?
        var computation = 0
        /// The results that the context's executor has not received yet, with the numbers of their fetches.
        var undelivered: [(Delivery, Int)] = []
        var hasFailed = false
        /// The newest result while a later background fetch has not ended, and the number of its fetch.
        var previous: (live: LiveQuery, fetch: Int)?
        /// The newest view that arrived before a fetch began, and the number of that fetch. Results of earlier fetches have to advance to
        /// the view; nil if there is none.
        var skipped: (view: LayeredView, fetch: Int)?

        /// Whether changes have arrived that no computation has begun with.
        var hasArrived: Bool { arrived.view != nil && live != nil && !isStopped }

        mutating func begin() {
            lastFetch += 1
            if let live {
                previous = (live, fetch)
                skipped = nil
            }
            if let view = arrived.view ?? running?.view { skipped = (view, lastFetch) }
            fetch = lastFetch
            live = nil
            arrived = ArrivedChanges()
            running = nil
            computation += 1
        }

        /// Follows a result. If another fetch has begun since, the changes before that were not kept, and the next computation compares
        /// whole results.
        mutating func follow(_ live: LiveQuery, of number: Int) {
            if number != lastFetch {
                if let skipped, skipped.fetch > number { arrived.view = arrived.view ?? skipped.view }
                arrived.changes = nil
            }
            self.live = live
            fetch = number
            (previous, skipped) = (nil, nil)
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
        contextExecutor: any ContextExecutor, store: StoreIdentity, interval: Duration,
        deliver: @escaping @Sendable (Delivery, Int) -> Void
    ) {
        state = Mutex(State(contextExecutor: contextExecutor, interval: interval))
        self.store = store
        self.deliver = deliver
    }

    func setInterval(_ interval: Duration) {
        state.withLock { state in
            state.interval = interval
            state.isPausing = false
        }
        schedule()
    }

    /// Starts to follow from a computed result. Returns the number of the fetch.
    func follow(_ live: LiveQuery) -> Int {
        state.withLock { state in
            state.begin()
            state.follow(live, of: state.lastFetch)
            return state.fetch
        }
    }

    /// Announces a background fetch, so that views that arrive from now on are kept for it. Returns its number.
    func beginFetch() -> Int {
        state.withLock { state in
            state.begin()
            state.fetching.insert(state.fetch)
            return state.fetch
        }
    }

    /// Runs a query off the calling executor. Nothing is delivered before ``endFetch(_:_:)``.
    func compute(_ query: StoreQuery, hasSections: Bool, log: LiveFetchLog? = nil, in view: LayeredView) async throws -> LiveQuery
    {
        try await withCompletion { completion in
            queue.async { completion(Result { try LiveQuery(query, hasSections: hasSections, log: log, in: view) }) }
        }
    }

    /// Starts to follow the result. If a later background fetch has not ended, keeps the result in case that fetch fails.
    ///
    /// - Returns: Whether the result is the newest; false if a later fetch has ended with a result.
    /// - Throws: The error of a context that was closed meanwhile.
    func endFetch(_ live: LiveQuery, _ number: Int) throws -> Bool {
        var live = live
        let isNewest = try state.withLock { state in
            state.fetching.remove(number)
            if let closure = state.closure { throw closure }
            if let ended = state.ended, number <= ended.fetch { live.detach(ended.view) }
            if state.fetch == number {
                state.follow(live, of: number)
                return true
            }
            guard state.live == nil, number > state.previous?.fetch ?? 0 else { return false }
            state.previous = (live, number)
            return true
        }
        schedule()
        return isNewest
    }

    /// Ends a background fetch that failed. If no other fetch may give a newer result, follows the former result again.
    ///
    /// - Returns: Whether there is no result to follow, and no other fetch that may give one.
    func cancelFetch(_ number: Int) -> Bool {
        let isIdle = state.withLock { state in
            state.fetching.remove(number)
            guard state.fetch == number else { return false }
            // An earlier fetch that has not ended gives the newest result, unless one between them has given a result.
            if let earlier = state.fetching.max(), earlier > state.previous?.fetch ?? 0 {
                state.fetch = earlier
                return false
            }
            guard let previous = state.previous else {
                (state.fetch, state.arrived, state.skipped) = (0, ArrivedChanges(), nil)
                return true
            }
            state.follow(previous.live, of: previous.fetch)
            return false
        }
        schedule()
        return isIdle
    }

    /// Whether there is no result to follow, and no background fetch that may give one.
    var isIdle: Bool { state.withLock { $0.fetch == 0 } }

    func stop() {
        let live = state.withLock { state in
            state.isStopped = true
            defer {
                (state.live, state.previous, state.skipped) = (nil, nil, nil)
                state.arrived.view = nil
                state.shown = []
            }
            return (state.live, state.previous, state.skipped)
        }
        // The list may be large, so release it on the queue.
        queue.async { withExtendedLifetime(live) {} }
    }

    /// Delivers what was computed, then the error, and nothing after it.
    func contextDidClose(_ error: any Error) {
        let (contextExecutor, fetch) = state.withLock { state in
            state.closure = error
            return (state.contextExecutor, state.fetch)
        }
        stop()
        contextExecutor?.enqueue { [self] _ in
            deliverAll()
            deliver(.failure(error), fetch)
        }
    }

    /// Releases the views. The changes of a running computation are computed again with the next view.
    func releaseViews(_ ended: LayeredView) {
        let dropped = state.withLock { state in
            let dropped = [
                state.arrived.view, state.running?.view, state.live?.view, state.skipped?.view, state.previous?.live.view,
            ]
            if let running = state.running {
                state.arrived.changes = running.changes.flatMap { old in state.arrived.changes.map { old + $0 } }
                state.arrived.saved = running.saved + state.arrived.saved
            }
            state.arrived.view = nil
            state.running = nil
            state.computation += 1
            state.live?.detach(ended)
            state.previous?.live.detach(ended)
            state.ended = (ended, state.lastFetch)
            state.skipped = nil
            return dropped
        }
        withExtendedLifetime(dropped) {}
    }

    /// Waits until the changes that have arrived are computed, and their updates delivered.
    func untilIdle() async {
        while state.withLock({ $0.isBusy || $0.isPausing && $0.hasArrived }) {
            await withCheckedContinuation { continuation in queue.async { continuation.resume() } }
            await Task.yield()
        }
    }

    // MARK: On the context's executor

    /// Records the new view and its changes, and schedules a computation. O(1).
    func viewDidChange(_ view: LayeredView, _ changes: ChangeSet?, saved: ChangeSet) {
        state.withLock { state in
            guard !state.isStopped, state.fetch != 0 else { return }
            state.arrived.add(view, changes: changes, saved: saved)
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
            guard !state.isBusy, !state.isPausing, state.hasArrived else { return nil }
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
        guard let (step, number) = begin(isSettling: false) else { return }
        guard let contextExecutor = compute(step, number) else { return schedule() }
        let pause = state.withLock { state in
            state.isPausing = state.interval > .zero
            return state.interval
        }
        // The job is also enqueued if a read has received the delivery meanwhile: it schedules the next computation.
        contextExecutor.enqueue { [self] _ in
            deliverAll()
            taken()
        }
        // The timer is set here, because it would cost the context's executor more than the update of a short list.
        guard pause > .zero else { return }
        queue.asyncAfter(deadline: .now() + .nanoseconds(pause.nanoseconds)) { [weak self] in self?.endPause() }
    }

    private func endPause() {
        state.withLock { $0.isPausing = false }
        schedule()
    }

    /// Takes the changes that have arrived. Returns nil if there are none.
    ///
    /// - Parameter isSettling: Whether to replace a running computation. Otherwise there must be none.
    private func begin(isSettling: Bool) -> (step: Step, number: Int)? {
        state.withLock { state in
            let running = state.running
            guard !state.isStopped, let live = state.live, isSettling || running == nil,
                let view = state.arrived.view ?? running?.view
            else {
                if !isSettling { state.isBusy = false }
                return nil
            }
            var changes = state.arrived.changes
            if let running { changes = running.changes.flatMap { old in changes.map { old + $0 } } }
            let step = Step(
                live: live, view: view, changes: changes, saved: (running?.saved ?? []) + state.arrived.saved, fetch: state.fetch)
            state.arrived = ArrivedChanges()
            state.running = step
            state.computation += 1
            return (step, state.computation)
        }
    }

    /// Computes a step, and stores what there is to deliver. Returns the context's executor if there is something.
    private func compute(_ step: Step, _ number: Int) -> (any ContextExecutor)? {
        let uses = step.view.beginUse()
        defer { uses?.end() }
        // A suspension may have released the views before the use began. Reading them would open the file again.
        guard isCurrent(number) else { return nil }
        var live = step.live
        do {
            let difference = try live.advance(to: step.view, changes: step.changes, saved: step.saved)
            let snapshot = ResultSnapshot(live, store: store)
            let previous = step.live.sections?.sections(in: step.live.window)
            let update = ResultUpdate(snapshot: snapshot, difference: difference, previousSections: previous)
            return finish(live, number: number, update: difference.isEmpty ? nil : update)
        } catch {
            return state.withLock { state in
                guard state.computation == number, !state.isStopped else {
                    state.isBusy = false
                    return nil
                }
                // Forget the changes, so that the next computation compares with the last good view.
                state.arrived.changes = nil
                state.running = nil
                state.hasFailed = true
                state.delivered = .now
                state.undelivered.append((.failure(error), step.fetch))
                return state.contextExecutor
            }
        }
    }

    /// Returns whether a computation is the newest. If it was replaced, the worker is free for the next one.
    private func isCurrent(_ number: Int) -> Bool {
        state.withLock { state in
            if state.computation == number { return true }
            state.isBusy = false
            return false
        }
    }

    /// Stores the result. Returns the context's executor if there is something to deliver.
    private func finish(_ live: LiveQuery, number: Int, update: ResultUpdate?) -> (any ContextExecutor)? {
        let (contextExecutor, dropped) = state.withLock { state -> ((any ContextExecutor)?, [ResultSnapshot]) in
            guard state.computation == number, !state.isStopped else {
                state.isBusy = false
                return (nil, [])
            }
            state.live = live
            state.running = nil
            let recovery = state.hasFailed && update == nil ? Delivery.recovery : nil
            state.hasFailed = false
            guard let delivery = update.map(Delivery.update) ?? recovery, let contextExecutor = state.contextExecutor else {
                state.isBusy = false
                return (nil, [])
            }
            state.undelivered.append((delivery, state.fetch))
            state.delivered = .now
            if let update { state.shown.append(update.snapshot) }
            // The snapshot before the last may be in use until the last delivery is received.
            let old = Array(state.shown.dropLast(3))
            state.shown = state.shown.suffix(3)
            return (contextExecutor, old)
        }
        withExtendedLifetime(dropped) {}
        return contextExecutor
    }

    // MARK: Settling

    /// Delivers everything that was computed, and computes what has arrived, on the context's executor. A computation that runs at the
    /// same time on the queue is repeated here, because waiting for the queue may mean waiting for other results.
    func settle() {
        while let (step, number) = begin(isSettling: true), compute(step, number) != nil { deliverAll() }
        // At the end, because a computation on the queue may have ended just before there was nothing left to begin.
        deliverAll()
    }

    /// Calls `deliver` with each result that the context's executor has not received yet, in order.
    private func deliverAll() {
        // One at a time, because `deliver` calls user code that may settle.
        while let (delivery, fetch) = state.withLock({ $0.undelivered.isEmpty ? nil : $0.undelivered.removeFirst() }) {
            deliver(delivery, fetch)
        }
    }
}
