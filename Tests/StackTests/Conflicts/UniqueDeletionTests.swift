import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Unique values of objects that are deleted by the same save or by another one.
@Suite struct UniqueDeletionTests {
    private static let model: Model = {
        let box = EntityDescription(
            name: "Box",
            properties: [
                .attribute(.init(name: "name", type: .string)),
                .relationship(
                    .init(name: "items", destination: "Item", inverse: "box", cardinality: .toMany, deleteRule: .cascade)),
            ])
        let item = EntityDescription(
            name: "Item",
            properties: [
                .attribute(.init(name: "code", type: .string, isOptional: true, index: .unique)),
                .attribute(.init(name: "note", type: .string, isOptional: true)),
                .relationship(.init(name: "box", destination: "Box", inverse: "items", cardinality: .toOne)),
            ])
        do { return try Model([box, item]) } catch { preconditionFailure("the test model is wrong: \(error)") }
    }()

    /// Catches: a new object that is dropped for the sake of one that the same save deletes, or a false error.
    @Test(arguments: StoreKind.allCases)
    func `S051, S108: what a cascade deletes at the commit holds no unique value`(_ kind: StoreKind) async throws {
        for policy in [MergePolicy.error, .storeTrump, .objectTrump, .overwrite, .rollback] {
            let bed = try TestBed(kind)
            let container = try await bed.container(.siblings, model: Self.model)
            let ours = await container.newBackgroundContext(name: "ours")
            let other = await container.newBackgroundContext(name: "other")
            let box = await ours.perform { $0.insert("Box").objectID }
            try await ours.save(through: .store)
            try await other.perform { context throws in
                context.refreshAllObjects()
                let item = context.insert("Item")
                item["code"] = "x"
                item.setRelatedObject("box", to: try context.existingObject(with: box))
            }
            let new = try await ours.perform { context throws in
                context.automaticallyMergesChanges = false
                context.mergePolicy = policy
                context.delete(try context.existingObject(with: box))
                let item = context.insert("Item")
                item["code"] = "x"
                return item.objectID
            }
            try await other.save(through: .store)
            try await ours.save(through: .store)
            let left = try await container.newBackgroundContext(name: "reader").perform { context throws in
                try context.fetch(EntityFetchRequest("Item")).map(\.objectID)
            }
            #expect(left == [new], "\(policy)")
            #expect(try container.coordinator.store.verify() == [])
        }
    }

    /// Catches: a reference that only a policy wrote, and that counts as wanted once the object has given way to another.
    @Test(arguments: StoreKind.allCases)
    func `S106, S108: a deleted object whose unique value another one has taken leaves no reference`(_ kind: StoreKind)
        async throws
    {
        for policy in [MergePolicy.objectTrump, .overwrite] {
            let bed = try TestBed(kind)
            let container = try await bed.container(.siblings, model: Self.model)
            let ours = await container.newBackgroundContext(name: "ours")
            let other = await container.newBackgroundContext(name: "other")
            let (box, item) = await ours.perform { context in
                let (box, item) = (context.insert("Box"), context.insert("Item"))
                item["code"] = "x"
                item.setRelatedObject("box", to: box)
                return (box.objectID, item.objectID)
            }
            try await ours.save(through: .store)
            try await ours.perform { context throws in
                context.automaticallyMergesChanges = false
                context.mergePolicy = policy
                try context.existingObject(with: item)["note"] = "ours"
            }
            try await other.perform { context throws in
                context.refreshAllObjects()
                context.delete(try context.existingObject(with: box))
            }
            try await other.save(through: .store)
            let twin = await other.perform { context in
                let twin = context.insert("Item")
                twin["code"] = "x"
                return twin.objectID
            }
            try await other.save(through: .store)
            try await ours.save(through: .store)
            try await container.newBackgroundContext(name: "reader").perform { context throws in
                let items = try context.fetch(EntityFetchRequest("Item"))
                #expect(items.map(\.objectID) == [twin] && items.map { $0["note"] } == ["ours"], "\(policy)")
                #expect(items.first?.relatedObject("box") == nil)
            }
            #expect(try container.coordinator.store.verify() == [])
        }
    }
}
