import Dispatch
import Locking

/// Tells one context that the store has moved on, at most once a frame: a burst of saves costs its executor one move.
///
/// The first save after a pause is told at once; those that follow within ``interval`` are told together at its end. So no save
/// is missed, none is told later than a frame, and an importer's saves do not become the main thread's wake-ups.
final class MergeSignal: Sendable {
    /// One frame at 120 Hz.
    static let interval: DispatchTimeInterval = .microseconds(8_333)

    private let state: Mutex<State>
    private let queue: DispatchQueue

    private struct State {
        weak var host: (any ContextHost)?
        /// A job is under way to the context, or waits for the end of the interval.
        var isScheduled = false
        /// Nothing is told before.
        var notBefore = DispatchTime(uptimeNanoseconds: 0)
    }

    init(_ host: any ContextHost, queue: DispatchQueue) {
        state = Mutex(State(host: host))
        self.queue = queue
    }

    var isAlive: Bool { state.withLock { $0.host != nil } }

    /// Called after each save elsewhere, on the writer's queue. Never waits.
    func storeDidChange() {
        let now = DispatchTime.now()
        let due = state.withLock { state -> DispatchTime? in
            guard !state.isScheduled else { return nil }
            state.isScheduled = true
            return max(now, state.notBefore)
        }
        guard let due else { return }
        if due <= now { return deliver() }
        queue.asyncAfter(deadline: due) { self.deliver() }
    }

    private func deliver() {
        let host = state.withLock { state in
            state.notBefore = DispatchTime.now() + Self.interval
            return state.host
        }
        host?.enqueue { context in
            // Cleared before the context looks, so that a save from now on schedules the next job.
            self.state.withLock { $0.isScheduled = false }
            context.storeDidChange()
        }
    }
}
