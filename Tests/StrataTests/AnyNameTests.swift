import Foundation
import Strata
import Testing

/// Names that models, objects, stores and Swift's own protocols use for other things.
@Model final class Peculiar {
    @Attribute(.unique) var id: UUID
    var version: Int
    var hashValue: Int
    var description: String
    var debugDescription: String?
    var isDeleted: Bool
    var hasChanges = true
    var managedObjectContext: String?
    var persistentModelID: Int = 0
    var entityDescription: String = ""
    var columnsByKeyPath: String?
    var entity: String?
    var rowid: Int = 0
    var newValue: Int = 0
    var initialValue: Int = 0
    @Attribute(.indexed) var key: String?
    var ObjectID: Int = 1
    var `init`: Int = 0
    var `Type`: Int = 0
    var `Protocol`: String = ""
    var `self`: Int = 5
    var await: Bool = false
    @Relationship(inverse: \Peculiar.children) var parent: Peculiar?
    @Relationship var children: [Peculiar]
}

/// Properties with the ending of the macro's own anchor, stored in the file and not.
@Model final class Mooring {
    var modelAnchor = 7
    @Transient var submodelAnchor = 8
    var harbor: Harbor?

    init(in harbor: Harbor) { self.harbor = harbor }
}

@Model final class Harbor {
    var moorings: [Mooring] = []

    init() {}
}

@Suite @MainActor struct AnyNameTests {
    @Test(arguments: TestStore.allCases)
    func `S175: a model related in its initializer is found although it has properties named like its anchor`(
        _ store: TestStore
    ) async throws {
        try await store.use { description in
            let container = try await PersistentContainer(for: Mooring.self, Harbor.self, store: description)
            let main = container.mainContext
            let harbor = Harbor()
            main.insert(harbor)
            let mooring = Mooring(in: harbor)
            #expect(harbor.moorings.count == 1 && harbor.moorings.first === mooring)
            try await main.save()
            #expect(mooring.modelAnchor == 7 && mooring.submodelAnchor == 8 && mooring.harbor === harbor)
        }
    }

    @Test(arguments: TestStore.allCases)
    func `S173: properties may have the names of members of every model, and keep their values`(_ store: TestStore) async throws {
        try await store.use { description in
            let first = UUID()
            let second = UUID()
            // Keeps a store in memory until the second container has read it.
            let written = try await PersistentContainer(for: Peculiar.self, store: description)
            do {
                let main = written.mainContext
                let parent = Self.peculiar(first, 1)
                let child = Self.peculiar(second, 2)
                main.insert(parent)
                main.insert(child)
                child.parent = parent
                #expect(!parent.managedObject.isDeleted)
                try await main.save()
            }
            let read = try await PersistentContainer(for: Peculiar.self, store: description)
            do {
                let main = read.mainContext
                let found = try main.fetch(FetchRequest<Peculiar>(where: #Predicate { $0.id == second }))
                let child = try #require(found.first)
                #expect(found.count == 1)
                #expect(child.id == second && child.version == 2 && child.hashValue == 2 && child.description == "description 2")
                #expect(child.isDeleted && child.hasChanges && !child.managedObject.isDeleted)
                #expect(child.managedObjectContext == "context 2" && child.rowid == 2)
                #expect(child.parent?.id == first && child.parent?.children == [child])
                #expect(Self.identity(child) == AnyHashable(second))
                #expect(child.managedObject.objectID.entity == 0)
                #expect(child.managedObject["id"] == .uuid(second))
                let versions = FetchRequest<Peculiar>(
                    where: #Predicate { $0.version < 3 && $0.isDeleted }, sortBy: [.init(\.version, .descending)])
                #expect(try main.fetch(versions).map(\.version) == [2, 1])
                let byParent = FetchRequest<Peculiar>(where: #Predicate { $0.parent?.id == first })
                #expect(try main.fetch(byParent).map(\.id) == [second])
                let rows = try main.fetch(EntityFetchRequest("Peculiar", matching: .equal("id", .uuid(first))))
                #expect(rows.map { $0["version"] } == [.int(1)])
                child.id = first
                await #expect(throws: (any Error).self) { try await main.save() }
            }
        }
    }

    private static func peculiar(_ id: UUID, _ number: Int) -> Peculiar {
        let made = Peculiar(
            id: id, version: number, hashValue: number, description: "description \(number)", isDeleted: true,
            managedObjectContext: "context \(number)")
        made.rowid = number
        return made
    }

    private static func identity<T: Identifiable>(_ value: T) -> AnyHashable { AnyHashable(value.id) }
}
