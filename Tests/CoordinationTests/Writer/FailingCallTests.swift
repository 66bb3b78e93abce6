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
        private let thrown = Mutex<[String]>([])

        init(_ store: FaultyStore) { self.store = store }

        var titles: [String] { acknowledged.withLock { $0 }.sorted() }
        /// The titles of the tracks whose saves have thrown.
        var refused: [String] { thrown.withLock { $0 } }

        /// The number of saves in the history, from a connection whose calls neither fail nor are counted.
        private var historyCount: Int? {
            get throws { try FaultyStore(sharing: store).history(after: nil, limit: .max)?.count }
        }

        /// Saves a new track of a context. If that fails, the context drops the track.
        private func save(
            _ title: String, _ context: BackgroundContext, _ save: @Sendable (BackgroundContext) async throws -> Void
        ) async {
            await context.perform { _ = $0.makeTrack(title) }
            do {
                try await save(context)
                acknowledged.withLock { $0.append(title) }
            } catch {
                thrown.withLock { $0.append(title) }
                await context.perform { $0.rollback() }
            }
        }

        /// Returns a coordinator. If it cannot be created because of the fault, it is created again.
        private func open() throws -> PersistentStoreCoordinator {
            try (try? PersistentStoreCoordinator.music(store, clock)) ?? PersistentStoreCoordinator.music(store, clock)
        }

        /// Does the work that opening has left for later. If a step fails because of the fault, the work goes on afterwards.
        private func finishMigration(_ coordinator: PersistentStoreCoordinator) async throws {
            let writer = coordinator.writer
            try await runMigration(writer)
            if writer.migration.withLock({ $0.failure != nil }) {
                writer.startMigration()
                try await runMigration(writer)
            }
            try await coordinator.finishMigration()
        }

        /// Runs the steps of the work until it has ended or failed. Each step but the first waits for the clock.
        private func runMigration(_ writer: StoreWriter) async throws {
            while writer.migration.withLock({ $0.isRunning }) {
                try await writer.onDisk { _ in }
                clock.advance(by: StoreWriter.migrationPause)
            }
        }

        /// Deletes the whole history. If that fails because of the fault, nothing was deleted, and the history is deleted again.
        private func deleteHistory(_ coordinator: PersistentStoreCoordinator) async throws {
            let count = try historyCount
            do { try await coordinator.deleteHistory(before: .distantFuture) } catch {
                #expect(error is StoreError)
                #expect(try historyCount == count, "nothing was deleted")
                try await coordinator.deleteHistory(before: .distantFuture)
            }
            #expect(try historyCount == 0)
        }

        /// Closes a coordinator as its container does, so that the unused keys of its contexts are returned. If its saves cannot be
        /// finished because of the fault, it is closed again.
        private func close(_ coordinator: PersistentStoreCoordinator) async throws {
            do { try await coordinator.writer.finishSaves() } catch { try await coordinator.writer.finishSaves() }
            await coordinator.closeContexts()
            coordinator.leaveWriter(closing: true)
            try await coordinator.writer.close()
        }

        /// Saves, deletes the history, and opens the store again. Returns the coordinator that was opened last.
        func saves() async throws -> PersistentStoreCoordinator {
            let coordinator = try open()
            try await finishMigration(coordinator)
            await makeSaves(coordinator)
            try await deleteHistory(coordinator)
            // The next context that inserts needs more keys than the writer has left.
            _ = coordinator.writer.keys.drain()
            await save("more", coordinator.newBackgroundContext(name: "newcomer")) { try await $0.save(.durable) }
            try await close(coordinator)
            let reopened = try open()
            try await finishMigration(reopened)
            await save("reopened", reopened.newBackgroundContext(name: "editor")) { try await $0.save(.durable) }
            return reopened
        }

        private func makeSaves(_ coordinator: PersistentStoreCoordinator) async {
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
        }
    }

    /// The calls whose failure no save reports. Without new keys, contexts insert under random ones. If keys cannot be returned, only their
    /// numbers are lost. The caller that deletes the history gets the error, and so does the one that waits for the work after opening.
    private static let besideSaves: Set<FaultyStore.Call> = [
        .allocateKeys, .allocateFreeKeys, .giveBackKeys, .deleteHistory, .continueMigration,
    ]

    /// Gives a store two steps of work that opening leaves for later. Returns the number of steps that are left.
    private static func leaveWork(to store: FaultyStore) -> @Sendable () -> Int {
        let left = Mutex(2)
        store.migrate {
            left.withLock { left -> MigrationProgress? in
                guard left > 0 else { return nil }
                left -= 1
                return MigrationProgress(activity: "work of the test", completed: 2 - left, total: 2)
            }
        }
        return { left.withLock { $0 } }
    }

    @Test(arguments: FaultyStore.Call.ofStore, [StoreError.Code.full, .inputOutput])
    func `S062, S066: whichever call of the store fails, saves that have returned stay, and those that have thrown are gone`(
        _ call: FaultyStore.Call, _ code: StoreError.Code
    ) async throws {
        var number = 0
        while true {
            number += 1
            let layered: StoreCapabilities = call == .sync ? [] : .layeredDeferral
            let store = FaultyStore(
                schema: Music.model.storeSchema, capabilities: layered.union([.externalSaves, .history]))
            store.fail { [number] in $0 == call && $1 == number ? StoreError(code, "the test lets call \($1) fail") : nil }
            // Such work renews the snapshot, so the other calls fail without it.
            var stepsLeft: @Sendable () -> Int = { 0 }
            if call == .continueMigration { stepsLeft = Self.leaveWork(to: store) }
            let run = Run(store)
            let coordinator = try await run.saves()
            let calls = store.count(call)
            store.fail(nil)
            try await coordinator.flush()
            try await coordinator.writer.onQueue { $0.finishFlush() }
            let message = Comment(rawValue: "\(call) \(number) of \(calls)")
            if Self.besideSaves.contains(call) { #expect(run.refused == [], message) }
            #expect(stepsLeft() == 0, message)
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
