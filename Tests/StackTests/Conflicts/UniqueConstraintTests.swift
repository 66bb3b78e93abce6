import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Unique constraints over one and several properties, under each merge policy, with durable and deferred saves.
@Suite struct UniqueConstraintTests {
    static let model: Model = {
        let place = EntityDescription(
            name: "Place",
            properties: [
                .attribute(.init(name: "city", type: .string, isOptional: true)),
                .attribute(.init(name: "street", type: .string, isOptional: true)),
                .attribute(.init(name: "code", type: .int64, isOptional: true, index: .unique)),
                .attribute(.init(name: "note", type: .string)),
            ], indexes: [.unique("city", "street")])
        let visit = EntityDescription(
            name: "Visit",
            properties: [
                .attribute(.init(name: "day", type: .int64)),
                .relationship(.init(name: "place", destination: "Place", cardinality: .toOne)),
            ])
        do { return try Model([place, visit]) } catch { preconditionFailure("the test model is wrong: \(error)") }
    }()

    @discardableResult
    private static func place(
        _ context: ManagedObjectContext, _ city: String?, _ street: String?, code: Int? = nil, note: String = ""
    ) -> ManagedObject {
        let place = context.insert("Place")
        place["city"] = city.storeValue
        place["street"] = street.storeValue
        place["code"] = code.storeValue
        place["note"] = .string(note)
        return place
    }

    private static func notes(_ context: ManagedObjectContext) throws -> [Value] {
        try context.fetch(EntityValueRequest("Place", fetching: [.property("note")], sortBy: [AttributeSort("note")]))
            .map { $0.values[0] }
    }

    /// Creates a store with one place, which may still be a deferred save, and a context that does not see it yet.
    private static func stand(
        _ kind: StoreKind, _ durability: Durability
    ) async throws -> (bed: TestBed, container: PersistentContainer, first: ObjectID, context: BackgroundContext) {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: model)
        let context = container.coordinator.newBackgroundContext()
        let other = container.coordinator.newBackgroundContext()
        let first = await other.perform { place($0, "Oslo", "Gata", code: 1, note: "first").objectID }
        try await other.save(durability)
        return (bed, container, first, context)
    }

    static let settings: [(StoreKind, Durability)] = StoreKind.allCases.flatMap { kind in
        [(kind, Durability.durable), (kind, .deferred(within: .seconds(30)))]
    }

    @Test(arguments: settings)
    func S108_theErrorNamesConstraintValuesAndBothObjects(_ kind: StoreKind, _ durability: Durability) async throws {
        let (bed, container, first, context) = try await Self.stand(kind, durability)
        defer { withExtendedLifetime(bed) {} }
        let twin = await context.perform { Self.place($0, "Oslo", "Gata", code: 2, note: "twin").objectID }
        let error = try #require(await #expect(throws: SaveError.self) { try await context.save() })
        guard case .uniqueConstraint("Place", ["city", "street"], [.string("Oslo"), .string("Gata")], let objects) = error
        else {
            Issue.record("another error: \(error)")
            return
        }
        #expect(Set(objects) == [first, twin])
        #expect(try await container.newBackgroundContext().perform { try Self.notes($0) } == [.string("first")])
        // Equal parts of the values, or a null among them, are not a conflict.
        try await context.perform { context throws in
            try context.existingObject(with: twin)["street"] = .string("Vei")
            for _ in 0..<2 { Self.place(context, "Oslo", nil) }
            for _ in 0..<2 { Self.place(context, nil, nil) }
        }
        try await context.save()
        #expect(try await container.newBackgroundContext().perform { try Self.notes($0).count } == 6)
    }

    @Test(arguments: settings)
    func S108_objectTrumpUpdatesTheRowWhichKeepsItsId(_ kind: StoreKind, _ durability: Durability) async throws {
        let (bed, container, first, context) = try await Self.stand(kind, durability)
        defer { withExtendedLifetime(bed) {} }
        let twin = await context.perform { context in
            context.mergePolicy = .objectTrump
            let twin = Self.place(context, "Oslo", "Gata", code: 7, note: "ours")
            context.insert("Visit").setRelatedObject("place", to: twin)
            return twin.objectID
        }
        try await context.save()
        for context in [context, await container.newBackgroundContext()] {
            try await context.perform { context throws in
                #expect(try Self.notes(context) == [.string("ours")])
                #expect(try context.existingObject(with: first)["code"] == .int(7))
                #expect(throws: (any Error).self) { try context.existingObject(with: twin) }
                let visits = try context.fetch(EntityFetchRequest("Visit"))
                #expect(visits.map { $0.relatedObject("place")?.objectID } == [first], "what referred to it refers to the row")
            }
        }
    }

    @Test(arguments: settings, [MergePolicy.storeTrump, .rollback])
    func S108_storeTrumpDropsTheNewObjectInFavourOfTheRow(
        _ setting: (StoreKind, Durability), _ policy: MergePolicy
    ) async throws {
        let (bed, container, first, context) = try await Self.stand(setting.0, setting.1)
        defer { withExtendedLifetime(bed) {} }
        let twin = await context.perform { context in
            context.mergePolicy = policy
            let twin = Self.place(context, "Paris", "Rue", code: 1, note: "ours")
            context.insert("Visit").setRelatedObject("place", to: twin)
            Self.place(context, "Rome", "Via", note: "other")
            return twin.objectID
        }
        try await context.save()
        for context in [context, await container.newBackgroundContext()] {
            try await context.perform { context throws in
                #expect(try Self.notes(context) == [.string("first"), .string("other")])
                #expect(throws: (any Error).self) { try context.existingObject(with: twin) }
                let visits = try context.fetch(EntityFetchRequest("Visit"))
                #expect(visits.map { $0.relatedObject("place")?.objectID } == [first])
            }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func S108_updatesAndSwapsCountAsTheyEnd(_ kind: StoreKind) async throws {
        let (bed, container, first, context) = try await Self.stand(kind, .durable)
        defer { withExtendedLifetime(bed) {} }
        let second = try await context.perform { context throws in
            context.refreshAllObjects()
            return Self.place(context, "Oslo", "Vei", code: 2, note: "second").objectID
        }
        try await context.save()
        // The two objects exchange their streets and codes, which is not a conflict.
        try await context.perform { context throws in
            let (a, b) = (try context.existingObject(with: first), try context.existingObject(with: second))
            (a["street"], b["street"]) = (b["street"], a["street"])
            (a["code"], b["code"]) = (b["code"], a["code"])
        }
        try await context.save()
        // An update of one column makes the values equal to those of the other row.
        try await context.perform { try $0.existingObject(with: second)["street"] = .string("Vei") }
        await #expect(throws: SaveError.self) { try await context.save() }
        await context.perform { $0.mergePolicy = .objectTrump }
        await #expect(throws: SaveError.self, "neither row can give way") { try await context.save() }
        try await context.perform { context throws in
            context.mergePolicy = .storeTrump
            try context.existingObject(with: second)["note"] = .string("changed")
        }
        try await context.save()
        try await container.newBackgroundContext().perform { context throws in
            let place = try context.existingObject(with: second)
            #expect(place["street"] == .string("Gata"))
            #expect(place["note"] == .string("changed"), "the rest of the object is saved")
        }
    }

    @Test func S108_anIndexOverUnknownPropertiesIsNoModel() {
        func model(_ index: IndexDescription) throws(ModelError) -> Model {
            try Model([EntityDescription(name: "A", properties: [.attribute(.init(name: "b", type: .int64))], indexes: [index])])
        }
        #expect(throws: ModelError.self) { try model(.index("c")) }
        #expect(throws: ModelError.self) { try model(.unique("b", "b")) }
        #expect(throws: ModelError.self) { try model(.index()) }
        #expect(throws: Never.self) { try model(.unique("b")) }
    }
}
