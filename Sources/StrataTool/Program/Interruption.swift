import Dispatch
import Foundation

/// Work that ends when the process is interrupted or asked to end.
///
/// The sources of signals are never removed: a signal that arrives while a source is replaced would be lost. Without work to end, a signal
/// ends the process, as it does by default.
enum Interruption {
    /// The sources by signal, and the functions that cancel the running work. A function returns false if the work was cancelled before.
    private struct State {
        var sources: [Int32: any DispatchSourceSignal] = [:]
        var work: [(number: Int, signals: [Int32], cancel: @Sendable () -> Bool)] = []
        var next = 0
    }

    // Right because it is used under the lock only. The thread sanitizer does not see hand-overs of the standard library's mutex.
    private nonisolated(unsafe) static var state = State()
    private static let lock = NSLock()

    /// Runs `body`, and cancels it at the first of some signals. A second signal ends the process, because work that does not check for
    /// cancellation goes on.
    static func run<R: Sendable>(until signals: [Int32], _ body: @escaping @Sendable () async -> R) async -> R {
        let task = Task { await body() }
        let cancel: @Sendable () -> Bool = {
            if task.isCancelled { return false }
            task.cancel()
            return true
        }
        let number = lock.withLock {
            for number in signals where state.sources[number] == nil {
                signal(number, SIG_IGN)
                let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
                source.setEventHandler { receive(number) }
                source.resume()
                state.sources[number] = source
            }
            state.next += 1
            state.work.append((state.next, signals, cancel))
            return state.next
        }
        let result = await withTaskCancellationHandler {
            await task.value
        } onCancel: {
            task.cancel()
        }
        lock.withLock { state.work.removeAll { $0.number == number } }
        return result
    }

    private static func receive(_ number: Int32) {
        let newest = lock.withLock { state.work.last { $0.signals.contains(number) }?.cancel }
        if newest?() == true { return }
        signal(number, SIG_DFL)
        // Threads that a source reads signals on block them.
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, number)
        pthread_sigmask(SIG_UNBLOCK, &signals, nil)
        raise(number)
    }
}
