import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Batches and imports of hierarchies, which find objects by their values in the store.
@Suite struct InheritanceBatchTests {
    /// Trips with a number that is unique among trips of all kinds.
    private static func model() throws -> Model {
        try Trips.model { entities in
            guard let trip = entities.firstIndex(where: { $0.name == "Trip" }) else { return }
            entities[trip].properties.append(.attribute(.init(name: "number", type: .string, isOptional: true, index: .unique)))
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `S183: batches relate only to objects of the relationship's entity`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: try Self.model())
        let coordinator = container.coordinator
        try await coordinator.insert(into: "Trip", ["name", "number"], rows: [["a", "1"]])
        try await coordinator.insert(into: "Holiday", ["name", "number"], rows: [["b", "2"]])
        let (trip, holiday) = try await coordinator.newBackgroundContext().perform { context throws in
            let ids = try context.fetchIDs(EntityFetchRequest("Trip", sortBy: [.init("name")]))
            return (Value.reference(ids[0].key), Value.reference(ids[1].key))
        }
        // `favorite` of a person is a holiday.
        for (property, wrong, right) in [("favorite", trip, holiday), ("favorite.number", "1", "2")] {
            try await coordinator.insert(into: "Person", ["name", property], rows: [["p", right]])
            try await coordinator.batchUpdate(EntityFetchRequest("Person"), set: [property: right])
            await #expect(throws: BatchError.self) {
                try await coordinator.insert(into: "Person", ["name", property], rows: [["q", wrong]])
            }
            await #expect(throws: BatchError.self) {
                try await coordinator.batchUpdate(EntityFetchRequest("Person"), set: [property: wrong])
            }
        }
        await #expect(throws: SaveError.self) {
            try await coordinator.batchUpdate(EntityFetchRequest("Person"), set: ["favorite": .reference(4_000)])
        }
        let favorites = try await coordinator.newBackgroundContext().perform { context throws in
            try context.fetch(EntityFetchRequest("Person")).map { $0.relatedObject("favorite")?["name"] }
        }
        #expect(favorites == ["b", "b"])
        #expect(try coordinator.store.verify() == [])
    }

    /// A value of an import, which names another one by its number.
    private struct ImportedTrip: Codable {
        var name: String
        var number: String
        var next: String?
    }

    @Test(arguments: StoreKind.allCases)
    func `S139: imported values relate to each other only if they are of the relationship's entity`(
        _ kind: StoreKind
    ) async throws {
        let bed = try TestBed(kind)
        let model = try Trips.model { entities in
            guard let trip = entities.firstIndex(where: { $0.name == "Trip" }) else { return }
            entities[trip].properties += [
                .attribute(.init(name: "number", type: .string, isOptional: true, index: .unique)),
                .relationship(.init(name: "next", destination: "Holiday", cardinality: .toOne, inference: .refused)),
            ]
        }
        let container = try await bed.container(model: model)
        let values = [ImportedTrip(name: "a", number: "1"), ImportedTrip(name: "b", number: "2", next: "1")]
        let worker = container.coordinator.newBackgroundContext()
        try await worker.perform { context throws in
            #expect(throws: BatchError.self) { try context.insert(contentsOf: values, into: "Trip") }
            #expect(!context.hasChanges)
            let holidays = try context.insert(contentsOf: values, into: "Holiday")
            #expect(holidays.map { $0.relatedObject("next") } == [nil, holidays[0]])
        }
        try await worker.save()
        await #expect(throws: BatchError.self) {
            try await container.coordinator.insert(
                into: "Trip", ["number", "next.number"], rows: [["3", .null], ["4", "3"]])
        }
        try await container.coordinator.insert(
            into: "Holiday", ["number", "next.number"], rows: [["3", .null], ["4", "3"]])
        #expect(try await container.coordinator.verify() == [])
    }

    @Test(arguments: StoreKind.allCases)
    func `S137: an import updates objects of its entity, not others with the same values`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: try Self.model())
        let coordinator = container.coordinator
        try await coordinator.insert(into: "Trip", ["name", "number"], rows: [["Rome", "1"]])
        try await coordinator.insert(into: "Holiday", ["name", "place"], rows: [["Rome", "old"]])
        for durability in [Durability.durable, .deferred(within: .seconds(60))] {
            var options = BatchOptions()
            options.durability = durability
            try await coordinator.insert(into: "Person", ["name"], rows: [["a"]], options: options)
            try await coordinator.insert(
                into: "Holiday", ["name", "place"], rows: [["Rome", "new"]], rule: .update(on: ["name"]), options: options)
            let places = try await coordinator.newBackgroundContext().perform { context throws in
                try context.fetch(EntityFetchRequest("Holiday")).map { $0["place"] }
            }
            #expect(places == ["new"])
            // The constraint holds for trips of all kinds.
            await #expect(throws: SaveError.self) {
                try await coordinator.insert(
                    into: "Holiday", ["name", "number"], rows: [["Oslo", "1"]], rule: .update(on: ["number"]), options: options)
            }
        }
        try await container.close()
    }

    /// Catches: a row that is related to the object which had a unique value before the import, although another row takes the value.
    @Test(arguments: StoreKind.allCases)
    func `S139: imported values relate by the unique values that objects have after the import`(_ kind: StoreKind) async throws {
        struct Row: Codable {
            var code: String
            var name = "x"
            var number: String
            var parts: [String] = []
        }
        let bed = try TestBed(kind)
        let container = try await bed.container(model: try Trips.numberedModel())
        try await container.newBatchOperationContext().perform { context throws in
            _ = try context.insert(contentsOf: [Row(code: "A", number: "1")], into: "BusinessTrip")
            let trips = try context.upsert(
                contentsOf: [
                    Row(code: "A", number: "2"), Row(code: "C", number: "1"), Row(code: "B", number: "3", parts: ["1"]),
                ],
                into: "BusinessTrip", unique: "code")
            #expect(trips[2].relatedObjects("parts").map { $0["code"] } == ["C"])
            #expect(throws: BatchError.self) {
                try context.upsert(
                    contentsOf: [Row(code: "A", number: "5"), Row(code: "D", number: "6", parts: ["2"])], into: "BusinessTrip",
                    unique: "code")
            }
        }
    }

    /// Catches: rows of one new object that are taken for several, so that a value leads to the object although a later row replaces it.
    @Test(arguments: StoreKind.allCases)
    func `S139: imported values do not relate to a new object by a value that another row replaces`(
        _ kind: StoreKind
    ) async throws {
        struct Row: Codable {
            var code: String
            var name = "x"
            var number: String
            var parts: [String] = []
        }
        let bed = try TestBed(kind)
        let container = try await bed.container(model: try Trips.numberedModel())
        try await container.newBatchOperationContext().perform { context throws in
            let trips = try context.upsert(
                contentsOf: [
                    Row(code: "A", number: "1"), Row(code: "A", number: "2"), Row(code: "C", number: "1"),
                    Row(code: "B", number: "3", parts: ["1", "2"]),
                ],
                into: "BusinessTrip", unique: "code")
            #expect(trips[0] === trips[1])
            #expect(trips[3].relatedObjects("parts").map { $0["code"] }.sorted { "\($0)" < "\($1)" } == ["A", "C"])
            #expect(throws: BatchError.self) {
                try context.upsert(
                    contentsOf: [
                        Row(code: "D", number: "5"), Row(code: "D", number: "6"), Row(code: "E", number: "7", parts: ["5"]),
                    ],
                    into: "BusinessTrip", unique: "code")
            }
        }
    }

    /// Catches: an object of a subentity that an import updates, which later rows of the save find by the value that it had before.
    @Test(arguments: StoreKind.allCases, [1, 100])
    func `S137: rows relate to objects of a subentity by the values that earlier rows give them`(
        _ kind: StoreKind, _ rowsPerSave: Int
    ) async throws {
        let bed = try TestBed(kind)
        let model = try Trips.model { entities in
            guard let trip = entities.firstIndex(where: { $0.name == "Trip" }) else { return }
            entities[trip].properties += [
                .attribute(.init(name: "number", type: .string, isOptional: true, index: .unique)),
                .relationship(.init(name: "next", destination: "Holiday", cardinality: .toOne, inference: .refused)),
            ]
        }
        let container = try await bed.container(model: model)
        try await container.coordinator.insert(into: "Holiday", ["name", "number"], rows: [["a", "1"]])
        @Sendable func load(_ rows: [[Value]]) async throws {
            var options = BatchOptions()
            options.rowsPerSave = rowsPerSave
            try await container.coordinator.insert(
                into: "Trip", ["name", "number", "next.number"], rows: rows, rule: .update(on: ["name"]), options: options)
        }
        await #expect(throws: BatchError.self) { try await load([["a", "2", .null], ["b", "3", "1"]]) }
        try await load([["a", "4", .null], ["c", "5", "4"]])
        let next = try await container.newBatchOperationContext().perform { context throws in
            try context.fetch(EntityFetchRequest("Trip", matching: .equal("name", "c"))).map { $0.relatedObject("next")?["name"] }
        }
        #expect(next == ["a"])
        #expect(try await container.coordinator.verify() == [])
    }
}
