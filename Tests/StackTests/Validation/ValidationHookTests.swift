import Foundation
import ObjectGraph
import Platform
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// A model whose hook deletes the invalid objects that belong to it, as the macro would write it.
private final class Draft: PersistentModel, ManagedObjectLifecycle {
    struct Invalid: Error {}

    /// The titles of the objects whose hooks were called, in all tests.
    static let validated = Mutex<[String]>([])

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
            name: "Draft",
            properties: [
                .attribute(AttributeDescription(name: "title", type: .string)),
                .relationship(.init(name: "owner", destination: "Draft", inverse: "spares", cardinality: .toOne)),
                .relationship(.init(name: "spares", destination: "Draft", inverse: "owner", cardinality: .toMany)),
            ])
    }

    static var columnsByKeyPath: [AnyKeyPath: String] { [\Draft.title: "title"] }

    func validateForInsert() throws {
        Self.validated.withLock { $0.append(title) }
        if title.hasSuffix("invalid") { throw Invalid() }
        for spare in managedObject.relatedObjects("spares") { managedObject.managedObjectContext?.delete(spare) }
    }

    func validateForDelete() throws { throw Invalid() }
}

/// Hooks of a validation that change which objects are saved (S061).
@Suite struct ValidationHookTests {
    /// Catches: a hook of a new object that an earlier hook has deleted, in a context whose changes an undo history has sealed.
    @Test(arguments: Combination.all, [false, true])
    func `S061: a new object that the hook of another one deletes is not validated, with and without an undo history`(
        _ combination: Combination, _ hasHistory: Bool
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack, model: Model([Draft.self]))
        let mark = UUID().uuidString
        let worker = await container.newBackgroundContext()
        await worker.perform { context in
            if hasHistory { context.undoHistory = UndoHistory() }
            // Hooks are called in the order of the keys, which is the order of the insertions.
            let (owner, spare) = (context.insert("Draft"), context.insert("Draft"))
            owner["title"] = .string("\(mark) valid")
            spare["title"] = .string("\(mark) invalid")
            spare.setRelatedObject("owner", to: owner)
        }
        try await worker.save(through: .store)
        let titles = Draft.validated.withLock { $0 }.filter { $0.hasPrefix(mark) }
        #expect(Set(titles) == ["\(mark) valid"])
        let stored = try await container.read { try $0.fetch(EntityFetchRequest("Draft")).map { $0["title"] } }
        #expect(stored == [.string("\(mark) valid")])
        #expect(try container.coordinator.store.verify() == [])
        try await container.close()
    }
}
