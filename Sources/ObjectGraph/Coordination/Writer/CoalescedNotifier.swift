import Dispatch
internal import Platform

/// Notifies one context of new saves, at most once per frame, so that a burst of saves costs its executor one merge.
///
/// The first save after a pause is delivered at once. Saves that follow within ``interval`` are delivered together at its end. A
/// save that has to wait is announced at once by a short job on the context's executor. The context's next read then merges it
/// first. The job runs before the task that awaits the save continues, so that this task reads the save (S068). An importer's saves
/// thus do not become merges on the main thread.
final class CoalescedNotifier: Sendable {
    /// One frame at 120 Hz.
    static let interval: DispatchTimeInterval = .microseconds(8_333)

    private let state: Mutex<State>
    private let queue: DispatchQueue
    private let clock: any WriterClock
    /// Whether the parent of the context moves it, so that saves are only announced here.
    private let onlyAnnounces: Bool
    /// A closure called before each merge, on the queue that sends it.
    private let prepareMerge: @Sendable () -> Void

    private struct State {
        weak var contextExecutor: (any ContextExecutor)?
        /// Whether a merge is on its way to the context, or waits for the end of the interval.
        var isScheduled = false
        /// Whether the scheduled merge waits.
        var isWaiting = false
        /// Whether an announcement has been sent to the context.
        var isAnnounced = false
        /// The earliest time of the next merge, unless a read requires one.
        var notBefore = DispatchTime(uptimeNanoseconds: 0)
    }

    private enum Step {
        case deliver
        case wait(DispatchTime)
        case announce
        case nothing
    }

    init(
        _ contextExecutor: any ContextExecutor, queue: DispatchQueue, clock: any WriterClock, onlyAnnounces: Bool,
        prepareMerge: @escaping @Sendable () -> Void = {}
    ) {
        self.onlyAnnounces = onlyAnnounces
        self.prepareMerge = prepareMerge
        state = Mutex(State(contextExecutor: contextExecutor))
        self.queue = queue
        self.clock = clock
    }

    var isAlive: Bool { state.withLock { $0.contextExecutor != nil } }

    /// Schedules or announces a merge. Called after each save of another context, on the writer's queue, before the save returns. Never
    /// waits.
    ///
    /// - Parameter isFlush: Whether deferred saves were written and nothing else has changed. The context is then notified even if its
    ///   parent moves it, because it may release its snapshot.
    func storeDidChange(isFlush: Bool = false) {
        let now = clock.now
        let step = state.withLock { state -> Step in
            if state.isScheduled || onlyAnnounces && !isFlush {
                guard !state.isAnnounced else { return .nothing }
                state.isAnnounced = true
                return .announce
            }
            state.isScheduled = true
            if state.notBefore <= now { return .deliver }
            state.isWaiting = true
            state.isAnnounced = true
            return .wait(state.notBefore)
        }
        switch step {
        case .deliver: deliver()
        case .announce: announce()
        case .nothing: break
        case .wait(let time):
            announce()
            clock.run(at: time, on: queue) { self.deliver() }
        }
    }

    private func announce() {
        let contextExecutor = state.withLock { $0.contextExecutor }
        contextExecutor?.enqueue { $0.phase.behind = self }
    }

    /// Resets the announcement, because the context is about to merge. Later saves are announced again.
    func willCatchUp() { state.withLock { $0.isAnnounced = false } }

    private func deliver() {
        let next = clock.now + Self.interval
        let contextExecutor = state.withLock { state in
            state.notBefore = next
            state.isWaiting = false
            return state.contextExecutor
        }
        prepareMerge()
        contextExecutor?.enqueue { context in
            // Clear the flags before the context merges, so that a later save schedules the next job.
            self.state.withLock { state in
                state.isScheduled = false
                state.isAnnounced = false
            }
            context.phase.behind = nil
            context.storeDidChange()
        }
    }
}
