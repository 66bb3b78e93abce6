import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Cascades of a child's deletion along references that only its parent has set (S051).
@Suite struct PushedCascadeTests {
    /// A part that is deleted with its whole, with and without a way back.
    private static func model(inverse: String?) throws -> Model {
        let wholes = PropertyDescription.relationship(
            .init(name: "wholes", destination: "Whole", inverse: "part", cardinality: .toMany, inference: .refused))
        return try Model([
            EntityDescription(
                name: "Whole",
                properties: [
                    .attribute(.init(name: "name", type: .string)),
                    .relationship(
                        .init(
                            name: "part", destination: "Part", inverse: inverse, cardinality: .toOne, deleteRule: .cascade,
                            inference: .refused)),
                ]),
            EntityDescription(
                name: "Part",
                properties: [.attribute(.init(name: "name", type: .string))] + (inverse == nil ? [] : [wholes])),
        ])
    }

    private static func expectLeft(_ expected: [ObjectID], in container: PersistentContainer) async throws {
        let left = try await container.read { context in
            try context.fetch(EntityFetchRequest("Part")).map(\.objectID)
                + context.fetch(EntityFetchRequest("Whole")).map(\.objectID)
        }
        #expect(left == expected)
        #expect(try container.coordinator.store.verify() == [])
    }

    /// Catches: a part that the parent shows until its own save, whose check then deletes it.
    @Test(arguments: Combination.all, [false, true])
    func `S051: a child's deletion takes along what its parent has related to the object meanwhile`(
        _ combination: Combination, _ hasInverse: Bool
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack, model: Self.model(inverse: hasInverse ? "wholes" : nil))
        let parent = await container.newBackgroundContext()
        let (whole, part, other) = await parent.perform { context in
            (context.insert("Whole").objectID, context.insert("Part").objectID, context.insert("Part").objectID)
        }
        try await parent.save(through: .store)
        let child = await parent.perform { $0.newBackgroundChild() }
        try await parent.perform { context in
            let object = try context.existingObject(with: whole)
            object.setRelatedObject("part", to: try context.existingObject(with: other))
            object.setRelatedObject("part", to: try context.existingObject(with: part))
        }
        try await child.perform { $0.delete(try $0.existingObject(with: whole)) }
        try await child.save()
        await parent.perform { context in
            #expect(throws: ContextError.self) { try context.existingObject(with: part) }
            #expect(Set(context.deletedObjects.map(\.objectID)) == [whole, part])
        }
        try await parent.save(through: .store)
        try await Self.expectLeft([other], in: container)
    }

    /// Catches: a context that applies a child's deletion to its unsaved changes, and not to those that it has saved to its own parent.
    @Test(arguments: Combination.parented, [false, true])
    func `S051: a child's deletion also follows references that its parent has saved one level up meanwhile`(
        _ combination: Combination, _ hasInverse: Bool
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack, model: Self.model(inverse: hasInverse ? "wholes" : nil))
        let parent = await container.newBackgroundContext()
        let (whole, other) = await parent.perform { ($0.insert("Whole").objectID, $0.insert("Part").objectID) }
        try await parent.save(through: .store)
        let child = await parent.perform { $0.newBackgroundChild() }
        let (part, second) = try await parent.perform { context in
            let (part, second) = (context.insert("Part"), context.insert("Whole"))
            try context.existingObject(with: whole).setRelatedObject("part", to: part)
            second.setRelatedObject("part", to: try context.existingObject(with: other))
            return (part.objectID, second.objectID)
        }
        try await parent.save()
        try await child.perform { context in
            context.delete(try context.existingObject(with: whole))
            context.delete(try context.existingObject(with: other))
        }
        try await child.save()
        let related = try await parent.perform { context in
            #expect(throws: ContextError.self) { try context.existingObject(with: part) }
            #expect(Set(context.deletedObjects.map(\.objectID)) == [whole, other, part])
            return try context.existingObject(with: second).relatedObject("part")?.objectID
        }
        #expect(related == nil)
        try await parent.save(through: .store)
        try await Self.expectLeft([second], in: container)
    }

    /// Catches: a part that main goes on showing after its hidden root has deleted it, so that main's next change of it is a conflict.
    @MainActor @Test(arguments: StoreKind.allCases, [ContextStack.masterMainWorker, .hybrid])
    func `S051, S056: main shows no part that its hidden root deletes because of a child`(
        _ kind: StoreKind, _ stack: ContextStack
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(stack, model: Self.model(inverse: nil))
        let main = container.mainContext
        let whole = main.insert("Whole")
        let wholeID = whole.objectID
        try await main.save(through: .store)
        let child = container.newBackgroundContext()
        let part = main.insert("Part")
        let partID = part.objectID
        whole.setRelatedObject("part", to: part)
        try await main.save()
        try await child.perform { $0.delete(try $0.existingObject(with: wholeID)) }
        try await child.save()
        #expect(throws: ContextError.self) { try main.existingObject(with: partID) }
        try await main.save()
        #expect(!main.hasChanges)
        #expect(throws: ContextError.self) { try main.existingObject(with: partID) }
        try await main.save(through: .store)
        try await Self.expectLeft([], in: container)
    }
}
