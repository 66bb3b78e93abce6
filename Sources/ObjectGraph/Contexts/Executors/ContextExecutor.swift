import Dispatch
internal import Platform
import StoreInterface
import StoreModel

/// The executor of a context: the main actor, or an actor of its own. Other executors reach the context only through this protocol.
protocol ContextExecutor: AnyObject, Sendable {
    /// Runs a job on the context's executor, after all jobs enqueued before. Never waits.
    ///
    /// Returns false if the context was released. Then the job does not run.
    @discardableResult
    func enqueue(_ job: @escaping @Sendable (ManagedObjectContext) -> Void) -> Bool
    /// Runs a job at once. Call this on the context's executor.
    func runHere(_ job: (ManagedObjectContext) -> Void)
    /// Runs a job on the context's executor and waits for it, blocking the calling thread. Only for a context whose requests take a
    /// ``RequestRoute``, and for the first use and the refreshes of a main context that has a parent.
    func runAndWait(_ job: @Sendable (ManagedObjectContext) -> Void)
}

extension ContextExecutor {
    /// Runs a job on the context's executor and returns its result.
    ///
    /// - Parameter goneError: The error to throw if the context was released.
    func run<T: Sendable>(
        orThrow goneError: any Error = StoreError(.closed, "the context's executor did not run a job; the context is gone"),
        _ job: @escaping @Sendable (ManagedObjectContext) throws -> T
    ) async throws -> T {
        try await withCompletion { completion in
            let isEnqueued = enqueue { context in completion(Result { try job(context) }) }
            if !isEnqueued { completion(.failure(goneError)) }
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

/// A context's weak reference to its ``ContextExecutor``, which is created after the context and retains it.
final class ContextAddress: Sendable {
    /// The queue on which the context runs; nil for the main actor and for a confined context.
    let executor: QueueExecutor?
    /// The executor of a confined context, which the context retains; otherwise nil.
    let confinement: ConfinedExecutor?
    private let box = Mutex<WeakContext>(WeakContext(contextExecutor: nil))
    private let retained = Mutex<ChildExecutor?>(nil)
    /// The newest save in the file that the root of the context had read when the store was suspended; nil if it is forgotten.
    let readAtSuspension = Mutex<Generation?>(nil)

    /// Whether the context is on the main actor and showed objects or results after its last move, or has shown results since. Then it
    /// reads the next state at once. The thread that publishes that state acquires its snapshot, so that the main thread does not.
    let readsNextState = Atomic(false)

    /// The gate of children's saves past the context. Only the main context of a container opens it.
    let direct = DirectSaveGate()

    /// The number of ancestors of the context.
    let depth: Int

    init(executor: QueueExecutor?, below parent: ContextAddress?) {
        self.executor = executor
        confinement = nil
        depth = parent.map { $0.depth + 1 } ?? 0
    }

    init(confinement: ConfinedExecutor) {
        depth = 0
        executor = nil
        self.confinement = confinement
        contextExecutor = confinement
    }

    /// Sets the executor of a context that its executor does not retain, and retains the executor.
    func retain(_ contextExecutor: ChildExecutor) {
        retained.withLock { $0 = contextExecutor }
        self.contextExecutor = contextExecutor
    }

    var contextExecutor: (any ContextExecutor)? {
        get { box.withLock { $0.contextExecutor } }
        set { box.withLock { $0.contextExecutor = newValue } }
    }
}

/// The executor of a context on the main actor. The context is created at its first use.
@MainActor
final class MainContextExecutor: ContextExecutor {
    private(set) lazy var context = makeContext()
    /// Returns the settings of the context and the state that it reads first; nil once the context exists.
    private var new: (@Sendable () -> NewContext)?

    nonisolated init(_ new: @escaping @Sendable () -> NewContext) { self.new = new }

    private func makeContext() -> ManagedObjectContext {
        guard let new = new?() else {
            preconditionFailure("the main context is used while it is being created")
        }
        self.new = nil
        let place = ContextAddress(executor: nil, below: new.configuration.parent?.place)
        let context = ManagedObjectContext(new, place: place)
        place.contextExecutor = self
        // Any other context on the main actor may be released while a child's save passes it, and the result of the save would be lost.
        context.phase.saveGate.direct = place.direct
        context.follow()
        context.suspendIfStoreIs()
        if new.configuration.coordinator.closesNewContexts { context.close {} }
        return context
    }

    @discardableResult
    nonisolated func enqueue(_ job: @escaping @Sendable (ManagedObjectContext) -> Void) -> Bool {
        DispatchQueue.main.async {
            MainActor.assumeIsolated { self.context.moving { job(self.context) } }
        }
        return true
    }

    nonisolated func runAndWait(_ job: @Sendable (ManagedObjectContext) -> Void) {
        // A child on the main actor calls this on the main queue.
        if MainQueue.isCurrent { return runHere(job) }
        ExecutorPool.waiting {
            DispatchQueue.main.sync {
                MainActor.assumeIsolated { job(self.context) }
            }
        }
    }

    nonisolated func runHere(_ job: (ManagedObjectContext) -> Void) {
        // Safe because the job is called on this thread before `assumeIsolated` returns.
        nonisolated(unsafe) let job = job
        MainActor.assumeIsolated { job(self.context) }
    }
}

/// The main queue, whose jobs may run on any thread once the main thread has ended.
enum MainQueue {
    private static let key: DispatchSpecificKey<Bool> = {
        let key = DispatchSpecificKey<Bool>()
        DispatchQueue.main.setSpecific(key: key, value: true)
        return key
    }()

    /// Whether the calling code is a job of the main queue.
    static var isCurrent: Bool { DispatchQueue.getSpecific(key: key) == true }
}
