import Dispatch
import StoreInterface
import StoreModel

/// The executor of a child that shares the executor of its parent, or that lives on the main actor. The context retains it.
final class ChildExecutor: ContextExecutor, @unchecked Sendable {
    // `@unchecked Sendable` is safe because `context` is set once, before the executor is shared, and a weak reference may be read by every
    // thread. The context is used only on its executor.
    private weak var context: ManagedObjectContext?
    /// nil for the main actor.
    private let executor: QueueExecutor?

    /// A reference to the context that the context's executor releases, because the last release must happen there.
    private final class Lease: @unchecked Sendable {
        // `@unchecked Sendable` is safe because the context is used only by the job.
        var context: ManagedObjectContext?

        init(_ context: ManagedObjectContext?) { self.context = context }
    }

    private init(_ executor: QueueExecutor?) { self.executor = executor }

    /// Creates a context with an executor. Call this on the executor of the context.
    static func makeContext(_ new: NewContext, on executor: QueueExecutor?) -> ManagedObjectContext {
        let configuration = new.configuration
        let address = ContextAddress(executor: executor, below: configuration.parent?.place)
        let context = ManagedObjectContext(new, place: address)
        let contextExecutor = ChildExecutor(executor)
        contextExecutor.context = context
        address.retain(contextExecutor)
        context.follow()
        if configuration.coordinator.closesNewContexts { contextExecutor.enqueue { $0.close {} } }
        return context
    }

    @discardableResult
    func enqueue(_ job: @escaping @Sendable (ManagedObjectContext) -> Void) -> Bool {
        let lease = Lease(context)
        guard lease.context != nil else { return false }
        if let executor {
            executor.async { Self.run(job, lease) }
        } else {
            DispatchQueue.main.async { Self.run(job, lease) }
        }
        return true
    }

    private static func run(_ job: (ManagedObjectContext) -> Void, _ lease: Lease) {
        if let context = lease.context { context.moving { job(context) } }
        lease.context = nil
    }

    func runHere(_ job: (ManagedObjectContext) -> Void) {
        if let context { job(context) }
    }

    func runAndWait(_ job: @Sendable (ManagedObjectContext) -> Void) {
        let lease = Lease(context)
        if executor?.isCurrent ?? MainQueue.isCurrent { return Self.run(job, lease) }
        if let executor {
            executor.sync { Self.run(job, lease) }
        } else {
            ExecutorPool.waiting { DispatchQueue.main.sync { Self.run(job, lease) } }
        }
    }
}
