import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Undo of unsaved changes below which another context has saved (S162).
@Suite struct UndoMergeTests {
    /// Two contexts that show the same saved track with 1 play. The worker has a history.
    private struct Sides {
        let bed: TestBed
        let container: PersistentContainer
        let worker: BackgroundContext
        let other: BackgroundContext
        let track: ObjectID
        /// Whether the worker is a child.
        let isChild: Bool

        init(_ combination: Combination) async throws {
            isChild = combination.stack != .siblings && combination.stack != .split
            bed = try TestBed(combination.store)
            container = try await bed.container(combination.stack)
            worker = await container.newBackgroundContext()
            track = await worker.perform { $0.makeTrack("t", plays: 1).objectID }
            try await worker.save(through: .store)
            await worker.perform { $0.undoHistory = UndoHistory() }
            other = await container.newBackgroundContext()
        }

        /// Sets a property of the track in the worker, as one group.
        func set(_ property: String, _ value: Value) async throws {
            try await worker.perform { [track] in try $0.existingObject(with: track)[property] = value }
        }

        /// Saves a property of the track in the other context, and lets the worker merge it.
        func merge(_ property: String, _ value: Value) async throws {
            try await other.perform { [track] in try $0.existingObject(with: track)[property] = value }
            try await other.save(through: .store)
            await worker.perform { $0.refreshAllObjects() }
            if isChild { try await worker.refreshFromParent() }
        }

        /// Saves the worker, and returns the stored plays and title.
        func saved() async throws -> [Value] {
            try await worker.save(through: .store)
            #expect(try container.coordinator.store.verify() == [])
            return try await container.read { [track] context in
                let stored = try context.existingObject(with: track)
                return [stored["plays"], stored["title"]]
            }
        }
    }

    /// Catches: an undo that takes back what another context has saved meanwhile, because it returns to the value that it replaced.
    @Test(arguments: Combination.all)
    func `S162, S100: undoing an unsaved update shows what another context has saved meanwhile`(
        _ combination: Combination
    ) async throws {
        let sides = try await Sides(combination)
        let id = sides.track
        try await sides.set("plays", 2)
        try await sides.merge("plays", 7)
        try await sides.worker.perform { context throws in
            let track = try context.existingObject(with: id)
            let history = try #require(context.undoHistory)
            #expect(track["plays"] == 2, "the own change stays")
            #expect(try history.undo() == [])
            #expect(track["plays"] == 7 && !context.hasChanges)
            #expect(try history.redo() == [])
            #expect(track["plays"] == 2 && context.hasChanges)
            #expect(try history.undo() == [])
            #expect(track["plays"] == 7 && !context.hasChanges && !history.canUndo)
        }
        #expect(try await sides.saved() == [7, "t"])
        try await sides.container.close()
    }

    /// Catches: the oldest of several updates of one property that takes back what another context has saved.
    @Test(arguments: Combination.all)
    func `S162, S100: undoing several unsaved updates ends with what another context has saved meanwhile`(
        _ combination: Combination
    ) async throws {
        let sides = try await Sides(combination)
        let id = sides.track
        try await sides.set("plays", 2)
        try await sides.set("plays", 3)
        try await sides.merge("plays", 7)
        try await sides.worker.perform { context throws in
            let track = try context.existingObject(with: id)
            let history = try #require(context.undoHistory)
            for _ in 0..<2 {
                #expect(track["plays"] == 3)
                #expect(try history.undo() == [])
                #expect(track["plays"] == 2 && context.hasChanges)
                #expect(try history.undo() == [])
                #expect(track["plays"] == 7 && !context.hasChanges && !history.canUndo)
                #expect(try history.redo() == [])
                #expect(track["plays"] == 2 && context.hasChanges)
                #expect(try history.redo() == [])
                #expect(!history.canRedo)
            }
            try history.undo()
            try history.undo()
        }
        #expect(try await sides.saved() == [7, "t"])
        try await sides.container.close()
    }

    /// Catches: an undo that takes back a property that another context has saved, or the whole object of the other context.
    @Test(arguments: Combination.all)
    func `S162, S100: undoing an unsaved update leaves only the properties to another context that it has saved meanwhile`(
        _ combination: Combination
    ) async throws {
        let sides = try await Sides(combination)
        let id = sides.track
        try await sides.worker.perform { context throws in
            let track = try context.existingObject(with: id)
            (track["plays"], track["title"]) = (2, "own")
        }
        try await sides.merge("title", "other")
        try await sides.worker.perform { context throws in
            let track = try context.existingObject(with: id)
            #expect(track["plays"] == 2 && track["title"] == "own", "the own changes stay")
            #expect(try context.undoHistory?.undo() == [])
            #expect(track["plays"] == 1 && track["title"] == "other" && !context.hasChanges)
        }
        #expect(try await sides.saved() == [1, "other"])
        try await sides.container.close()
    }

    /// Catches: an undo in a child that takes back what its parent has merged.
    @Test(arguments: StoreKind.allCases)
    func `S162, S100: undoing an unsaved update of a child shows what its parent has merged meanwhile`(_ kind: StoreKind)
        async throws
    {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let root = container.coordinator.newBackgroundContext()
        let id = await root.perform { $0.makeTrack("t", plays: 1).objectID }
        try await root.save()
        let other = container.coordinator.newBackgroundContext()
        let child = await root.perform { $0.newBackgroundChild() }
        await child.perform { $0.undoHistory = UndoHistory() }
        try await child.perform { try $0.existingObject(with: id)["plays"] = 2 }
        try await other.perform { try $0.existingObject(with: id)["plays"] = 7 }
        try await other.save()
        await root.perform { $0.refreshAllObjects() }
        try await child.refreshFromParent()
        try await child.perform { context throws in
            let track = try context.existingObject(with: id)
            let history = try #require(context.undoHistory)
            #expect(track["plays"] == 2, "the own change stays")
            #expect(try history.undo() == [])
            #expect(track["plays"] == 7 && !context.hasChanges)
            #expect(try history.redo() == [])
            #expect(track["plays"] == 2 && context.hasChanges)
            #expect(try history.undo() == [])
            #expect(track["plays"] == 7 && !context.hasChanges)
        }
        try await child.save()
        #expect(await root.perform { !$0.hasChanges })
        #expect(try await container.read { try $0.existingObject(with: id)["plays"] } == 7)
        #expect(try container.coordinator.store.verify() == [])
        try await container.close()
    }
}
