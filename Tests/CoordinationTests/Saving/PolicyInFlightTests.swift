import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

/// A merge policy that the program replaces while a save is running. It counts from the next save on.
@Suite @MainActor struct PolicyInFlightTests {
    /// Catches: the end of a save that asks the present policy whether the save may lack changes.
    @Test(arguments: StoreKind.allCases)
    func `S108, S142: a live result loses a dropped object although another policy was set during the save`(_ kind: StoreKind)
        async throws
    {
        let held = try await HeldSaves(kind)
        let main = held.container.mainContext
        main.refreshAllObjects()
        main.mergePolicy = .storeTrump
        let request = EntityFetchRequest("Track", sortBy: [AttributeSort("title")])
        let results = try FetchedResultsController(request, context: main)
        try results.performFetch()
        let loser = main.makeTrack("loses its code")
        loser["isrc"] = .string("A")
        main.processPendingChanges()
        try await until("the new object is shown") { results.snapshot.ids.contains(loser.objectID) }
        held.block()
        let saving = Task { try await main.save() }
        try await held.queued(1)
        main.mergePolicy = .error
        held.release()
        try await saving.value
        let last = main.makeTrack("z")
        main.processPendingChanges()
        // Updates come in order, so the save was shown before this object.
        try await until("a later object is shown") { results.snapshot.ids.contains(last.objectID) }
        #expect(results.snapshot.ids == [held.track, last.objectID])
        #expect(try main.fetchIDs(request) == results.snapshot.ids)
        #expect(loser.isDeleted)
        try await main.save()
        #expect(try await held.titles() == ["x", "z"])
    }
}
