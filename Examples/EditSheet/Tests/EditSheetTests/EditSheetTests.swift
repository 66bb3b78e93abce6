import EditSheet
import MemoryStore
import ObjectGraph
import Observation
import Synchronization
import Testing

@Suite @MainActor struct EditSheetTests {
    private func container() async throws -> PersistentContainer {
        try await PersistentContainer(for: TaskItem.self, store: .memory(name: "\(#line) \(UInt64.random(in: 0...UInt64.max))"))
    }

    @Test func `S081: a sheet binds its own object and shows the edit elsewhere after the save`() async throws {
        let container = try await container()
        let main = container.mainContext
        let task = TaskItem(title: "Buy bread")
        main.insert(task)
        let notifications = Atomic<Int>(0)
        withObservationTracking {
            _ = task.title
        } onChange: {
            notifications.add(1, ordering: .relaxed)
        }
        let sheet = EditSheet(editing: task, in: main)
        let field = \TaskItem.title
        sheet.task[keyPath: field as ReferenceWritableKeyPath<TaskItem, String>] = "Buy a baguette"
        #expect(task.title == "Buy bread" && notifications.load(ordering: .relaxed) == 0)
        #expect(await sheet.save())
        #expect(task.title == "Buy a baguette" && notifications.load(ordering: .relaxed) == 1)
    }

    @Test func `S081: a sheet refuses an invalid edit and can save it once it is valid`() async throws {
        let container = try await container()
        let main = container.mainContext
        let sheet = EditSheet(in: main)
        #expect(await !sheet.save())
        #expect(sheet.message == "A task needs a title.")
        #expect(!main.hasChanges)
        sheet.task.title = "Buy bread"
        #expect(await sheet.save())
        #expect(sheet.message == nil)
        #expect(try main.fetch(FetchRequest<TaskItem>()).map(\.title) == ["Buy bread"])
    }

    @Test func `S081: a sheet that is released or reverted leaves no edit`() async throws {
        let container = try await container()
        let main = container.mainContext
        let task = TaskItem(title: "Buy bread")
        main.insert(task)
        try await main.save()
        do {
            let sheet = EditSheet(editing: task, in: main)
            sheet.task.title = "Buy a baguette"
            sheet.revert()
            #expect(sheet.task.title == "Buy bread")
            sheet.task.isDone = true
        }
        #expect(task.title == "Buy bread" && !task.isDone && !main.hasChanges)
    }
}
