import Platform
import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

/// The calls of the store fail one by one: in each run another one, once.
@Suite struct FailingCallTests {
    /// Durable, deferred, concurrent and child saves of new tracks, with what became of each.
    private final class Run: Sendable {
        let store: FaultyStore
        let clock = SteppedClock()
        private let acknowledged = Mutex<[String]>([])

        init(_ store: FaultyStore) { self.store = store }

        var titles: [String] { acknowledged.withLock { $0 }.sorted() }

        /// Saves a new track of a context. If that fails, the context drops the track.
        private func save(
            _ title: String, _ context: BackgroundContext, _ save: @Sendable (BackgroundContext) async throws -> Void
        ) async {
            await context.perform { _ = $0.makeTrack(title) }
            do {
                try await save(context)
                acknowledged.withLock { $0.append(title) }
            } catch {
                await context.perform { $0.rollback() }
            }
        }

        /// Returns the coordinator. If it cannot be created because of the fault, it is created again.
        func saves() async throws -> PersistentStoreCoordinator {
            let coordinator =
                try (try? PersistentStoreCoordinator.music(store, clock)) ?? PersistentStoreCoordinator.music(store, clock)
            let editor = coordinator.newBackgroundContext(name: "editor")
            let importer = coordinator.newBackgroundContext(name: "importer")
            let follower = coordinator.newBackgroundContext(name: "follower")
            await follower.perform { $0.automaticallyMergesChanges = true }
            await save("durable", importer) { try await $0.save(.durable) }
            await save("deferred", editor) { try await $0.save(.deferred(within: .seconds(60))) }
            await save("synchronous", editor) { try await $0.perform { try $0.saveNow() } }
            let child = await editor.newBackgroundChild(name: "child")
            await save("pushed", child) { try await $0.save(through: .store) }
            async let beside: Void = save("beside", editor) { try await $0.save(.deferred(within: .seconds(60))) }
            await save("large", importer) { try await $0.save(.durable) }
            await beside
            clock.advance(by: .seconds(61))
            await save("late", follower) { try await $0.save(.deferred(within: .seconds(60))) }
            try? await coordinator.flush()
            try? await coordinator.refresh()
            await save("last", importer) { try await $0.save(.durable) }
            return coordinator
        }
    }

    @Test(arguments: FaultyStore.Call.allCases.filter { $0 != .isReadOnly }, [StoreError.Code.full, .inputOutput])
    func `S062, S066: whichever call of the store fails, saves that have returned stay, and those that have thrown are gone`(
        _ call: FaultyStore.Call, _ code: StoreError.Code
    ) async throws {
        var number = 0
        while true {
            number += 1
            let store = FaultyStore(schema: Music.model.storeSchema)
            store.fail { [number] in $0 == call && $1 == number ? StoreError(code, "the test lets call \($1) fail") : nil }
            let run = Run(store)
            let coordinator = try await run.saves()
            let calls = store.count(call)
            store.fail(nil)
            try await coordinator.flush()
            try await coordinator.writer.onQueue { $0.finishFlush() }
            let message = Comment(rawValue: "\(call) \(number) of \(calls)")
            #expect(try await coordinator.titles().sorted() == run.titles, message)
            let reader = try PersistentStoreCoordinator(
                model: Music.model, store: FaultyStore(sharing: store), name: "reader")
            #expect(try await reader.titles().sorted() == run.titles, message)
            #expect(try store.verify() == [], message)
            #expect(store.heldClaims == 0, message)
            if number > calls { break }
        }
        #expect(number > 1 || call == .history)
    }
}
