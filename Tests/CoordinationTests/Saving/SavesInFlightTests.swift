import Dispatch
import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

/// Merges, rollbacks and resets while a save waits for the writer.
@Suite struct SavesInFlightTests {
    @Test(arguments: StoreKind.allCases, [MergePolicy.objectTrump, .overwrite])
    func `S106: a deletion that is merged while a save waits is not undone by the next save`(
        _ kind: StoreKind, _ policy: MergePolicy
    ) async throws {
        let held = try await HeldSaves(kind)
        let context = await held.container.makeBackgroundContext(name: "a")
        await context.perform { $0.automaticallyMergesChanges = true }
        held.block()
        // Both are written in one group. The context merges the deletion before it learns that its own save succeeded.
        let saving = Task { [track = held.track] in
            try await context.perform(andSave: .durable) { try $0.existingObject(with: track)["plays"] = .int(1) }
        }
        try await held.queued(1)
        let deleting = Task { try await held.container.coordinator.batchDelete(EntityFetchRequest("Track")) }
        try await held.queued(2)
        held.release()
        try await saving.value
        _ = try await deleting.value
        try await until("the deletion is merged") { try await context.perform { try $0.trackTitles() } == [] }
        #expect(await context.perform { !$0.hasChanges })
        await context.perform { $0.mergePolicy = policy }
        try await context.save()
        #expect(try await held.titles() == [])
    }

    @Test(arguments: StoreKind.allCases)
    func `S106: a change made while a save waits keeps only its own property`(_ kind: StoreKind) async throws {
        let held = try await HeldSaves(kind)
        let context = await held.container.makeBackgroundContext(name: "a")
        await context.perform {
            $0.automaticallyMergesChanges = true
            $0.mergePolicy = .objectTrump
        }
        let other = await held.container.makeBackgroundContext(name: "b")
        held.block()
        let deleting = Task { try await held.container.coordinator.batchDelete(EntityFetchRequest("Track")) }
        try await held.queued(1)
        // The save restores the object that the batch deletes.
        let saving = Task { [track = held.track] in
            try await context.perform(andSave: .durable) { try $0.existingObject(with: track)["plays"] = .int(1) }
        }
        try await held.queued(2)
        await context.perform { [track = held.track] in
            $0.registeredObjects.first { $0.objectID == track }?["title"] = .string("mine")
        }
        held.release()
        _ = try await deleting.value
        try await saving.value
        try await other.perform(andSave: .durable) { [track = held.track] in
            $0.refreshAllObjects()
            try $0.existingObject(with: track)["plays"] = .int(7)
        }
        try await context.save()
        let found = try await held.container.makeBackgroundContext(name: "c").perform { context in
            try context.objects("Track").map { [$0["title"], $0["plays"]] }
        }
        #expect(found == [[.string("mine"), .int(7)]])
    }

    @Test(arguments: StoreKind.allCases, [false, true])
    func `S049: a save that fails after a reset brings no change back`(_ kind: StoreKind, _ isLookedUp: Bool) async throws {
        let held = try await HeldSaves(kind)
        let context = await held.container.makeBackgroundContext(name: "a")
        held.block()
        let deleting = Task { try await held.container.coordinator.batchDelete(EntityFetchRequest("Track")) }
        try await held.queued(1)
        let saving = Task { [track = held.track] in
            try await context.perform(andSave: .durable) { try $0.existingObject(with: track)["plays"] = .int(1) }
        }
        try await held.queued(2)
        await context.perform { $0.reset() }
        let id = held.track
        func plays() async -> Value { await context.perform { $0.object(with: id)["plays"] } }
        if isLookedUp {
            // Until the save ends, the context shows what the save has taken.
            #expect(await plays() == .int(1))
        }
        held.release()
        _ = try await deleting.value
        await #expect(throws: SaveError.self) { try await saving.value }
        #expect(await context.perform { !$0.hasChanges })
        if isLookedUp {
            #expect(await plays() != .int(1))
        }
        let before = try held.container.coordinator.snapshot().generation
        try await context.save()
        #expect(try held.container.coordinator.snapshot().generation == before)
    }

    /// Catches: a record of types that replaces that of another child in the same transaction.
    @Test(arguments: StoreKind.allCases)
    func `S192: of two children in one group that record other types of a collection, one is refused`(
        _ kind: StoreKind
    ) async throws {
        let held = try await HeldSaves(kind)
        let parent = await held.container.makeBackgroundContext(name: "parent")
        let first = await parent.newBackgroundChild(name: "first")
        let second = await parent.newBackgroundChild(name: "second")
        try await first.perform { try $0.collection("names", of: Double.self).setValue(1, forKey: "a") }
        try await second.perform { try $0.collection("names", of: String.self).setValue("x", forKey: "b") }
        await parent.perform { _ = $0.makeTrack("y") }
        held.block()
        let saving = Task { try await parent.save() }
        try await held.queued(1)
        let saves = [first, second].map { child in
            Task {
                do { try await child.save(through: .store) } catch is CollectionError { return false }
                return true
            }
        }
        try await until("both children wait") { await parent.perform { $0.phase.saveGate.pushCount } == 2 }
        held.release()
        try await saving.value
        let areSaved = [try await saves[0].value, try await saves[1].value]
        #expect(areSaved.count { $0 } == 1)
        for (child, isSaved) in zip([first, second], areSaved) { #expect(await child.perform { $0.hasChanges } == !isSaved) }
        let counts = await held.container.makeBackgroundContext(name: "after").perform { context in
            [
                try? context.collection("names", of: Double.self).all.entries().count,
                try? context.collection("names", of: String.self).all.entries().count,
            ]
        }
        #expect(counts == areSaved.map { $0 ? 1 : nil })
        #expect(try held.container.coordinator.store.verify() == [])
    }

    @Test func `a deferred save within any duration is accepted`() async throws {
        let bed = try TestBed(.lmdb)
        let container = try await bed.container()
        let context = await container.makeBackgroundContext(name: "a")
        for limit in [Duration.milliseconds(9_223_372_036_900), .seconds(Int64.max), .nanoseconds(1), .zero] {
            await context.perform { _ = $0.makeTrack("x") }
            try await context.save(.deferred(within: limit))
        }
        try await container.flush()
        #expect(try await context.perform { try $0.trackTitles().count } == 4)
    }

    /// Returns a context of the author "a" that can undo and does not merge, and a snapshot from before its changes.
    private static func undoing(_ held: HeldSaves) async throws -> (context: BackgroundContext, before: Snapshot) {
        let context = await held.container.makeBackgroundContext(name: "a")
        let before = try held.container.coordinator.snapshot(owner: "before")
        await context.perform {
            $0.automaticallyMergesChanges = false
            $0.transactionAuthor = "a"
            $0.undoHistory = UndoHistory()
        }
        return (context, before)
    }

    /// Catches: an insertion that restores an object, and writes its whole row over what others have saved of the object they restored.
    @Test(arguments: StoreKind.allCases)
    func `S100, S162: an object restored during a save conflicts with what others have saved of it`(_ kind: StoreKind)
        async throws
    {
        let held = try await HeldSaves(kind)
        let (context, before) = try await Self.undoing(held)
        try await context.perform(andSave: .durable) { [track = held.track] in try $0.delete($0.existingObject(with: track)) }
        try await held.container.undoChanges(by: "a", since: before)
        try await held.setPlays(7)
        held.block()
        let saving = Task {
            try await context.perform(andSave: .durable) { context in
                context.undoHistory?.withoutRegistration { _ = context.makeTrack("y") }
            }
        }
        try await held.queued(1)
        try await context.perform { _ = try $0.undoHistory?.undo() }
        held.release()
        try await saving.value
        await #expect(throws: SaveError.self) { try await context.save() }
    }

    /// Catches: an insertion over a deletion in flight, which replaces the object that others have restored, and its values.
    @Test(arguments: StoreKind.allCases, [true, false])
    func `S100, S162: a deletion undone during its own save conflicts with what others have restored`(
        _ kind: StoreKind, merges: Bool
    ) async throws {
        let held = try await HeldSaves(kind)
        let (context, before) = try await Self.undoing(held)
        held.block()
        let saving = Task { [track = held.track] in
            try await context.perform(andSave: .durable) { try $0.delete($0.existingObject(with: track)) }
        }
        try await held.queued(1)
        try await context.perform { _ = try $0.undoHistory?.undo() }
        held.release()
        try await saving.value
        try await held.container.undoChanges(by: "a", since: before)
        try await held.setPlays(7)
        if merges {
            // The restored object is one of the store now, so that deleting it is a change.
            try await context.perform { [track = held.track] context in
                context.refreshAllObjects()
                context.delete(try context.existingObject(with: track))
            }
            try await context.save()
            #expect(try await held.titles() == [])
        } else {
            await #expect(throws: SaveError.self) { try await context.save() }
            let plays = try await held.container.makeBackgroundContext(name: "after").perform { [track = held.track] in
                try $0.existingObject(with: track)["plays"]
            }
            #expect(plays == .int(7))
        }
    }

    // MARK: What a failed save gives back

    private static func quiet(_ held: HeldSaves, undo: Bool = false) async throws -> BackgroundContext {
        let context = await held.container.makeBackgroundContext(name: "a")
        await context.perform {
            $0.automaticallyMergesChanges = false
            if undo { $0.undoHistory = UndoHistory() }
        }
        return context
    }

    /// Catches: a whole row of values from before a deletion, which a failed save gives back after the object has returned.
    @Test(arguments: StoreKind.allCases)
    func `S091, S106: an object that returns during a failing save keeps only its own property`(_ kind: StoreKind) async throws {
        let held = try await HeldSaves(kind)
        let id = held.track
        let ours = try await Self.quiet(held)
        let theirs = await held.container.makeBackgroundContext(name: "b")
        await theirs.perform { $0.undoHistory = UndoHistory() }
        try await ours.perform { try $0.existingObject(with: id)["plays"] = .int(1) }
        try await theirs.perform(andSave: .durable) { $0.delete(try $0.existingObject(with: id)) }
        await ours.perform { $0.refreshAllObjects() }
        try await theirs.perform(andSave: .durable) { _ = try $0.undoHistory?.undo() }
        try await theirs.perform(andSave: .durable) { try $0.existingObject(with: id)["title"] = .string("newer") }
        held.block()
        let saving = Task { try await ours.save() }
        try await held.queued(1)
        await ours.perform { $0.refreshAllObjects() }
        held.release()
        await #expect(throws: SaveError.self) { try await saving.value }
        await ours.perform { context in
            #expect(context.object(with: id)["title"] == .string("newer"))
            #expect(Set(context.object(with: id).changedValues.keys) == ["plays"])
        }
        try await ours.save()
        #expect(try await held.titles() == ["newer"])
    }

    /// Catches: a record of an update that is saved, by which a later merge drops what a child has pushed.
    @Test(arguments: StoreKind.allCases)
    func `S074, S091: a child's change of an object that was written again survives a merge`(_ kind: StoreKind) async throws {
        let held = try await HeldSaves(kind)
        let id = held.track
        let root = try await Self.quiet(held)
        await root.perform { $0.mergePolicy = .objectTrump }
        try await root.perform { try $0.existingObject(with: id)["plays"] = .int(1) }
        try await held.container.newBatchOperationContext().perform(andSave: .durable) {
            $0.delete(try $0.existingObject(with: id))
        }
        await root.perform { $0.refreshAllObjects() }
        held.block()
        let saving = Task { try await root.save() }
        try await held.queued(1)
        await root.perform { _ = $0.makeTrack("during") }
        held.release()
        try await saving.value
        let child = await root.newBackgroundChild(name: "child")
        try await child.perform { try $0.existingObject(with: id)["title"] = .string("child") }
        try await child.save()
        await root.perform { #expect($0.object(with: id).changedValues["title"] == .string("child")) }
        try await held.container.newBatchOperationContext().perform(andSave: .durable) { _ = $0.makeTrack("z") }
        await root.perform { context in
            context.refreshAllObjects()
            #expect(context.object(with: id)["title"] == .string("child"))
        }
    }

    /// Catches: an undone change in a failed save, which stays as a change of every property and replaces what others have saved.
    @Test(arguments: StoreKind.allCases, [(false, false), (false, true), (true, false), (true, true)])
    func `S007, S062, S162: what was undone during its own save leaves nothing if the save fails`(
        _ kind: StoreKind, _ variant: (deletes: Bool, merges: Bool)
    ) async throws {
        let held = try await HeldSaves(kind)
        let id = held.track
        let context = try await Self.quiet(held, undo: true)
        try await context.perform { _ = try $0.existingObject(with: id)["title"] }
        try await held.container.newBatchOperationContext().perform(andSave: .durable) {
            try $0.existingObject(with: id)["title"] = .string("newer")
        }
        held.block()
        let saving = Task {
            try await context.perform(andSave: .durable) { context in
                let track = try context.existingObject(with: id)
                if variant.deletes { context.delete(track) } else { track["title"] = .string("mine") }
            }
        }
        try await held.queued(1)
        try await context.perform { context in
            _ = try context.undoHistory?.undo()
            if variant.merges { context.refreshAllObjects() }
        }
        held.release()
        await #expect(throws: SaveError.self) { try await saving.value }
        await context.perform { context in
            #expect(!context.hasChanges && context.object(with: id).changedValues.isEmpty)
            #expect(context.object(with: id)["title"] == .string(variant.merges ? "newer" : "x"))
            context.refreshAllObjects()
            #expect(context.object(with: id)["title"] == .string("newer"))
        }
        try await context.save()
        #expect(try await held.titles() == ["newer"])
    }

    /// Catches: a rest of an undone change, which stays unsaved although others have deleted the object.
    @Test(arguments: StoreKind.allCases, [false, true])
    func `S007, S106: what was undone during a failing save leaves nothing of an object that others have deleted`(
        _ kind: StoreKind, _ keepsPlays: Bool
    ) async throws {
        let held = try await HeldSaves(kind)
        let id = held.track
        let context = try await Self.quiet(held, undo: true)
        try await context.perform { context in
            let track = try context.existingObject(with: id)
            guard keepsPlays else { return }
            context.undoHistory?.withoutRegistration { track["plays"] = .int(5) }
        }
        try await held.container.newBatchOperationContext().perform(andSave: .durable) { context in
            context.delete(try context.existingObject(with: id))
            _ = context.makeTrack("other")
        }
        held.block()
        let saving = Task {
            try await context.perform(andSave: .durable) { context in
                try context.existingObject(with: id)["title"] = .string("mine")
                context.mergePolicy = .error
            }
        }
        try await held.queued(1)
        try await context.perform { context in
            _ = try context.undoHistory?.undo()
            context.refreshAllObjects()
        }
        held.release()
        await #expect(throws: SaveError.self) { try await saving.value }
        await context.perform { context in
            #expect(context.hasChanges == keepsPlays)
            context.mergePolicy = .overwrite
        }
        try await context.save()
        #expect(try await held.titles().sorted() == (keepsPlays ? ["other", "x"] : ["other"]))
    }

    /// Catches: a second undo during a save that forgets what the first one has given back.
    @Test(arguments: StoreKind.allCases)
    func `S007, S162: each of two undos during a failing save leaves nothing`(_ kind: StoreKind) async throws {
        let held = try await HeldSaves(kind)
        let id = held.track
        let context = try await Self.quiet(held, undo: true)
        try await context.perform { try $0.existingObject(with: id)["title"] = .string("mine") }
        try await context.perform { try $0.existingObject(with: id)["plays"] = .int(5) }
        try await held.setPlays(7)
        held.block()
        let saving = Task { try await context.save() }
        try await held.queued(1)
        try await context.perform { _ = try $0.undoHistory?.undo() }
        await context.perform { $0.refreshAllObjects() }
        try await context.perform { _ = try $0.undoHistory?.undo() }
        held.release()
        await #expect(throws: SaveError.self) { try await saving.value }
        await context.perform { context in
            #expect(!context.hasChanges)
            #expect(context.object(with: id)["plays"] == .int(7) && context.object(with: id)["title"] == .string("x"))
        }
    }
}
