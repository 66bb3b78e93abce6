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

    /// Catches: a part that the parent shows until its own save, whose check then deletes it.
    @Test(arguments: Combination.all, [false, true])
    func `S051: a child's deletion takes along what its parent has related to the object meanwhile`(
        _ combination: Combination, _ hasInverse: Bool
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(
            combination.stack, model: Self.model(inverse: hasInverse ? "wholes" : nil))
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
        let left = try await container.read { context in
            try context.fetch(EntityFetchRequest("Part")).map(\.objectID)
                + context.fetch(EntityFetchRequest("Whole")).map(\.objectID)
        }
        #expect(left == [other])
        #expect(try container.coordinator.store.verify() == [])
    }
}
