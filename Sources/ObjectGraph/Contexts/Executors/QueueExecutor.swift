import Dispatch
internal import Platform

/// Runs an actor's jobs on a serial dispatch queue.
///
/// Blocking in a `perform` never occupies a cooperative thread.
final class QueueExecutor: SerialExecutor {
    let queue: DispatchQueue
    private let name: String
    /// The thread that is running a job of the queue, or 0.
    private let runner = Atomic<UInt>(0)

    /// Idle queues of released executors. Creating a queue is half of the cost of a short-lived child.
    private static let idle = Mutex<[DispatchQueue]>([])
    private static let maximumIdle = 64

    init(name: String) {
        self.name = name
        queue = Self.idle.withLock { $0.popLast() } ?? DispatchQueue(label: "strata.context")
    }

    /// Returns the queue for reuse. It has no jobs left, because each job retains the executor.
    deinit {
        Self.idle.withLock { idle in
            if idle.count < Self.maximumIdle { idle.append(queue) }
        }
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { self.running { job.runSynchronously(on: self.asUnownedSerialExecutor()) } }
    }

    func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }

    /// Marks the calling thread as the one on which the context may be used. The thread must be running a job of ``queue``.
    func running<R>(_ body: () throws -> R) rethrows -> R {
        runner.store(CurrentThread.identifier, ordering: .relaxed)
        defer { runner.store(0, ordering: .relaxed) }
        return try body()
    }

    var isCurrent: Bool { runner.load(ordering: .relaxed) == CurrentThread.identifier }

    /// Implements the check behind `assumeIsolated`.
    func checkIsolated() { precondition(isCurrent, "not on the executor of \(name)") }
}
