import Dispatch
import StoreInterface

/// A context with its own executor, for imports, long reads and child contexts.
///
/// Pass work to the context as closures that return `Sendable` values; objects cannot leave the closure (S170).
/// Releasing the last reference drops the context and its unsaved changes.
public actor BackgroundContext: ContextExecutor {
    let context: ManagedObjectContext
    private nonisolated let executor: QueueExecutor
    /// The name of the context in messages, notices and the history.
    public nonisolated let name: String

    public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    init(_ setup: ContextConfiguration) {
        name = setup.name
        executor = QueueExecutor(name: setup.name)
        let place = ContextAddress(executor: executor)
        context = ManagedObjectContext(setup, place: place)
        place.host = self
        if setup.automaticallyMergesChanges { enqueue { $0.follow() } }
        if setup.coordinator.isClosed { enqueue { $0.close {} } }
    }

    /// Runs `body` on the context's executor with exclusive access to the context, then processes pending changes.
    ///
    /// The result must be `Sendable`, so objects cannot leave the closure. Return their ids instead. Rethrows the error of `body`.
    public func perform<T: Sendable, E: Error>(_ body: @Sendable (ManagedObjectContext) throws(E) -> T) throws(E) -> T {
        defer { context.processPendingChanges() }
        return try body(context)
    }

    /// Saves one level: a root context to the store, a child to its parent. See ``ManagedObjectContext/save(_:)``.
    public func save(_ durability: Durability = .durable) async throws {
        try await context.save(durability)
    }

    /// Saves the context, its parents and the root as one step (S064).
    public func save(through target: SaveTarget, _ durability: Durability = .durable) async throws {
        try await context.save(through: target, durability)
    }

    /// Moves a child to its parent's present state (S072).
    public func refreshFromParent() async throws { try await context.refreshFromParent() }

    public nonisolated func enqueue(_ job: @escaping @Sendable (ManagedObjectContext) -> Void) {
        executor.queue.async { self.runIsolated(job) }
    }

    nonisolated func runAndWait(_ job: @Sendable (ManagedObjectContext) -> Void) {
        if executor.isCurrent { return assumeIsolated { job($0.context) } }
        executor.queue.sync { self.runIsolated(job) }
    }

    private nonisolated func runIsolated(_ job: @Sendable (ManagedObjectContext) -> Void) {
        executor.running { assumeIsolated { host in host.context.moving { job(host.context) } } }
    }
}

/// The destination of a save through parent contexts.
public enum SaveTarget: Sendable {
    /// The store, through every parent.
    case store
}
