import Dispatch
import Platform
import StrataSwiftData
import Testing

/// Two versions of a note that are not connected by a plan, and a model that has nothing in common with them.
private enum Full {
    @Model final class Note {
        var title: String
        var text = "long"
        init(title: String) { self.title = title }
    }
}

private enum Short {
    @Model final class Note {
        var title: String
        init(title: String) { self.title = title }
    }
}

@Model private final class Stranger {
    var name: String
    init(name: String) { self.name = name }
}

@Suite struct ContainerTests {
    @Test func `several configurations throw`() {
        let configurations = [
            ModelConfiguration("a", isStoredInMemoryOnly: true), ModelConfiguration("b", isStoredInMemoryOnly: true),
        ]
        #expect { try ModelContainer(for: Schema([ToDo.self]), configurations: configurations) } throws: { error in
            SwiftDataError.duplicateConfiguration ~= error
        }
    }

    /// Catches: a model that only the configuration has, whose first insertion stops the program.
    @Test func `a configuration with models that the container does not have throws an error that names them`() {
        let configuration = ModelConfiguration(schema: Schema([ToDo.self, Stranger.self]), isStoredInMemoryOnly: true)
        #expect {
            try ModelContainer(for: ToDo.self, configurations: configuration)
        } throws: { error in
            SwiftDataError.configurationSchemaNotFoundInContainerSchema ~= error && "\(error)".contains("Stranger")
                && !"\(error)".contains("ToDo")
        }
    }

    @Test func `a configuration with some of the container's models stores all of them`() throws {
        // The schemas also have the models to which these have relationships, and the superclasses.
        let configuration = ModelConfiguration(schema: Schema([ToDoList.self, Journey.self]), isStoredInMemoryOnly: true)
        let container = try ModelContainer(
            for: ToDo.self, Stranger.self, PaidJourney.self, configurations: configuration)
        let context = ModelContext(container)
        context.insert(ToDo("a"))
        context.insert(Stranger(name: "b"))
        context.insert(Journey(name: "c"))
        try context.save()
        let count = try context.fetchCount(FetchDescriptor<ToDo>()) + context.fetchCount(FetchDescriptor<Stranger>())
        #expect(count == 2)
        #expect(try context.fetch(FetchDescriptor<Journey>()).map(\.name) == ["c"])
    }

    /// Catches: an opening that reads the schema of the file, and is refused because another one opens it meanwhile.
    @Test(arguments: ModelConfiguration.Store.allCases)
    func `containers of one file that are opened at once all open`(_ store: ModelConfiguration.Store) async throws {
        try await TestFile.use(store) { file in
            try await file.open(ToDo.self).close()
            for _ in 0..<10 {
                let opened = Opened()
                DispatchQueue.concurrentPerform(iterations: 4) { _ in
                    let result = Result { try file.open(ToDo.self) }
                    opened.results.withLock { $0.append(result) }
                }
                for result in opened.results.withLock({ $0 }) { try await result.get().close() }
            }
        }
    }

    private final class Opened: Sendable {
        let results = Mutex<[Result<ModelContainer, any Error>]>([])
    }

    @Test(arguments: TestStore.allCases)
    func `erasing deletes all objects of all models`(_ store: TestStore) async throws {
        try await store.use(ToDo.self) { container in
            let context = ModelContext(container)
            let item = ToDo("a")
            item.list = ToDoList(name: "work")
            context.insert(item)
            try context.save()
            try container.erase()
            let after = ModelContext(container)
            #expect(try after.fetchCount(FetchDescriptor<ToDo>()) == 0)
            #expect(try after.fetchCount(FetchDescriptor<ToDoList>()) == 0)
        }
    }

    /// Saves one note in a file, and closes the file.
    private static func fill(_ file: TestFile) async throws {
        let container = try file.open(Full.Note.self)
        let context = ModelContext(container)
        context.insert(Full.Note(title: "kept"))
        try context.save()
        try await container.close()
    }

    @Test(arguments: ModelConfiguration.Store.allCases)
    func `without a plan, a migration drops what the models no longer have`(_ store: ModelConfiguration.Store) async throws {
        try await TestFile.use(store) { file in
            try await Self.fill(file)
            let container = try file.open(Short.Note.self)
            let context = ModelContext(container)
            #expect(try context.fetch(FetchDescriptor<Short.Note>()).map(\.title) == ["kept"])
            try await container.close()
            withExtendedLifetime(context) {}
        }
    }

    @Test(arguments: ModelConfiguration.Store.allCases)
    func `a file of other models is not opened and loses nothing`(_ store: ModelConfiguration.Store) async throws {
        try await TestFile.use(store) { file in
            try await Self.fill(file)
            #expect(throws: (any Error).self) { try file.open(Stranger.self) }
            let container = try file.open(Full.Note.self)
            let context = ModelContext(container)
            #expect(try context.fetch(FetchDescriptor<Full.Note>()).map(\.text) == ["long"])
            try await container.close()
            withExtendedLifetime(context) {}
        }
    }
}
