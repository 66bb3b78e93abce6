import Dispatch
import Platform
import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

/// When a context is notified of saves, by a clock that the test advances.
@Suite struct CoalescedNotifierTests {
    private let clock = SteppedClock()
    private let queue = DispatchQueue(label: "notifier")
    private let host = RecordingHost()
    private let context: BackgroundContext
    private let coordinator: PersistentStoreCoordinator

    init() throws {
        coordinator = try .music(FaultyStore(schema: Music.model.storeSchema), SteppedClock())
        context = coordinator.newBackgroundContext()
    }

    /// An executor that keeps its jobs until the test runs them.
    private final class RecordingHost: ContextExecutor {
        private let jobs = Mutex<[@Sendable (ManagedObjectContext) -> Void]>([])

        /// The number of jobs that wait.
        var count: Int { jobs.withLock { $0.count } }

        func enqueue(_ job: @escaping @Sendable (ManagedObjectContext) -> Void) -> Bool {
            jobs.withLock { $0.append(job) }
            return true
        }

        func runHere(_ job: (ManagedObjectContext) -> Void) { preconditionFailure("a notifier does not run jobs itself") }
        func runAndWait(_ job: @Sendable (ManagedObjectContext) -> Void) { preconditionFailure("a notifier never waits") }

        /// Runs the jobs in order. Returns, after each, whether the context has to merge at its next use.
        func run(in context: BackgroundContext) async -> [Bool] {
            let taken = jobs.withLock { jobs in
                defer { jobs = [] }
                return jobs
            }
            return await context.perform { context in
                taken.map { job in
                    job(context)
                    defer { context.phase.behind = nil }
                    return context.phase.behind != nil
                }
            }
        }
    }

    private func notifier(onlyAnnounces: Bool = false) -> CoalescedNotifier {
        CoalescedNotifier(host, queue: queue, clock: clock.source, onlyAnnounces: onlyAnnounces)
    }

    @Test func `S093: the first save after a pause is delivered at once`() async {
        let notifier = notifier()
        notifier.storeDidChange()
        #expect(host.count == 1 && clock.waitingCount == 0)
        #expect(await host.run(in: context) == [false], "merged, so nothing is left to announce")
        clock.advance(by: .seconds(1))
        notifier.storeDidChange()
        #expect(host.count == 1 && clock.waitingCount == 0)
    }

    /// Catches: a main thread that acquires the snapshot of each merge, which another thread could have acquired.
    @Test func `S154: the merge is prepared on the queue that sends it, before it is sent`() {
        let counts = Mutex<[Int]>([])
        let notifier = CoalescedNotifier(host, queue: queue, clock: clock.source, onlyAnnounces: false) { [host] in
            counts.withLock { $0.append(host.count) }
        }
        notifier.storeDidChange()
        #expect(counts.withLock { $0 } == [0] && host.count == 1)
    }

    /// Catches: a burst of saves that costs the executor one job each, and a burst whose end is never merged.
    @Test func `S093: saves within one frame are announced once and delivered together at its end`() async {
        let notifier = notifier()
        notifier.storeDidChange()
        for _ in 0..<100 { notifier.storeDidChange() }
        #expect(host.count == 2, "the merge, and one announcement before it has run")
        _ = await host.run(in: context)
        for _ in 0..<100 { notifier.storeDidChange() }
        #expect(clock.waitingCount == 1)
        #expect(await host.run(in: context) == [true])
        clock.advance(by: .milliseconds(8))
        #expect(host.count == 0)
        clock.advance(by: .milliseconds(1))
        #expect(await host.run(in: context) == [false])
        #expect(clock.waitingCount == 0)
    }

    /// Catches: a save that is not announced, so that a task which awaited it does not read it.
    @Test func `S068: a save after a read is announced again`() async {
        let notifier = notifier()
        notifier.storeDidChange()
        _ = await host.run(in: context)
        notifier.storeDidChange()
        #expect(await host.run(in: context) == [true])
        notifier.storeDidChange()
        #expect(host.count == 0)
        notifier.willCatchUp()
        notifier.storeDidChange()
        #expect(await host.run(in: context) == [true])
        #expect(clock.waitingCount == 1, "one merge waits for the end of the frame")
    }

    @Test func `S072: a child that its parent moves is only told that there are saves`() async {
        let notifier = notifier(onlyAnnounces: true)
        for _ in 0..<3 { notifier.storeDidChange() }
        #expect(await host.run(in: context) == [true])
        clock.advance(by: .seconds(1))
        notifier.storeDidChange()
        #expect(host.count == 0)
        // After a flush it may release its snapshot.
        notifier.storeDidChange(isFlush: true)
        #expect(await host.run(in: context) == [false])
    }

    @Test func aNotifierOfAReleasedContextDoesNothing() {
        var host: RecordingHost? = RecordingHost()
        let notifier = CoalescedNotifier(host!, queue: queue, clock: clock.source, onlyAnnounces: false)
        #expect(notifier.contextExecutor != nil)
        host = nil
        #expect(notifier.contextExecutor == nil)
        notifier.storeDidChange()
        notifier.storeDidChange()
        clock.advance(by: .seconds(1))
    }
}
