import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// A model with hooks, as the macro would write it.
private final class Tune: PersistentModel, ManagedObjectLifecycle {
    let managedObject: ManagedObject
    private let anchor: ModelAnchor
    /// Transient.
    private(set) var fetched = 0

    init(managedObject: ManagedObject) {
        self.managedObject = managedObject
        anchor = ModelAnchor(managedObject)
    }

    var title: String {
        get { managedObject.get(0) }
        set { managedObject.set(0, to: newValue) }
    }
    var plays: Int {
        get { managedObject.get(1) }
        set { managedObject.set(1, to: newValue) }
    }
    var next: Tune? {
        get { managedObject.toOne(0, 2) }
        set { managedObject.setToOne(0, 2, to: newValue) }
    }

    static var entityDescription: EntityDescription {
        EntityDescription(
            name: "Tune",
            properties: [
                .attribute(AttributeDescription(name: "title", type: .string)),
                .attribute(AttributeDescription(name: "plays", type: .int64)),
                .relationship(.init(name: "next", destination: "Tune", inverse: "before", cardinality: .toOne)),
                .relationship(.init(name: "before", destination: "Tune", inverse: "next", cardinality: .toMany)),
            ])
    }

    static var columnsByKeyPath: [AnyKeyPath: String] { [\Tune.title: "title", \Tune.plays: "plays", \Tune.next: "next"] }

    func awakeFromInsert() { plays += 100 }

    func awakeFromFetch() {
        fetched += 1
        plays = -1
        next = self
    }
}

@Suite struct HookTests {
    private static func container(_ bed: TestBed, _ stack: ContextStack) async throws -> PersistentContainer {
        try await bed.container(stack, model: Model([Tune.self]))
    }

    @Test(arguments: Combination.all)
    func S021_whatAwakeFromFetchSetsIsNoChange(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await Self.container(bed, combination.stack)
        let writer = await container.newBackgroundContext()
        await writer.perform { $0.insert("Tune")["title"] = .string("a") }
        try await writer.save(through: .store)
        let reader = await container.newBackgroundContext()
        try await reader.perform { context throws in
            let counter = Counter()
            let token = context.addObserver { counter.note($0) }
            let tune = try #require(try context.fetch(FetchRequest<Tune>()).first)
            #expect(tune.title == "a" && tune.fetched == 1)
            #expect(tune.plays == 100 && tune.next == nil)
            #expect(!context.hasChanges && !tune.hasChanges)
            context.processPendingChanges()
            #expect(counter.all.isEmpty)
            // Changes are tracked again.
            tune.plays = 5
            #expect(tune.plays == 5 && tune.hasChanges && tune.fetched == 1)
            context.removeObserver(token)
        }
    }

    @Test(arguments: Combination.all)
    func S040_objectsInsertedByNameAwakeOnceToo(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await Self.container(bed, combination.stack)
        let worker = await container.newBackgroundContext()
        await worker.perform { context in
            #expect(context.insert("Tune")["plays"] == .int(100))
            let entity = context.model.entities[0]
            #expect(context.insert(entity, values: [.string("b"), .int(7), .null])["plays"] == .int(107))
        }
        try await worker.save(through: .store)
        let plays = try await container.newBackgroundContext().perform { context throws in
            try context.fetch(EntityFetchRequest("Tune", sortBy: [AttributeSort("plays")])).map { $0["plays"] }
        }
        #expect(plays == [.int(100), .int(107)])
    }
}
