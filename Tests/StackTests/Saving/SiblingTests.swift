import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

@Suite struct SiblingTests {
    @Test(arguments: Combination.rooted)
    func S090_aSaveInOneChangesNothingInAnotherUntilItMerges(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let (one, two) = (await container.newBackgroundContext(), await container.newBackgroundContext())
        let id = await one.perform { $0.makeTrack("a", plays: 1).objectID }
        try await one.save()
        #expect(try await two.perform { try $0.trackTitles() }.isEmpty)
        await two.perform { $0.refreshAllObjects() }
        try await one.perform { try $0.existingObject(with: id)["plays"] = .int(2) }
        try await one.save()
        #expect(try await two.perform { try $0.existingObject(with: id)["plays"] } == .int(1))
    }

    @Test(arguments: Combination.rooted)
    func S091_mergingAChangeSetRefreshesRemovesAndAdds(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let (one, two) = (await container.newBackgroundContext(), await container.newBackgroundContext())
        let (kept, gone) = await one.perform { ($0.makeTrack("kept", plays: 1).objectID, $0.makeTrack("gone").objectID) }
        try await one.save()
        await two.perform { $0.refreshAllObjects() }
        let counter = Counter()
        _ = await one.perform { $0.addObserver { counter.note($0) } }
        try await one.perform { context in
            try context.existingObject(with: kept)["plays"] = .int(2)
            context.delete(try context.existingObject(with: gone))
            context.makeTrack("new")
        }
        try await one.save()
        let changes = try #require(counter.all.last { $0.kind == .didSave }).changes
        try await two.perform { context in
            let (track, doomed) = try (context.existingObject(with: kept), context.existingObject(with: gone))
            track["title"] = .string("mine")
            context.mergeChanges(from: changes)
            #expect(track["plays"] == .int(2), "refreshed")
            #expect(track["title"] == .string("mine"), "local changes stay")
            #expect(doomed.isDeleted)
            #expect(try context.trackTitles() == ["mine", "new"])
        }
    }

    @Test(arguments: Combination.rooted)
    func S093_aFollowingContextMergesByItself(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let worker = await container.newBackgroundContext()
        let counter = Counter()
        await MainActor.run { _ = container.mainContext.addObserver { counter.note($0) } }
        for i in 0..<5 {
            await worker.perform { context in _ = context.makeTrack("t\(i)") }
            try await worker.save()
        }
        try await until("main shows the five tracks") {
            try await MainActor.run { try container.mainContext.trackTitles().count } == 5
        }
        let seen = counter.all.flatMap { $0.changes.insertedIDs(in: container.coordinator.store.identity) }
        #expect(Set(seen).count == 5, "every insert is told once")
    }

    @Test(arguments: Combination.rooted)
    func `S093: a context that begins to merge automatically also merges the saves until then`(
        _ combination: Combination
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let (reader, writer) = await (container.newBackgroundContext(), container.newBackgroundContext())
        #expect(try await reader.perform { try $0.trackTitles() } == [])
        await reader.perform { _ = $0.makeTrack("unsaved") }
        try await writer.perform(andSave: .durable) { _ = $0.makeTrack("saved") }
        #expect(try await reader.perform { try $0.trackTitles() } == ["unsaved"])
        await reader.perform { $0.automaticallyMergesChanges = true }
        #expect(try await reader.perform { try $0.trackTitles() } == ["saved", "unsaved"])
    }

    @Test(arguments: StoreKind.allCases)
    func S094_twoCoordinatorsOnOneFileSeeEachOthersSaves(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let first = try await bed.container(.split)
        let worker = await first.newBackgroundContext()
        await worker.perform { context in _ = context.makeTrack("a") }
        try await worker.save()
        let second = try await bed.container(.siblings)
        #expect(try await MainActor.run { try second.mainContext.trackTitles() } == ["a"])
        let other = await second.newBackgroundContext()
        await other.perform { context in _ = context.makeTrack("b") }
        try await other.save()
        let reader = first.coordinator.newBackgroundContext()
        #expect(try await reader.perform { try $0.trackTitles() } == ["a", "b"])
    }
}
