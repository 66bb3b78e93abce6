import Dispatch
internal import Platform

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The threads that run the jobs of all background contexts. The process has one pool.
///
/// A thread holds a place of the pool while it runs jobs, and there are as many places as processors. Executors with waiting jobs get
/// a place in turn. A thread gives up its place while it waits for another executor (``waiting(_:)``), and it loses it if its job blocks
/// it while no place becomes free (``look()``). Docs/Internals/Executors.md shows why no wait is endless.
final class ExecutorPool: Sendable {
    static let shared = ExecutorPool(width: max(2, ProcessInfo.processInfo.activeProcessorCount))

    /// A queue that runs slices, one after another, on a thread of Dispatch.
    private final class Worker: @unchecked Sendable {
        // `@unchecked Sendable` is safe because the variables are used only under the lock of the pool.
        enum Status {
            /// It holds a place.
            case placed
            /// It waits for another executor, or for the disk.
            case waiting
            /// Its job took so long that its place went to another worker.
            case overdue
        }

        unowned let pool: ExecutorPool
        let queue = DispatchQueue(label: "strata.contexts")
        var status = Status.placed
        /// The thread that runs the worker; nil if none has begun to.
        var thread: KernelThread?
        /// The tick of the pool at which the present slice began.
        private(set) var began = 0
        /// The number of looks that found the thread waiting in the present slice, since the last one that found it runnable.
        var waits = 0
        /// The executor that the worker runs next, if it was given a place.
        var next: QueueExecutor?

        init(_ pool: ExecutorPool) { self.pool = pool }

        func beginSlice(at tick: Int) {
            began = tick
            waits = 0
        }

        /// Runs ``next`` and the executors after it on a thread.
        func start() { queue.async { self.pool.work(self) } }
    }

    private struct State {
        /// Executors with jobs that no thread runs.
        var ready = FirstInFirstOut<QueueExecutor>()
        /// The number of places that are held.
        var held = 0
        var busy: [ObjectIdentifier: Worker] = [:]
        var idle: [Worker] = []
        var isWatched = false
        /// The number of ticks in which no slice ended, since the last one in which a slice ended or a place was taken away.
        var stalled = 0
        var overdue = 0
    }

    /// The time between two looks for overdue jobs, while executors wait for a place.
    static let tick = 50
    /// The number of looks that must find a thread waiting before its job loses its place.
    private static let waitsUntilOverdue = 2
    /// The number of ticks without progress after which a job loses its place although its thread is runnable.
    static let patience = 200
    /// The same number if the system does not say which threads are runnable.
    static let patienceWithoutStates = 20
    /// The number of overdue jobs up to which the patience is shorter, so that a few long computations do not stop all other contexts.
    static let overdueBeforePatience = 2
    /// The number of overdue jobs from which on no more threads are added.
    static let overdueLimit = 128

    private let width: Int
    private let clock: any WriterClock
    private let isRunnable: @Sendable (KernelThread) -> Bool?
    private let state = PthreadMutex(State())
    /// The number of looks for overdue jobs.
    private let ticks = Atomic(0)
    private static let current = ThreadPointer()

    /// - Parameters:
    ///   - width: The number of places.
    ///   - clock: The clock of the ticks.
    ///   - isRunnable: Returns whether a thread runs or waits for a processor only; nil if that is unknown.
    init(
        width: Int, clock: any WriterClock = SystemClock(),
        isRunnable: @escaping @Sendable (KernelThread) -> Bool? = { $0.isRunnable }
    ) {
        self.width = width
        self.clock = clock
        self.isRunnable = isRunnable
    }

    // MARK: Jobs

    /// Runs the jobs of an executor when a place is free.
    func add(_ executor: QueueExecutor) {
        let worker: Worker? = state.withLock { state in
            if state.held < width { return place(executor, &state) }
            state.ready.append(executor)
            watch(&state)
            return nil
        }
        worker?.start()
    }

    /// Takes a place for a worker that is not running. Start it after the lock is released.
    private func place(_ executor: QueueExecutor, _ state: inout State) -> Worker {
        let worker = state.idle.popLast() ?? Worker(self)
        state.held += 1
        state.busy[ObjectIdentifier(worker)] = worker
        worker.status = .placed
        worker.beginSlice(at: ticks.load(ordering: .relaxed))
        worker.next = executor
        return worker
    }

    /// Takes a free place for an executor that waits for one.
    private func placeForReady(_ state: inout State) -> Worker? {
        guard state.held < width, let executor = state.ready.popFirst() else { return nil }
        return place(executor, &state)
    }

    private func work(_ worker: Worker) {
        Self.current.current = Unmanaged.passUnretained(worker).toOpaque()
        let thread = KernelThread.current
        var next: QueueExecutor? = state.withLock { _ in
            worker.thread = thread
            return worker.next.take()
        }
        while let executor = next { next = runSlice(of: executor, worker) }
        Self.current.current = nil
    }

    /// Runs a slice of an executor. Returns the executor that the worker runs next; nil if there is none or no place for the worker.
    private func runSlice(of executor: QueueExecutor, _ worker: Worker) -> QueueExecutor? {
        let tick = ticks.load(ordering: .relaxed)
        let hasMore = Self.freeingTemporaryObjects {
            executor.runSlice { ticks.load(ordering: .relaxed) != tick }
        }
        return state.withLock { state in
            if hasMore { state.ready.append(executor) }
            return nextExecutor(for: worker, &state)
        }
    }

    private static func freeingTemporaryObjects<R>(_ body: () -> R) -> R {
        #if canImport(ObjectiveC)
            autoreleasepool(invoking: body)
        #else
            body()
        #endif
    }

    /// The executor that a worker runs after a slice. If there is none, or no place for the worker, it becomes idle.
    private func nextExecutor(for worker: Worker, _ state: inout State) -> QueueExecutor? {
        if worker.status == .overdue {
            state.overdue -= 1
            state.held += 1
            worker.status = .placed
        }
        worker.beginSlice(at: ticks.load(ordering: .relaxed))
        if state.held <= width, let next = state.ready.popFirst() { return next }
        if !state.ready.isEmpty { watch(&state) }
        state.held -= 1
        state.busy[ObjectIdentifier(worker)] = nil
        worker.thread = nil
        state.idle.append(worker)
        return nil
    }

    // MARK: Waiting

    /// Runs `body`, which waits for another executor or for the disk. Its place goes to another worker meanwhile.
    ///
    /// Afterwards the thread goes on at once, even if all places are held again. Then the next worker that ends a slice ends.
    static func waiting<R>(_ body: () throws -> R) rethrows -> R {
        guard let pointer = current.current else { return try body() }
        let worker = Unmanaged<Worker>.fromOpaque(pointer).takeUnretainedValue()
        guard worker.pool.leavePlace(of: worker) else { return try body() }
        defer { worker.pool.retakePlace(of: worker) }
        return try body()
    }

    private func leavePlace(of worker: Worker) -> Bool {
        let (left, next) = state.withLock { state in
            guard worker.status == .placed else { return (false, Worker?.none) }
            worker.status = .waiting
            state.held -= 1
            return (true, placeForReady(&state))
        }
        next?.start()
        return left
    }

    private func retakePlace(of worker: Worker) {
        state.withLock { state in
            worker.status = .placed
            worker.beginSlice(at: ticks.load(ordering: .relaxed))
            state.held += 1
        }
    }

    // MARK: Overdue jobs

    /// The number of jobs that have lost their place and run.
    var overdueCount: Int { state.withLock { $0.overdue } }

    private func watch(_ state: inout State) {
        guard !state.isWatched else { return }
        state.isWatched = true
        state.stalled = 0
        lookLater()
    }

    private func lookLater() {
        clock.run(at: clock.now + .milliseconds(Self.tick), on: .global()) { self.look() }
    }

    /// A slice that runs since before the last look.
    private struct LateSlice {
        let worker: Worker
        let thread: KernelThread
        let began: Int
    }

    /// Takes a place from a job, if no slice has ended between two looks while executors wait for a place.
    ///
    /// This helps most if the job's thread waits, because a thread that computes needs a processor, and not company. The states of threads
    /// are read without the lock, which workers and callers of ``add(_:)`` need.
    private func look() {
        let tick = ticks.add(1, ordering: .relaxed).newValue
        guard let late = state.withLock({ lateSlices(at: tick, &$0) }) else { return }
        let states = late.map { isRunnable($0.thread) }
        let next: Worker? = state.withLock { state in
            // A slice may have ended meanwhile.
            guard lateSlices(at: tick, &state) != nil else { return nil }
            defer { lookLater() }
            state.stalled += 1
            var isUnknown = false
            for (slice, isRunnable) in zip(late, states) where slice.worker.began == slice.began {
                switch isRunnable {
                case true?: slice.worker.waits = 0
                case false?: slice.worker.waits += 1
                case nil: isUnknown = true
                }
            }
            guard state.overdue < Self.overdueLimit, let worker = overdueWorker(state, isUnknown: isUnknown) else { return nil }
            state.stalled = 0
            worker.status = .overdue
            state.overdue += 1
            state.held -= 1
            return placeForReady(&state)
        }
        next?.start()
    }

    /// Returns the slices that run, if all of them began before the last look and executors wait for a place. Otherwise returns nil, and
    /// arranges the next look if executors wait.
    private func lateSlices(at tick: Int, _ state: inout State) -> [LateSlice]? {
        guard !state.ready.isEmpty, state.held >= width else {
            state.isWatched = false
            return nil
        }
        let placed = state.busy.values.filter { $0.status == .placed }
        guard placed.allSatisfy({ $0.began < tick - 1 }) else {
            state.stalled = 0
            lookLater()
            return nil
        }
        // A worker without a thread waits for one of the system, as it would with company.
        return placed.compactMap { worker in
            worker.thread.map { LateSlice(worker: worker, thread: $0, began: worker.began) }
        }
    }

    /// Returns the worker that loses its place: of those whose threads wait, the one whose slice is oldest. If none waits and the patience
    /// is over, the oldest of all, because closures may compute until the closure of another context has run.
    private func overdueWorker(_ state: State, isUnknown: Bool) -> Worker? {
        let patience =
            state.overdue < Self.overdueBeforePatience
            ? 2 << state.overdue : isUnknown ? Self.patienceWithoutStates : Self.patience
        let placed = state.busy.values.filter { $0.status == .placed }
        let waiting = placed.filter { $0.waits >= Self.waitsUntilOverdue }
        let candidates = waiting.isEmpty && state.stalled >= patience ? placed : waiting
        return candidates.min { $0.began < $1.began }
    }
}
