import Platform
import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

/// The snapshot after a context's save may be acquired after the next save of another process, and contain it.
@Suite struct LaterSnapshotTests {
    private final class Listener: ViewObserver {
        private let seen = Mutex<[ChangeSet?]>([])

        func viewDidChange(_ view: LayeredView, _ changes: ChangeSet?, saved: ChangeSet) { seen.withLock { $0.append(changes) } }

        /// Whether a change of an object was reported, or changes that are unknown.
        func hasSeen(_ id: ObjectID) -> Bool {
            let address = ObjectAddress(entity: id.entity, key: id.key)
            return seen.withLock { $0.contains { $0?.contains(address) ?? true } }
        }
    }

    private static func contexts(_ store: FaultyStore) async throws -> (
        root: BackgroundContext, child: BackgroundContext, ObjectID
    ) {
        let coordinator = try PersistentStoreCoordinator.music(store, SteppedClock())
        let root = coordinator.newBackgroundContext(name: "root")
        let track = try await root.perform(andSave: .durable) { $0.makeTrack("x").objectID }
        return (root, await root.newBackgroundChild(name: "child"), track)
    }

    /// Deletes an object as another process does, just after the next commit.
    private static func deleteElsewhere(_ id: ObjectID, _ entity: String, afterNextCommitOf store: FaultyStore) {
        store.afterCommit {
            store.afterCommit(nil)
            #expect(throws: Never.self) { try store.updateElsewhere(id, entity: entity, property: "title", to: nil) }
        }
    }

    /// Catches: a child that continues from its parent's snapshot, and does not know that it has one more save.
    @Test(arguments: [true, false])
    func `S141: observers of a context learn of a save that its snapshot contains beyond its own save`(_ isInChild: Bool)
        async throws
    {
        let store = FaultyStore(schema: Music.model.storeSchema)
        let (root, child, track) = try await Self.contexts(store)
        let context = isInChild ? child : root
        let listener = Listener()
        await context.perform { context in
            _ = context.addViewObserver(listener)
            context.makeTrack("y")
        }
        Self.deleteElsewhere(track, "Track", afterNextCommitOf: store)
        try await context.save(through: .store)
        let titles = try await context.perform { try $0.trackTitles() }
        #expect(titles == ["y"])
        #expect(listener.hasSeen(track))
    }

    /// Catches: an object that the snapshot lacks counts as existing until the next merge.
    @Test(arguments: [true, false])
    func `S022: a reference to an object that the snapshot after a save lacks is nil`(_ isInChild: Bool) async throws {
        let store = FaultyStore(schema: Music.model.storeSchema)
        let (root, child, track) = try await Self.contexts(store)
        let album = try await root.perform(andSave: .durable) { context in
            let album = context.insert("Album").objectID
            try context.existingObject(with: track)["album"] = .reference(album.key)
            return album
        }
        let context = isInChild ? child : root
        for context in [root, child] {
            await context.perform { ($0.retainsRegisteredObjects, $0.automaticallyMergesChanges) = (true, false) }
        }
        if isInChild { try await child.refreshFromParent() }
        try await context.perform { context in
            let (track, album) = (try context.existingObject(with: track), try context.existingObject(with: album))
            #expect(track.relatedObject("album") === album)
            context.makeTrack("y")
        }
        Self.deleteElsewhere(album, "Album", afterNextCommitOf: store)
        try await context.save(through: .store)
        let isGone = try await context.perform { try $0.existingObject(with: track).relatedObject("album") == nil }
        #expect(isGone)
    }
}
