/// Suspends the task until `start` or a job that it has enqueued calls the completion, and returns the result. Call the completion once.
///
/// Under the thread sanitizer, the result passes through a lock: the sanitizer does not detect that a continuation hands its value over,
/// and reports races on it: see the program `Tests/Races/ResumedTask.swift`.
// Inlinable, because a generic function of another module looks up types at run time.
@inlinable
package nonisolated(nonsending) func withCompletion<Value: Sendable>(
    _ start: (_ completion: @escaping @Sendable (Result<Value, any Error>) -> Void) -> Void
) async throws -> Value {
    #if STRATA_THREAD_SANITIZER
        let slot = Mutex<Result<Value, any Error>?>(nil)
        await withCheckedContinuation { continuation in
            start { result in
                slot.withLock { $0 = result }
                continuation.resume()
            }
        }
        guard let result = slot.withLock({ $0 }) else { preconditionFailure("a completion was called without its result") }
        return try result.get()
    #else
        return try await withCheckedThrowingContinuation { continuation in start { continuation.resume(with: $0) } }
    #endif
}
