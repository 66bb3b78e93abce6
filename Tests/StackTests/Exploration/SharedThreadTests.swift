import CoreDataRouting
import Foundation
import ObjectGraph
import Platform
import StoreInterface
import StoreModel
import TestSupport
import Testing

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// Background contexts share threads.
@Suite(.timeLimit(.minutes(10))) struct SharedThreadTests {
    private final class Number: Sendable {
        let value = Atomic(0)
    }

    private final class Peak: Sendable {
        let threads = Mutex<[String]>([])

        func note() {
            let now = SharedThreadTests.threads
            threads.withLock { if $0.count < now.count { $0 = now } }
        }
    }

    /// The names of the threads of this process; none on systems that do not tell.
    fileprivate static var threads: [String] {
        let folder = "/proc/self/task"
        return ((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []).map { thread in
            (try? String(contentsOfFile: "\(folder)/\(thread)/comm", encoding: .utf8).trimmingCharacters(in: .newlines))
                ?? "ended"
        }
    }

    /// Counts in a separate process, because other tests have threads. Any program with tasks has some of them: one per processor for
    /// tasks, the main thread and two of Dispatch. The store's writer needs two.
    ///
    /// Dispatch starts another thread for a worker if the thread of an idle one has not gone to sleep yet. On a busy machine this happens
    /// because the system interrupts the thread. So the smallest of several counts decides.
    @Test(arguments: StoreKind.allCases, [false, true])
    func `S213: 200 busy contexts add no more threads than processors and 4`(_ kind: StoreKind, _ saves: Bool) async throws {
        let bed = try TestBed(kind)
        var counts: [String] = []
        for number in 0..<8 {
            let folder = bed.folder.appending(path: "\(number)")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
            await count(kind, saves: saves, in: folder)
            let found = try String(contentsOf: folder.appending(path: "surplus"), encoding: .utf8)
            if found.isEmpty { return }
            counts.append(found)
        }
        Issue.record("\(counts.joined(separator: "\n"))")
    }

    /// Writes the threads to the file `surplus` if they are too many, and nothing if they are not.
    private func count(_ kind: StoreKind, saves: Bool, in folder: URL) async {
        await #expect(processExitsWith: .success) {
            [saves = saves as Bool, kind = kind.rawValue as String, folder = folder as URL] in
            let ofTasks = await Self.peakOfThreadsWithoutContexts()
            let bed = TestBed(try #require(StoreKind(rawValue: kind)), in: folder)
            let container = try await bed.container()
            let peak = try await Self.peakOfThreads(container, saves: saves) { context in
                for number in 0..<20 { context.makeTrack("\(number)") }
                if saves { return }
                _ = try context.trackTitles()
                context.rollback()
            }
            let limit = ofTasks.count + ProcessInfo.processInfo.activeProcessorCount + 4
            let surplus = peak.count <= limit ? "" : "\(peak.count): \(peak), and without contexts \(ofTasks)"
            try surplus.write(to: folder.appending(path: "surplus"), atomically: true, encoding: .utf8)
        }
    }

    private static func peakOfThreadsWithoutContexts() async -> [String] {
        let peak = Peak()
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<200 { group.addTask { peak.note() } }
        }
        return peak.threads.withLock { $0 }
    }

    private static func peakOfThreads(
        _ container: PersistentContainer, saves: Bool, _ body: @escaping @Sendable (ManagedObjectContext) throws -> Void
    ) async throws -> [String] {
        let peak = Peak()
        var contexts: [BackgroundContext] = []
        for number in 0..<200 { contexts.append(await container.makeBackgroundContext(name: "\(number)")) }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for context in contexts {
                group.addTask {
                    for _ in 0..<2 {
                        try await context.perform { context throws in
                            try body(context)
                            peak.note()
                        }
                        if saves { try await context.save() }
                    }
                }
            }
            try await group.waitForAll()
        }
        return peak.threads.withLock { $0 }
    }

    /// Computes until the calling thread has used some processor time, which passes only while the thread runs.
    private static func compute(milliseconds: UInt64) {
        func used() -> UInt64 {
            var time = timespec()
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
            return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
        }
        let end = used() + milliseconds * 1_000_000
        while used() < end {}
    }

    /// Catches: closures that compute for many looks of the pool and get ever more company. Runs in a separate process, because closures of
    /// other tests block threads of the pool. Each closure has a thread, so the closures are counted, and threads of Dispatch are not.
    @Test func `S213: of closures that compute for long, at most two more run at once than there are processors`() async {
        await #expect(processExitsWith: .success) {
            let container = try await PersistentContainer(model: Music.model, store: .memory(name: UUID().uuidString))
            let places = max(2, ProcessInfo.processInfo.activeProcessorCount)
            let running = PeakCounter()
            await withTaskGroup(of: Void.self) { group in
                for number in 0..<3 * places {
                    let context = await container.makeBackgroundContext(name: "\(number)")
                    group.addTask {
                        await context.perform { _ in
                            running.add(1)
                            Self.compute(milliseconds: 700)
                            running.add(-1)
                        }
                    }
                }
            }
            try #require(running.peak <= places + 2)
        }
    }

    /// Closures that block until as many of them run as there are. Without further threads, the first would wait forever.
    @Test func `S213: closures that wait for closures of other contexts end`() async throws {
        let container = try await PersistentContainer(model: Music.model, store: .memory(name: UUID().uuidString))
        let count = ProcessInfo.processInfo.activeProcessorCount + 3
        let all = Flag()
        let arrived = Number()
        await withTaskGroup(of: Bool.self) { group in
            for number in 0..<count {
                let context = await container.newBackgroundContext(name: "\(number)")
                group.addTask {
                    await context.perform { _ in
                        if arrived.value.add(1, ordering: .relaxed).newValue == count { all.set() }
                        return all.wait(atMost: .seconds(300))
                    }
                }
            }
            for await isDone in group { #expect(isDone) }
        }
    }

    /// Drives a tree of contexts from tasks and threads, with waits between parents and children in both directions, and closes the
    /// container at some moment. Compares what ran with a count, and the order of each driver's work in each context.
    @Test(arguments: [Routing.snapshot, .ancestors], [ContextStack.siblings, .masterMainWorker])
    func `work of parents and children all runs, in order`(_ routing: Routing, _ stack: ContextStack) async throws {
        for round in 0..<Rounds.of(2, long: 200) {
            var numbers = SeededGenerator(seed: Seed.value &+ UInt64(round))
            let bed = try TestBed(.memory)
            let container = try await bed.container(stack, routing: routing)
            let tree = await Tree(container, &numbers)
            let closesAt = numbers.chance(50) ? numbers.below(100) : nil
            await withTaskGroup(of: Void.self) { group in
                for driver in 0..<8 {
                    let seed = numbers.next()
                    group.addTask { await tree.drive(driver, seed, steps: 30) }
                }
                if let closesAt {
                    group.addTask {
                        try? await until("some work ran") { tree.ranCount >= closesAt }
                        try? await container.close()
                    }
                }
            }
            #expect(tree.ran == tree.expected, "STRATA_SEED=\(Seed.value), round \(round)")
            #expect(tree.isInOrder, "STRATA_SEED=\(Seed.value), round \(round)")
            try await container.close()
        }
    }

    private final class Tree: Sendable {
        private struct State {
            /// The driver and its step of each job that ran, by context.
            var ran: [[(driver: Int, step: Int)]]
            var expected: [Int]
        }

        private let contexts: [BackgroundContext]
        private let parents: [Int?]
        private let state: Mutex<State>

        init(_ container: PersistentContainer, _ numbers: inout SeededGenerator) async {
            var contexts: [BackgroundContext] = []
            var parents: [Int?] = []
            for number in 0..<12 {
                let parent = contexts.isEmpty || numbers.chance(20) ? nil : numbers.below(contexts.count)
                if let parent {
                    contexts.append(await contexts[parent].newBackgroundChild(name: "\(number)"))
                } else {
                    contexts.append(await container.newBackgroundContext(name: "\(number)"))
                }
                parents.append(parent)
            }
            (self.contexts, self.parents) = (contexts, parents)
            state = Mutex(State(ran: contexts.map { _ in [] }, expected: contexts.map { _ in 0 }))
        }

        var ran: [Int] { state.withLock { $0.ran.map(\.count) } }
        var ranCount: Int { ran.reduce(0, +) }
        var expected: [Int] { state.withLock { $0.expected } }

        /// Whether the steps of each driver ran in their order in each context.
        var isInOrder: Bool {
            state.withLock { state in
                state.ran.allSatisfy { entries in
                    (0..<8).allSatisfy { driver in
                        let steps = entries.filter { $0.driver == driver }.map(\.step)
                        return steps == steps.sorted()
                    }
                }
            }
        }

        private func expect(_ number: Int) { state.withLock { $0.expected[number] += 1 } }

        private func work(_ number: Int, _ driver: Int, _ step: Int, _ context: ManagedObjectContext) {
            state.withLock { $0.ran[number].append((driver, step)) }
            // In a closed context, requests throw. With the routing `ancestors`, a request waits for the parents.
            _ = try? context.count(EntityFetchRequest("Track", matching: .equal("plays", .int(0))))
            if step % 3 == 0 { context.makeTrack("\(driver)") }
        }

        private func perform(_ number: Int, _ driver: Int, _ step: Int) async {
            expect(number)
            await contexts[number].perform { self.work(number, driver, step, $0) }
        }

        func drive(_ driver: Int, _ seed: UInt64, steps: Int) async {
            var numbers = SeededGenerator(seed: seed)
            for step in 0..<steps {
                let number = numbers.below(contexts.count)
                switch numbers.below(6) {
                case 0, 1: await perform(number, driver, step)
                case 2: try? await contexts[number].save()
                case 3: try? await contexts[number].refreshFromParent()
                case 4:
                    // From a thread that is no task's.
                    await withCheckedContinuation { continuation in
                        DispatchQueue.global().async {
                            Task {
                                await self.perform(number, driver, step)
                                continuation.resume()
                            }
                        }
                    }
                default:
                    // A parent waits for its child, and a child for its parent.
                    guard let parent = parents[number] else { continue }
                    let (outer, inner) = numbers.chance(50) ? (number, parent) : (parent, number)
                    expect(outer)
                    await contexts[outer].perform { _, context in
                        self.work(outer, driver, step, context)
                        await self.perform(inner, driver, step)
                    }
                }
            }
        }
    }
}
