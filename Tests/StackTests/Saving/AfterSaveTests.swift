import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

@Suite struct AfterSaveTests {
    @Test(arguments: StoreKind.allCases)
    func S031_aSavedObjectHasNoChangedValuesAndCommitsItsOwn(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let context = container.coordinator.newBackgroundContext()
        let id = await context.perform { $0.makeTrack("a", plays: 1).objectID }
        try await context.save()
        try await context.perform { try $0.existingObject(with: id)["plays"] = .int(2) }
        try await context.save()
        try await context.perform { context in
            let track = try context.existingObject(with: id)
            #expect(track.changedValues.isEmpty)
            #expect(track.committedValues(for: ["plays"]) == ["plays": .int(2)])
        }
    }

    /// Runs blocking work on a thread of its own, so that it blocks no other work.
    private static func onThread(_ body: @escaping @Sendable () throws -> Bool) async throws -> Bool {
        try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread { continuation.resume(with: Result { try body() }) }
        }
    }

    @Test(arguments: Combination.parented)
    func S076_aChildsSaveLeavesTheStoreUntouched(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let child = await container.newBackgroundContext()
        let generation = try container.coordinator.store.snapshot().generation
        await child.perform { context in _ = context.makeTrack("a") }
        // Another writer holds the store all the while, so that every operation that needs it waits.
        let (holds, mayEnd) = (Flag(), Flag())
        let store = container.coordinator.store
        async let waited = Self.onThread {
            try store.write(.durable) { _ in
                holds.set()
                return mayEnd.wait(atMost: .seconds(300))
            }
        }
        for _ in 0..<60_000 where !holds.wait(atMost: .zero) { try await Task.sleep(for: .milliseconds(5)) }
        try await child.save()
        mayEnd.set()
        #expect(try await waited, "the save waited for the store")
        #expect(try container.coordinator.store.snapshot().generation == generation)
    }

    @Test(arguments: StoreKind.allCases)
    func S110_afterAMergedSaveTheContextShowsTheMergedValues(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let (ours, other) = (container.coordinator.newBackgroundContext(), container.coordinator.newBackgroundContext())
        let id = await ours.perform { $0.makeTrack("base", plays: 1).objectID }
        try await ours.save()
        await other.perform { $0.refreshAllObjects() }
        try await other.perform { try $0.existingObject(with: id)["title"] = .string("theirs") }
        try await ours.perform { context in
            context.mergePolicy = .objectTrump
            try context.existingObject(with: id)["plays"] = .int(10)
        }
        try await other.save()
        try await ours.save()
        let values = try await ours.perform { context in
            let track = try context.existingObject(with: id)
            return [track["title"], track["plays"]]
        }
        #expect(values == [.string("theirs"), .int(10)])
    }
}
