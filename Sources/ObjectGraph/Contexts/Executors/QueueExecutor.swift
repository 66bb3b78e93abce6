import Dispatch
internal import Platform

/// Runs the jobs of a context one at a time, in the order in which they were added, on the threads of an ``ExecutorPool``.
///
/// No cooperative thread runs them, so a closure of `perform` that blocks does not stop tasks that use other executors.
package final class QueueExecutor: SerialExecutor {
    private enum Job: Sendable {
        case actor(UnownedJob)
        case closure(@Sendable () -> Void)
    }

    private struct State {
        var jobs = FirstInFirstOut<Job>()
        /// Whether a thread runs jobs, or the pool has the executor in its list. Only then may there be jobs.
        var isActive = false
    }

    /// The number of jobs after which other contexts have their turn.
    static let sliceLength = 64

    private let name: String
    private let pool: ExecutorPool
    private let state = Mutex(State())
    /// The thread that is running a job, or 0.
    private let runner = Atomic<UInt>(0)

    /// Creates an executor on the pool of the process.
    ///
    /// - Parameter name: The name of the owner, for messages.
    package convenience init(name: String) { self.init(name: name, pool: .shared) }

    init(name: String, pool: ExecutorPool) {
        self.name = name
        self.pool = pool
    }

    package func enqueue(_ job: consuming ExecutorJob) { add(.actor(UnownedJob(job))) }

    package func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }

    /// Runs `job` after all jobs that were added before.
    func async(_ job: @escaping @Sendable () -> Void) { add(.closure(job)) }

    /// Runs `job` after all jobs that were added before, and waits for it.
    ///
    /// An idle executor runs it on the calling thread. Otherwise the calling thread is blocked, and a worker of a pool gives its place to
    /// another worker meanwhile. Call this only in a job of a descendant context, or off every context: then nothing waits in a circle.
    func sync(_ job: () -> Void) {
        let isIdle = state.withLock { state in
            if state.isActive { return false }
            state.isActive = true
            return true
        }
        if isIdle {
            begin()
            job()
            return end()
        }
        let done = DispatchSemaphore(value: 0)
        withoutActuallyEscaping(job) { job in
            let waited = WaitedJob(job)
            add(
                .closure {
                    waited.run()
                    done.signal()
                })
            ExecutorPool.waiting { done.wait() }
        }
    }

    /// A job of a thread that waits for it.
    private final class WaitedJob: @unchecked Sendable {
        // `@unchecked Sendable` is safe because one thread creates it and waits, and another runs it once.
        private var job: (() -> Void)?

        init(_ job: @escaping () -> Void) { self.job = job }

        /// Runs the job and releases it, before the waiting thread goes on.
        func run() {
            job?()
            job = nil
        }
    }

    private func add(_ job: Job) {
        let wasIdle = state.withLock { state in
            state.jobs.append(job)
            if state.isActive { return false }
            state.isActive = true
            return true
        }
        if wasIdle { pool.add(self) }
    }

    // MARK: Running

    /// Runs jobs until none is left, or other contexts have to have their turn. Returns whether jobs are left: then call this again.
    ///
    /// Call this on one thread at a time, only after this executor was added to the pool.
    func runSlice(isOver: () -> Bool) -> Bool {
        begin()
        for _ in 0..<Self.sliceLength {
            guard let job = next() else { return false }
            switch job {
            case .actor(let job): job.runSynchronously(on: asUnownedSerialExecutor())
            case .closure(let closure): closure()
            }
            if isOver() { break }
        }
        return !becomesIdle()
    }

    private func next() -> Job? {
        state.withLock { state in
            if let job = state.jobs.popFirst() { return job }
            markIdle(&state)
            return nil
        }
    }

    /// Ends the jobs of the calling thread. Returns true if no job is left.
    private func becomesIdle() -> Bool {
        state.withLock { state in
            guard state.jobs.isEmpty else {
                runner.store(0, ordering: .relaxed)
                return false
            }
            markIdle(&state)
            return true
        }
    }

    private func markIdle(_ state: inout State) {
        // The next runner sets itself only after it has seen that the executor is idle.
        runner.store(0, ordering: .relaxed)
        state.isActive = false
    }

    private func begin() { runner.store(CurrentThread.identifier, ordering: .relaxed) }

    private func end() { if !becomesIdle() { pool.add(self) } }

    /// Whether the calling thread runs a job of this executor, and so may use the context.
    var isCurrent: Bool { runner.load(ordering: .relaxed) == CurrentThread.identifier }

    /// Implements the check behind `assumeIsolated`.
    package func checkIsolated() { precondition(isCurrent, "not on the executor of \(name)") }
}
