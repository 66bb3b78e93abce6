import CoreDataRouting
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Closing a container while a child is in use: its parents are closed before it.
@Suite struct ClosingOrderTests {
    private static func code(_ body: () throws -> Void) -> StoreError.Code? {
        do { try body() } catch { return (error as? StoreError)?.code }
        return nil
    }

    /// A root, its child and its grandchild over one saved artist with an album and a profile.
    private struct Family {
        let bed: TestBed
        let container: PersistentContainer
        let root: BackgroundContext
        let parent: BackgroundContext
        let child: BackgroundContext
        let artist: ObjectID
        let album: ObjectID

        init(_ kind: StoreKind, _ routing: Routing) async throws {
            bed = try TestBed(kind)
            container = try await bed.container(routing: routing)
            root = container.newBatchOperationContext(name: "root")
            (artist, album) = await root.perform { context in
                let artist = context.makeArtist("Ravel")
                artist["born"] = .int(1875)
                let album = context.insert("Album")
                album["title"] = "Boléro"
                album.setRelatedObject("artist", to: artist)
                return (artist.objectID, album.objectID)
            }
            try await root.save()
            parent = await root.newBackgroundChild(name: "parent")
            child = await parent.newBackgroundChild(name: "child")
        }

        /// Begins to close the container, and blocks the calling thread until the parent is closed.
        func closeParent() -> Task<Void, any Error> {
            let isClosed = Flag()
            let closing = Task.detached { try await container.close() }
            Task.detached {
                try await until("the parent is closed") {
                    await parent.perform { context in
                        ClosingOrderTests.code { _ = try context.count(EntityFetchRequest("Album")) } == .closed
                    }
                }
                isClosed.set()
            }
            #expect(isClosed.wait(atMost: .seconds(600)))
            return closing
        }
    }

    @Test(arguments: StoreKind.allCases, [Routing.snapshot, .ancestors])
    func `S008: a property that is read after the parent was closed looks deleted or has its value`(
        _ kind: StoreKind, _ routing: Routing
    ) async throws {
        let family = try await Family(kind, routing)
        let (artistID, albumID) = (family.artist, family.album)
        let closing = await family.child.perform { context in
            // No value has been read yet.
            let (artist, album) = (context.object(with: artistID), context.object(with: albumID))
            context.shouldDeleteInaccessibleFaults = false
            let closing = family.closeParent()
            let shows = routing == .snapshot
            #expect(artist["name"] == (shows ? "Ravel" : ""))
            #expect(artist["born"] == (shows ? .int(1875) : .null))
            #expect(album.relatedObject("artist")?.objectID == (shows ? artistID : nil))
            #expect(artist.relatedObjects("albums").map(\.objectID) == (shows ? [albumID] : []))
            let codes = [
                Self.code { _ = try context.existingObject(with: albumID) },
                Self.code { _ = try context.count(EntityFetchRequest("Album")) },
                Self.code { _ = try context.fetch(EntityFetchRequest("Album")) },
            ]
            #expect(codes.allSatisfy { $0 == (shows ? nil : .closed) }, "\(codes)")
            return closing
        }
        try await closing.value
    }

    @Test(arguments: StoreKind.allCases, [Routing.snapshot, .ancestors])
    func `S169: a child whose parent was closed throws at its save and keeps its changes`(
        _ kind: StoreKind, _ routing: Routing
    ) async throws {
        let family = try await Family(kind, routing)
        let id = family.artist
        for target in [nil, SaveTarget.store] {
            await #expect(throws: StoreError.self) {
                try await family.child.perform(andSave: .durable, through: target) { context in
                    context.object(with: id)["name"] = "Debussy"
                    // The save goes to the parent when this closure has returned.
                    _ = family.closeParent()
                }
            }
            let shown = await family.child.perform { ($0.hasChanges, $0.object(with: id)["name"]) }
            #expect(shown == (true, "Debussy"))
        }
        try await family.container.close()
    }
}
