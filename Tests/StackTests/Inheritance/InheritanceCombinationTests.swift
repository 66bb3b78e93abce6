import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Hierarchies whose entities have derived attributes and ordered relationships.
@Suite struct InheritanceCombinationTests {
    private static func sizes(_ list: ManagedObject, _ name: String) -> [Value] { list.relatedObjects(name).map { $0["size"] } }

    @Test(arguments: Combination.all)
    func `S180: entities of a hierarchy have derived attributes and ordered relationships`(
        _ combination: Combination
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack, model: try Lists.model())
        let worker = await container.newBackgroundContext()
        let id = await worker.perform { context in
            let list = context.insert("Playlist")
            list["name"] = "a"
            list.setRelatedObjects(
                "items",
                to: (1...4).map { size in
                    let item = context.insert(size.isMultiple(of: 2) ? "Song" : "Item")
                    item["size"] = .int(Int64(size))
                    return item
                })
            list.setRelatedObjects("songs", to: list.relatedObjects("items").filter { $0.entityName == "Song" }.reversed())
            return list.objectID
        }
        try await worker.save(through: .store)
        // A child that does not merge shows values of the store when it is moved to its parent's state.
        if combination.stack == .hybrid { try await worker.refreshFromParent() }
        try await worker.perform { context in
            let list = try context.existingObject(with: id)
            #expect(list.entityName == "Playlist")
            #expect(list["itemCount"] == 4 && list["total"] == 10)
            #expect(Self.sizes(list, "items") == [1, 2, 3, 4] && Self.sizes(list, "songs") == [4, 2])
            list.setRelatedObjects("items", to: list.relatedObjects("items").reversed())
            list.setRelatedObjects("songs", to: list.relatedObjects("songs").reversed())
            context.delete(list.relatedObjects("items")[3])
            list["name"] = "b"
        }
        try await worker.save(through: .store)
        try await container.coordinator.newBackgroundContext().perform { context in
            let list = try #require(try context.fetch(EntityFetchRequest("Collection")).first)
            #expect(list["itemCount"] == 3 && list["total"] == 9)
            #expect(Self.sizes(list, "items") == [4, 3, 2] && Self.sizes(list, "songs") == [2, 4])
            let full = EntityFetchRequest("Playlist", matching: .equal("itemCount", .int(3)))
            #expect(try context.count(full) == 1)
            #expect(try context.fetch(EntityFetchRequest("Song")).allSatisfy { $0["owner"] == "b" })
            #expect(try context.count(EntityFetchRequest("Item")) == 3)
        }
        try await container.flush()
        #expect(try container.coordinator.store.verify() == [])
        try await container.close()
    }

    @Test func `S200: a subentity with a derived attribute is refused`() {
        let attribute = AttributeDescription(name: "upper", type: .string, derivation: .lowercased("name"))
        let error = #expect(throws: ModelError.self) {
            try Trips.model { $0[1].properties.append(.attribute(attribute)) }
        }
        #expect(error?.description.contains("head of a hierarchy") == true)
    }

    /// Catches: positions that are not found beside the types of the objects.
    @Test(arguments: StoreKind.allCases) @MainActor
    func `S080: a live result of a hierarchy updates if only the order of a relationship changed`(_ kind: StoreKind) async throws
    {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: try Lists.model())
        let main = container.mainContext
        let list = main.insert("Playlist")
        list.setRelatedObjects("items", to: (0..<3).map { _ in main.insert("Song") })
        try await main.save()
        let results = try Results(EntityFetchRequest("Collection", sortBy: [AttributeSort("name")]), context: main)
        var iterator = results.updates.makeAsyncIterator()
        let id = list.objectID
        let worker = container.newBackgroundContext()
        try await worker.perform { context in
            let list = try context.existingObject(with: id)
            list.setRelatedObjects("items", to: list.relatedObjects("items").reversed())
        }
        try await worker.save()
        main.refreshAllObjects()
        let update = try #require(await iterator.next())
        #expect(update.difference.updates.map { update.snapshot.ids[$0] } == [id])
        try await container.close()
    }

    @Test(arguments: [StoreKind.lmdb, .sqlite])
    func `S186: subentities are added where attributes are derived and relationships are ordered`(_ kind: StoreKind) async throws
    {
        let bed = try TestBed(kind)
        func with(_ model: Model, _ body: @Sendable (ManagedObjectContext) throws -> Void) async throws {
            let container = try await bed.container(model: model)
            let context = container.coordinator.newBackgroundContext()
            try await context.perform { try body($0) }
            try await context.save()
            #expect(try container.coordinator.store.verify() == [])
            try await container.close()
            try await bed.closed()
        }
        try await with(try Lists.model()) { context in
            let list = context.insert("Playlist")
            list["name"] = "a"
            list.setRelatedObjects("items", to: [context.insert("Song"), context.insert("Item")])
            list.setRelatedObjects("songs", to: [list.relatedObjects("items")[0]])
        }
        try await with(try Lists.model(withMixes: true)) { context in
            let mix = context.insert("Mix")
            let list = try #require(try context.fetch(EntityFetchRequest("Playlist", matching: .equal("name", "a"))).first)
            mix.setRelatedObjects("items", to: list.relatedObjects("items"))
            mix.setRelatedObjects("songs", to: list.relatedObjects("songs"))
        }
        try await with(try await Model(storedIn: bed.description)) { context in
            let lists = try context.fetch(EntityFetchRequest("Collection", sortBy: [.init("itemCount")]))
            #expect(lists.map(\.entityName) == ["Playlist", "Mix"])
            #expect(lists.map { $0["itemCount"] } == [0, 2])
            #expect(lists[1]["speed"] == 90)
        }
    }
}
