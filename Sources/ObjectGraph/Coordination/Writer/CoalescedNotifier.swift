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
        /// Whether an announcement is among the context's jobs.
        var isAnnounced = false
        /// The number of times that an announcement was reset.
        var resets = 0
        /// The earliest time of the next merge, unless a read requires one.
        var notBefore = DispatchTime(uptimeNanoseconds: 0)

        mutating func resetAnnouncement() {
            isAnnounced = false
            resets += 1
        }
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

    var contextExecutor: (any ContextExecutor)? { state.withLock { $0.contextExecutor } }

    /// Schedules or announces a merge. Called after each save of another context, before the save returns, on the writer's queue or on the
    /// thread that saves. Never waits.
    ///
    /// - Parameter isFlush: Whether deferred saves were written and nothing else has changed. The context is then notified even if its
    ///   parent moves it, because it may release its snapshot.
    func storeDidChange(isFlush: Bool = false) {
        let now = clock.now
        let (step, resets) = state.withLock { state -> (Step, Int) in
            if state.isScheduled || onlyAnnounces && !isFlush {
                return (state.isAnnounced ? .nothing : .announce, state.resets)
            }
            state.isScheduled = true
            if state.notBefore <= now { return (.deliver, state.resets) }
            state.isWaiting = true
            return (.wait(state.notBefore), state.resets)
        }
        switch step {
        case .deliver: deliver()
        case .announce: announce(resets)
        case .nothing: break
        case .wait(let time):
            announce(resets)
            clock.run(at: time, on: queue) { self.deliver() }
        }
    }

    /// - Parameter resets: The number of resets when it was decided to announce.
    private func announce(_ resets: Int) {
        let contextExecutor = state.withLock { $0.contextExecutor }
        contextExecutor?.enqueue { $0.phase.behind = self }
        // Only now can another thread rely on the announcement, unless the context has merged meanwhile.
        state.withLock { if $0.resets == resets { $0.isAnnounced = true } }
    }

    /// Resets the announcement, because the context is about to merge. Later saves are announced again.
    func willCatchUp() { state.withLock { $0.resetAnnouncement() } }

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
                state.resetAnnouncement()
            }
            context.phase.behind = nil
            context.storeDidChange()
        }
    }
}
