import Foundation
import LMDBStore
import SQLiteStore
import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

/// Conflicts that a suspension must not settle: unsaved changes of objects that others have changed or deleted (S100, S106, S167).
@Suite struct SuspendedConflictTests {
    /// A root context that does not merge, with an unsaved change of the plays of a saved track.
    private static func edited(_ container: PersistentContainer, _ policy: PolicyKind = .error) async throws -> (
        root: BackgroundContext, id: ObjectID
    ) {
        let root = container.coordinator.newBackgroundContext(name: "root")
        let id = try await root.perform(andSave: .durable) { $0.makeTrack("a", plays: 1).objectID }
        try await root.perform { context in
            context.automaticallyMergesChanges = false
            context.mergePolicy = policy.mergePolicy
            try context.existingObject(with: id)["plays"] = .int(2)
        }
        return (root, id)
    }

    private static func expectConflict(of context: BackgroundContext, _ id: ObjectID) async throws {
        do {
            try await context.save()
            Issue.record("the change of another context was lost")
        } catch SaveError.conflicts(let conflicts) {
            #expect(conflicts.map(\.objectID) == [id])
        }
    }

    /// Deletes a track by title in another process.
    static func deleteElsewhere(_ kind: StoreKind, path: String, _ title: String) async throws {
        let url = URL(fileURLWithPath: path)
        let container = try await PersistentContainer(
            model: Music.model, store: kind == .lmdb ? .lmdb(url) : .sqlite(url), stack: .siblings)
        try await container.newBatchOperationContext(name: "elsewhere").perform(andSave: .durable) { context throws in
            let request = EntityFetchRequest("Track", matching: .compare("title", .equal, to: .string(title)))
            for track in try context.fetch(request) { context.delete(track) }
        }
        try await container.close()
    }

    /// Catches: a child's save that moves its suspended parent as if the parent had read what the child has read.
    @Test(arguments: [StoreKind.lmdb, .sqlite])
    func `S100, S167: a child's save while the store is suspended settles no conflict of its parent`(_ kind: StoreKind)
        async throws
    {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let (root, id) = try await Self.edited(container)
        let child = await root.newBackgroundChild(name: "child")
        await child.perform { $0.automaticallyMergesChanges = false }
        try await container.suspend()
        await SuspensionTests.elsewhere(bed, "a", plays: 10)
        await child.perform { _ = $0.makeTrack("b") }
        try await child.save()
        await container.resume()
        try await Self.expectConflict(of: root, id)
        // The track of the child is still to be saved.
        try await root.perform { context in
            context.refresh(try context.existingObject(with: id), mergeChanges: false)
        }
        try await root.save()
        #expect(try await container.read { try $0.trackTitles() } == ["a", "b"])
        #expect(try await container.read { try $0.existingObject(with: id)["plays"] } == .int(10))
        try await container.close()
    }

    /// Expects a conflict, or that the policy drops the update, of a track that was deleted.
    private static func expectResolved(
        _ root: BackgroundContext, _ id: ObjectID, _ policy: PolicyKind, in container: PersistentContainer
    ) async throws {
        if policy == .error {
            try await expectConflict(of: root, id)
        } else {
            try await root.save()
            #expect(await root.perform { !$0.hasChanges })
        }
        #expect(try await container.read { try $0.trackTitles() } == [])
    }

    /// Catches: an update that is dropped without a word, because the suspension has released the values that the deleted object had.
    @Test(arguments: StoreKind.allCases, [PolicyKind.error, .storeTrump])
    func `S106, S167: an update of an object that was deleted before a suspension stays a conflict`(
        _ kind: StoreKind, _ policy: PolicyKind
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let (root, id) = try await Self.edited(container, policy)
        let other = container.newBatchOperationContext(name: "other")
        try await other.perform(andSave: .durable) { $0.delete(try $0.existingObject(with: id)) }
        try await container.suspend()
        await container.resume()
        try await Self.expectResolved(root, id, policy, in: container)
        try await container.close()
    }

    /// Catches: the same, after another process has deleted the object.
    @Test(arguments: [StoreKind.lmdb, .sqlite], [PolicyKind.error, .storeTrump])
    func `S106, S167: an update of an object that another process deletes during a suspension is a conflict`(
        _ kind: StoreKind, _ policy: PolicyKind
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let (root, id) = try await Self.edited(container, policy)
        try await container.suspend()
        await #expect(processExitsWith: .success) { [path = bed.file.path as String, kind = kind.rawValue as String] in
            guard let kind = StoreKind(rawValue: kind) else { exit(2) }
            try await SuspendedConflictTests.deleteElsewhere(kind, path: path, "a")
        }
        await container.resume()
        try await Self.expectResolved(root, id, policy, in: container)
        try await container.close()
    }
}
