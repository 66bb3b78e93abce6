import StrataSwiftData
import Testing

@Model final class ToDo {
    @Attribute(.unique) var id: UUID
    var title: String
    var isDone = false
    var due: Date?
    var list: ToDoList?

    init(_ title: String, due: Date? = nil) {
        id = UUID()
        self.title = title
        self.due = due
    }
}

@Model final class ToDoList {
    var name: String
    @Relationship(deleteRule: .cascade, inverse: \ToDo.list) var items: [ToDo] = []

    init(name: String) { self.name = name }
}

@Model final class Exam {
    enum Grade: String, Codable, Comparable {
        case low, medium, high

        static func < (a: Self, b: Self) -> Bool { a.number < b.number }

        private var number: Int {
            switch self {
            case .low: 0
            case .medium: 1
            case .high: 2
            }
        }
    }

    var grade: Grade
    var time: Duration

    init(_ grade: Grade, _ time: Duration) {
        self.grade = grade
        self.time = time
    }
}

/// A program that keeps a list of things to do.
@Suite struct ToDoTests {
    @Test(arguments: ModelConfiguration.Store.allCases)
    func `objects survive a save and the closing of the file`(_ store: ModelConfiguration.Store) async throws {
        try await TestFile.use(store) { file in
            let container = try file.open(ToDoList.self)
            do {
                let context = ModelContext(container)
                let list = ToDoList(name: "home")
                context.insert(list)
                for title in ["wash", "Äpfel", "buy 10 pens", "buy 9 pens"] {
                    let item = ToDo(title)
                    item.list = list
                }
                list.items.first { $0.title == "wash" }?.isDone = true
                try context.save()
            }
            try await container.close()

            let again = try file.open(ToDoList.self)
            let fresh = ModelContext(again)
            #expect(try fresh.fetchCount(FetchDescriptor<ToDo>()) == 4)
            let open = FetchDescriptor<ToDo>(predicate: #Predicate { !$0.isDone }, sortBy: [SortDescriptor(\.title)])
            #expect(try fresh.fetch(open).map(\.title) == ["Äpfel", "buy 9 pens", "buy 10 pens"])
            let lists = try fresh.fetch(FetchDescriptor<ToDoList>())
            #expect(lists.map(\.name) == ["home"])
            #expect(lists.first?.items.count == 4)
        }
    }

    @Test(arguments: TestStore.allCases)
    func `limit, offset and sorts apply to a fetch`(_ store: TestStore) async throws {
        try await store.use(ToDo.self) { container in
            let context = ModelContext(container)
            for number in 0..<20 {
                context.insert(ToDo("item \(number)", due: Date(timeIntervalSinceReferenceDate: Double(number))))
            }
            var descriptor = FetchDescriptor<ToDo>(sortBy: [SortDescriptor(\.due, order: .reverse)])
            descriptor.fetchLimit = 3
            descriptor.fetchOffset = 2
            #expect(try context.fetch(descriptor).map(\.title) == ["item 17", "item 16", "item 15"])
            #expect(try context.fetchCount(descriptor) == 3)
            #expect(try context.fetchIdentifiers(descriptor).count == 3)
            #expect(try context.fetch(descriptor, batchSize: 2).map(\.title) == ["item 17", "item 16", "item 15"])
            var seen = 0
            try context.enumerate(FetchDescriptor<ToDo>(), batchSize: 7) { _ in seen += 1 }
            #expect(seen == 20)
        }
    }

    @Test(arguments: TestStore.allCases)
    func `a search finds titles without case and accents`(_ store: TestStore) async throws {
        try await store.use(ToDo.self) { container in
            let context = ModelContext(container)
            for title in ["Crème brûlée", "cream", "tea"] { context.insert(ToDo(title)) }
            let query = "CREM"
            let found = try context.fetch(
                FetchDescriptor<ToDo>(predicate: #Predicate { query.isEmpty || $0.title.localizedStandardContains(query) }))
            #expect(found.map(\.title) == ["Crème brûlée"])
        }
    }

    @Test(arguments: TestStore.allCases, ["", "tea"])
    func `a search for an empty text finds nothing, as Foundation's does`(_ store: TestStore, _ query: String) async throws {
        try await store.use(ToDo.self) { container in
            let context = ModelContext(container)
            for title in ["tea", ""] { context.insert(ToDo(title)) }
            let search = #Predicate<ToDo> { $0.title.localizedStandardContains(query) }
            let expected = query.isEmpty ? [] : ["tea"]
            #expect(["tea", ""].filter { $0.localizedStandardContains(query) } == expected)
            #expect(try context.fetch(FetchDescriptor(predicate: search)).map(\.title) == expected)
            try context.save()
            #expect(try context.fetch(FetchDescriptor(predicate: search)).map(\.title) == expected)
        }
    }

    /// Catches: a search text that is empty without its diacritics, and so is found in every title.
    @Test(arguments: TestStore.allCases)
    func `a search for diacritics only finds nothing`(_ store: TestStore) async throws {
        try await store.use(ToDo.self) { container in
            let context = ModelContext(container)
            for title in ["tea", "", "thé"] { context.insert(ToDo(title)) }
            let query = "\u{301}"
            let search = #Predicate<ToDo> { $0.title.localizedStandardContains(query) }
            #expect(try context.fetch(FetchDescriptor(predicate: search)).isEmpty)
            try context.save()
            #expect(try context.fetch(FetchDescriptor(predicate: search)).isEmpty)
        }
    }

    @Test(arguments: TestStore.allCases)
    func `a predicate or sort of the store's limits is evaluated in memory`(_ store: TestStore) async throws {
        try await store.use(ToDoList.self) { container in
            let context = ModelContext(container)
            for name in ["b", "a", "c"] {
                let item = ToDo("of \(name)")
                item.list = ToDoList(name: name)
                context.insert(item)
            }
            let byList = FetchDescriptor<ToDo>(sortBy: [SortDescriptor(\.list?.name)])
            let found = try context.fetch(byList)
            #expect(found.map(\.title) == ["of a", "of b", "of c"])
            var limited = FetchDescriptor<ToDo>(predicate: #Predicate { $0.shout == "OF B" }, sortBy: [SortDescriptor(\.title)])
            limited.fetchLimit = 1
            #expect(try context.fetch(limited).map(\.title) == ["of b"])
            #expect(try context.fetchCount(limited) == 1)
        }
    }

    @Test(arguments: TestStore.allCases)
    func `a sort in memory orders texts as the store does`(_ store: TestStore) async throws {
        try await store.use(ToDoList.self) { container in
            let context = ModelContext(container)
            for name in ["item 10", "Zebra", "item 9", "apple"] {
                let item = ToDo(name)
                item.list = ToDoList(name: name)
                context.insert(item)
            }
            context.insert(ToDo("none"))
            let stored = try context.fetch(FetchDescriptor<ToDoList>(sortBy: [SortDescriptor(\.name)])).map(\.name)
            #expect(stored == ["apple", "item 9", "item 10", "Zebra"])
            var request = FetchDescriptor<ToDo>(sortBy: [SortDescriptor(\.list?.name)])
            #expect(try context.fetch(request).map(\.title) == ["none"] + stored)
            request.sortBy = [SortDescriptor(\.list?.name, order: .reverse)]
            #expect(try context.fetch(request).map(\.title) == stored.reversed() + ["none"])
        }
    }

    @Test(arguments: TestStore.allCases)
    func `a fetch without pending changes evaluates saved values in memory, too`(_ store: TestStore) async throws {
        try await store.use(ToDoList.self) { container in
            let context = ModelContext(container)
            let item = ToDo("a")
            context.insert(item)
            context.insert(ToDo("b"))
            try context.save()
            item.title = "changed"
            for (shout, count) in [("A", 1), ("CHANGED", 0)] {
                var request = FetchDescriptor<ToDo>(predicate: #Predicate { $0.shout == shout })
                request.includePendingChanges = false
                #expect(try context.fetch(request) == (count == 1 ? [item] : []), "\(shout)")
                #expect(try context.fetchCount(request) == count, "\(shout)")
            }
        }
    }

    /// Catches: an evaluation of the newest state, which has objects that the context has not.
    @Test(arguments: TestStore.allCases)
    func `a fetch without pending changes in memory finds the saved values of the context's state`(
        _ store: TestStore
    ) async throws {
        try await store.use(ToDoList.self) { container in
            let (context, writer) = (ModelContext(container), ModelContext(container))
            let items = ["kept", "changed", "deleted"].map { ToDo($0) }
            for item in items { context.insert(item) }
            try context.save()
            #expect(try context.fetchCount(FetchDescriptor<ToDo>()) == 3)
            context.insert(ToDo("draft"))

            let found = try writer.fetch(FetchDescriptor<ToDo>())
            found.first { $0.title == "changed" }?.title = "y"
            for item in found where item.title == "deleted" { writer.delete(item) }
            writer.insert(ToDo("x"))
            try writer.save()
            for title in ["kept", "changed", "deleted", "draft", "x", "y"] {
                let shout = title.uppercased()
                var inMemory = FetchDescriptor<ToDo>(predicate: #Predicate { $0.shout == shout })
                var inStore = FetchDescriptor<ToDo>(predicate: #Predicate { $0.title == title })
                inMemory.includePendingChanges = false
                inStore.includePendingChanges = false
                let expected = items.filter { $0.title == title }
                #expect(try context.fetch(inMemory) == expected, "\(title)")
                #expect(try context.fetch(inStore) == expected, "\(title)")
                #expect(try context.fetchCount(inMemory) == expected.count, "\(title)")
            }
            withExtendedLifetime(writer) {}
        }
    }

    /// Catches: comparisons by raw value and by the text of JSON.
    @Test(arguments: TestStore.allCases)
    func `enums and Codable values are compared and sorted as in Swift`(_ store: TestStore) async throws {
        try await store.use(Exam.self) { container in
            let context = ModelContext(container)
            for (grade, time) in [(Exam.Grade.medium, 9), (.low, 100), (.high, 10)] as [(Exam.Grade, Int)] {
                context.insert(Exam(grade, .seconds(time)))
            }
            try context.save()
            let medium = Exam.Grade.medium
            let good = FetchDescriptor<Exam>(predicate: #Predicate { $0.grade >= medium }, sortBy: [SortDescriptor(\.grade)])
            #expect(try context.fetch(good).map(\.grade) == [.medium, .high])
            let limit = Duration.seconds(10)
            let long = FetchDescriptor<Exam>(predicate: #Predicate { $0.time >= limit }, sortBy: [SortDescriptor(\.time)])
            #expect(try context.fetch(long).map(\.time) == [.seconds(10), .seconds(100)])
        }
    }

    @Test(arguments: TestStore.allCases)
    func `objects are found by identifiers, which are stable, ordered and codable`(_ store: TestStore) async throws {
        try await store.use(ToDoList.self) { container in
            let context = ModelContext(container)
            let list = ToDoList(name: "work")
            #expect(list.modelContext == nil)
            #expect(list.persistentModelID.storeIdentifier == nil)
            context.insert(list)
            let other = ToDoList(name: "home")
            context.insert(other)
            let id = list.persistentModelID
            #expect(list.modelContext === context && list.hasChanges && id.entityName == "ToDoList")
            try context.save()
            #expect(list.persistentModelID == id && id < other.persistentModelID && !list.hasChanges)
            let copy = try JSONDecoder().decode(PersistentIdentifier.self, from: JSONEncoder().encode(id))
            #expect(copy == id && copy.entityName == "ToDoList")

            let second = ModelContext(container)
            #expect((second.registeredModel(for: id) as ToDoList?) == nil)
            let same = try #require(second.model(for: copy) as? ToDoList)
            #expect(same.name == "work" && same.id == id)
            #expect((second.registeredModel(for: id) as ToDoList?) === same)
            let found = try second.fetch(FetchDescriptor<ToDoList>(predicate: #Predicate { $0.persistentModelID == id }))
            #expect(found == [same])
            let ids = [id]
            let listed = FetchDescriptor<ToDoList>(predicate: #Predicate { ids.contains($0.persistentModelID) })
            #expect(try second.fetchCount(listed) == 1)
        }
    }
}

extension ToDo {
    var shout: String { title.uppercased() }
}

/// Returns the titles of all objects, as a context that opens now sees them. A context must outlive the objects that it fetched.
func titles(in container: ModelContainer) throws -> [String] {
    let context = ModelContext(container)
    return try withExtendedLifetime(context) { try context.fetch(FetchDescriptor<ToDo>()).map(\.title) }
}
