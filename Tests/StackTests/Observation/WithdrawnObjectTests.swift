import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Objects that a parent inserts, shows to a child, and deletes again before it saves.
@Suite struct WithdrawnObjectTests {
    /// Catches: a child that learns only of saved objects, and misses an object that was deleted before its save.
    @Test(arguments: Combination.all) @MainActor
    func `S072: a child that merges reports an unsaved object that its parent deleted before saving`(_ combination: Combination)
        async throws
    {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let parent = container.newBackgroundContext(name: "parent")
        let (saved, drafts) = await parent.perform { context in
            let saved = context.makeTrack("saved")
            return (saved.objectID, (0..<3).map { _ in context.makeTrack("draft").objectID })
        }
        let child = await parent.newMainChild(name: "child")
        child.automaticallyMergesChanges = true
        let results = try Results(EntityFetchRequest("Track", sortBy: [AttributeSort("title")]), context: child)
        #expect(results.count == 4)
        let draft = child.object(with: drafts[0])
        #expect(draft["title"] == "draft")
        let watch = Watch { _ = draft["title"] }
        try await parent.perform(andSave: .durable) { context in
            for id in drafts { context.delete(context.object(with: id)) }
            context.makeTrack("another")
        }
        try await until("the child has merged the save") { try child.count(EntityFetchRequest("Track")) == 2 }
        #expect(results.count == 2 && results.snapshot.last == saved)
        #expect(draft.isDeleted)
        #expect(watch.count == 1)
    }
}
