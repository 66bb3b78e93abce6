import Dispatch
import Figures
import Foundation
import Synchronization

/// Sets a label on main at regular times, from a thread of its own, and records the delay on main.
final class Ticker: Sendable {
    private struct State {
        var isRunning = false
        var latest: UInt64 = 0
        var label = ""
    }

    private let period: UInt64
    private let state = Mutex(State())

    /// - Parameter period: The time between two ticks in nanoseconds.
    init(period: UInt64) { self.period = period }

    func start() {
        state.withLock { $0.isRunning = true }
        let thread = Thread { self.tick() }
        thread.name = "ticker"
        thread.start()
    }

    private func tick() {
        var due = Clock.now() + period
        var count = 0
        while state.withLock({ $0.isRunning }) {
            let now = Clock.now()
            if now < due { usleep(UInt32((due - now) / 1000)) }
            count += 1
            let enqueued = Clock.now()
            let number = count
            DispatchQueue.main.async {
                let late = Clock.now() - enqueued
                self.state.withLock { state in
                    state.label = "\(number)"
                    state.latest = max(state.latest, late)
                }
            }
            due += period
        }
    }

    /// Stops the ticks. Returns the longest time that a tick waited for main, in nanoseconds.
    func stop() -> Double {
        state.withLock { state in
            state.isRunning = false
            return Double(state.latest)
        }
    }
}
