import DictionaryStore
import ObjectGraph
import StoreContract
import StoreInterface
import Testing

@Suite struct DictionaryStoreTests {
    @Test(arguments: StoreContract.checks)
    func `the store keeps the contract`(_ check: StoreContract.Check) throws {
        try check.run { schema in DictionaryStore(schema) }
    }

    private static func model() throws -> Model {
        try Model([
            EntityDescription(
                name: "Track",
                properties: [
                    .attribute(.init(name: "title", type: .string)),
                    .attribute(.init(name: "plays", type: .int64, index: .indexed)),
                ])
        ])
    }

    @Test func `a container saves to the store and fetches from it`() async throws {
        let container = try await PersistentContainer(model: Self.model(), store: .dictionary, stack: .siblings)
        let importer = await container.newBackgroundContext()
        await importer.perform { context in
            for number in 1...100 {
                let track = context.insert("Track")
                track["title"] = .string("Track \(number)")
                track["plays"] = .int(Int64(number))
            }
        }
        try await importer.save(.durable)
        try await importer.perform { context in
            let last = EntityFetchRequest("Track", sortBy: [AttributeSort("plays")], offset: 90)
            for track in try context.fetch(last) { context.delete(track) }
        }
        try await importer.save()
        let reader = await container.newBackgroundContext()
        let count = try await reader.perform { try $0.count(EntityFetchRequest("Track")) }
        #expect(count == 90)
        let history = try await container.coordinator.history()
        #expect(history.count == 2)
        #expect(history[0].token.generation < history[1].token.generation)
        try await container.close()
    }

    /// The layer above orders generations, and never counts on a distance of one between them.
    @Test func `conflicts and merges work with timestamps as generations`() async throws {
        let container = try await PersistentContainer(model: Self.model(), store: .dictionary, stack: .siblings)
        let first = await container.newBackgroundContext()
        let id = await first.perform { context in
            let track = context.insert("Track")
            track["title"] = .string("old")
            track["plays"] = .int(0)
            return track.objectID
        }
        try await first.save()
        let second = await container.newBackgroundContext()
        for (context, title) in [(first, "mine"), (second, "yours")] {
            await context.perform { $0.object(with: id)["title"] = .string(title) }
        }
        try await first.save(.deferred)
        await #expect(throws: SaveError.self) { try await second.save() }
        let third = await container.newBackgroundContext()
        #expect(await third.perform { $0.object(with: id)["title"] } == .string("mine"))
        await third.perform { $0.object(with: id)["plays"] = .int(7) }
        try await third.save()
        #expect(await container.newBackgroundContext().perform { $0.object(with: id)["plays"] } == .int(7))
        let tokens = try await container.coordinator.history().map(\.token)
        #expect(tokens.count == 3 && tokens == tokens.sorted())
        try await container.close()
    }
}
