import StrataSwiftData
import Testing

/// Saves that relate to objects which another context has deleted (S050).
@Suite struct MissingReferenceTests {
    /// Deletes an object of another context, and saves.
    private func deleteElsewhere<T: PersistentModel>(_ object: T, _ container: ModelContainer) throws {
        let other = ModelContext(container)
        let same = try #require(other.model(for: object.persistentModelID) as? T)
        other.delete(same)
        try other.save()
    }

    /// Catches: a context that can never be saved again, because it refers to an object that is gone.
    @Test(arguments: TestStore.allCases)
    func `S050: a reference to an object that another context has deleted becomes nil`(_ store: TestStore) async throws {
        try await store.use(ToDo.self) { container in
            let context = ModelContext(container)
            let (list, item) = (ToDoList(name: "list"), ToDo("a"))
            context.insert(list)
            context.insert(item)
            try context.save()
            item.list = list
            item.title = "changed"
            ToDo("new").list = list
            try deleteElsewhere(list, container)
            try context.save()
            #expect(item.list == nil && item.title == "changed" && !context.hasChanges)
            let fresh = ModelContext(container)
            let saved = try fresh.fetch(FetchDescriptor<ToDo>(sortBy: [SortDescriptor(\.title)]))
            #expect(saved.map(\.title) == ["changed", "new"] && saved.allSatisfy { $0.list == nil })
            #expect(try fresh.fetchCount(FetchDescriptor<ToDoList>()) == 0)
            item.title = "later"
            try context.save()
            #expect(try titles(in: container).sorted() == ["later", "new"])
        }
    }

    /// Catches: a merge before the save, after which the context does not know any more that the object was there.
    @Test(arguments: TestStore.allCases) @MainActor
    func `S050: the main context saves, too, after it has shown the deletion`(_ store: TestStore) async throws {
        try await store.useOnMain(ToDo.self) { container in
            let main = container.mainContext
            main.autosaveEnabled = false
            let (list, item) = (ToDoList(name: "list"), ToDo("a"))
            main.insert(list)
            main.insert(item)
            try main.save()
            item.list = list
            try deleteElsewhere(list, container)
            #expect(try main.fetchCount(FetchDescriptor<ToDoList>()) == 0)
            try main.save()
            #expect(item.list == nil && !main.hasChanges)
        }
    }

    @Test(arguments: TestStore.allCases)
    func `S050: an object that another context has deleted is left out of a relationship to many`(
        _ store: TestStore
    ) async throws {
        try await store.use(Comic.self) { container in
            let context = ModelContext(container)
            let (comic, label) = (Comic(title: "a"), Label("gone"))
            context.insert(comic)
            context.insert(label)
            try context.save()
            comic.labels = [label, Label("new")]
            try deleteElsewhere(label, container)
            try context.save()
            #expect(comic.labels.map(\.text) == ["new"] && !context.hasChanges)
            let fresh = ModelContext(container)
            #expect(try fresh.fetch(FetchDescriptor<Label>()).map(\.text) == ["new"])
            #expect(try fresh.fetch(FetchDescriptor<Comic>()).first?.labels.map(\.text) == ["new"])
        }
    }

    // MARK: One-to-one relationships

    /// A change of the one-to-one relationship between a comic and a progress that another context deletes.
    enum PairChange: CaseIterable {
        case setAtComic, setAtProgress, cleared, replaced

        fileprivate var isRelatedBefore: Bool { self == .cleared || self == .replaced }
        /// The pages of the progress that is left.
        fileprivate var kept: [Int] { self == .replaced ? [9] : [] }

        fileprivate func make(_ comic: Comic, _ progress: Progress) {
            switch self {
            case .setAtComic: comic.progress = progress
            case .setAtProgress: progress.comic = comic
            case .cleared: comic.progress = nil
            case .replaced: comic.progress = Progress(page: 9)
            }
        }
    }

    /// Saves a comic and a progress, and changes their relationship.
    private func change(_ change: PairChange, in context: ModelContext) throws -> (Comic, Progress) {
        let (comic, progress) = (Comic(title: "a"), Progress(page: 3))
        context.insert(comic)
        context.insert(progress)
        if change.isRelatedBefore { comic.progress = progress }
        try context.save()
        change.make(comic, progress)
        return (comic, progress)
    }

    private func check(_ change: PairChange, in container: ModelContainer) throws {
        let fresh = ModelContext(container)
        #expect(try fresh.fetch(FetchDescriptor<Progress>()).map(\.page) == change.kept)
        #expect(try fresh.fetch(FetchDescriptor<Comic>()).map { $0.progress?.page } == [change.kept.first])
        withExtendedLifetime(fresh) {}
    }

    /// Catches: a merge policy that writes a partner again, because the context writes both ends of a one-to-one relationship.
    @Test(arguments: TestStore.allCases, PairChange.allCases)
    func `S050, S106: a one-to-one relationship to an object that another context has deleted is lost`(
        _ store: TestStore, _ change: PairChange
    ) async throws {
        try await store.use(Comic.self) { container in
            let context = ModelContext(container)
            let (comic, progress) = try self.change(change, in: context)
            try deleteElsewhere(progress, container)
            try context.save()
            #expect(comic.progress?.page == change.kept.first && !context.hasChanges)
            try check(change, in: container)
        }
    }

    /// Catches: a merge before the save, which completes the row of the partner, so that all of it seems to be changed.
    @Test(arguments: TestStore.allCases, PairChange.allCases) @MainActor
    func `S050, S106: the main context loses a one-to-one relationship, too, after it has shown the deletion`(
        _ store: TestStore, _ change: PairChange
    ) async throws {
        try await store.useOnMain(Comic.self) { container in
            let main = container.mainContext
            main.autosaveEnabled = false
            let (comic, progress) = try self.change(change, in: main)
            try deleteElsewhere(progress, container)
            #expect(try main.fetchCount(FetchDescriptor<Progress>()) == change.kept.count)
            try main.save()
            #expect(comic.progress?.page == change.kept.first && !main.hasChanges)
            try check(change, in: container)
        }
    }

    @Test(arguments: TestStore.allCases)
    func `S106: a partner comes back with its relationship if the save has also changed an attribute of it`(
        _ store: TestStore
    ) async throws {
        try await store.use(Comic.self) { container in
            let context = ModelContext(container)
            let (comic, progress) = try change(.setAtComic, in: context)
            progress.page = 7
            try deleteElsewhere(progress, container)
            try context.save()
            #expect(comic.progress?.page == 7 && !context.hasChanges)
            let fresh = ModelContext(container)
            #expect(try fresh.fetch(FetchDescriptor<Comic>()).map { $0.progress?.page } == [7])
            withExtendedLifetime(fresh) {}
        }
    }

    /// Catches: an object that comes back because the context deletes its partner, which clears the object's reference.
    @Test(arguments: TestStore.allCases)
    func `S050, S106: deleting the partner of an object that another context has deleted does not bring it back`(
        _ store: TestStore
    ) async throws {
        try await store.use(Comic.self) { container in
            let context = ModelContext(container)
            let (comic, progress) = (Comic(title: "a"), Progress(page: 3))
            comic.progress = progress
            context.insert(comic)
            try context.save()
            context.delete(progress)
            try deleteElsewhere(comic, container)
            try context.save()
            #expect(!context.hasChanges)
            let fresh = ModelContext(container)
            #expect(try fresh.fetchCount(FetchDescriptor<Comic>()) == 0)
            #expect(try fresh.fetchCount(FetchDescriptor<Progress>()) == 0)
        }
    }

    // MARK: References that cannot be cleared

    @Test(arguments: TestStore.allCases)
    func `S050: a save names a reference that must have an object, and can be repaired`(_ store: TestStore) async throws {
        try await store.use(Comic.self) { container in
            let context = ModelContext(container)
            let comic = Comic(title: "a")
            context.insert(comic)
            try context.save()
            let remark = Remark("nice", on: comic)
            context.insert(remark)
            try deleteElsewhere(comic, container)
            let named = "Remark.comic of Remark(id: \(remark.managedObject.objectID.key)) leads to"
            for _ in 0..<2 {
                #expect(performing: { try context.save() }, throws: { "\($0)".contains(named) })
                #expect(context.insertedModelsArray.count == 1)
            }
            context.delete(remark)
            try context.save()
            #expect(try ModelContext(container).fetchCount(FetchDescriptor<Remark>()) == 0)
        }
    }

    @Test(arguments: TestStore.allCases)
    func `S050: a reference to an object that the context has deleted itself fails the save until it is changed`(
        _ store: TestStore
    ) async throws {
        try await store.use(ToDo.self) { container in
            let context = ModelContext(container)
            let (list, item) = (ToDoList(name: "list"), ToDo("a"))
            context.insert(list)
            context.insert(item)
            try context.save()
            context.delete(list)
            item.list = list
            #expect(performing: { try context.save() }, throws: { "\($0)".contains("ToDo.list of") })
            #expect(context.hasChanges)
            item.list = nil
            try context.save()
            #expect(try titles(in: container) == ["a"])
        }
    }

    // MARK: Objects that are gone

    /// Catches: a change of an object that cannot exist without a deleted one, which fails each save of the context.
    @Test(arguments: TestStore.allCases, [false, true]) @MainActor
    func `S050, S106: a change of an object whose required owner is deleted too is dropped`(
        _ store: TestStore, _ isMerged: Bool
    ) async throws {
        try await store.useOnMain(Shelf.self) { container in
            let main = container.mainContext
            main.autosaveEnabled = false
            let shelf = Shelf()
            let box = Box("a", on: shelf)
            main.insert(box)
            try main.save()
            box.label = "changed"
            try deleteElsewhere(shelf, container)
            if isMerged { #expect(try main.fetchCount(FetchDescriptor<Box>()) == 0) }
            main.insert(Box("new", on: Shelf()))
            try main.save()
            #expect(!main.hasChanges)
            let fresh = ModelContext(container)
            #expect(try fresh.fetch(FetchDescriptor<Box>()).map(\.label) == ["new"])
            #expect(try main.fetch(FetchDescriptor<Box>()).map(\.label) == ["new"])
        }
    }
}

@Model private final class Shelf {
    @Relationship(deleteRule: .cascade, inverse: \Box.shelf) var boxes: [Box] = []

    init() {}
}

@Model private final class Box {
    var label: String
    var shelf: Shelf

    init(_ label: String, on shelf: Shelf) {
        self.label = label
        self.shelf = shelf
    }
}
