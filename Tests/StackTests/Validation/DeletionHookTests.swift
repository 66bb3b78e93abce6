import Foundation
import ObjectGraph
import Platform
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// A model whose hooks record the title that they read of a deleted object, as the macro would write it.
private final class Leaf: PersistentModel, ManagedObjectLifecycle {
    enum Hook: CaseIterable { case prepareForDeletion, willSave, validateForDelete }

    /// The titles that each hook of a deletion has read, in all tests.
    static let records = Mutex<[Hook: [String]]>([:])

    let managedObject: ManagedObject
    private let anchor: ModelAnchor

    init(managedObject: ManagedObject) {
        self.managedObject = managedObject
        anchor = ModelAnchor(managedObject)
    }

    var title: String {
        get { managedObject.get(0) }
        set { managedObject.set(0, to: newValue) }
    }

    static var entityDescription: EntityDescription {
        EntityDescription(
            name: "Leaf",
            properties: [
                .attribute(AttributeDescription(name: "title", type: .string)),
                .relationship(.init(name: "stem", destination: "Leaf", inverse: "leaves", cardinality: .toOne)),
                .relationship(
                    .init(name: "leaves", destination: "Leaf", inverse: "stem", cardinality: .toMany, deleteRule: .cascade)),
            ])
    }

    static var columnsByKeyPath: [AnyKeyPath: String] { [\Leaf.title: "title"] }

    private func record(_ hook: Hook) { Self.records.withLock { $0[hook, default: []].append(title) } }

    func prepareForDeletion() { record(.prepareForDeletion) }
    func willSave() { if managedObject.isDeleted { record(.willSave) } }
    func validateForDelete() { record(.validateForDelete) }
}

@Suite struct DeletionHookTests {
    enum Deletion: String, CaseIterable { case direct, cascade, afterUpdate, ofUnsaved }

    /// Catches: hooks that read zero values of a deleted object, because its row has none.
    @Test(arguments: Combination.all, Deletion.allCases)
    func `S054: the hooks of a deletion read the last values, in each context that it passes`(
        _ combination: Combination, _ deletion: Deletion
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack, model: Model([Leaf.self]))
        for isInChild in [false, true] {
            let mark = UUID().uuidString
            let worker = await container.newBackgroundContext()
            let (stem, leaf) = await worker.perform { context in
                let (stem, leaf) = (context.insert("Leaf"), context.insert("Leaf"))
                stem["title"] = .string("\(mark) stem")
                leaf["title"] = .string("\(mark) leaf")
                leaf.setRelatedObject("stem", to: stem)
                return (stem.objectID, leaf.objectID)
            }
            // A child deletes what its parent has inserted; otherwise the objects are faults of a saved state.
            let isUnsaved = deletion == .ofUnsaved && isInChild
            if !isUnsaved { try await worker.save(through: .store) }
            let other = isUnsaved ? worker : await container.newBackgroundContext()
            let context = isInChild ? await other.perform { $0.newBackgroundChild() } : other
            try await context.perform { context in
                switch deletion {
                case .direct, .ofUnsaved: context.delete(try context.existingObject(with: leaf))
                case .cascade: context.delete(try context.existingObject(with: stem))
                case .afterUpdate:
                    let object = try context.existingObject(with: leaf)
                    object["title"] = .string("\(mark) updated")
                    context.delete(object)
                }
            }
            try await context.save(through: .store)
            let expected: Set<String> =
                switch deletion {
                case .direct, .ofUnsaved: ["\(mark) leaf"]
                case .cascade: ["\(mark) stem", "\(mark) leaf"]
                case .afterUpdate: ["\(mark) updated"]
                }
            for hook in Leaf.Hook.allCases {
                let titles = Leaf.records.withLock { $0[hook] ?? [] }
                #expect(Set(titles.filter { $0.hasPrefix(mark) }) == expected, "\(hook), in a child: \(isInChild)")
                #expect(!titles.contains(""), "\(hook)")
            }
            let left = try await container.read { context in
                try context.fetch(EntityFetchRequest("Leaf")).count { object in
                    if case .string(let title) = object["title"] { title.hasPrefix(mark) } else { false }
                }
            }
            #expect(left == 2 - expected.count)
        }
        #expect(try container.coordinator.store.verify() == [])
    }
}
