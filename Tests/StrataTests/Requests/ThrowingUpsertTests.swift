import Strata
import Testing

private enum Depot {
    @Model final class Shelf {
        @Attribute(.unique) var name: String
        @Relationship(deleteRule: .cascade, inverse: \Box.shelf) var boxes: [Box] = []
        init(name: String) { self.name = name }
    }

    @Model final class Box {
        var label: String
        var shelf: Shelf?
        init(label: String) { self.label = label }
    }

    static let types: [any PersistentModel.Type] = [Shelf.self, Box.self]
}

/// Upserts whose update throws.
@Suite @MainActor struct ThrowingUpsertTests {
    /// Catches: a delete rule of the object that is given up, which deletes objects that were there before.
    @Test(arguments: TestStore.allCases, [false, true])
    func `S139: an upsert whose update throws deletes no object that it has related`(_ store: TestStore, _ isSaved: Bool)
        async throws
    {
        struct Refusal: Error {}
        try await store.use { description in
            let container = try await PersistentContainer(model: Model(Depot.types), store: description)
            let context = container.mainContext
            let box = Depot.Box(label: "a")
            context.insert(box)
            if isSaved { try await context.save() }
            #expect(throws: Refusal.self) {
                try context.upsert(unique: \Depot.Shelf.name, "new") { shelf in
                    shelf.boxes = [box]
                    #expect(box.shelf === shelf)
                    throw Refusal()
                }
            }
            #expect(box.shelf == nil)
            try await context.save()
            #expect(box.label == "a" && box.shelf == nil)
            let counts = try await container.newBatchOperationContext().perform { context throws in
                [try context.count(FetchRequest<Depot.Box>()), try context.count(FetchRequest<Depot.Shelf>())]
            }
            #expect(counts == [1, 0])
        }
    }
}
