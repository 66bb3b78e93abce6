import StrataSwiftData
import Testing

/// Subclasses in SwiftData's spelling (S180 to S183).
@Suite struct InheritanceTests {
    @Test(arguments: ModelConfiguration.Store.allCases)
    func `S180: a fetch of a class returns objects of its subclasses`(_ store: ModelConfiguration.Store) async throws {
        try await TestFile.use(store) { file in
            let container = try file.open(PaidJourney.self, Leg.self)
            let context = ModelContext(container)
            context.insert(Journey(name: "walk"))
            let paid = PaidJourney(name: "cruise", price: 900)
            context.insert(Leg(place: "Oslo", journey: paid))
            paid.tags = ["sea"]
            try context.save()
            let other = ModelContext(container)
            let found = try other.fetch(FetchDescriptor<Journey>(sortBy: [SortDescriptor(\.name)]))
            #expect(found.map { $0 is PaidJourney } == [true, false])
            #expect((found[0] as? PaidJourney)?.tags == ["sea"] && found[0].legs.map(\.place) == ["Oslo"])
            #expect(found.map(\.persistentModelID.entityName) == ["PaidJourney", "Journey"])
            let costly = #Predicate<Journey> { ($0 as? PaidJourney)?.price ?? 0 > 100 }
            #expect(try other.fetch(FetchDescriptor(predicate: costly)).map(\.name) == ["cruise"])
            let named = FetchDescriptor<PaidJourney>(predicate: #Predicate { $0.name == "cruise" && $0.price > 1 })
            #expect(try other.fetchCount(named) == 1)
            let leg = try #require(try other.fetch(FetchDescriptor<Leg>()).first)
            #expect(leg.journey is PaidJourney)
            other.delete(found[0])
            try other.save()
            #expect(try other.fetchCount(FetchDescriptor<Leg>()) == 0)
            try await container.close()
        }
    }

    @Test(arguments: ModelConfiguration.Store.allCases)
    func `S180: a deletion without subclasses keeps their objects`(_ store: ModelConfiguration.Store) async throws {
        try await TestFile.use(store) { file in
            let container = try file.open(PaidJourney.self, Leg.self)
            let context = ModelContext(container)
            func fill() throws {
                for object in [Journey(name: "walk"), Journey(name: "run"), PaidJourney(name: "cruise", price: 900)] {
                    context.insert(object)
                }
                try context.save()
            }
            func names() throws -> [String] {
                let other = ModelContext(container)
                return try withExtendedLifetime(other) { try other.fetch(FetchDescriptor<Journey>()).map(\.name).sorted() }
            }
            try fill()
            try context.delete(model: Journey.self, where: #Predicate { $0.name < "s" }, includeSubclasses: false)
            #expect(try names() == ["cruise", "walk"])
            try context.delete(model: Journey.self, includeSubclasses: false)
            #expect(try names() == ["cruise"])
            try fill()
            let inMemory = #Predicate<Journey> { $0.name.hashValue == $0.name.hashValue }
            try context.delete(model: Journey.self, where: inMemory, includeSubclasses: false)
            #expect(try names() == ["cruise", "cruise"])
            try context.delete(model: PaidJourney.self, includeSubclasses: false)
            #expect(try names() == [])
            try fill()
            try context.delete(model: Journey.self)
            #expect(try names() == [])
            try await container.close()
        }
    }

    /// Catches: the object of a batch becomes a new one of the subclass, because its class cannot be read any more.
    @Test(arguments: TestStore.allCases)
    func `S022, S181: an object of a subclass that was deleted since its batch was found reads as deleted`(_ store: TestStore)
        async throws
    {
        try await store.use(PaidJourney.self, Leg.self) { container in
            let context = ModelContext(container)
            for name in ["a", "b"] { context.insert(PaidJourney(name: name, price: 1)) }
            try context.save()
            let reader = ModelContext(container)
            let found = try reader.fetch(FetchDescriptor<PaidJourney>(sortBy: [SortDescriptor(\.name)]), batchSize: 1)
            try reader.delete(model: PaidJourney.self, where: #Predicate { $0.name == "b" })
            try reader.save()
            for _ in 0..<2 { #expect(found[1].isDeleted && found[1].modelContext == nil) }
            let gone = found[1]
            #expect(!reader.hasChanges)
            let leg = Leg(place: "x")
            reader.insert(leg)
            leg.journey = gone
            try reader.save()
            #expect(try reader.fetchCount(FetchDescriptor<PaidJourney>()) == 1)
            #expect(try reader.fetch(FetchDescriptor<Leg>()).map { $0.journey == nil } == [true])
            withExtendedLifetime(context) {}
        }
    }

    /// Catches: the class of an object that was looked up by its id before it was saved stays that at the head of the hierarchy.
    @Test(arguments: TestStore.allCases)
    func `S181: an object looked up before the save that makes it has its class afterwards`(_ store: TestStore) async throws {
        try await store.use(PaidJourney.self, Leg.self) { container in
            let (reader, writer) = (ModelContext(container), ModelContext(container))
            let paid = PaidJourney(name: "cruise", price: 9)
            writer.insert(paid)
            let early = reader.model(for: paid.persistentModelID)
            try writer.save()
            let found = try reader.fetch(FetchDescriptor<PaidJourney>())
            #expect(found.map(\.price) == [9] && found.map(\.name) == ["cruise"])
            found.first?.price = 10
            try reader.save()
            withExtendedLifetime((early, writer)) {}
            let other = ModelContext(container)
            #expect(try other.fetch(FetchDescriptor<Journey>()).map { ($0 as? PaidJourney)?.price } == [10])
        }
    }

    /// Catches: results that stop the program, because an object that was deleted counts as one of the superclass.
    @Test(arguments: TestStore.allCases)
    @MainActor func `S181: results of a subclass that were kept show deleted objects as deleted`(_ store: TestStore) async throws
    {
        try await store.useOnMain(PaidJourney.self, Leg.self) { container in
            let context = container.mainContext
            for name in ["a", "b"] { context.insert(PaidJourney(name: name, price: 1)) }
            try context.save()
            let observer = try ResultsObserver(
                fetchDescriptor: FetchDescriptor<PaidJourney>(sortBy: [SortDescriptor(\.name)]), modelContext: context)
            let kept = observer.results
            let other = ModelContext(container)
            try other.delete(model: PaidJourney.self, where: #Predicate { $0.name == "b" })
            try other.save()
            #expect(observer.results.map(\.name) == ["a"])
            #expect(kept[1].isDeleted)
            withExtendedLifetime(other) {}
        }
    }

    @Test(arguments: TestStore.allCases)
    func `S180: erasing deletes objects of a superclass that the schema does not list`(_ store: TestStore) async throws {
        try await store.use(PaidJourney.self) { container in
            let context = ModelContext(container)
            context.insert(Journey(name: "walk"))
            context.insert(PaidJourney(name: "cruise", price: 9))
            try context.save()
            try container.erase()
            let after = ModelContext(container)
            #expect(try after.fetchCount(FetchDescriptor<Journey>()) == 0)
            withExtendedLifetime(context) {}
        }
    }

    /// Catches: the identifier of an object of a subclass with the name of the class that was asked for.
    @Test(arguments: TestStore.allCases)
    func `S180: fetched identifiers name objects of a subclass by their own class`(_ store: TestStore) async throws {
        try await store.use(PaidJourney.self, Leg.self) { container in
            let context = ModelContext(container)
            context.insert(Journey(name: "walk"))
            context.insert(PaidJourney(name: "cruise", price: 900))
            try context.save()
            let other = ModelContext(container)
            let sorted = FetchDescriptor<Journey>(sortBy: [SortDescriptor(\.name)])
            let ids = try other.fetchIdentifiers(sorted)
            #expect(ids.map(\.entityName) == ["PaidJourney", "Journey"])
            #expect(try other.fetch(sorted).map(\.persistentModelID) == ids)
            #expect(try other.fetchIdentifiers(FetchDescriptor<PaidJourney>()) == [ids[0]])
            withExtendedLifetime(context) {}
        }
    }
}
