import Dispatch
import Platform
import TestSupport
import Testing

@testable import ObjectGraph

/// The threads that background contexts share. The clock stands still unless a test advances it, so no thread is added by chance.
@Suite(.timeLimit(.minutes(10))) struct ExecutorPoolTests {
    private let clock = SteppedClock()
    private let waitingThreads = Threads()

    /// Threads that the pool sees waiting. It sees every other thread computing.
    private final class Threads: Sendable {
        private let threads = Mutex<Set<KernelThread>>([])

        func insert(_ thread: KernelThread) { threads.withLock { _ = $0.insert(thread) } }
        func remove(_ thread: KernelThread) { threads.withLock { _ = $0.remove(thread) } }
        func contains(_ thread: KernelThread) -> Bool { threads.withLock { $0.contains(thread) } }
    }

    private final class Entries<Element: Sendable>: Sendable {
        private let list = Mutex<[Element]>([])

        func append(_ element: Element) { list.withLock { $0.append(element) } }
        var all: [Element] { list.withLock { $0 } }
    }

    private func pool(width: Int) -> ExecutorPool {
        ExecutorPool(width: width, clock: clock.source) { [waitingThreads] in !waitingThreads.contains($0) }
    }

    private func look() { clock.advance(by: .milliseconds(ExecutorPool.tick)) }

    /// A job that occupies its thread until it is released. It blocks the thread, and the pool sees that or a computation.
    private struct Occupation {
        let release = DispatchSemaphore(value: 0)
        let hasBegun = Flag()
        /// The threads to which its thread belongs meanwhile; nil if the pool sees a computation.
        var threads: Threads?

        func run() {
            let thread = KernelThread.current
            threads?.insert(thread)
            hasBegun.set()
            release.wait()
            threads?.remove(thread)
        }
    }

    private var waiting: Occupation { Occupation(threads: waitingThreads) }
    private var computing: Occupation { Occupation() }

    private func occupy(_ executor: QueueExecutor, with occupation: Occupation) {
        executor.async { occupation.run() }
        #expect(occupation.hasBegun.wait(atMost: .seconds(300)))
    }

    private func executors(_ count: Int, _ pool: ExecutorPool) -> [QueueExecutor] {
        (0..<count).map { QueueExecutor(name: "\($0)", pool: pool) }
    }

    @Test func `jobs of one executor run in order, one at a time, and no more executors at once than there are places`()
        async throws
    {
        let pool = pool(width: 3)
        let executors = (0..<20).map { QueueExecutor(name: "\($0)", pool: pool) }
        let (all, ran) = (PeakCounter(), (0..<20).map { _ in Entries<(Int, Int)>() })
        let inside = (0..<20).map { _ in PeakCounter() }
        let rounds = Rounds.of(200, long: 20_000)
        DispatchQueue.concurrentPerform(iterations: 4) { thread in
            var numbers = SeededGenerator(seed: Seed.value &+ UInt64(thread))
            for round in 0..<rounds {
                let place = numbers.below(20)
                executors[place].async {
                    all.add(1)
                    inside[place].add(1)
                    ran[place].append((thread, round))
                    inside[place].add(-1)
                    all.add(-1)
                }
            }
        }
        try await until("all jobs ran") { ran.reduce(0) { $0 + $1.all.count } == 4 * rounds }
        #expect(all.peak <= 3)
        #expect(inside.allSatisfy { $0.peak <= 1 })
        for entries in ran.map(\.all) {
            for thread in 0..<4 {
                let order = entries.filter { $0.0 == thread }.map(\.1)
                #expect(order == order.sorted(), "STRATA_SEED=\(Seed.value)")
            }
        }
    }

    /// Catches: a worker that stays with an executor as long as the executor has jobs.
    @Test func `an executor that always has jobs does not keep others from running`() async throws {
        let pool = pool(width: 1)
        let (greedy, other) = (QueueExecutor(name: "greedy", pool: pool), QueueExecutor(name: "other", pool: pool))
        let isDone = Flag()
        let ran = Atomic(0)
        @Sendable func again() {
            ran.add(1, ordering: .relaxed)
            if !isDone.wait(atMost: .zero) { greedy.async { again() } }
        }
        let blocked = waiting
        occupy(greedy, with: blocked)
        for _ in 0..<2 { greedy.async { again() } }
        let entries = Entries<Int>()
        other.async {
            entries.append(ran.load(ordering: .relaxed))
            isDone.set()
        }
        blocked.release.signal()
        #expect(isDone.wait(atMost: .seconds(300)))
        // The job that blocked was the first of the slice.
        #expect(entries.all == [QueueExecutor.sliceLength - 1], "one slice of jobs before the other executor's turn")
    }

    @Test func `S213: an executor whose job blocks loses its place when two looks have found its thread waiting`() async throws {
        let pool = pool(width: 1)
        let (blocking, other) = (QueueExecutor(name: "blocking", pool: pool), QueueExecutor(name: "other", pool: pool))
        let blocked = waiting
        occupy(blocking, with: blocked)
        let entries = Entries<String>()
        blocking.async { entries.append("blocking") }
        other.async {
            entries.append("other")
            blocked.release.signal()
        }
        // The job may have begun right before the first look, so the second is the first that reads the thread's state.
        for _ in 0..<2 { look() }
        #expect(pool.overdueCount == 0)
        look()
        try await until("both ran") { entries.all.count == 2 }
        #expect(entries.all == ["other", "blocking"])
        try await until("the pool stops looking") {
            look()
            return clock.waitingCount == 0
        }
    }

    /// Catches: more than two threads for jobs that compute, which need a processor and not a thread.
    @Test func `S213: jobs that compute get two further threads, and more only when the patience of the pool is over`() {
        let pool = pool(width: 2)
        let jobs = (0..<5).map { _ in computing }
        for (executor, job) in zip(executors(5, pool), jobs) { executor.async { job.run() } }
        var added: [Int] = []
        for number in 1...ExecutorPool.patience + 9 {
            look()
            guard pool.overdueCount > added.count else { continue }
            added.append(number)
            // The pool asks for the state of a thread only after it has begun.
            #expect(jobs[added.count + 1].hasBegun.wait(atMost: .seconds(300)))
        }
        // A job begins between two looks, and so has run for a whole tick at the second of them.
        #expect(added == [3, 8, 9 + ExecutorPool.patience])
        for job in jobs { job.release.signal() }
    }

    /// Each job runs until all have begun, as closures do that spin for each other.
    @Test func `S213: jobs that compute until another one runs end`() async throws {
        let pool = pool(width: 2)
        let (begun, all, ended) = (PeakCounter(), Flag(), PeakCounter())
        for executor in executors(5, pool) {
            executor.async {
                begun.add(1)
                if begun.peak == 5 { all.set() }
                if all.wait(atMost: .seconds(300)) { ended.add(1) }
            }
        }
        while !all.wait(atMost: .milliseconds(1)) { look() }
        try await until("all jobs ended") { ended.now == 5 }
    }

    /// Catches: a place that is taken from the oldest job, although another one is the one that waits.
    @Test func `S213: of jobs that compute and jobs that wait, those that wait lose their places`() async throws {
        let pool = pool(width: 2)
        let executors = executors(4, pool)
        let (computing, first, second) = (computing, waiting, waiting)
        occupy(executors[0], with: computing)
        occupy(executors[1], with: first)
        executors[2].async { second.run() }
        for _ in 0..<3 { look() }
        #expect(second.hasBegun.wait(atMost: .seconds(300)))
        let hasRun = Flag()
        executors[3].async { hasRun.set() }
        while !hasRun.wait(atMost: .milliseconds(1)) { look() }
        #expect(pool.overdueCount == 2)
        for job in [first, second] { job.release.signal() }
        // The job that computes still runs, in its place.
        try await until("no job is overdue") { pool.overdueCount == 0 }
        computing.release.signal()
    }

    /// Catches: a thread that was found waiting once, for a moment, and counts as blocked.
    @Test func `a thread that is found waiting at every other look keeps its place`() {
        let pool = pool(width: 1)
        let executors = executors(4, pool)
        let (jobs, thread) = ((0..<4).map { _ in computing }, Entries<KernelThread>())
        // The first two jobs lose their places, so that the patience with the third one is long.
        for (executor, job) in zip(executors.prefix(2), jobs) { executor.async { job.run() } }
        executors[2].async {
            thread.append(.current)
            jobs[2].run()
        }
        while !jobs[2].hasBegun.wait(atMost: .milliseconds(1)) { look() }
        executors[3].async { jobs[3].run() }
        for number in 0..<20 {
            for thread in thread.all {
                if number.isMultiple(of: 2) { waitingThreads.insert(thread) } else { waitingThreads.remove(thread) }
            }
            look()
        }
        #expect(pool.overdueCount == ExecutorPool.overdueBeforePatience)
        for job in jobs { job.release.signal() }
    }

    @Test func `without the states of threads, jobs lose their places when a shorter patience is over`() {
        let pool = ExecutorPool(width: 1, clock: clock.source) { _ in nil }
        let jobs = (0..<4).map { _ in computing }
        for (executor, job) in zip(executors(4, pool), jobs) { executor.async { job.run() } }
        var added: [Int] = []
        for number in 1...ExecutorPool.patienceWithoutStates + 9 {
            look()
            guard pool.overdueCount > added.count else { continue }
            added.append(number)
            #expect(jobs[added.count].hasBegun.wait(atMost: .seconds(300)))
        }
        #expect(added == [3, 8, 9 + ExecutorPool.patienceWithoutStates])
        for job in jobs { job.release.signal() }
    }

    /// Catches: workers that were added for blocked jobs and stay.
    @Test func `after blocked jobs have ended, no more executors run at once than there are places`() async throws {
        let pool = pool(width: 2)
        let blocked = (0..<5).map { _ in waiting }
        for (executor, job) in zip(executors(5, pool), blocked) { executor.async { job.run() } }
        for job in blocked {
            while !job.hasBegun.wait(atMost: .milliseconds(1)) { look() }
        }
        for job in blocked { job.release.signal() }
        let (work, ended) = (PeakCounter(), PeakCounter())
        let executors = (0..<50).map { QueueExecutor(name: "\($0)", pool: pool) }
        // Jobs of before may still be ending; they do not run these.
        for round in 0..<20 {
            for executor in executors {
                executor.async {
                    if round > 0 { work.add(1) }
                    if round > 0 { work.add(-1) }
                    ended.add(1)
                }
            }
        }
        try await until("all jobs ran") { ended.now == 1000 }
        #expect(work.peak <= 2)
    }

    @Test func `a wait for an idle executor runs on the waiting thread`() {
        let executor = QueueExecutor(name: "idle", pool: pool(width: 1))
        let thread = CurrentThread.identifier
        let entries = Entries<Bool>()
        executor.sync { entries.append(executor.isCurrent && CurrentThread.identifier == thread) }
        #expect(entries.all == [true])
        #expect(!executor.isCurrent)
    }

    /// Children wait for their parents in jobs and on other threads, in a pool with a single place whose clock stands still.
    @Test func `waits of descendants for their ancestors end, whatever the order`() async throws {
        let seed = Seed.value
        for round in 0..<Rounds.of(10, long: 1000) {
            var numbers = SeededGenerator(seed: seed &+ UInt64(round))
            let pool = pool(width: numbers.below(3) + 1)
            let executors = (0..<30).map { QueueExecutor(name: "\($0)", pool: pool) }
            // The parent of an executor has a lower number.
            let parents = executors.indices.map { $0 == 0 ? 0 : numbers.below($0) }
            let (ran, inside) = (PeakCounter(), executors.map { _ in PeakCounter() })
            @Sendable func job(_ number: Int) {
                inside[number].add(1)
                if number > 0 { executors[parents[number]].sync { job(parents[number]) } }
                inside[number].add(-1)
                ran.add(1)
            }
            var expected = 0
            func depth(_ number: Int) -> Int { number == 0 ? 1 : depth(parents[number]) + 1 }
            for _ in 0..<200 {
                let number = numbers.below(30)
                expected += depth(number)
                if numbers.chance(80) {
                    executors[number].async { job(number) }
                } else {
                    Thread.run { executors[number].sync { job(number) } }
                }
            }
            let total = expected
            try await until("all jobs ran, STRATA_SEED=\(seed), round \(round)") { ran.now == total }
            #expect(inside.allSatisfy { $0.peak == 1 || $0.now == 0 && $0.peak == 0 }, "STRATA_SEED=\(seed), round \(round)")
        }
    }

    private enum Thread {
        /// Runs `body` on a thread outside of the pool.
        static func run(_ body: @escaping @Sendable () -> Void) { DispatchQueue(label: "a thread").async(execute: body) }
    }
}
