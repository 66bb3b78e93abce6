import Foundation
import Strata
import Testing

/// Requests by the provisional id of an object that is related to one of the context, and that is not inserted yet (S175).
@Suite struct WaitingObjectTests {
    @Model final class Feast {
        var name = ""
        var visitors: [Visitor] = []
        init() {}
    }

    @Model final class Visitor {
        var name: String
        var feast: Feast?
        init(_ name: String) { self.name = name }
    }

    @Test(arguments: TestStore.allCases)
    @MainActor func `S175: the first request by a provisional id finds an object that waits for its insertion`(
        _ store: TestStore
    ) async throws {
        try await store.use { description in
            let container = try await PersistentContainer(for: Feast.self, Visitor.self, store: description)
            let context = container.mainContext
            let feast = Feast()
            context.insert(feast)
            func waiting(_ name: String) -> ObjectID {
                let visitor = Visitor(name)
                let id = visitor.id
                visitor.feast = feast
                return id
            }
            let first = waiting("Ada")
            #expect(try context.count(where: #Predicate<Visitor> { $0.id == first }) == 1)
            let second = waiting("Bob")
            #expect(try context.fetch(FetchRequest<Visitor>(where: #Predicate { $0.id == second })).map(\.name) == ["Bob"])
            let third = waiting("Cem")
            let live = try Results(FetchRequest<Visitor>(where: #Predicate { $0.id == third }), context: context)
            #expect(live.map(\.name) == ["Cem"])
            let last = waiting("Dee")
            #expect(try context.delete(where: #Predicate<Visitor> { $0.id == last }) == 1)
            try await context.save()
            #expect(feast.visitors.map(\.name).sorted() == ["Ada", "Bob", "Cem"] && live.count == 1)
            try await container.close()
        }
    }
}
