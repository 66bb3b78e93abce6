import Logging
import StrataSwiftData
import Synchronization
import TestSupport
import Testing

/// Objects that are deleted and inserted again before a save (S048).
@Suite struct InsertedAgainTests {
    /// Catches: an insertion that does nothing, so that the next save deletes an object that the program wants.
    @Test(arguments: TestStore.allCases)
    func `S048: inserting a deleted object takes its unsaved deletion back`(_ store: TestStore) async throws {
        try await store.use(ToDoList.self) { container in
            let context = ModelContext(container)
            let (list, item) = (ToDoList(name: "list"), ToDo("a"))
            item.list = list
            context.insert(item)
            try context.save()
            let id = item.persistentModelID
            item.title = "changed"
            context.delete(item)
            #expect(item.isDeleted && list.items.isEmpty)
            context.insert(item)
            #expect(!item.isDeleted && item.title == "changed" && item.persistentModelID == id)
            #expect(item.list === list && list.items == [item])
            #expect(context.deletedModelsArray.isEmpty && context.insertedModelsArray.isEmpty)
            try context.save()
            #expect(try titles(in: container) == ["changed"])
            let changes = try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>()).last?.changes ?? []
            #expect(changes.count == 1)
            if case .update? = changes.first {} else { Issue.record("not one update: \(changes)") }
        }
    }

    @Test(arguments: TestStore.allCases)
    func `S048: what was deleted with an object stays deleted, unless all is rolled back`(_ store: TestStore) async throws {
        try await store.use(ToDoList.self) { container in
            let context = ModelContext(container)
            let (list, item) = (ToDoList(name: "list"), ToDo("a"))
            item.list = list
            context.insert(item)
            try context.save()
            context.delete(list)
            context.insert(list)
            #expect(!list.isDeleted && item.isDeleted && list.items.isEmpty)
            context.rollback()
            #expect(!item.isDeleted && list.items == [item] && !context.hasChanges)
            context.delete(list)
            context.insert(list)
            try context.save()
            let fresh = ModelContext(container)
            #expect(try fresh.fetch(FetchDescriptor<ToDoList>()).map(\.name) == ["list"])
            #expect(try fresh.fetchCount(FetchDescriptor<ToDo>()) == 0)
        }
    }

    /// Catches: a new object with the values from before, because the model whose values another one has taken counts as a new one.
    @Test(arguments: TestStore.allCases)
    func `S048, S108: inserting a model that a unique value has merged into another one does nothing`(_ store: TestStore)
        async throws
    {
        try await store.use(ToDo.self) { container in
            let context = ModelContext(container)
            let (first, second) = (ToDo("first"), ToDo("second"))
            second.id = first.id
            context.insert(first)
            try context.save()
            context.insert(second)
            try context.save()
            #expect(first.title == "second" && second.isDeleted)
            first.title = "third"
            context.insert(second)
            #expect(second.isDeleted && context.insertedModelsArray.isEmpty)
            try context.save()
            #expect(try titles(in: container) == ["third"])
            #expect(second.isDeleted && first.title == "third")
        }
    }

    /// Catches: an insertion that does nothing without a word.
    @Test func `an insertion that cannot take a deletion back is logged`() async {
        // A process has one handler for all loggers. The test sets it in another process than the other tests.
        await #expect(processExitsWith: .success) {
            let lines = Lines()
            LoggingSystem.bootstrap { _ in LineHandler { line in lines.all.withLock { $0.append(line) } } }
            let context = ModelContext(try inMemory(ToDo.self))
            let item = ToDo("a")
            context.insert(item)
            try context.save()
            context.delete(item)
            try context.save()
            context.insert(item)
            try #require(item.isDeleted && !context.hasChanges)
            let logged = lines.all.withLock { $0.filter { $0.contains("cannot insert ToDo") } }
            try #require(logged.count == 1 && logged[0].contains("its deletion is saved"))
        }
    }

    private final class Lines: Sendable {
        let all = Mutex<[String]>([])
    }

    /// Catches: a context that writes all values that it has read to the object that another context has imported again.
    @Test(arguments: TestStore.allCases)
    func `S103, S108: a change of an object that was imported again changes its own property only`(
        _ store: TestStore
    ) async throws {
        try await store.use(ToDoList.self) { container in
            let (context, importer) = (ModelContext(container), ModelContext(container))
            let (list, item) = (ToDoList(name: "l"), ToDo("old"))
            item.list = list
            context.insert(item)
            try context.save()
            item.isDone = true
            try importer.delete(model: ToDoList.self)
            let (newList, again) = (ToDoList(name: "l"), ToDo("new", due: .distantFuture))
            again.id = item.id
            again.list = newList
            importer.insert(again)
            try importer.save()
            try context.save()
            let fresh = ModelContext(container)
            let found = try fresh.fetch(FetchDescriptor<ToDo>())
            #expect(found.map(\.title) == ["new"] && found.first?.isDone == true)
            #expect(found.first?.due == .distantFuture && found.first?.list?.name == "l")
        }
    }
}
