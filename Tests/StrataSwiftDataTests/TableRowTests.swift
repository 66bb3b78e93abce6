import Testing

@testable import StrataSwiftData

@Model private final class Desk {
    var name = "desk"
    @Relationship(inverse: nil) var owner: Clerk?
    init() {}
}

@Model private final class Clerk {
    var name = "clerk"
    @Relationship(inverse: nil) var desk: Desk?
    init() {}
}

private enum North {
    @Model final class Room {
        var name = "north"
        init() {}
    }
}

private enum South {
    @Model final class Room {
        var name = "south"
        init() {}
    }
}

/// A plan with a stage to an older version.
private enum BackwardPlan: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] { RecipesPlan.schemas }
    static var stages: [MigrationStage] { [.lightweight(fromVersion: RecipesV2.self, toVersion: RecipesV1.self)] }
}

/// An actor that does without the macro.
private actor HandWrittenActor: ModelActor {
    nonisolated let modelContainer: ModelContainer
    nonisolated let modelExecutor: any ModelExecutor

    init(_ container: ModelContainer) {
        modelContainer = container
        modelExecutor = DefaultSerialModelExecutor(modelContext: ModelContext(container))
    }

    func add(_ title: String) throws -> PersistentIdentifier {
        let item = ToDo(title)
        modelContext.insert(item)
        try modelContext.save()
        return item.persistentModelID
    }

    func title(of id: PersistentIdentifier) -> String? { self[id, as: ToDo.self]?.title }
}

/// An actor with its own initializer.
@ModelActor(disableGenerateInit: true) private actor AuthoringActor {
    init(_ container: ModelContainer, author: String) {
        let context = ModelContext(container)
        context.author = author
        modelContainer = container
        modelExecutor = DefaultSerialModelExecutor(modelContext: context)
    }

    func add(_ title: String) throws {
        modelContext.insert(ToDo(title))
        try modelContext.save()
    }
}

/// A call through a protocol gives no warning.
private protocol Erasable {
    func deleteAllData()
}

extension ModelContainer: Erasable {}

/// Symbols of the table in `Docs/StrataSwiftData.md` that no other test uses.
@Suite struct TableRowTests {
    @Test(arguments: TestStore.allCases)
    func `propertiesToFetch leaves all properties readable`(_ store: TestStore) async throws {
        try await store.use(ToDo.self) { container in
            let context = ModelContext(container)
            let item = ToDo("a", due: .distantPast)
            context.insert(item)
            try context.save()
            let other = ModelContext(container)
            var request = FetchDescriptor<ToDo>()
            request.propertiesToFetch = [\.title]
            let found = try other.fetch(request)
            let same = try #require(found.first)
            #expect(found.count == 1 && same.title == "a")
            #expect(same.due == .distantPast && same.id == item.id)
            withExtendedLifetime((context, other)) {}
        }
    }

    @Test(arguments: TestStore.allCases)
    func `deleteAllData deletes the objects of all models`(_ store: TestStore) async throws {
        try await store.use(ToDoList.self) { container in
            let context = ModelContext(container)
            let list = ToDoList(name: "home")
            context.insert(list)
            list.items.append(ToDo("a"))
            try context.save()
            let erasable: any Erasable = container
            erasable.deleteAllData()
            #expect(try context.fetchCount(FetchDescriptor<ToDo>()) == 0)
            #expect(try context.fetchCount(FetchDescriptor<ToDoList>()) == 0)
        }
    }

    @Test @MainActor func `onAutosaveError receives the error of an automatic save, and the changes stay`() throws {
        let container = try ModelContainer(
            for: ToDo.self, configurations: ModelConfiguration(isStoredInMemoryOnly: true, allowsSave: false))
        let context = container.mainContext
        var due: [@MainActor @Sendable () -> Void] = []
        context.runLater = { _, job in due.append(job) }
        var errors: [any Error] = []
        context.onAutosaveError = { errors.append($0) }
        context.insert(ToDo("a"))
        #expect(due.count == 1)
        due.first?()
        #expect(errors.count == 1 && errors.allSatisfy { SwiftDataError.modelValidationFailure ~= $0 })
        #expect(context.hasChanges)
    }

    /// Catches: a change that stays unsaved, because it was not the first one.
    @Test @MainActor func `a change that an observer makes during an automatic save is saved by the next one`() throws {
        let container = try inMemory(ToDo.self)
        let context = container.mainContext
        var due: [@MainActor @Sendable () -> Void] = []
        context.runLater = { _, job in due.append(job) }
        let item = ToDo("a")
        context.insert(item)
        let observer = context.context.addObserver { if $0.kind == .didSave, item.title == "a" { item.title = "saved" } }
        due.first?()
        #expect(context.hasChanges && due.count == 2)
        due.last?()
        #expect(!context.hasChanges && due.count == 2)
        #expect(try titles(in: container) == ["saved"])
        context.context.removeObserver(observer)
    }

    @Test @MainActor func `processPendingChanges shows changes to observers in the same job`() throws {
        let container = try inMemory(ToDo.self)
        let context = container.mainContext
        context.autosaveEnabled = false
        let observer = try ResultsObserver<ToDo, Never>(sortBy: [SortDescriptor(\.title)], modelContext: context)
        #expect(observer.results.isEmpty)
        context.insert(ToDo("a"))
        context.processPendingChanges()
        #expect(observer.results.map(\.title) == ["a"] && context.hasChanges)
    }

    @Test func `cloudKitDatabase and groupContainer have no effect`() throws {
        let configuration = ModelConfiguration(
            isStoredInMemoryOnly: true, groupContainer: .identifier("group"), cloudKitDatabase: .private("cloud"))
        #expect(configuration.cloudKitContainerIdentifier == nil && configuration.groupAppContainerIdentifier == nil)
        let container = try ModelContainer(for: ToDo.self, configurations: configuration)
        let context = ModelContext(container)
        context.insert(ToDo("a"))
        try context.save()
        #expect(try titles(in: container) == ["a"])
    }

    @Test(arguments: TestStore.allCases)
    func `relationships with inverse: nil have no inverse`(_ store: TestStore) async throws {
        try await store.use(Desk.self) { container in
            let owner = try #require(container.schema.entity(for: Desk.self)?.relationshipsByName["owner"])
            #expect(owner.destination == "Clerk" && owner.inverseName == nil)
            let context = ModelContext(container)
            let (desk, clerk) = (Desk(), Clerk())
            context.insert(desk)
            desk.owner = clerk
            try context.save()
            #expect(desk.owner === clerk && clerk.desk == nil)
        }
    }

    @Test(arguments: TestStore.allCases)
    func `an actor that conforms to ModelActor by hand uses a DefaultSerialModelExecutor`(_ store: TestStore) async throws {
        try await store.use(ToDo.self) { container in
            let actor = HandWrittenActor(container)
            let id = try await actor.add("a")
            #expect(await actor.title(of: id) == "a")
            #expect(try titles(in: container) == ["a"])
        }
    }

    @Test(arguments: TestStore.allCases)
    func `disableGenerateInit leaves the initializer to the actor`(_ store: TestStore) async throws {
        try await store.use(ToDo.self) { container in
            try await AuthoringActor(container, author: "importer").add("a")
            let history = try ModelContext(container).fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>())
            #expect(history.map(\.author) == ["importer"])
        }
    }

    @Test func `a stage to an older version throws backwardMigration`() {
        #expect(throws: SwiftDataError.backwardMigration) {
            try ModelContainer(
                for: Schema(versionedSchema: RecipesV3.self), migrationPlan: BackwardPlan.self,
                configurations: ModelConfiguration(isStoredInMemoryOnly: true))
        }
    }

    @Test func `two models of one name throw an error that names them`() {
        #expect {
            try ModelContainer(
                for: Schema([North.Room.self, South.Room.self]),
                configurations: ModelConfiguration(isStoredInMemoryOnly: true))
        } throws: { error in
            !(error is SwiftDataError) && "\(error)".contains("Room: a second entity of this name")
        }
    }
}
