import Testing

@testable import StrataSwiftData

private enum Weather: String, Codable { case fair }

@Model private final class Outing {
    @Relationship var weather: Weather?
    init() {}
}

/// Shapes of Apple's sample projects that are rare elsewhere, and a mistake that compiles.
@Suite struct SampleShapeTests {
    /// Catches: a mistake in a model that stops the program instead of throwing an error.
    @Test func `a relationship to a type that is no model is refused when the container is made`() throws {
        let error = #expect(throws: (any Error).self) {
            try ModelContainer(for: Outing.self, configurations: ModelConfiguration(isStoredInMemoryOnly: true))
        }
        let text = error.map { "\($0)" } ?? ""
        #expect(text.contains("Outing.weather") && text.contains("Weather"), "\(text)")
    }

    /// Catches: a container that does not open, because two relationships name one inverse.
    @Test(arguments: TestStore.allCases)
    func `of two relationships with one inverse, the first has it`(_ store: TestStore) async throws {
        try await store.use(Garden.self) { container in
            let entity = try #require(container.schema.entity(for: Garden.self))
            #expect(entity.relationshipsByName["frontShrubs"]?.inverseName == "garden")
            #expect(entity.relationshipsByName["backShrubs"]?.inverseName == nil)
            let context = ModelContext(container)
            let garden = Garden(name: "home")
            context.insert(garden)
            let (rose, fern, moss) = (Shrub("rose"), Shrub("fern"), Shrub("moss"))
            garden.frontShrubs = [rose]
            garden.backShrubs = [fern, rose]
            moss.garden = garden
            #expect(rose.garden === garden && fern.garden == nil)
            #expect(Set(garden.frontShrubs) == [rose, moss] && Set(garden.backShrubs) == [fern, rose])
            try context.save()

            let other = ModelContext(container)
            let same = try #require(try other.fetch(FetchDescriptor<Garden>()).first)
            #expect(same.frontShrubs.map(\.name).sorted() == ["moss", "rose"])
            #expect(same.backShrubs.map(\.name).sorted() == ["fern", "rose"])
            #expect(same.backShrubs.first { $0.name == "fern" }?.garden == nil)
            other.delete(try #require(same.backShrubs.first { $0.name == "rose" }))
            try other.save()
            #expect(same.frontShrubs.map(\.name) == ["moss"] && same.backShrubs.map(\.name) == ["fern"])
            let last = ModelContext(container)
            let left = try #require(try last.fetch(FetchDescriptor<Garden>()).first)
            #expect(left.frontShrubs.map(\.name) == ["moss"] && left.backShrubs.map(\.name) == ["fern"])
            withExtendedLifetime((context, other, last)) {}
        }
    }

    @Test(arguments: ModelConfiguration.Store.allCases)
    func `two relationships with one inverse survive in a file`(_ store: ModelConfiguration.Store) async throws {
        try await TestFile.use(store) { file in
            let container = try file.open(Garden.self)
            do {
                let context = ModelContext(container)
                let garden = Garden(name: "home")
                context.insert(garden)
                garden.frontShrubs = [Shrub("rose")]
                garden.backShrubs = [Shrub("fern")]
                try context.save()
            }
            try await container.close()

            let again = try file.open(Garden.self)
            let context = ModelContext(again)
            let garden = try #require(try context.fetch(FetchDescriptor<Garden>()).first)
            #expect(garden.frontShrubs.map(\.name) == ["rose"] && garden.backShrubs.map(\.name) == ["fern"])
            #expect(garden.frontShrubs.first?.garden === garden && garden.backShrubs.first?.garden == nil)
            try await again.close()
        }
    }

    @Test func `a relationship whose inverse belongs to another one gives a warning that names the three`() throws {
        let warnings = try Schema([Garden.self]).model.get().inverseWarnings
        #expect(warnings.count == 1)
        for name in ["Garden.frontShrubs", "Garden.backShrubs", "Shrub.garden"] {
            #expect(warnings.first?.contains(name) == true, "\(name)")
        }
    }

    #if !canImport(SwiftData)
        /// Catches: an identifier that changes when its context is released, and a qualified name that does not compile.
        @Test(arguments: TestStore.allCases)
        func `S002: objects of a context that ended with a call keep their identifiers`(_ store: TestStore) async throws {
            try await store.use(Garden.self) { container in
                let context = ModelContext(container)
                for name in ["rose", "rose", "fern"] { context.insert(Shrub(name)) }
                try context.save()
                let planner = GardenPlanner(container: container)
                #expect(GardenPlanner.schema == container.schema)
                let roses = try planner.shrubs(named: "rose")
                #expect(roses.count == 2 && roses.allSatisfy { $0.modelContext == nil })
                let found = try context.fetch(FetchDescriptor<Shrub>(predicate: #Predicate { $0.name == "rose" }))
                #expect(planner.identifiers(of: roses) == Set(found.map(\.persistentModelID)))
            }
        }
    #endif
}
