import Dispatch
import Platform

@testable import ObjectGraph

/// A clock that stands still until a test advances it. Jobs that are due then run on their queues.
///
/// The code under test retains the clock, and jobs that never become due retain that code. Therefore the jobs are dropped when the test
/// releases the clock.
final class SteppedClock: Sendable {
    /// The clock for the code under test.
    let source = Source()

    deinit { source.end() }

    final class Source: WriterClock {
        fileprivate struct State {
            var now = DispatchTime(uptimeNanoseconds: 1_000_000_000)
            var waiting: [(time: DispatchTime, queue: DispatchQueue, body: @Sendable () -> Void)] = []
            var hasEnded = false
        }

        fileprivate let state = Mutex(State())

        var now: DispatchTime { state.withLock { $0.now } }

        func run(at time: DispatchTime, on queue: DispatchQueue, _ body: @escaping @Sendable () -> Void) {
            state.withLock { if !$0.hasEnded { $0.waiting.append((time, queue, body)) } }
        }

        fileprivate func end() {
            // The jobs are released after the lock, because they may release the code under test.
            _ = state.withLock { state in
                defer { (state.waiting, state.hasEnded) = ([], true) }
                return state.waiting
            }
        }
    }

    /// Advances the time and runs the jobs that are due, earliest first. Returns when they have run.
    func advance(by interval: DispatchTimeInterval) {
        let due = source.state.withLock { state in
            state.now = state.now + interval
            let now = state.now
            let due = state.waiting.filter { $0.time <= now }.sorted { $0.time < $1.time }
            state.waiting.removeAll { $0.time <= now }
            return due
        }
        for job in due { job.queue.sync(execute: job.body) }
    }

    /// The number of jobs that are not due yet.
    var waitingCount: Int { source.state.withLock { $0.waiting.count } }
}
