import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// An unchanged NaN does not count as a change, although NaN is not equal to itself.
@Suite struct NaNTests {
    @Test(arguments: Combination.all)
    func `S162: changes to NaN and deletions of objects with NaN are undone and redone without conflicts`(
        _ combination: Combination
    ) async throws {
        try await UndoTests.withHistory(combination) { worker in
            let id = await worker.perform { $0.makeTrack("a").objectID }
            try await worker.save(through: .store)
            try await worker.perform { try $0.existingObject(with: id)["rating"] = .double(.nan) }
            try await worker.perform { context throws in
                let (track, history) = (try context.existingObject(with: id), try #require(context.undoHistory))
                try history.undo()
                #expect(track["rating"] == 2.5 && !context.hasChanges)
                try history.redo()
                #expect(track["rating"].isNaN)
            }
            try await worker.perform { $0.delete(try $0.existingObject(with: id)) }
            try await worker.perform { context throws in
                let history = try #require(context.undoHistory)
                try history.undo()
                #expect(try context.existingObject(with: id)["rating"].isNaN)
                try history.redo()
                #expect(try context.trackTitles() == [])
                for _ in 0..<3 { try history.undo() }
                #expect(!history.canUndo)
            }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `S102: storeTrump keeps our new value of a property that was NaN and that the store has not changed`(
        _ kind: StoreKind
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let (ours, other) = (container.coordinator.newBackgroundContext(), container.coordinator.newBackgroundContext())
        let id = await ours.perform { context in
            let track = context.makeTrack("base")
            track["rating"] = .double(.nan)
            return track.objectID
        }
        try await ours.save()
        await other.perform { $0.refreshAllObjects() }
        try await other.perform { try $0.existingObject(with: id)["title"] = "theirs" }
        try await ours.perform { context in
            try context.existingObject(with: id)["rating"] = 5.0
            context.mergePolicy = .storeTrump
        }
        try await other.save()
        try await ours.save()
        let shown = try await ours.perform { context throws in
            let track = try context.existingObject(with: id)
            return [track["title"], track["rating"]]
        }
        #expect(shown == ["theirs", 5.0])
    }

    @Test(arguments: StoreKind.allCases)
    func `S200: a derived value that is NaN is right, and its changes are no conflict`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: RecordLibrary.model)
        let (ours, other) = (container.coordinator.newBackgroundContext(), container.coordinator.newBackgroundContext())
        let id = await ours.perform { context in
            let album = context.makeRecord("a")
            context.makeSong("x", length: 1, rating: .nan, on: album)
            return album.objectID
        }
        try await ours.save()
        #expect(try await container.coordinator.verify() == [])
        await other.perform { $0.refreshAllObjects() }
        try await ours.perform { try $0.existingObject(with: id)["title"] = "b" }
        try await other.perform { $0.makeSong("y", length: 2, rating: 1, on: try $0.existingObject(with: id)) }
        try await other.save()
        try await ours.save()
        let shown = try await ours.perform { context throws in
            let album = try context.existingObject(with: id)
            return ["title", "totalLength"].map { album[$0] } + [.bool(album["ratingSum"].isNaN)]
        }
        #expect(shown == ["b", 3, .bool(true)])
        #expect(try await container.coordinator.verify() == [])
    }
}

extension Value {
    fileprivate var isNaN: Bool { if case .double(let number) = self { number.isNaN } else { false } }
}
