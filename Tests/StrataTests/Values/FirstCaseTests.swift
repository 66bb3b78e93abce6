import Foundation
import Strata
import Testing

private enum WaresBefore {
    @Model class Ware {
        var name: String

        init(name: String) { self.name = name }
    }

    @Model final class Toy: Ware {
        override init(name: String) { super.init(name: name) }
    }
}

private enum WaresAfter {
    enum Kind: String, Codable, CaseIterable { case plain, fine }
    enum Grade: Int, Codable, AttributeValue, CaseIterable { case first = 1, second }

    @Model class Ware {
        var name: String
        @Attribute(.indexed) var kind: Kind

        init(name: String, kind: Kind) {
            self.name = name
            self.kind = kind
        }
    }

    @Model final class Toy: Ware {
        var grade: Grade

        init(name: String, grade: Grade) {
            self.grade = grade
            super.init(name: name, kind: .fine)
        }
    }
}

/// Required enums without a default, in objects that are older than the property or inserted by name.
@Suite @MainActor struct FirstCaseTests {
    /// Catches: objects that read as the first case, but have an empty string or zero for predicates, sorts and groups.
    @Test(arguments: [TestStore.lmdb, .sqlite])
    func `S163: objects that are older than a required enum have its first case`(_ store: TestStore) async throws {
        try await store.use { description in
            do {
                let model = try Model(WaresBefore.Ware.self, WaresBefore.Toy.self)
                let container = try await PersistentContainer(model: model, store: description)
                container.mainContext.insert(WaresBefore.Ware(name: "a"))
                container.mainContext.insert(WaresBefore.Toy(name: "b"))
                try await container.mainContext.save()
                try await container.close()
            }
            for _ in 1...2 {
                let model = try Model(WaresAfter.Ware.self, WaresAfter.Toy.self)
                let container = try await PersistentContainer(model: model, store: description)
                try check(container.mainContext)
                try await container.close()
            }
        }
    }

    @Test(arguments: TestStore.allCases, [false, true])
    func `S034: an object that is inserted by name has the first case of a required enum`(
        _ store: TestStore, _ isSaved: Bool
    ) async throws {
        try await store.use { description in
            let model = try Model(WaresAfter.Ware.self, WaresAfter.Toy.self)
            let container = try await PersistentContainer(model: model, store: description)
            let main = container.mainContext
            for (entity, name) in [("Ware", "a"), ("Toy", "b")] { main.insert(entity)["name"] = .string(name) }
            if isSaved { try await main.save() }
            try check(main)
        }
    }

    private func check(_ context: ManagedObjectContext) throws {
        let (kind, grade) = (WaresAfter.Kind.plain, WaresAfter.Grade.first)
        let wares = try context.fetch(
            FetchRequest<WaresAfter.Ware>(where: #Predicate { $0.kind == kind }, sortBy: [.init(\.name)]))
        #expect(wares.map(\.name) == ["a", "b"] && wares.allSatisfy { $0.kind == kind })
        #expect(try context.fetch(FetchRequest<WaresAfter.Toy>(where: #Predicate { $0.grade == grade })).map(\.grade) == [grade])
        let groups = try context.fetch(ValueRequest<WaresAfter.Ware>([.property(\.kind), .count], groupBy: [.property(\.kind)]))
        #expect(groups.map { $0["kind"] } == [.string("plain")])
    }
}
