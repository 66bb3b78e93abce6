import Dispatch
import Platform
import TestSupport
import Testing

@testable import ObjectGraph

/// The threads that background contexts share. The clock stands still unless a test advances it, so no thread is added by chance.
@Suite(.timeLimit(.minutes(10))) struct ExecutorPoolTests {
    private let clock = SteppedClock()
    private let processorTime = Work()

    /// A number that many threads add to, and the highest value that it had.
    private final class Work: Sendable {
        private let state = Mutex((now: 0, peak: 0))

        func add(_ number: Int) {
            state.withLock { state in
                state.now += number
                state.peak = max(state.peak, state.now)
            }
        }

        var now: Int { state.withLock { $0.now } }
        var peak: Int { state.withLock { $0.peak } }
    }

    private final class Entries<Element: Sendable>: Sendable {
        private let list = Mutex<[Element]>([])

        func append(_ element: Element) { list.withLock { $0.append(element) } }
        var all: [Element] { list.withLock { $0 } }
    }

    private func pool(width: Int) -> ExecutorPool {
        ExecutorPool(width: width, clock: clock.source) { [processorTime] in UInt64(processorTime.now) * 1_000_000 }
    }

    private func look() { clock.advance(by: .milliseconds(ExecutorPool.tick)) }

    /// A job that has begun and blocks its thread until it is released.
    private struct Blocked {
        let release = DispatchSemaphore(value: 0)
        let hasBegun = Flag()

        func run() {
            hasBegun.set()
            release.wait()
        }
    }

    private func block(_ executor: QueueExecutor) -> Blocked {
        let blocked = Blocked()
        executor.async { blocked.run() }
        #expect(blocked.hasBegun.wait(atMost: .seconds(300)))
        return blocked
    }

    @Test func `jobs of one executor run in order, one at a time, and no more executors at once than there are places`()
        async throws
    {
        let pool = pool(width: 3)
        let executors = (0..<20).map { QueueExecutor(name: "\($0)", pool: pool) }
        let (all, ran) = (Work(), (0..<20).map { _ in Entries<(Int, Int)>() })
        let inside = (0..<20).map { _ in Work() }
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
        let blocked = block(greedy)
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

    @Test func `an executor whose job blocks loses its place when the pool looks twice`() async throws {
        let pool = pool(width: 1)
        let (blocking, other) = (QueueExecutor(name: "blocking", pool: pool), QueueExecutor(name: "other", pool: pool))
        let blocked = block(blocking)
        let entries = Entries<String>()
        blocking.async { entries.append("blocking") }
        other.async {
            entries.append("other")
            blocked.release.signal()
        }
        look()
        #expect(entries.all == [])
        look()
        try await until("both ran") { entries.all.count == 2 }
        #expect(entries.all == ["other", "blocking"])
        try await until("the pool stops looking") {
            look()
            return clock.waitingCount == 0
        }
    }

    /// A process that computes needs processors, not threads.
    @Test func `jobs that compute for long get further threads ever more slowly`() async throws {
        let pool = pool(width: 1)
        let executors = (0..<6).map { QueueExecutor(name: "\($0)", pool: pool) }
        let jobs = executors.map { _ in Blocked() }
        for (executor, job) in zip(executors, jobs) { executor.async { job.run() } }
        #expect(jobs[0].hasBegun.wait(atMost: .seconds(300)))
        var added: [Int] = []
        for number in 1...40 {
            processorTime.add(ExecutorPool.tick)
            look()
            if pool.overdueCount > added.count { added.append(number) }
        }
        #expect(added == [3, 8, 17, 34])
        for job in jobs { job.release.signal() }
        for job in jobs { #expect(job.hasBegun.wait(atMost: .seconds(300))) }
    }

    /// Catches: workers that were added for blocked jobs and stay.
    @Test func `after blocked jobs have ended, no more executors run at once than there are places`() async throws {
        let pool = pool(width: 2)
        let blocked = (0..<5).map { number -> Blocked in
            let (executor, blocked) = (QueueExecutor(name: "\(number)", pool: pool), Blocked())
            executor.async { blocked.run() }
            return blocked
        }
        for job in blocked {
            while !job.hasBegun.wait(atMost: .milliseconds(1)) { look() }
        }
        for job in blocked { job.release.signal() }
        let (work, ended) = (Work(), Work())
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
            let (ran, inside) = (Work(), executors.map { _ in Work() })
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
