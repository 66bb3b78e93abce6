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
/// a place in turn. A thread gives up its place while it waits for another executor (``waiting(_:)``), and it loses it if its job runs
/// so long that no place has become free for some time (``look()``). Docs/Internals/Executors.md shows why no wait is endless.
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
        /// The tick of the pool at which the present slice began.
        var began = 0
        /// The executor that the worker runs next, if it was given a place.
        var next: QueueExecutor?

        init(_ pool: ExecutorPool) { self.pool = pool }

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
        /// The processor time of the process at the last tick.
        var processorTime: UInt64 = 0
    }

    /// The time between two looks for overdue jobs, while executors wait for a place.
    static let tick = 50
    /// The largest number of ticks after which a process that computes gets a further thread.
    private static let longestPatience = 20
    /// The number of overdue jobs from which on no more threads are added.
    static let overdueLimit = 128

    private let width: Int
    private let clock: any WriterClock
    private let processorTime: @Sendable () -> UInt64
    private let state = PthreadMutex(State())
    /// The number of looks for overdue jobs.
    private let ticks = Atomic(0)
    private static let current = ThreadPointer()

    /// - Parameters:
    ///   - width: The number of places.
    ///   - processorTime: Returns the processor time of the process in nanoseconds.
    init(
        width: Int, clock: any WriterClock = SystemClock(),
        processorTime: @escaping @Sendable () -> UInt64 = { CurrentProcess.processorTime }
    ) {
        self.width = width
        self.clock = clock
        self.processorTime = processorTime
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
        worker.began = ticks.load(ordering: .relaxed)
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
        var next = state.withLock { _ in worker.next.take() }
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
        worker.began = ticks.load(ordering: .relaxed)
        if state.held <= width, let next = state.ready.popFirst() { return next }
        if !state.ready.isEmpty { watch(&state) }
        state.held -= 1
        state.busy[ObjectIdentifier(worker)] = nil
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
            worker.began = ticks.load(ordering: .relaxed)
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
        state.processorTime = processorTime()
        lookLater()
    }

    private func lookLater() {
        clock.run(at: clock.now + .milliseconds(Self.tick), on: .global()) { self.look() }
    }

    /// Takes a place from the job that has run longest, if no slice has ended for some time while executors wait for a place.
    ///
    /// A process that computes gets a further thread after 2 ticks, the next ones after 4, 8, 16, and then 20: its jobs need processors,
    /// not threads. If the process waits, one tick is enough.
    private func look() {
        let tick = ticks.add(1, ordering: .relaxed).newValue
        let next: Worker? = state.withLock { state in
            guard !state.ready.isEmpty, state.held >= width else {
                state.isWatched = false
                return nil
            }
            defer { lookLater() }
            let time = processorTime()
            let isComputing = time - state.processorTime > UInt64(Self.tick) * 1_000_000 / 8
            state.processorTime = time
            let placed = state.busy.values.filter { $0.status == .placed }
            guard let oldest = placed.min(by: { $0.began < $1.began }), placed.allSatisfy({ $0.began < tick - 1 }) else {
                state.stalled = 0
                return nil
            }
            state.stalled += 1
            let patience = isComputing ? min(2 << min(state.overdue, 4), Self.longestPatience) : 1
            guard state.stalled >= patience, state.overdue < Self.overdueLimit else { return nil }
            state.stalled = 0
            oldest.status = .overdue
            state.overdue += 1
            state.held -= 1
            return placeForReady(&state)
        }
        next?.start()
    }
}
