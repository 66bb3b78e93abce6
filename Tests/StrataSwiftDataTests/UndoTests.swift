import StrataSwiftData
import Testing

import class ObjectGraph.UndoHistory

/// Undo in a context of SwiftData's spelling.
@Suite struct UndoTests {
    @Test(arguments: TestStore.allCases)
    func `S162: an insertion and a change are undone and redone, and a save keeps them`(_ store: TestStore) async throws {
        try await store.use(ToDo.self) { container in
            let context = ModelContext(container)
            #expect(context.undoHistory == nil)
            let history = UndoHistory(levels: 50)
            context.undoHistory = history
            #expect(context.undoHistory === history)
            let item = ToDo("a")
            context.insert(item)
            context.processPendingChanges()
            item.title = "b"
            context.processPendingChanges()
            try history.undo()
            #expect(item.title == "a" && history.canUndo && history.canRedo)
            try history.undo()
            #expect(try context.fetchCount(FetchDescriptor<ToDo>()) == 0)
            #expect(!context.hasChanges && !history.canUndo)
            try history.redo()
            try history.redo()
            #expect(try context.fetch(FetchDescriptor<ToDo>()) == [item])
            #expect(item.title == "b")
            try context.save()
            try history.undo()
            #expect(item.title == "a" && context.hasChanges)
            try context.save()
            #expect(try titles(in: container) == ["a"])
            context.rollback()
            #expect(!history.canUndo)
        }
    }

    @Test @MainActor func `S162: the example of the undo history runs in the main context`() throws {
        let container = try inMemory(Trip.self)
        let context = container.mainContext
        context.autosaveEnabled = false
        let trip = Trip(name: "Bergen")
        context.insert(trip)
        try context.save()
        // Sources/StrataSwiftData/Contexts/ModelContext+Undo.swift
        let history = UndoHistory(levels: 50)
        context.undoHistory = history
        trip.name = "Oslo"
        context.processPendingChanges()
        try history.undo()
        try history.redo()
        // end
        #expect(trip.name == "Oslo")
        try history.undo()
        #expect(trip.name == "Bergen" && !context.hasChanges)
    }
}
