import StrataSwiftData
import Testing

@Model private final class Shelf {
    var name: String
    @Relationship(deleteRule: .deny, inverse: \Book.shelf) var books: [Book] = []
    init(name: String) { self.name = name }
}

@Model private final class Book {
    var title: String
    var shelf: Shelf?
    init(title: String, shelf: Shelf? = nil) {
        self.title = title
        self.shelf = shelf
    }
}

@Model private final class Desk {
    var name: String
    @Relationship(inverse: \Person.desk) var owner: Person?
    init(name: String) { self.name = name }
}

@Model private final class Person {
    var name: String
    var desk: Desk?
    init(name: String) { self.name = name }
}

/// Deletions by a predicate, which the store executes at once.
@Suite struct BatchDeletionTests {
    /// Runs a test with each store, which has one shelf of three books.
    private func each(_ body: (ModelContainer, ModelContext) throws -> Void) async throws {
        func run(_ container: ModelContainer) throws {
            let context = ModelContext(container)
            let shelf = Shelf(name: "left")
            for title in ["a", "b", "c"] { context.insert(Book(title: title, shelf: shelf)) }
            try context.save()
            try body(container, context)
        }
        for store in TestStore.allCases { try await store.use(Shelf.self) { container in try run(container) } }
    }

    private func titles(_ context: ModelContext) throws -> [String] {
        try context.fetch(FetchDescriptor<Book>()).map(\.title).sorted()
    }

    @Test func `deleting by a predicate needs no save, and other contexts see it`() async throws {
        try await each { container, context in
            let other = ModelContext(container)
            #expect(try titles(other) == ["a", "b", "c"])
            context.author = "cleaner"
            try context.delete(model: Book.self, where: #Predicate { $0.title != "b" })
            #expect(!context.hasChanges)
            #expect(try titles(context) == ["b"] && titles(other) == ["b"])
            #expect(try context.fetch(FetchDescriptor<Shelf>()).first?.books.map(\.title) == ["b"])
            context.rollback()
            #expect(try titles(context) == ["b"])
            #expect(try other.fetchHistory(HistoryDescriptor()).last?.author == "cleaner")
        }
    }

    @Test func `unsaved objects stay, and unsaved changes of deleted objects are dropped`() async throws {
        try await each { container, context in
            let books = try context.fetch(FetchDescriptor<Book>(sortBy: [SortDescriptor(\.title)]))
            books[0].title = "b"
            books[1].title = "z"
            context.insert(Book(title: "b"))
            try context.delete(model: Book.self, where: #Predicate { $0.title == "b" })
            #expect(books[1].isDeleted && books[1].modelContext == nil)
            #expect(context.changedModelsArray.map { $0 as? Book } == [books[0]])
            #expect(try titles(context) == ["b", "b", "c"])
            #expect(try titles(ModelContext(container)) == ["a", "c"])
            try context.save()
            #expect(try titles(ModelContext(container)) == ["b", "b", "c"])
        }
    }

    /// Catches: a deletion that reverts both ends of a new pair, because the deleted object was the former partner.
    @Test func `S052: an unsaved move of a one-to-one partner stays when its former partner is deleted`() async throws {
        func run(_ container: ModelContainer, _ isNew: Bool, _ deletesBefore: Bool, _ name: String) throws {
            let context = ModelContext(container)
            let (desk, former, next) = (Desk(name: name), Person(name: "former \(name)"), Person(name: "next \(name)"))
            context.insert(desk)
            context.insert(former)
            former.desk = desk
            if !isNew { context.insert(next) }
            try context.save()
            if deletesBefore { context.delete(former) }
            if isNew { context.insert(next) }
            next.desk = desk
            let deleted = former.name
            try context.delete(model: Person.self, where: #Predicate { $0.name == deleted })
            #expect(next.desk === desk && desk.owner === next, "\(name)")
            try context.save()
            let other = ModelContext(container)
            let found = try other.fetch(FetchDescriptor<Desk>(predicate: #Predicate { $0.name == name }))
            #expect(found.map { $0.owner?.name } == ["next \(name)"])
            // Without another partner, the change of the desk goes with the deleted person.
            let last = next.name
            desk.owner = nil
            try context.delete(model: Person.self, where: #Predicate { $0.name == last })
            #expect(desk.owner == nil && !context.hasChanges, "\(name)")
        }
        for store in TestStore.allCases {
            try await store.use(Desk.self) { container in
                for (isNew, deletesBefore) in [(false, false), (false, true), (true, false), (true, true)] {
                    try run(container, isNew, deletesBefore, "new: \(isNew), deleted before: \(deletesBefore)")
                }
            }
        }
    }

    @Test func `a denied deletion throws and deletes nothing`() async throws {
        try await each { container, context in
            #expect(throws: (any Error).self) { try context.delete(model: Shelf.self) }
            #expect(try context.fetchCount(FetchDescriptor<Shelf>()) == 1 && !context.hasChanges)
            try context.delete(model: Book.self)
            try context.delete(model: Shelf.self)
            #expect(try ModelContext(container).fetchCount(FetchDescriptor<Shelf>()) == 0)
        }
    }

    @Test func `a predicate that only Foundation evaluates deletes by saved values, too`() async throws {
        try await each { container, context in
            context.insert(Book(title: "c"))
            try context.delete(model: Book.self, where: #Predicate { $0.title.hashValue == $0.title.hashValue && $0.title > "b" })
            #expect(try titles(ModelContext(container)) == ["a", "b"])
            #expect(try titles(context) == ["a", "b", "c"])
        }
    }

    @Test func `erasing deletes models that deny each other's deletion`() async throws {
        try await each { container, context in
            try container.erase()
            #expect(try context.fetchCount(FetchDescriptor<Shelf>()) == 0 && titles(context) == [])
        }
    }
}
