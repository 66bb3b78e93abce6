import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Live results of contexts without an executor, over a suspension. Another thread replaces what such a context reads.
@Suite struct ConfinedSuspensionTests {
    private static let tracks = EntityFetchRequest("Track", sortBy: [AttributeSort("title")])

    private static func moveFiles(_ folder: URL, to other: URL) throws {
        for name in try FileManager.default.contentsOfDirectory(atPath: folder.path) {
            try FileManager.default.moveItem(at: folder.appendingPathComponent(name), to: other.appendingPathComponent(name))
        }
    }

    private static func rename(_ id: ObjectID, _ title: String, _ container: PersistentContainer) async throws {
        try await container.newBatchOperationContext().perform(andSave: .durable) { context in
            try context.existingObject(with: id)["title"] = .string(title)
        }
    }

    /// Catches: a result that looks for an object by its newest value in a list that is sorted by an older one.
    @Test(arguments: StoreKind.allCases, [true, false])
    func `S167: a live result of a confined context shows each object once after a suspension`(
        _ kind: StoreKind, _ isMerging: Bool
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let ids = try await container.newBatchOperationContext().perform(andSave: .durable) { context in
            ["a", "b", "c"].map { context.makeTrack($0).objectID }
        }
        let context = container.makeConfinedContext(merging: isMerging)
        let results = try Results(Self.tracks, context: context)
        #expect(results.snapshot.ids == ids)
        try await Self.rename(ids[0], "z", container)
        try await container.suspend()
        await container.resume()
        #expect(try context.fetchIDs(Self.tracks) == [ids[1], ids[2], ids[0]])
        #expect(results.snapshot.ids == [ids[1], ids[2], ids[0]])
        // The context has read the last name, and not the one before the suspension.
        try await Self.rename(ids[1], "y", container)
        #expect(try context.fetchIDs(Self.tracks) == [ids[2], ids[1], ids[0]])
        try await container.suspend()
        await container.resume()
        context.processPendingChanges()
        #expect(results.snapshot.ids == [ids[2], ids[1], ids[0]])
        #expect(results.map { $0["title"] } == ["c", "y", "z"])
        try await container.close()
    }

    /// Catches: a read that stops the program, because a confined context notices only at a request that its file is gone.
    @Test(arguments: [StoreKind.lmdb, .sqlite])
    func `S167: while the file is away, objects of a confined context read as deleted, and requests throw`(
        _ kind: StoreKind
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let ids = try await container.newBatchOperationContext().perform(andSave: .durable) { context in
            (0..<200).map { context.makeTrack("\($0)").objectID }
        }
        let context = container.makeConfinedContext()
        // The page of the first object is known, and that of the last one is not.
        let tracks = [ids[0], ids[199]].map { context.object(with: $0) }
        #expect(tracks[0]["title"] == .string("0"))
        try await container.suspend()
        let away = try TestBed(kind)
        try Self.moveFiles(bed.folder, to: away.folder)
        await container.resume()
        for track in tracks { #expect(track["title"] == .string("")) }
        #expect(throws: StoreError.self) { try context.count(EntityFetchRequest("Track")) }
        #expect(throws: (any Error).self) { try context.existingObject(with: ids[0]) }
        try Self.moveFiles(away.folder, to: bed.folder)
        #expect(try context.count(EntityFetchRequest("Track")) == 200)
        #expect(tracks.map { $0["title"] } == [.string("0"), .string("199")] && !tracks.contains(where: \.isDeleted))
        try await container.close()
    }

    /// Catches: a list that stops the program, because prefetching reads without noticing that the file is gone.
    @MainActor @Test(arguments: [StoreKind.lmdb, .sqlite], ["album", "playlists"])
    func `S167: while the file is away, a result in batches that prefetches reads as deleted`(
        _ kind: StoreKind, _ prefetched: String
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let main = container.mainContext
        for number in 0..<200 { main.makeTrack("\(number)", plays: number) }
        try await container.saveMain()
        var request = EntityFetchRequest("Track", sortBy: [AttributeSort("plays")])
        request.fetchBatchSize = 64
        request.relationshipKeyPathsForPrefetching = [prefetched]
        let all = try main.fetchInBatches(request)
        #expect(all[0]["title"] == .string("0"))
        try await container.suspend()
        let away = try TestBed(kind)
        try Self.moveFiles(bed.folder, to: away.folder)
        await container.resume()
        #expect(all[199]["title"] == .string(""))
        try Self.moveFiles(away.folder, to: bed.folder)
        #expect(all[199]["title"] == .string("199"))
        try await container.close()
    }
}
