import StrataSwiftData
import Testing

/// Relationships that both ends describe, sets of models, and objects that a unique value merges.
@Suite struct CrewTests {
    private let container: ModelContainer
    private let context: ModelContext

    init() throws {
        container = try ModelContainer(
            for: Crew.self, Sailor.self, Badge.self,
            configurations: ModelConfiguration(isStoredInMemoryOnly: true))
        context = ModelContext(container)
    }

    /// Catches: two relationships instead of one, so that neither shows the other's changes, and a deletion leaves the members.
    @Test func `two ends without an inverse are one relationship`() throws {
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

    /// Catches: an enum that stops the program because its object was merged into another one.
    @Test func `an object that a unique value has merged into another one can be read`() throws {
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

    /// Catches: a set of models that is stored as JSON, and overwrites another property.
    @Test func `a set of models that may be nil is a relationship`() throws {
        let sailor = Sailor(number: 7, rank: .mate)
        context.insert(sailor)
        sailor.badges = [Badge("a"), Badge("b")]
        try context.save()
        let fresh = ModelContext(container)
        let found = try #require(try fresh.fetch(FetchDescriptor<Sailor>()).first)
        #expect(found.badges?.map(\.text).sorted() == ["a", "b"] && found.number == 7 && found.rank == .mate)
    }
}
