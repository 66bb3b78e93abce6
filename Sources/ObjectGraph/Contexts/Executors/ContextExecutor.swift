import Dispatch
internal import Platform
import StoreInterface

/// The executor of a context: the main actor, or an actor of its own. Other executors reach the context only through this protocol.
protocol ContextExecutor: AnyObject, Sendable {
    /// Runs a job on the context's executor, after all jobs enqueued before. Never waits.
    func enqueue(_ job: @escaping @Sendable (ManagedObjectContext) -> Void)
    /// Runs a job on the context's executor and waits for it, blocking the calling thread. Used only by ``AncestorRoute``.
    func runAndWait(_ job: @Sendable (ManagedObjectContext) -> Void)
}

extension ContextExecutor {
    /// Runs a job on the context's executor and returns its result.
    func run<T: Sendable>(_ job: @escaping @Sendable (ManagedObjectContext) throws -> T) async throws -> T {
        try await withCheckedThrowingContinuation { continuation in
            enqueue { context in continuation.resume(with: Result { try job(context) }) }
        }
    }

    /// Runs a job on the context's executor, blocks until it ends, and returns its result.
    func wait<T: Sendable>(_ job: @Sendable (ManagedObjectContext) throws -> T) throws -> T {
        // The job ends before `runAndWait` returns, so the variable is never used by two threads at once.
        nonisolated(unsafe) var result: Result<T, any Error>?
        runAndWait { context in result = Result { try job(context) } }
        guard let result else {
            throw StoreError(.closed, "the context's executor did not run a job; the context is gone")
        }
        return try result.get()
    }
}

/// A context's weak reference to its host. The host is created after the context and retains it.
final class ContextAddress: Sendable {
    /// The executor of the context; nil for the main actor.
    let executor: QueueExecutor?
    private let box = Mutex<WeakContext>(WeakContext(host: nil))

    init(executor: QueueExecutor?) { self.executor = executor }

    var host: (any ContextExecutor)? {
        get { box.withLock { $0.host } }
        set { box.withLock { $0.host = newValue } }
    }
}

/// The host of a context on the main actor.
@MainActor
final class MainContextHost: ContextExecutor {
    let context: ManagedObjectContext

    init(_ setup: ContextConfiguration) {
        let place = ContextAddress(executor: nil)
        context = ManagedObjectContext(setup, place: place)
        place.host = self
        context.follow()
    }

    nonisolated func enqueue(_ job: @escaping @Sendable (ManagedObjectContext) -> Void) {
        DispatchQueue.main.async {
            MainActor.assumeIsolated { self.context.moving { job(self.context) } }
        }
    }

    nonisolated func runAndWait(_ job: @Sendable (ManagedObjectContext) -> Void) {
        DispatchQueue.main.sync {
            MainActor.assumeIsolated { job(self.context) }
        }
    }
}
