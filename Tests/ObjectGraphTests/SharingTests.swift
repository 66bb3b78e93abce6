import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

/// Costs that must not grow with unchanged data. The tests check that unchanged parts are the same objects before and after.
@Suite struct SharingTests {
    /// Catches: a save that copies the child's rows, or reads each of them, on the parent's executor.
    @Test func S079_aPushHandsOverTheChildsRowsThemselves() async throws {
        let container = try await TestBed(.memory).container(.nested)
        let child = await container.newBackgroundContext()
        let rows = await child.perform { context in
            for number in 0..<500 { context.makeTrack("\(number)", plays: number) }
            return Self.rows([context.layerStack.top])
        }
        #expect(rows.count == 500)
        try await child.save()
        let (pushed, registered) = await MainActor.run {
            (Self.rows(container.mainContext.layerStack.sealed), container.mainContext.registeredObjects.count)
        }
        #expect(pushed == rows)
        #expect(registered == 0)
    }

    private static func rows(_ layers: [Layer]) -> Set<ObjectIdentifier> {
        let pages = layers.flatMap { $0.entity(Music.query("Track").entity)?.pages.values.map { $0 } ?? [] }
        return Set(pages.flatMap { page in SlotIterator(page.touched).compactMap { page[$0].map(ObjectIdentifier.init) } })
    }

    /// Catches: a child that copies its parent's unsaved changes (S071), whichever way it receives them.
    @Test func S071_aChildSharesItsParentsLayers() async throws {
        let container = try await TestBed(.memory).container(.nested)
        let layer = await MainActor.run {
            for number in 0..<500 { container.mainContext.makeTrack("\(number)", plays: number) }
            return ObjectIdentifier(container.mainContext.layerStack.top)
        }
        let child = await container.newBackgroundContext()
        let (inherited, count) = try await child.perform { context in
            (
                context.layerStack.baseState.inherited.map(ObjectIdentifier.init),
                try context.fetchIDs(EntityFetchRequest("Track")).count
            )
        }
        #expect(inherited.contains(layer))
        #expect(count == 500)
    }

    /// Catches: an update that copies, sorts or compares all of a long result.
    @Test @MainActor func S144_anUpdateSharesWhatHasNotChangedWithTheResultBefore() async throws {
        let container = try await TestBed(.memory).container()
        let main = container.mainContext
        for number in 0..<40_000 { main.makeTrack("track \(number)", plays: number) }
        main.processPendingChanges()
        let request = EntityFetchRequest("Track", sortBy: [AttributeSort("plays")])
        let controller = try FetchedResultsController<ManagedObject>(request, context: main)
        controller.minimumInterval = .zero
        try controller.performFetch()
        var updates: [ResultUpdate] = []
        controller.onChange = { updates.append($0) }
        func chunks() -> [ObjectIdentifier] {
            controller.snapshot.list.blocks.flatMap { $0.parts.map { ObjectIdentifier($0.chunk) } }
        }
        let before = chunks()
        // Kept alive, so that no new chunk gets the address of an old one.
        let old = controller.snapshot
        main.makeTrack("in the middle", plays: 20_000)
        main.processPendingChanges()
        try await until("the update") { !updates.isEmpty }
        #expect(updates.map(\.difference.insertions.count) == [1])
        #expect(before.count > 100, "\(before.count) chunks")
        let new = Set(chunks()).subtracting(before)
        #expect(new.count <= 2, "\(new.count) of \(before.count) chunks were made anew for one object")
        #expect(old.count == 40_000 && controller.snapshot.count == 40_001)
    }
}
