import Observation
import TestSupport
import Testing

@testable import ObjectGraph

/// The registrar of an object, which is made at its first observed read.
@Suite @MainActor struct ObjectRegistrarTests {
    /// Returns whether an object has a registrar after it was read and set, and after an observed read; and whether its sibling has one.
    nonisolated private static func registrars(in context: ManagedObjectContext) -> [Bool] {
        let (track, sibling) = (context.makeTrack("a"), context.makeTrack("b"))
        for object in [track, sibling] {
            _ = (object["title"], object.relatedObject("album"), object.relatedObjects("playlists"), object.isDeleted)
            object["title"] = .string("c")
        }
        let before = track.observation != nil
        withObservationTracking {
            _ = track["title"]
        } onChange: {
        }
        track["title"] = .string("d")
        return [before, track.observation != nil, sibling.observation != nil]
    }

    @Test(arguments: Combination.all)
    func `S146: only the first observed read makes the registrar of an object`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let main = container.mainContext
        let child = main.newChild()
        for context in [main, child] { #expect(Self.registrars(in: context) == [false, true, false], "in \(context.name)") }
        let worker = container.newBackgroundContext()
        let childOfWorker = await worker.newBackgroundChild()
        for context in [worker, childOfWorker] {
            for isObservable in [false, true] {
                let found = await context.perform { context in
                    context.isObservable = isObservable
                    return Self.registrars(in: context)
                }
                #expect(found == [false, isObservable, false], "in \(context.name)")
            }
        }
    }

    /// Catches: a registrar that is made for an object of a save or a merge.
    @Test(arguments: Combination.all)
    func `S146: saved, merged and refreshed objects have no registrar without an observed read`(
        _ combination: Combination
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let main = container.mainContext
        let tracks = ["a", "b"].map { main.makeTrack($0) }
        try await container.saveMain()
        let child = main.newChild()
        child.automaticallyMergesChanges = true
        let drafts = tracks.map { child.object(with: $0.objectID) }
        for objects in [tracks, drafts] {
            withObservationTracking {
                _ = objects[0]["title"]
            } onChange: {
            }
        }
        let ids = tracks.map(\.objectID)
        try await container.newBatchOperationContext().perform(andSave: .durable) { context in
            for id in ids { context.object(with: id)["title"] = .string("c") }
        }
        main.refreshAllObjects()
        #expect((tracks + drafts).allSatisfy { $0["title"] == .string("c") })
        main.rollback()
        #expect((tracks + drafts).map { $0.observation != nil } == [true, false, true, false])
    }
}
