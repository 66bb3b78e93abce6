import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// References that the rule `noAction` leaves dangling read as nil everywhere (S053).
@Suite struct NilReferenceTests {
    private static let model: Model = {
        func toOne(_ name: String, inverse: String?, _ rule: DeleteRule) -> PropertyDescription {
            .relationship(.init(name: name, destination: "Owner", inverse: inverse, cardinality: .toOne, deleteRule: rule))
        }
        let items = RelationshipDescription(
            name: "items", destination: "Item", inverse: "keeper", cardinality: .toMany, deleteRule: .noAction)
        let entities = [
            EntityDescription(
                name: "Owner", properties: [.attribute(.init(name: "name", type: .string)), .relationship(items)]),
            EntityDescription(
                name: "Item",
                properties: [
                    .attribute(.init(name: "name", type: .string)), toOne("owner", inverse: nil, .noAction),
                    toOne("keeper", inverse: "items", .nullify),
                ]),
        ]
        do { return try Model(entities) } catch { preconditionFailure("the test model is wrong: \(error)") }
    }()

    private static func items(_ context: ManagedObjectContext, _ condition: Condition) throws -> Set<String> {
        let request = EntityFetchRequest("Item", matching: condition)
        let found = try context.fetch(request)
        #expect(try context.count(request) == found.count)
        return Set(found.compactMap { if case .string(let name) = $0["name"] { name } else { nil } })
    }

    /// Checks every way to ask which items have an owner.
    private static func check(
        _ context: ManagedObjectContext, nil expected: Set<String>, gone: ObjectID, alive: ObjectID, _ comment: String
    ) throws {
        let all = try items(context, .always)
        for name in ["owner", "keeper"] {
            let comment = "\(comment), \(name)"
            let objects = try context.fetch(EntityFetchRequest("Item"))
            func names(_ isNil: (ManagedObject) -> Bool) -> Set<String> {
                Set(objects.filter(isNil).compactMap { if case .string(let name) = $0["name"] { name } else { nil } })
            }
            #expect(names { $0.relatedObject(name) == nil } == expected, "\(comment): the property")
            #expect(names { $0[name] == .null } == expected, "\(comment): the value")
            #expect(try items(context, .isNil(name)) == expected, "\(comment): isNil")
            #expect(try items(context, .equal(name, .null)) == expected, "\(comment): equal")
            #expect(try items(context, .not(.isNil(name))) == all.subtracting(expected), "\(comment): not isNil")
            #expect(
                try items(context, .compare(name, .notEqual, to: .null)) == all.subtracting(expected), "\(comment): not equal")
            #expect(try items(context, .equal(name, .reference(gone.key))) == [], "\(comment): equal to what is gone")
            #expect(try items(context, .equal(name, .reference(alive.key))) == ["b"], "\(comment): equal to what is there")
            let list = [Value.reference(gone.key), .reference(alive.key)]
            #expect(try items(context, .isIn(name, list)) == ["b"], "\(comment): in a list")
            #expect(try items(context, .isIn(name, list + [.null])) == all, "\(comment): in a list with null")
            #expect(try items(context, .equal(name + ".name", .string("alive"))) == ["b"], "\(comment): through a path")
            let rows = try context.fetch(EntityValueRequest("Item", fetching: [.property("name"), .property(name)]))
            let nils = rows.filter { $0[name] == .null }.compactMap { $0["name", as: String.self] }
            #expect(Set(nils) == expected, "\(comment): rows of values")
            let count = try context.aggregate(.count(name), of: EntityFetchRequest("Item"))
            #expect(count == .int(Int64(all.count - expected.count)), "\(comment): an aggregate")
            let groups = try context.fetch(
                EntityValueRequest("Item", fetching: [.property(name), .count], groupBy: [name]))
            let sizes = Dictionary(groups.map { ($0[name] ?? .null, $0["count"] ?? .null) }) { first, _ in first }
            #expect(
                sizes == [.null: .int(Int64(expected.count)), .reference(alive.key): .int(1)], "\(comment): groups")
        }
        #expect(
            try context.count(EntityFetchRequest("Item", matching: .not(.isNil("owner")))) == all.count - expected.count)
        let owners = try context.fetch(
            EntityFetchRequest("Owner", matching: .relatedCount("items", where: .isNil("owner"), .equal, to: 0)))
        #expect(owners.map(\.objectID) == (expected == all ? [] : [alive]).filter { _ in !owners.isEmpty }, "\(comment)")
    }

    @Test(arguments: StoreKind.allCases)
    func `S053: a reference that a deletion leaves behind is nil for properties, predicates, counts and aggregates`(
        _ kind: StoreKind
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: Self.model)
        let worker = container.coordinator.newBackgroundContext()
        let (gone, alive) = await worker.perform { context in
            let owners = ["gone", "alive"].map { name in
                let owner = context.insert("Owner")
                owner["name"] = .string(name)
                return owner
            }
            for (name, owner) in [("a", owners[0]), ("b", owners[1]), ("c", nil)] {
                let item = context.insert("Item")
                item["name"] = .string(name)
                item.setRelatedObject("owner", to: owner)
                item.setRelatedObject("keeper", to: owner)
            }
            return (owners[0].objectID, owners[1].objectID)
        }
        try await worker.save()
        // The owner is deleted in a child, then in the parent without a save, then in the file.
        let child = await worker.perform { $0.newBackgroundChild() }
        try await child.perform { context throws in
            context.delete(try context.existingObject(with: gone))
            try Self.check(context, nil: ["a", "c"], gone: gone, alive: alive, "\(kind), unsaved in a child")
        }
        try await child.save()
        try await worker.perform { context throws in
            try Self.check(context, nil: ["a", "c"], gone: gone, alive: alive, "\(kind), unsaved")
        }
        try await worker.perform { $0.newBackgroundChild() }.perform { context throws in
            try Self.check(context, nil: ["a", "c"], gone: gone, alive: alive, "\(kind), in a child")
        }
        try await worker.save()
        for context in [worker, container.coordinator.newBackgroundContext()] {
            try await context.perform { context throws in
                try Self.check(context, nil: ["a", "c"], gone: gone, alive: alive, "\(kind), saved")
            }
        }
        // Unsaved changes of other objects are in layers above the file.
        try await worker.perform { context throws in
            for item in try context.fetch(EntityFetchRequest("Item")) where item["name"] == .string("a") {
                item["name"] = .string("z")
            }
            try Self.check(context, nil: ["z", "c"], gone: gone, alive: alive, "\(kind), changed")
        }
        // S043: the rule is opt-in, and `verify` names the references that it has left dangling.
        let findings = try container.coordinator.store.verify().map(\.description)
        #expect(findings.count == 2 && findings.allSatisfy { $0.contains("which does not exist.") }, "\(findings)")
    }

    /// Catches: a list that goes on showing the owner.
    @Test(arguments: StoreKind.allCases) @MainActor
    func `S053: a live result reports the objects whose reference a deletion leaves behind`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: Self.model)
        let main = container.mainContext
        let owner = main.insert("Owner")
        owner["name"] = .string("owner")
        for name in ["a", "b"] {
            let item = main.insert("Item")
            item["name"] = .string(name)
            if name == "b" { item.setRelatedObject("owner", to: owner) }
        }
        try await container.saveMain()
        let controller = try FetchedResultsController(EntityFetchRequest("Item", sortBy: [AttributeSort("name")]), context: main)
        try controller.performFetch()
        var differences: [ResultDifference] = []
        controller.onChange = { differences.append($0.difference) }
        main.delete(owner)
        main.processPendingChanges()
        try await until("the deletion is reported") { differences.count == 1 }
        main.rollback()
        try await until("the rollback is reported") { differences.count == 2 }
        let id = owner.objectID
        try await container.newBackgroundContext().perform(andSave: .durable) { $0.delete(try $0.existingObject(with: id)) }
        try await until("the deletion of another context is reported") { differences.count == 3 }
        #expect(differences.allSatisfy { $0 == ResultDifference(updates: [1]) }, "\(differences)")
        #expect(controller.object(at: 1).relatedObject("owner") == nil)
    }

    /// Catches: a reference that a predicate of a child finds, and that its property does not show. The rule of an album denies the deletion
    /// at the save.
    @Test(arguments: StoreKind.allCases)
    func `S053: a child shows a reference to an object that its parent has deleted as the parent does`(_ kind: StoreKind)
        async throws
    {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let parent = container.coordinator.newBackgroundContext()
        let album = try await parent.perform(andSave: .durable) { context in
            let album = context.insert("Album")
            album["title"] = .string("album")
            context.makeTrack("track").setRelatedObject("album", to: album)
            return album.objectID
        }
        try await parent.perform { $0.delete(try $0.existingObject(with: album)) }
        for context in [parent, await parent.newBackgroundChild()] {
            try await context.perform { context throws in
                let track = try context.objects("Track")[0]
                #expect(track["album"] == .reference(album.key))
                #expect(track.relatedObject("album")?.objectID == album && track.relatedObject("album")?.isDeleted == true)
                #expect(try context.count(EntityFetchRequest("Track", matching: .isNil("album"))) == 0)
            }
        }
    }
}
