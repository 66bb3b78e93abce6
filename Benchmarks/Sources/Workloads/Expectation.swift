import Synchronization

/// Waits until a number that another thread reports has an expected value.
package final class Expectation: Sendable {
    private struct State {
        var number = 0
        var waiting: (number: Int, continuation: CheckedContinuation<Void, any Error>)?
        var failure: (any Error)?
    }

    private let state = Mutex(State())
    private let what: String

    /// - Parameter what: What the number counts, for the error.
    package init(_ what: String) { self.what = what }

    package func reached(_ number: Int) {
        let ready = state.withLock { state -> CheckedContinuation<Void, any Error>? in
            state.number = number
            guard let waiting = state.waiting, waiting.number == number else { return nil }
            state.waiting = nil
            return waiting.continuation
        }
        ready?.resume()
    }

    package func fail(_ error: any Error) {
        let waiting = state.withLock { state in
            state.failure = error
            defer { state.waiting = nil }
            return state.waiting?.continuation
        }
        waiting?.resume(throwing: error)
    }

    /// Throws ``VerificationError`` after a minute.
    package func wait(for number: Int) async throws {
        let limit = Task {
            try await Task.sleep(for: .seconds(60))
            let last = state.withLock(\.number)
            fail(VerificationError("\(what): \(last) after a minute, expected \(number)"))
        }
        defer { limit.cancel() }
        try await withCheckedThrowingContinuation { continuation in
            let outcome = state.withLock { state -> Result<Void, any Error>? in
                if let failure = state.failure { return .failure(failure) }
                if state.number == number { return .success(()) }
                state.waiting = (number, continuation)
                return nil
            }
            if let outcome { continuation.resume(with: outcome) }
        }
    }
}
