import Dispatch
internal import Platform

/// Tells one context that the store has moved on, at most once a frame: a burst of saves costs its executor one move.
///
/// The first save after a pause is told at once; those that follow within ``interval`` are told together at its end. A save that has to
/// wait is announced meanwhile: a job of some nanoseconds, after which the next read of the context merges first. The job comes before
/// the task that awaits the save goes on, so that this task reads what was saved (S068), and an importer's saves do not become the
/// main thread's merges.
final class CoalescedNotifier: Sendable {
    /// One frame at 120 Hz.
    static let interval: DispatchTimeInterval = .microseconds(8_333)

    private let state: Mutex<State>
    private let queue: DispatchQueue
    private let clock: any WriterClock

    private struct State {
        weak var host: (any ContextExecutor)?
        /// A merge is on its way to the context, or waits for the end of the interval.
        var isScheduled = false
        /// The scheduled merge waits.
        var isWaiting = false
        /// The context knows that it is behind, or is about to.
        var isAnnounced = false
        /// Nothing is merged before, unless somebody reads.
        var notBefore = DispatchTime(uptimeNanoseconds: 0)
    }

    private enum Step {
        case deliver
        case wait(DispatchTime)
        case announce
        case nothing
    }

    init(_ host: any ContextExecutor, queue: DispatchQueue, clock: any WriterClock) {
        state = Mutex(State(host: host))
        self.queue = queue
        self.clock = clock
    }

    var isAlive: Bool { state.withLock { $0.host != nil } }

    /// Called after each save elsewhere, on the writer's queue, before the save returns. Never waits.
    func storeDidChange() {
        let now = clock.now
        let step = state.withLock { state -> Step in
            if state.isScheduled {
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
        let host = state.withLock { $0.host }
        host?.enqueue { $0.behind = self }
    }

    /// The context merges now, because somebody reads: later saves are announced anew.
    func willCatchUp() { state.withLock { $0.isAnnounced = false } }

    private func deliver() {
        let next = clock.now + Self.interval
        let host = state.withLock { state in
            state.notBefore = next
            state.isWaiting = false
            return state.host
        }
        host?.enqueue { context in
            // Cleared before the context looks, so that a save from now on schedules the next job.
            self.state.withLock { state in
                state.isScheduled = false
                state.isAnnounced = false
            }
            context.behind = nil
            context.storeDidChange()
        }
    }
}
