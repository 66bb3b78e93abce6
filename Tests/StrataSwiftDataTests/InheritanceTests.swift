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
}
