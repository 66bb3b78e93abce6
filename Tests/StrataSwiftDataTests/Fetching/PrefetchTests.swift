import StoreModel
import Testing

@testable import ObjectGraph
@testable import StrataSwiftData

@Suite struct PrefetchTests {
    @Test(arguments: TestStore.allCases)
    func `S025: relationshipKeyPathsForPrefetching reads related objects with the result`(_ store: TestStore) async throws {
        try await store.use(ToDoList.self) { container in
            let writer = ModelContext(container)
            let list = ToDoList(name: "home")
            writer.insert(list)
            list.items.append(ToDo("a"))
            try writer.save()
            // The pages of the store do not contain deferred saves.
            try await container.flush()
            let id = list.managedObject.objectID

            let context = ModelContext(container)
            func isRead() -> Bool { context.context.layerStack.pages.holds(id.entity, id.key.page) }
            var request = FetchDescriptor<ToDo>()
            #expect(try context.fetch(request).count == 1)
            #expect(!isRead())
            request.relationshipKeyPathsForPrefetching = [\.list]
            #expect(try context.fetch(request).count == 1)
            #expect(isRead())
            withExtendedLifetime((writer, context)) {}
        }
    }

    /// Catches: a fetch that throws because of an attribute, and a predicate that is evaluated in memory because of it.
    @Test(arguments: TestStore.allCases)
    func `a key path for prefetching that is no relationship is ignored`(_ store: TestStore) async throws {
        try await store.use(ToDoList.self) { container in
            let context = ModelContext(container)
            let list = ToDoList(name: "home")
            context.insert(list)
            list.items.append(ToDo("a"))
            try context.save()
            var request = FetchDescriptor<ToDo>()
            request.relationshipKeyPathsForPrefetching = [\.title, \.list?.name, \.list]
            #expect(try context.fetch(request).map(\.title) == ["a"])
            #expect(try context.fetch(request, batchSize: 1).map(\.title) == ["a"])
            request.predicate = #Predicate { $0.title == "a" }
            #expect(try context.fetch(request).map(\.title) == ["a"])
            #expect(request.request(isFiltered: true, sorted: []).relationshipKeyPathsForPrefetching == ["list"])
        }
    }
}
