import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

/// Saves of children past an idle main context.
@Suite struct DirectSaveTests {
    /// The stacks in which main forwards the saves of background contexts, and children go on from main's state after the save.
    private nonisolated static let combinations = Combination.all.filter { $0.stack == .nested || $0.stack == .masterMainWorker }

    /// Catches: a gate that never opens, so that each save costs the main thread a job more.
    @MainActor @Test(arguments: Self.combinations)
    func `S064: a child's next save passes main if main has nothing to add`(_ combination: Combination) async throws {
        let held = try await HeldSaves(combination.store, combination.stack)
        let worker = held.container.newBackgroundContext(name: "worker")
        await worker.perform { _ = $0.makeTrack("1") }
        try await worker.save(through: .store)
        #expect(held.container.mainContext.place.direct.isOpen)
        await worker.perform { _ = $0.makeTrack("2") }
        held.block()
        let saving = Task { try await worker.save(through: .store) }
        try await held.queued(1)
        #expect(held.container.mainContext.place.direct.isTaken)
        held.release()
        try await saving.value
        #expect(try held.container.mainContext.trackTitles() == ["1", "2", "x"])
    }

    /// Catches: a save that never returns, because it has passed a parent that was released.
    @MainActor @Test(arguments: StoreKind.allCases)
    func `S078: a child throws if its parent on the main actor was released after a save through it`(
        _ kind: StoreKind
    ) async throws {
        let held = try await HeldSaves(kind, .nested)
        var sheet: ManagedObjectContext? = held.container.mainContext.newChild(name: "sheet")
        weak let released = sheet
        let worker = try #require(sheet?.newBackgroundChild(name: "worker"))
        await worker.perform { _ = $0.makeTrack("1") }
        try await worker.save(through: .store)
        sheet = nil
        try await until("the parent is released") { released == nil }
        await worker.perform { _ = $0.makeTrack("2") }
        await #expect(throws: SaveError.self) { try await worker.save(through: .store) }
        #expect(try await held.titles() == ["1", "x"])
    }

    /// Catches: a save past main that drops the update of an object which only the root of main knows to be deleted.
    @MainActor @Test(arguments: StoreKind.allCases)
    func `S106: an update that passes main meets main's policy if the root has merged a deletion of the object`(
        _ kind: StoreKind
    ) async throws {
        let held = try await HeldSaves(kind, .masterMainWorker)
        let (main, track) = (held.container.mainContext, held.track)
        main.mergePolicy = .objectTrump
        let worker = held.container.newBackgroundContext(name: "worker")
        await worker.perform { _ = $0.makeTrack("1") }
        try await worker.save(through: .store)
        #expect(main.place.direct.isOpen)
        try await worker.perform { try $0.existingObject(with: track)["plays"] = .int(5) }
        let root = try #require(held.container.creation.root)
        let (isBlocked, mayMerge) = (Flag(), Flag())
        let merging = Task {
            await root.perform { context in
                isBlocked.set()
                _ = mayMerge.wait(atMost: .seconds(600))
                // Before main, as after `container.write`.
                context.refreshAllObjects()
            }
        }
        try await until("the root is blocked") { isBlocked.wait(atMost: .zero) }
        let saving = Task { try await worker.save(through: .store) }
        try await until("the save has passed main") { main.place.direct.isTaken }
        try await held.container.newBatchOperationContext().perform(andSave: .durable) { context in
            context.delete(try context.existingObject(with: track))
        }
        mayMerge.set()
        await merging.value
        try await saving.value
        let stored = try await held.container.newBatchOperationContext().perform { context -> [Value] in
            let object = try context.existingObject(with: track)
            return [object["title"], object["plays"]]
        }
        #expect(stored == ["x", .int(5)])
    }

    /// A change of main that its children's saves contain or follow.
    enum Change: String, CaseIterable, Sendable {
        case object, watched, author, policy, undo, merging, refused, reset, pushed
    }

    /// Catches: a save that passes main although main's change belongs to it.
    @MainActor @Test(arguments: Self.combinations, Change.allCases)
    func `S064: a save through main after a change of main passes through main`(
        _ combination: Combination, _ change: Change
    ) async throws {
        let held = try await HeldSaves(combination.store, combination.stack)
        let main = held.container.mainContext
        let (worker, other) = (held.container.newBackgroundContext(name: "worker"), held.container.newBackgroundContext())
        await worker.perform { _ = $0.makeTrack("1") }
        try await worker.save(through: .store)
        #expect(main.place.direct.isOpen)
        switch change {
        case .object: try main.existingObject(with: held.track)["plays"] = .int(7)
        case .watched: main.detectConflicts(for: try main.existingObject(with: held.track))
        case .author: main.transactionAuthor = "main"
        case .policy: main.mergePolicy = .objectTrump
        case .undo: main.undoHistory = UndoHistory()
        case .merging: main.automaticallyMergesChanges.toggle()
        case .refused: main.tracker.keyed.refused[.init()] = SaveError.parentGone(context: "test")
        case .reset: main.reset()
        case .pushed:
            await other.perform { _ = $0.makeTrack("2") }
            try await other.save()
        }
        #expect(!main.place.direct.isOpen)
    }
}
