import Dispatch
internal import Platform

/// Runs an actor's jobs on a serial dispatch queue, so that other threads can also wait for it, which the routing
/// `ancestors` must do, and so that blocking in a `perform` never takes a cooperative thread.
final class QueueExecutor: SerialExecutor {
    let queue: DispatchQueue
    private let name: String
    /// The thread that runs a job of the queue now; 0 when none does.
    private let runner = Atomic<UInt>(0)

    /// Queues of executors that are gone. Making one is half of what a short-lived child costs.
    private static let idle = Mutex<[DispatchQueue]>([])
    private static let maximumIdle = 64

    init(name: String) {
        self.name = name
        queue = Self.idle.withLock { $0.popLast() } ?? DispatchQueue(label: "strata.context")
    }

    /// Nothing of this executor is left on the queue: jobs keep it alive.
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

    /// Marks the calling thread, which must be running a job of ``queue``, as the one on which the context may be used.
    func running<R>(_ body: () throws -> R) rethrows -> R {
        runner.store(Self.currentThread, ordering: .relaxed)
        defer { runner.store(0, ordering: .relaxed) }
        return try body()
    }

    var isCurrent: Bool { runner.load(ordering: .relaxed) == Self.currentThread }

    /// The compiler's own checks (`assumeIsolated`) end here.
    func checkIsolated() { precondition(isCurrent, "not on the executor of \(name)") }

    /// A number that no other living thread has.
    private static var currentThread: UInt {
        #if canImport(Darwin)
            UInt(bitPattern: pthread_self())
        #else
            UInt(pthread_self())
        #endif
    }
}
