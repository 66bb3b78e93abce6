import Logging
import Platform
import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

/// The warnings about snapshots that exceed their budget, by a clock that the test advances.
@Suite struct SnapshotBudgetTests {
    private final class Lines: Sendable {
        private let noted = Mutex<[String]>([])

        func note(_ line: String) { noted.withLock { $0.append(line) } }
        func all(where isWanted: (String) -> Bool) -> [String] { noted.withLock { $0 }.filter(isWanted) }
    }

    /// Catches: a budget that is silent, that warns with every check or save, or that warns once and never again.
    @Test func `S152: a budget warns at once, and again only after ten seconds however often the store is saved`() async throws {
        // A process has one handler for all loggers. The test sets it in another process than the other tests.
        await #expect(processExitsWith: .success) {
            let lines = Lines()
            LoggingSystem.bootstrap { _ in LineHandler { lines.note($0) } }
            let (store, clock) = (FaultyStore(schema: Music.model.storeSchema), SteppedClock())
            let coordinator = try PersistentStoreCoordinator.music(store, clock)
            let kept = try coordinator.snapshot(owner: "the forgotten export")
            let worker = coordinator.newBackgroundContext()
            await worker.perform { _ = $0.makeTrack("first") }
            try await worker.save()
            // Any older state is over this budget, because ages are not measured by the test's clock.
            coordinator.snapshotBudget = SnapshotBudget(maximumAge: .zero)
            func warnings() -> [String] { lines.all { $0.contains("exceeds the budget: the forgotten export:") } }
            try #require(warnings() == [])
            clock.advance(by: .milliseconds(50))
            try #require(warnings().count == 1, "the first check warns")
            for number in 0..<19 {
                await worker.perform { _ = $0.makeTrack("t\(number)") }
                try await worker.save()
                clock.advance(by: .milliseconds(500))
            }
            try #require(warnings().count == 1, "nothing is said again within ten seconds")
            clock.advance(by: .milliseconds(500))
            try #require(warnings().count == 2, "the warning is repeated after ten seconds")
            try #require(warnings().last?.contains("more times since the last warning") == true)
            withExtendedLifetime(kept) {}
        }
    }
}
