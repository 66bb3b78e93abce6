internal import Platform

/// A flag that tells long work on a background queue that the task waiting for it was cancelled.
public final class Cancellation: Sendable {
    private let isCancelled = Atomic(false)

    /// Creates a flag that is not set.
    public init() {}

    /// Sets the flag, from any thread. It cannot be reset. A second call does nothing.
    public func cancel() { isCancelled.store(true, ordering: .relaxed) }

    /// Throws `CancellationError` after ``cancel()``.
    public func check() throws {
        if isCancelled.load(ordering: .relaxed) { throw CancellationError() }
    }
}
