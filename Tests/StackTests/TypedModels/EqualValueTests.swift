import ObjectGraph
import StoreModel
import TestSupport
import Testing

/// Values of `Codable` types whose encoder writes the same content in other bytes, as that of a set in a structure does in each process.
@Suite(.serialized) @MainActor struct EqualValueTests {
    @Test(arguments: StoreKind.allCases)
    func `S032: a value with the content of the saved one is no change, whatever its encoder writes`(_ kind: StoreKind)
        async throws
    {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: Journeys.model)
        let main = container.mainContext
        let new = Journeys.Journey(words: ["a", "b"])
        main.insert(new)
        try await main.save()
        Journeys.Words.turnRound()
        let child = main.newChild(name: "child")
        for context in [main, child] {
            let journey = context.object(Journeys.Journey.self, with: new.id)
            let watches = [Watch { _ = journey.words }, Watch { _ = journey.moreWords }]
            let stored = journey.managedObject["words"]
            journey.words = Journeys.Words(["b", "a"])
            journey.moreWords = journey.moreWords
            #expect(!context.hasChanges && !journey.hasChanges && watches.map(\.count) == [0, 0])
            #expect(journey.managedObject["words"] == stored)
            journey.words = Journeys.Words(["c"])
            journey.moreWords = nil
            #expect(watches.map(\.count) == [1, 1])
            #expect(journey.managedObject.changedValues.keys.sorted() == ["moreWords", "words"])
            context.rollback()
            #expect(!context.hasChanges)
            withExtendedLifetime(watches) {}
        }
        withExtendedLifetime((container, child)) {}
    }

    /// Catches: a change that is lost because the type's own `==` ignores it.
    @Test(arguments: StoreKind.allCases)
    func `S032: a value that equals the saved one as its type defines it, but has other content, is saved`(
        _ kind: StoreKind
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: Journeys.model)
        let main = container.mainContext
        let new = Journeys.Journey(words: ["a"])
        main.insert(new)
        try await main.save()
        let child = main.newChild(name: "child")
        let id = new.id
        child.object(Journeys.Journey.self, with: id).words = Journeys.Words(["a"], note: "new")
        try await child.save(through: .store)
        #expect(try await container.read { try $0.existingObject(Journeys.Journey.self, with: id).words.note } == "new")
        withExtendedLifetime((container, child)) {}
    }
}
