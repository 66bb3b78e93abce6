import StrataSwiftData
import Testing

/// Identifiers of objects before and after their insertion.
@Suite struct IdentifierTests {
    private func encoded(_ id: PersistentIdentifier) throws -> PersistentIdentifier {
        try JSONDecoder().decode(PersistentIdentifier.self, from: JSONEncoder().encode(id))
    }

    @Test(arguments: TestStore.allCases)
    func `a provisional identifier is encoded without an address, and leads to the inserted object until its save`(
        _ store: TestStore
    ) async throws {
        try await store.use(ToDo.self) { container in
            let context = ModelContext(container)
            let (item, other) = (ToDo("a"), ToDo("b"))
            let provisional = item.persistentModelID
            #expect(provisional == item.persistentModelID && provisional != other.persistentModelID)
            #expect(provisional.storeIdentifier == nil && provisional.entityName == "ToDo")
            #expect("\(provisional)" == "ToDo (not inserted)")
            #expect(try encoded(provisional) == provisional)
            let text = String(decoding: try JSONEncoder().encode(provisional), as: UTF8.self)
            let address = UInt(bitPattern: Unmanaged.passUnretained(item.managedObject).toOpaque())
            #expect(!text.contains("\(address)"))

            context.insert(item)
            let final = item.persistentModelID
            #expect(final != provisional && final.storeIdentifier != nil)
            #expect(context.model(for: provisional) as? ToDo === item && context.model(for: final) as? ToDo === item)
            #expect(context.registeredModel(for: try encoded(provisional)) == item)
            let known = try encoded(provisional)
            #expect(try context.fetch(FetchDescriptor<ToDo>(predicate: #Predicate { $0.persistentModelID == known })) == [item])
            try context.save()
            #expect(item.persistentModelID == final)
            #expect(context.registeredModel(for: provisional) as ToDo? == nil)
            #expect(try context.model(for: encoded(final)) as? ToDo === item)
        }
    }

    @Test(arguments: TestStore.allCases)
    func `an object whose insertion was rolled back has an identifier that leads to no object`(_ store: TestStore) async throws {
        try await store.use(ToDo.self) { container in
            let context = ModelContext(container)
            let item = ToDo("a")
            context.insert(item)
            let final = item.persistentModelID
            context.rollback()
            #expect(item.persistentModelID.storeIdentifier == nil && item.persistentModelID != final)
            #expect(context.registeredModel(for: item.persistentModelID) as ToDo? == nil)
        }
    }

    /// Catches: a provisional identifier in place of that of a saved object, because the identifier is read through the context.
    @Test(arguments: TestStore.allCases)
    func `S002: a saved object keeps its identifier after its context was released`(_ store: TestStore) async throws {
        try await store.use(ToDo.self) { container in
            let (first, second, unsaved, dropped) = (ToDo("a"), ToDo("b"), ToDo("c"), ToDo("d"))
            var fetched: [ToDo] = []
            let saved: [PersistentIdentifier]
            do {
                let context = ModelContext(container)
                for item in [first, second] { context.insert(item) }
                try context.save()
                saved = [first, second].map(\.persistentModelID)
                for item in [unsaved, dropped] { context.insert(item) }
                context.delete(dropped)
            }
            do {
                let context = ModelContext(container)
                fetched = try context.fetch(FetchDescriptor<ToDo>(sortBy: [SortDescriptor(\.title)]))
                try #require(fetched.count == 2)
                fetched[0].title = "changed"
                context.delete(fetched[1])
            }
            for items in [[first, second], fetched] {
                #expect(items.allSatisfy { $0.modelContext == nil }, "the context is released")
                #expect(items.map(\.persistentModelID) == saved)
                #expect(items.allSatisfy { $0.persistentModelID.storeIdentifier != nil })
            }
            #expect(unsaved.persistentModelID.storeIdentifier == nil && dropped.persistentModelID.storeIdentifier == nil)
            let fresh = ModelContext(container)
            #expect(fetched.map { (fresh.model(for: $0.persistentModelID) as? ToDo)?.title } == ["a", "b"])
        }
    }

    @Test(arguments: TestStore.allCases)
    func `an identifier of another process is of no object here`(_ store: TestStore) async throws {
        try await store.use(ToDo.self) { container in
            let context = ModelContext(container)
            let item = ToDo("a")
            let text = String(decoding: try JSONEncoder().encode(item.persistentModelID), as: UTF8.self)
            let start = try #require(text.range(of: "strata:"))
            let end = text[start.upperBound...].firstIndex { $0.isHexDigit } ?? start.upperBound
            let foreign = text.replacingCharacters(in: end..<text.index(end, offsetBy: 36), with: UUID().uuidString)
            let decoded = try JSONDecoder().decode(PersistentIdentifier.self, from: Data(foreign.utf8))
            context.insert(item)
            #expect(decoded != item.persistentModelID)
            #expect(context.registeredModel(for: decoded) as ToDo? == nil)
        }
    }

    /// Catches: a computed condition that is false for each object, because its identifiers are not the ids of the store.
    @Test func `S138: a predicate compares the identifiers of fetched objects with each other`() async throws {
        try await TestFile.use { file in
            for container in [try file.open(ToDoList.self), try inMemory(ToDoList.self)] {
                let context = ModelContext(container)
                let (work, home) = (ToDoList(name: "work"), ToDoList(name: "home"))
                for list in [work, home] { context.insert(list) }
                for (title, list) in [("a", work), ("b", work), ("c", home), ("d", nil)] as [(String, ToDoList?)] {
                    let item = ToDo(title)
                    context.insert(item)
                    item.list = list
                }
                func selected(_ predicate: Predicate<ToDo>) throws -> [String] {
                    try context.fetch(FetchDescriptor(predicate: predicate)).map(\.title).sorted()
                }
                func expectSelections() throws {
                    let id = home.persistentModelID
                    #expect(try selected(#Predicate { ($0.list?.persistentModelID ?? id) == id }) == ["c", "d"])
                    let hasOthers = #Predicate<ToDo> { item in
                        item.list?.items.contains { $0.persistentModelID != item.persistentModelID } == true
                    }
                    #expect(try selected(hasOthers) == ["a", "b"])
                    let isListed = #Predicate<ToDo> { item in
                        item.list?.items.contains { $0.list?.persistentModelID == item.list?.persistentModelID } == true
                    }
                    #expect(try selected(isListed) == ["a", "b", "c"])
                }
                try expectSelections()
                try context.save()
                try expectSelections()
                try await container.close()
            }
        }
    }

    @Test func `a text that is no id of the store makes no identifier, and the error says so`() throws {
        let context = ModelContext(try inMemory(ToDo.self))
        let item = ToDo("a")
        context.insert(item)
        let store = try #require(item.persistentModelID.storeIdentifier)
        #expect(throws: SwiftDataError.unknownSchema) {
            try PersistentIdentifier.identifier(for: store, entityName: "ToDo", primaryKey: "7")
        }
        #expect {
            try PersistentIdentifier.identifier(for: store, entityName: "ToDo", primaryKey: "7")
        } throws: { error in
            "\(error)".contains("an identifier of ToDo from \"7\"") && "\(error)".contains("the store \(store)")
        }
        withExtendedLifetime(context) {}
    }

    @Test(arguments: TestStore.allCases)
    func `an actor finds a new object by its provisional identifier, until it is saved or deleted`(_ store: TestStore)
        async throws
    {
        try await store.use(ToDo.self) { container in
            let found = try await Finder(modelContainer: container).findsNewObject()
            #expect(found == [true, true, false])
        }
    }

    /// Catches: the identifier of an object whose context was released, with a key that another object's provisional identifier has.
    @Test func `the identifier of a dropped object is not that of a new one`() async throws {
        let container = try inMemory(ToDo.self)
        let context = ModelContext(container)
        let counter = ToDo("counter").persistentModelID.objectID.key
        var dropped: [ToDo] = []
        do {
            let other = ModelContext(container)
            repeat {
                dropped.append(ToDo("x"))
                other.insert(dropped[dropped.count - 1])
            } while dropped[dropped.count - 1].persistentModelID.objectID.key < counter.advanced(by: 200)
            withExtendedLifetime(other) {}
        }
        for _ in 0..<600 {
            let new = ToDo("new")
            _ = new.persistentModelID
            context.insert(new)
        }
        for id in dropped.map(\.persistentModelID) {
            #expect(context.registeredModel(for: id) as ToDo? == nil)
            #expect(try context.fetch(FetchDescriptor<ToDo>(predicate: #Predicate { $0.persistentModelID == id })).isEmpty)
        }
        try await container.close()
    }
}

@ModelActor private actor Finder {
    func findsNewObject() throws -> [Bool] {
        let item = ToDo("a")
        let early = item.persistentModelID
        modelContext.insert(item)
        let found = [modelContext.model(for: early) as? ToDo === item, self[early, as: ToDo.self] === item]
        modelContext.delete(item)
        return found + [self[early, as: ToDo.self] != nil]
    }
}
