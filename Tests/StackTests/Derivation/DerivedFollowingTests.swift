import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Derived values in contexts that merge automatically, after saves that pass through them.
@Suite struct DerivedFollowingTests {
    private static let filled = EntityFetchRequest(
        "Album", matching: .compare("trackCount", .greater, to: 0), sortBy: [AttributeSort("title")])

    /// A live result that only its context's executor uses.
    private final class Shown: @unchecked Sendable {
        var results: Results<ManagedObject>?
        init(_ results: Results<ManagedObject>) { self.results = results }
    }

    /// Catches: the layer of a save that stays above the announced state and hides the values that the writer has computed, and a live result
    /// that is not told when it goes.
    @Test(arguments: Combination.all, [false, true]) @MainActor
    func `S200: a context that merges shows derived values after a save through it, and so does its live result`(
        _ combination: Combination, _ savesInChild: Bool
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack, model: RecordLibrary.model)
        let worker = container.newBackgroundContext(name: "worker")
        await worker.perform { $0.automaticallyMergesChanges = true }
        let saving = savesInChild ? await worker.newBackgroundChild() : worker
        let live = try await worker.perform { Shown(try Results(Self.filled, context: $0)) }
        for round in 1...3 {
            // The contexts below main have not seen this change.
            container.mainContext.insert("Album")["title"] = "of main"
            let id = try await saving.perform(andSave: .durable, through: .store) { context in
                let album = context.makeRecord("\(round)")
                context.makeSong("t", on: album)
                return album.objectID
            }
            let (count, found, shown) = try await worker.perform { context in
                (context.object(with: id)["trackCount"], try context.fetchIDs(Self.filled), live.results?.snapshot.ids)
            }
            #expect(count == 1)
            #expect(found.last == id && found.count == round)
            #expect(shown == found)
        }
        await worker.perform { _ in live.results = nil }
    }

    /// Catches: derived values of the deleted object as unsaved changes, which hide those that others have saved since.
    @Test(arguments: StoreKind.allCases, [false, true])
    func `S200, S007: an object that two contexts restore shows the derived values that were saved last`(
        _ kind: StoreKind, _ restoresInChild: Bool
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: RecordLibrary.model)
        let (root, other) = (container.coordinator.newBackgroundContext(), container.coordinator.newBackgroundContext())
        let id = try await root.perform(andSave: .durable) { $0.makeRecord("x").objectID }
        let before = try container.coordinator.snapshot()
        let context = restoresInChild ? await root.newBackgroundChild() : root
        try await context.perform(andSave: .durable, through: .store) { context throws in
            context.transactionAuthor = "deleter"
            context.undoHistory = UndoHistory()
            context.delete(try context.existingObject(with: id))
        }
        try await container.undoChanges(by: "deleter", since: before)
        await other.perform { $0.refreshAllObjects() }
        try await other.perform(andSave: .durable) { try $0.makeSong("t", on: $0.existingObject(with: id)) }
        try await context.perform { _ = try $0.undoHistory?.undo() }
        if restoresInChild {
            await root.perform { $0.refreshAllObjects() }
            try await context.save()
        } else {
            await context.perform { $0.refreshAllObjects() }
        }
        try await root.perform { context throws in
            #expect(!context.hasChanges)
            #expect(try context.existingObject(with: id)["trackCount"] == 1)
            #expect(try context.fetchIDs(Self.filled) == [id])
        }
        #expect(try await RecordLibrary.differences(in: container) == [])
        try await container.close()
        withExtendedLifetime(bed) {}
    }
}
