import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Live results of a child whose save through its parents drops changes of a parent, which the child has seen.
@Suite struct DroppedChangeTests {
    private static let tracks: Gallery.Query = (.init("Track", sortBy: [.init("title")]), nil)

    /// Inserts a track in a context whose merge policy prefers the store's, which has the code already.
    private static func insertLosing(in context: ManagedObjectContext) {
        context.mergePolicy = .storeTrump
        context.refreshAllObjects()
        let track = context.insert("Track")
        track["title"] = .string("b: loses its code")
        track["code"] = .string("taken")
    }

    /// Returns a container whose store has a track with the code.
    private static func container(_ bed: TestBed, _ stack: ContextStack = .siblings) async throws -> PersistentContainer {
        let container = try await bed.container(stack, model: Gallery.model)
        let other = container.coordinator.newBackgroundContext(name: "other")
        try await other.perform(andSave: .durable) { context in
            let track = context.insert("Track")
            track["title"] = .string("a: has the code")
            track["code"] = .string("taken")
        }
        return container
    }

    /// Saves an insertion of a child through its parents, and compares what the child shows then.
    private static func saveAndCompare(_ child: BackgroundContext, merges: Bool) async throws {
        let watch = ResultWatch(tracks)
        try await child.perform { context in
            context.automaticallyMergesChanges = merges
            try watch.start(in: context)
            context.insert("Track")["title"] = .string("c: of the child")
        }
        try await child.save(through: .store)
        try await child.perform { context in
            #expect(try watch.difference(in: context) == nil)
            if merges {
                let titles = try context.fetch(tracks.request).map { $0["title"] }
                #expect(titles == [.string("a: has the code"), .string("c: of the child")])
            }
            watch.stop()
        }
    }

    @Test(arguments: StoreKind.allCases, [true, false])
    func `S141: a child's live result loses an insertion of its parent that a save through it drops`(
        _ kind: StoreKind, merges: Bool
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await Self.container(bed)
        let root = container.coordinator.newBackgroundContext(name: "root")
        await root.perform { Self.insertLosing(in: $0) }
        try await Self.saveAndCompare(await root.newBackgroundChild(), merges: merges)
    }

    @Test(arguments: StoreKind.allCases, [true, false])
    func `S141: a grandchild's live result loses an insertion of its parent that a save through both drops`(
        _ kind: StoreKind, merges: Bool
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await Self.container(bed)
        let root = container.coordinator.newBackgroundContext(name: "root")
        await root.perform { context in
            context.mergePolicy = .storeTrump
            context.refreshAllObjects()
        }
        let child = await root.newBackgroundChild()
        await child.perform { Self.insertLosing(in: $0) }
        try await Self.saveAndCompare(await child.newBackgroundChild(), merges: merges)
    }

    @Test(arguments: Combination.all, [true, false])
    func `S141: a live result below main loses an insertion of main that a save through it drops`(
        _ combination: Combination, merges: Bool
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await Self.container(bed, combination.stack)
        let child = await MainActor.run {
            Self.insertLosing(in: container.mainContext)
            return container.mainContext.newBackgroundChild()
        }
        try await Self.saveAndCompare(child, merges: merges)
    }
}
