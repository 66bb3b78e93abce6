import Testing

@testable import StrataSwiftData

/// How contexts behave at run time.
@Suite struct ContextTests {
    @Test(arguments: TestStore.allCases)
    func `a context shows saves of other contexts at its next fetch`(_ store: TestStore) async throws {
        try await store.use(ToDo.self) { container in
            let (a, b) = (ModelContext(container), ModelContext(container))
            #expect(try b.fetchCount(FetchDescriptor<ToDo>()) == 0)
            a.insert(ToDo("new"))
            #expect(a.hasChanges && a.insertedModelsArray.count == 1)
            try a.save()
            #expect(!a.hasChanges)
            #expect(try b.fetch(FetchDescriptor<ToDo>()).map(\.title) == ["new"])
        }
    }

    @Test(arguments: TestStore.allCases)
    func `changed and deleted objects are listed, and a rollback discards the changes`(_ store: TestStore) async throws {
        try await store.use(ToDo.self) { container in
            let context = ModelContext(container)
            let (a, b) = (ToDo("a"), ToDo("b"))
            context.insert(a)
            context.insert(b)
            try context.save()
            a.title = "changed"
            context.delete(b)
            #expect(context.changedModelsArray.map { $0 as? ToDo } == [a])
            #expect(context.deletedModelsArray.map { $0 as? ToDo } == [b])
            #expect(b.isDeleted)
            context.rollback()
            #expect(a.title == "a" && !b.isDeleted && !context.hasChanges)
        }
    }

    @Test(arguments: TestStore.allCases)
    func `a transaction saves, unless its closure throws`(_ store: TestStore) async throws {
        try await store.use(ToDo.self) { container in
            struct Failure: Error {}
            let context = ModelContext(container)
            try context.transaction { context.insert(ToDo("a")) }
            #expect(!context.hasChanges)
            #expect(throws: Failure.self) {
                try context.transaction {
                    context.insert(ToDo("b"))
                    throw Failure()
                }
            }
            #expect(context.hasChanges)
        }
    }

    @Test(arguments: TestStore.allCases)
    func `a new object with a known unique value updates the known one`(_ store: TestStore) async throws {
        try await store.use(ToDo.self) { container in
            let context = ModelContext(container)
            let first = ToDo("first")
            context.insert(first)
            try context.save()
            let second = ToDo("second")
            second.id = first.id
            context.insert(second)
            try context.save()
            #expect(try titles(in: container) == ["second"])
            #expect(first.title == "second")
        }
    }

    @Test(arguments: TestStore.allCases)
    func `of two new objects with one unique value, the last values are saved`(_ store: TestStore) async throws {
        try await store.use(ToDo.self) { container in
            let context = ModelContext(container)
            let (first, second) = (ToDo("first"), ToDo("second"))
            second.id = first.id
            context.insert(first)
            context.insert(second)
            try context.save()
            #expect(try titles(in: container) == ["second"])
        }
    }

    @Test(arguments: TestStore.allCases)
    func `relating a new object inserts it`(_ store: TestStore) async throws {
        try await store.use(ToDoList.self) { container in
            let context = ModelContext(container)
            let list = ToDoList(name: "home")
            context.insert(list)
            list.items.append(ToDo("a"))
            ToDo("b").list = list
            #expect(list.items.map(\.title).sorted() == ["a", "b"])
            let count = try context.fetchCount(FetchDescriptor<ToDo>())
            #expect(count == 2)
        }
    }

    @Test(arguments: TestStore.allCases)
    func `a deleted object keeps its values until the save, and then has no context`(_ store: TestStore) async throws {
        try await store.use(ToDo.self) { container in
            let context = ModelContext(container)
            let item = ToDo("a")
            context.insert(item)
            try context.save()
            context.delete(item)
            #expect(item.title == "a" && item.modelContext === context)
            try context.save()
            #expect(item.modelContext == nil && item.isDeleted)
        }
    }

    @Test(arguments: TestStore.allCases)
    func `saves post notifications with identifiers`(_ store: TestStore) async throws {
        try await store.use(ToDo.self) { container in
            let context = ModelContext(container)
            let item = ToDo("a")
            context.insert(item)
            let posted = Posted()
            let observers = [ModelContext.willSave, ModelContext.didSave].map { name in
                NotificationCenter.default.addObserver(forName: name, object: context, queue: nil) { note in
                    posted.names.append(note.name)
                    posted.inserted =
                        note.userInfo?[ModelContext.NotificationKey.insertedIdentifiers.rawValue] as? [PersistentIdentifier]
                }
            }
            defer { for observer in observers { NotificationCenter.default.removeObserver(observer) } }
            try context.save()
            try context.save()
            #expect(posted.names == [ModelContext.willSave, ModelContext.didSave])
            #expect(posted.inserted == [item.persistentModelID])
        }
    }

    /// Catches: a notification without the objects of which only a many-to-many relationship has changed.
    @Test(arguments: TestStore.allCases)
    func `notifications of saves name both ends of many-to-many relationships`(_ store: TestStore) async throws {
        try await store.use(Comic.self) { container in
            let context = ModelContext(container)
            let (comic, label, new) = (Comic(title: "a"), Label("x"), Label("new"))
            context.insert(comic)
            context.insert(label)
            let (first, second) = (comic.persistentModelID, label.persistentModelID)
            var saved = try save(context)
            #expect(saved == SavedIdentifiers(inserted: [first, second].sorted()))
            comic.labels.append(label)
            saved = try save(context)
            #expect(saved == SavedIdentifiers(updated: [first, second].sorted()))
            // An object that has changed in two ways is named once.
            comic.title = "b"
            comic.labels = []
            saved = try save(context)
            #expect(saved == SavedIdentifiers(updated: [first, second].sorted()))
            label.comics.append(comic)
            comic.labels.append(new)
            let third = new.persistentModelID
            saved = try save(context)
            #expect(saved == SavedIdentifiers(inserted: [third], updated: [first, second].sorted()))
            context.delete(comic)
            saved = try save(context)
            #expect(saved == SavedIdentifiers(updated: [second, third].sorted(), deleted: [first]))
        }
    }

    @Test(arguments: TestStore.allCases)
    func `notifications of saves name only the end that has a many-to-many relationship`(_ store: TestStore) async throws {
        try await store.use(Crew.self, Sailor.self, Badge.self) { container in
            let context = ModelContext(container)
            let (sailor, badge) = (Sailor(number: 1, rank: .mate), Badge("a"))
            context.insert(sailor)
            context.insert(badge)
            let (first, second) = (sailor.persistentModelID, badge.persistentModelID)
            var saved = try save(context)
            #expect(saved == SavedIdentifiers(inserted: [first, second].sorted()))
            sailor.badges = [badge]
            saved = try save(context)
            #expect(saved == SavedIdentifiers(updated: [first]))
            context.delete(badge)
            saved = try save(context)
            #expect(saved == SavedIdentifiers(updated: [first], deleted: [second]))
        }
    }

    /// Catches: a notification without user info after a save that has nothing left to write.
    @Test(arguments: TestStore.allCases)
    func `a save whose changes an observer undoes posts empty lists of identifiers`(_ store: TestStore) async throws {
        try await store.use(ToDo.self) { container in
            let context = ModelContext(container)
            context.insert(ToDo("a"))
            let posted = Posted()
            let observers = [ModelContext.willSave, ModelContext.didSave].map { name in
                NotificationCenter.default.addObserver(forName: name, object: context, queue: nil) { note in
                    posted.names.append(note.name)
                    if name == ModelContext.willSave { return (note.object as? ModelContext)?.rollback() ?? () }
                    posted.inserted =
                        note.userInfo?[ModelContext.NotificationKey.insertedIdentifiers.rawValue] as? [PersistentIdentifier]
                }
            }
            defer { for observer in observers { NotificationCenter.default.removeObserver(observer) } }
            try context.save()
            #expect(posted.names == [ModelContext.willSave, ModelContext.didSave])
            #expect(posted.inserted == [])
            #expect(try ModelContext(container).fetchCount(FetchDescriptor<ToDo>()) == 0)
        }
    }

    @Test(arguments: TestStore.allCases) @MainActor
    func `the main context shows what another context has saved in the same job`(_ store: TestStore) async throws {
        try await store.useOnMain(ToDo.self) { container in
            let (main, other) = (container.mainContext, ModelContext(container))
            main.autosaveEnabled = false
            #expect(try main.fetchCount(FetchDescriptor<ToDo>()) == 0)
            main.insert(ToDo("unsaved"))
            for title in ["a", "b"] {
                other.insert(ToDo(title))
                try other.save()
            }
            #expect(try main.fetch(FetchDescriptor<ToDo>()).count == 3)
            try other.delete(model: ToDo.self)
            #expect(try main.fetch(FetchDescriptor<ToDo>()).map(\.title) == ["unsaved"])
        }
    }

    @Test(.timeLimit(.minutes(10)), arguments: TestStore.allCases) @MainActor
    func `the main context saves by itself, and is one object`(_ store: TestStore) async throws {
        try await store.useOnMain(ToDo.self) { container in
            let context = container.mainContext
            #expect(context === container.mainContext && context.autosaveEnabled && context.container == container)
            context.insert(ToDo("a"))
            while context.hasChanges { try await Task.sleep(for: .milliseconds(5)) }
            #expect(try ModelContext(container).fetchCount(FetchDescriptor<ToDo>()) == 1)
        }
    }

    /// A timer that a test fires.
    @MainActor private final class HandTimer {
        private var jobs: [@MainActor @Sendable () -> Void] = []

        /// The number of waiting jobs.
        var count: Int { jobs.count }

        /// Becomes the timer of a context.
        func replace(in context: ModelContext) { context.runLater = { _, job in self.jobs.append(job) } }

        /// Runs the waiting jobs, of which there must be at least one. Jobs that they make wait.
        func fire(sourceLocation: SourceLocation = #_sourceLocation) {
            #expect(!jobs.isEmpty, "no save is due", sourceLocation: sourceLocation)
            let due = jobs
            jobs = []
            for job in due { job() }
        }
    }

    @Test(arguments: [false, true]) @MainActor
    func `the main context saves what a failed transaction has changed, unless it is rolled back`(_ isRolledBack: Bool) throws {
        struct Failure: Error {}
        let container = try inMemory(ToDo.self)
        let context = container.mainContext
        let timer = HandTimer()
        timer.replace(in: context)
        #expect(throws: Failure.self) {
            try context.transaction {
                context.insert(ToDo("half"))
                throw Failure()
            }
        }
        #expect(try titles(in: container) == [])
        if isRolledBack { context.rollback() }
        timer.fire()
        #expect(try titles(in: container) == (isRolledBack ? [] : ["half"]))
    }

    /// Catches: changes of the main context that are lost with the container, while another context of it lives.
    @Test @MainActor func `the main context saves by itself as long as another context of its container lives`() throws {
        let timer = HandTimer()
        let context = try {
            let container = try inMemory(ToDo.self)
            timer.replace(in: container.mainContext)
            container.mainContext.insert(ToDo("a"))
            return ModelContext(container)
        }()
        timer.fire()
        #expect(try context.fetchCount(FetchDescriptor<ToDo>()) == 1)
    }

    /// Catches: changes of the main context that are lost because the container is released before the timer fires.
    @Test @MainActor func `the main context of a released container saves, and is then released`() throws {
        let timer = HandTimer()
        weak var context: ModelContext?
        let storage = try {
            let container = try inMemory(ToDo.self)
            context = container.mainContext
            timer.replace(in: container.mainContext)
            container.mainContext.insert(ToDo("a"))
            return container.storage
        }()
        timer.fire()
        let isReleased = context == nil
        #expect(isReleased)
        #expect(try titles(in: ModelContainer(storage)) == ["a"])
    }

    /// Catches: a watch for the first change that is set again only by a save, so that nothing is saved any more.
    @Test(arguments: ModelConfiguration.Store.allCases) @MainActor
    func `the main context goes on saving after changes that took each other back, a pause and a suspension`(
        _ store: ModelConfiguration.Store
    ) async throws {
        let file = TestFile(store: store)
        defer { try? FileManager.default.removeItem(at: file.url.deletingLastPathComponent()) }
        let container = try file.open(ToDo.self)
        let context = container.mainContext
        let timer = HandTimer()
        timer.replace(in: context)
        let dropped = ToDo("dropped")
        context.insert(dropped)
        context.delete(dropped)
        #expect(!context.hasChanges)
        timer.fire()
        context.insert(ToDo("a"))
        timer.fire()
        #expect(!context.hasChanges)
        context.autosaveEnabled = false
        context.insert(ToDo("b"))
        #expect(context.hasChanges && timer.count == 0)
        context.autosaveEnabled = true
        timer.fire()
        #expect(!context.hasChanges)
        context.autosaveEnabled = false
        context.insert(ToDo("c"))
        try await container.suspend()
        context.autosaveEnabled = true
        timer.fire()
        #expect(context.hasChanges)
        await container.resume()
        timer.fire()
        #expect(!context.hasChanges)
        #expect(try titles(in: container).sorted() == ["a", "b", "c"])
        try await container.close()
    }

    /// Catches: attempts that multiply with each change, and keep the main actor busy.
    @Test @MainActor func `the main context has one timer for its next attempt to save while the store is suspended`()
        async throws
    {
        let file = TestFile()
        defer { try? FileManager.default.removeItem(at: file.url.deletingLastPathComponent()) }
        let container = try file.open(ToDo.self)
        let context = container.mainContext
        let timer = HandTimer()
        timer.replace(in: context)
        context.autosaveEnabled = false
        context.insert(ToDo("a"))
        try await container.suspend()
        for _ in 0..<3 {
            context.autosaveEnabled = true
            context.autosaveEnabled = false
        }
        context.autosaveEnabled = true
        #expect(timer.count > 3)
        for _ in 0..<2 {
            timer.fire()
            #expect(context.hasChanges && timer.count == 1)
        }
        await container.resume()
        timer.fire()
        #expect(!context.hasChanges && timer.count == 0)
        try await container.close()
    }

    /// Catches: changes that are lost because the container is closed before the timer fires.
    @Test(arguments: ModelConfiguration.Store.allCases) @MainActor
    func `closing a container saves what the main context would soon save by itself`(
        _ store: ModelConfiguration.Store
    ) async throws {
        let file = TestFile(store: store)
        defer { try? FileManager.default.removeItem(at: file.url.deletingLastPathComponent()) }
        for (title, savesByItself) in [("a", true), ("b", false)] {
            let container = try file.open(ToDo.self)
            let context = container.mainContext
            let timer = HandTimer()
            timer.replace(in: context)
            context.autosaveEnabled = savesByItself
            context.insert(ToDo(title))
            try await container.close()
            #expect(context.hasChanges != savesByItself)
        }
        let container = try file.open(ToDo.self)
        #expect(try titles(in: container) == ["a"])
        try await container.close()
    }

    /// Catches: changes that are lost because the program ends after a flush or while the container is suspended.
    @Test(arguments: ModelConfiguration.Store.allCases, [false, true]) @MainActor
    func `a flush or a suspension first saves what the main context would soon save by itself`(
        _ store: ModelConfiguration.Store, suspends: Bool
    ) async throws {
        let file = TestFile(store: store)
        defer { try? FileManager.default.removeItem(at: file.url.deletingLastPathComponent()) }
        let container = try file.open(ToDo.self)
        let context = container.mainContext
        let timer = HandTimer()
        timer.replace(in: context)
        for (title, savesByItself) in [("a", true), ("b", false)] {
            context.autosaveEnabled = savesByItself
            context.insert(ToDo(title))
            if suspends {
                try await container.suspend()
                await container.resume()
            } else {
                try await container.flush()
            }
            #expect(context.hasChanges != savesByItself)
        }
        #expect(try titles(in: container) == ["a"])
        try await container.close()
    }

    /// Catches: a flush that waits for ever, because the program has saved and blocks the main thread until the flush ends.
    @Test @MainActor func `a flush does not wait for the main actor if the main context has nothing to save by itself`() throws {
        let container = try inMemory(ToDo.self)
        let context = container.mainContext
        let timer = HandTimer()
        timer.replace(in: context)
        var mayHaveChanges: Bool { container.storage.mainMayHaveChanges.load(ordering: .acquiring) }
        context.insert(ToDo("a"))
        #expect(mayHaveChanges)
        try context.save()
        #expect(!mayHaveChanges)
        context.insert(ToDo("b"))
        #expect(mayHaveChanges)
        context.rollback()
        #expect(!mayHaveChanges)
        context.insert(ToDo("c"))
        context.autosaveEnabled = false
        #expect(!mayHaveChanges)
        try context.save()
        context.insert(ToDo("d"))
        #expect(!mayHaveChanges)
        context.autosaveEnabled = true
        #expect(mayHaveChanges)
        timer.fire()
        #expect(!mayHaveChanges && !context.hasChanges)
    }

    /// Catches: a flush that waits for ever for a blocked main actor, because changes that a deletion dropped still count.
    @Test(arguments: TestStore.allCases) @MainActor
    func `a flush does not wait for the main actor after a deletion by a predicate that leaves nothing to save`(
        _ store: TestStore
    ) async throws {
        try await store.useOnMain(ToDo.self) { container in
            let context = container.mainContext
            let timer = HandTimer()
            timer.replace(in: context)
            var mayHaveChanges: Bool { container.storage.mainMayHaveChanges.load(ordering: .acquiring) }
            let (saved, dropped) = (ToDo("saved"), ToDo("dropped"))
            context.insert(saved)
            try context.save()
            context.insert(dropped)
            saved.title = "changed"
            context.delete(dropped)
            #expect(context.hasChanges && mayHaveChanges)
            try context.delete(model: ToDo.self)
            #expect(!context.hasChanges && !mayHaveChanges)
            context.insert(ToDo("kept"))
            #expect(mayHaveChanges)
            timer.fire()
            #expect(!context.hasChanges && !mayHaveChanges)
            #expect(try titles(in: container) == ["kept"])
        }
    }

    /// Catches: a change that is lost because the context does not report it after changes that took each other back.
    @Test(arguments: ModelConfiguration.Store.allCases) @MainActor
    func `closing a container saves a change that follows changes which took each other back`(
        _ store: ModelConfiguration.Store
    ) async throws {
        let file = TestFile(store: store)
        defer { try? FileManager.default.removeItem(at: file.url.deletingLastPathComponent()) }
        do {
            let container = try file.open(ToDo.self)
            let context = container.mainContext
            let timer = HandTimer()
            timer.replace(in: context)
            let dropped = ToDo("dropped")
            context.insert(dropped)
            context.delete(dropped)
            // The value is the same as before.
            context.autosaveEnabled = true
            context.insert(ToDo("kept"))
            try await container.close()
            #expect(!context.hasChanges)
        }
        let container = try file.open(ToDo.self)
        #expect(try titles(in: container) == ["kept"])
        try await container.close()
    }

    @Test @MainActor func `a container closes if the main context cannot be saved, and the error is reported`() async throws {
        let container = try inMemory(Team.self)
        let context = container.mainContext
        let timer = HandTimer()
        timer.replace(in: context)
        var errors: [String] = []
        context.onAutosaveError = { errors.append("\($0)") }
        context.insert(Team())
        try await container.close()
        #expect(errors.count == 1 && errors.first?.contains("players must have 1 to 2 objects, has 0") == true)
        #expect(context.hasChanges)
    }

    @Test(arguments: TestStore.allCases)
    func `an actor inserts, saves and reads with its context`(_ store: TestStore) async throws {
        try await store.use(ToDo.self) { container in
            let importer = ToDoImporter(modelContainer: container)
            let ids = try await importer.add(["a", "b"])
            #expect(try await importer.title(of: ids[1]) == "b")
            #expect(try ModelContext(container).fetchCount(FetchDescriptor<ToDo>()) == 2)
        }
    }

    @Test func `a context keeps the store of a released container open`() throws {
        func makeContext() throws -> ModelContext { ModelContext(try inMemory(ToDo.self)) }
        let context = try makeContext()
        context.insert(ToDo("a"))
        try context.save()
        #expect(try ModelContext(context.container).fetchCount(FetchDescriptor<ToDo>()) == 1)
    }

    /// Two containers of one SQLite file are to each other like two processes: nothing announces the saves of one to the other.
    @Test @MainActor func `the main context shows saves of another container at each fetch`() async throws {
        let file = TestFile(store: .sqlite)
        defer { try? FileManager.default.removeItem(at: file.url.deletingLastPathComponent()) }
        let (own, other) = (try file.open(ToDo.self), try file.open(ToDo.self))
        own.mainContext.insert(ToDo("own"))
        try own.mainContext.save()
        try await own.flush()
        let held = try own.mainContext.fetch(FetchDescriptor<ToDo>())
        for number in 1...3 {
            do {
                let context = ModelContext(other)
                context.insert(ToDo("\(number)"))
                try context.save()
            }
            try await other.flush()
            #expect(try own.mainContext.fetchCount(FetchDescriptor<ToDo>()) == number + 1)
        }
        withExtendedLifetime(held) {}
        try await own.close()
        try await other.close()
    }
}

/// Catches: members that are less visible than the actor.
@ModelActor package actor PackageImporter {}

@ModelActor actor ToDoImporter {
    func add(_ titles: [String]) throws -> [PersistentIdentifier] {
        let items = titles.map { ToDo($0) }
        for item in items { modelContext.insert(item) }
        try modelContext.save()
        return items.map(\.persistentModelID)
    }

    func title(of id: PersistentIdentifier) throws -> String? { self[id, as: ToDo.self]?.title }
}

/// The notifications that observers received. They run on the thread that saves.
private final class Posted: @unchecked Sendable {
    // `@unchecked Sendable` is safe because one test uses it, on one thread.
    var names: [Notification.Name] = []
    var inserted: [PersistentIdentifier]?
    var identifiers: SavedIdentifiers?
}

/// The identifiers of a save by the kind of change, each list in their order.
private struct SavedIdentifiers: Equatable {
    var inserted: [PersistentIdentifier] = []
    var updated: [PersistentIdentifier] = []
    var deleted: [PersistentIdentifier] = []
}

/// Saves a context. Returns the identifiers in the notification, and checks that they are those in the history.
private func save(_ context: ModelContext) throws -> SavedIdentifiers {
    let posted = Posted()
    let observer = NotificationCenter.default.addObserver(forName: ModelContext.didSave, object: context, queue: nil) { note in
        func list(_ key: ModelContext.NotificationKey) -> [PersistentIdentifier] {
            (note.userInfo?[key.rawValue] as? [PersistentIdentifier] ?? []).sorted()
        }
        posted.identifiers = SavedIdentifiers(
            inserted: list(.insertedIdentifiers), updated: list(.updatedIdentifiers), deleted: list(.deletedIdentifiers))
    }
    defer { NotificationCenter.default.removeObserver(observer) }
    try context.save()
    var recorded = SavedIdentifiers()
    for change in try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>()).last?.changes ?? [] {
        let id = change.changedPersistentIdentifier
        switch change {
        case .insert: recorded.inserted.append(id)
        case .update: recorded.updated.append(id)
        case .delete: recorded.deleted.append(id)
        }
    }
    let identifiers = try #require(posted.identifiers)
    #expect(identifiers == recorded)
    return identifiers
}
