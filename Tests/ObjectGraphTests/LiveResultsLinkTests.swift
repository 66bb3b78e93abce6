import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

/// Live results whose condition depends on many-to-many relationships that change without a change of an object.
@Suite(.timeLimit(.minutes(10))) struct LiveResultsLinkTests {
    private static let wanted = EntityFetchRequest(
        "Playlist", matching: .related("tracks", .any, where: .equal("title", "old")), sortBy: [AttributeSort("name")])

    /// Catches: a child that compares only the objects of its save after its parent has dropped a pair of it.
    @Test(arguments: StoreKind.allCases)
    func `S080: a live result of a child loses a pair that its parent drops before the child knows of its save`(_ kind: StoreKind)
        async throws
    {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let parent = container.newBatchOperationContext()
        let (list, track) = try await parent.perform(andSave: .durable) { context in
            let list = context.insert("Playlist")
            list["name"] = .string("mix")
            return (list.objectID, context.makeTrack("old").objectID)
        }
        let child = await parent.newBackgroundChild()
        let results = try await child.perform { child in
            child.automaticallyMergesChanges = true
            let results = try FetchedResultsController(Self.wanted, context: child)
            results.minimumInterval = .zero
            try results.performFetch()
            child.object(with: list).add(child.object(with: track), to: "tracks")
            child.processPendingChanges()
            return Kept(results)
        }
        #expect(try await child.perform { child in try child.fetchIDs(Self.wanted) } == [list])
        let push = try await child.perform { child throws in
            #expect(try child.prepareSave())
            return child.makePush()
        }
        let place = try await parent.perform { parent in
            let place = try parent.merge(child: push)
            parent.rollback()
            parent.makeTrack("another")
            return place
        }
        try await parent.save()
        try await until("the child has merged the save") { try await child.perform { try $0.trackTitles().count } == 2 }
        try await child.perform { (_, child: ManagedObjectContext) async throws in
            child.moving { child.didPush(push, place) }
            child.endSave()
            let results = results.value
            await results.untilIdle()
            #expect(try child.fetchIDs(Self.wanted) == [])
            #expect(results.snapshot.isEmpty)
        }
    }

    /// An object that only the executor of its context uses.
    private struct Kept: @unchecked Sendable {
        let value: FetchedResultsController<ManagedObject>
        init(_ value: FetchedResultsController<ManagedObject>) { self.value = value }
    }
}
