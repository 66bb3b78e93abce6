import StrataSwiftData
import Testing

@Model private final class Errand {
    var title: String
    init(_ title: String) { self.title = title }
}

@ModelActor private actor Worker {
    func rename(_ id: PersistentIdentifier, to title: String) throws {
        guard let errand = modelContext.model(for: id) as? Errand else { return }
        errand.title = title
        try modelContext.save()
    }

    /// Changes an object while an insertion of the actor is unsaved.
    func renameBeside(_ new: String, _ id: PersistentIdentifier, to title: String, bySubscript: Bool) throws {
        modelContext.insert(Errand(new))
        let errand = bySubscript ? self[id, as: Errand.self] : modelContext.model(for: id) as? Errand
        errand?.title = title
        try modelContext.save()
    }

    func add(_ title: String) throws -> Int {
        modelContext.insert(Errand(title))
        try modelContext.save()
        return try modelContext.fetchCount(FetchDescriptor<Errand>())
    }
}

@Suite struct ModelLookupTests {
    private func titles(_ container: ModelContainer) throws -> [String] {
        let context = ModelContext(container)
        return try withExtendedLifetime(context) { try context.fetch(FetchDescriptor<Errand>()).map(\.title).sorted() }
    }

    /// Catches: a change that is dropped without an error, because the actor's context does not look for the save that made the object.
    @Test(arguments: TestStore.allCases, [false, true])
    func `S068: an actor changes an object whose identifier comes from a later save of another context`(
        _ store: TestStore, _ hasWorked: Bool
    ) async throws {
        try await store.use(Errand.self) { container in
            let worker = Worker(modelContainer: container)
            if hasWorked { #expect(try await worker.add("first") == 1) }
            let context = ModelContext(container)
            let errand = Errand("a")
            context.insert(errand)
            try context.save()
            try await worker.rename(errand.persistentModelID, to: "b")
            #expect(try titles(container) == (hasWorked ? ["b", "first"] : ["b"]))
        }
    }

    /// Catches: a change that is dropped, because a context with unsaved changes does not look for the save that made the object.
    @Test(arguments: TestStore.allCases, [false, true])
    func `S068: an actor with unsaved changes changes an object of a later save`(
        _ store: TestStore, _ bySubscript: Bool
    ) async throws {
        try await store.use(Errand.self) { container in
            let worker = Worker(modelContainer: container)
            #expect(try await worker.add("first") == 1)
            let context = ModelContext(container)
            let errand = Errand("a")
            context.insert(errand)
            try context.save()
            try await worker.renameBeside("second", errand.persistentModelID, to: "b", bySubscript: bySubscript)
            #expect(try titles(container) == ["b", "first", "second"])
        }
    }

    @Test(arguments: TestStore.allCases) @MainActor
    func `S068: the main context finds an object that another context has saved in the same job`(
        _ store: TestStore
    ) async throws {
        try await store.useOnMain(Errand.self) { container in
            let main = container.mainContext
            #expect(try main.fetchCount(FetchDescriptor<Errand>()) == 0)
            let context = ModelContext(container)
            let errand = Errand("a")
            context.insert(errand)
            try context.save()
            let same = try #require(main.model(for: errand.persistentModelID) as? Errand)
            #expect(same.title == "a")
            same.title = "b"
            try main.save()
            #expect(try titles(container) == ["b"])
        }
    }

    /// Catches: a change that is dropped, because the context does not look for the save of an object that it has looked up before.
    @Test(arguments: TestStore.allCases, [false, true])
    func `S068: a context changes an object that it has looked up before the save that makes it`(
        _ store: TestStore, _ hasOthers: Bool
    ) async throws {
        try await store.use(Errand.self) { container in
            let (reader, writer) = (ModelContext(container), ModelContext(container))
            let errand = Errand("a")
            writer.insert(errand)
            let early = reader.model(for: errand.persistentModelID)
            if hasOthers { reader.insert(Errand("other")) }
            try writer.save()
            let found = try #require(reader.model(for: errand.persistentModelID) as? Errand)
            #expect(found.title == "a")
            found.title = "b"
            try reader.save()
            #expect(try titles(container) == (hasOthers ? ["b", "other"] : ["b"]))
            withExtendedLifetime((early, writer)) {}
        }
    }
}
