import StrataSwiftData
import Testing

/// Relationships that both ends describe, sets of models, and objects that a unique value merges.
@Suite struct CrewTests {
    private func use(_ store: TestStore, _ body: (ModelContainer, ModelContext) throws -> Void) async throws {
        try await store.use(Crew.self, Sailor.self, Badge.self) { container in try body(container, ModelContext(container)) }
    }

    /// Catches: two relationships instead of one, so that neither shows the other's changes, and a deletion leaves the members.
    @Test(arguments: TestStore.allCases)
    func `two ends without an inverse are one relationship`(_ store: TestStore) async throws {
        try await use(store) { _, context in
            let crew = Crew("north")
            context.insert(crew)
            let sailor = Sailor(number: 1, rank: .captain)
            sailor.crew = crew
            #expect(crew.sailors == [sailor])
            try context.save()
            context.delete(crew)
            try context.save()
            #expect(try context.fetchCount(FetchDescriptor<Sailor>()) == 0)
        }
    }

    /// Catches: an enum that stops the program because its object was merged into another one.
    @Test(arguments: TestStore.allCases)
    func `an object that a unique value has merged into another one can be read`(_ store: TestStore) async throws {
        try await use(store) { container, context in
            context.insert(Sailor(number: 1, rank: .captain))
            try context.save()
            let other = ModelContext(container)
            let sailor = Sailor(number: 1, rank: .mate)
            other.insert(sailor)
            try other.save()
            #expect(sailor.rank == .mate && sailor.number == 1)
            let fresh = ModelContext(container)
            #expect(try fresh.fetch(FetchDescriptor<Sailor>()).map(\.rank) == [.mate])
        }
    }

    /// Catches: a set of models that is stored as JSON, and overwrites another property.
    @Test(arguments: TestStore.allCases)
    func `a set of models that may be nil is a relationship`(_ store: TestStore) async throws {
        try await use(store) { container, context in
            let sailor = Sailor(number: 7, rank: .mate)
            context.insert(sailor)
            sailor.badges = [Badge("a"), Badge("b")]
            try context.save()
            let fresh = ModelContext(container)
            let found = try #require(try fresh.fetch(FetchDescriptor<Sailor>()).first)
            #expect(found.badges?.map(\.text).sorted() == ["a", "b"] && found.number == 7 && found.rank == .mate)
        }
    }
}
