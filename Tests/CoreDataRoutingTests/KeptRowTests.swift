import CoreDataRouting
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// The content of contexts that keep rows and relationships for their children (routing `ancestors`).
@Suite(.timeLimit(.minutes(10))) @MainActor struct KeptRowTests {
    /// The content that every context must show: tracks with their plays and album, and the tracks of each playlist.
    struct Expected: Sendable, Equatable {
        var plays: [ObjectID: Int64] = [:]
        var album: [ObjectID: ObjectID] = [:]
        var albums: Set<ObjectID> = []
        var playlists: [ObjectID: Set<ObjectID>] = [:]

        init() {}

        init(of context: ManagedObjectContext) throws {
            for track in try context.fetch(EntityFetchRequest("Track")) {
                if case .int(let plays) = track["plays"] { self.plays[track.objectID] = plays }
                album[track.objectID] = track.relatedObject("album")?.objectID
            }
            for album in try context.fetch(EntityFetchRequest("Album")) {
                albums.insert(album.objectID)
                let tracks = Set(album.relatedObjects("tracks").map(\.objectID))
                let referrers = Set(self.album.filter { $0.value == album.objectID }.keys)
                #expect(tracks == referrers, "both ends of a relationship agree")
            }
            for playlist in try context.fetch(EntityFetchRequest("Playlist")) {
                playlists[playlist.objectID] = Set(playlist.relatedObjects("tracks").map(\.objectID))
            }
        }

        /// A few random changes, made in a context and noted here.
        mutating func change(_ context: ManagedObjectContext, _ numbers: inout SeededGenerator) {
            for _ in 0..<Int.random(in: 1...12, using: &numbers) { step(context, &numbers) }
        }

        private mutating func step(_ context: ManagedObjectContext, _ numbers: inout SeededGenerator) {
            let tracks = plays.keys.sorted { $0.description < $1.description }
            let track = tracks.randomElement(using: &numbers)
            let album = albums.sorted { $0.description < $1.description }.randomElement(using: &numbers)
            let playlist = playlists.keys.sorted { $0.description < $1.description }.randomElement(using: &numbers)
            switch Int.random(in: 0..<9, using: &numbers) {
            case 0, 1:
                plays[context.makeTrack("track", plays: 1).objectID] = 1
            case 2:
                albums.insert(context.insert("Album").objectID)
            case 3:
                playlists[context.insert("Playlist").objectID] = []
            case 4:
                guard let track else { return }
                context.delete(context.object(with: track))
                plays[track] = nil
                self.album[track] = nil
                for playlist in playlists.keys { playlists[playlist]?.remove(track) }
            case 5, 6:
                guard let track else { return }
                let value = Int64.random(in: 0...9, using: &numbers)
                context.object(with: track)["plays"] = .int(value)
                plays[track] = value
            case 7:
                guard let track, let album else { return }
                let isCleared = numbers.chance(1, in: 4)
                context.object(with: track).setRelatedObject("album", to: isCleared ? nil : context.object(with: album))
                self.album[track] = isCleared ? nil : album
            default:
                guard let track, let playlist else { return }
                let object = context.object(with: playlist)
                if playlists[playlist]?.remove(track) != nil {
                    object.remove(context.object(with: track), from: "tracks")
                } else {
                    object.add(context.object(with: track), to: "tracks")
                    playlists[playlist]?.insert(track)
                }
            }
        }
    }

    @Test(arguments: [StoreKind.memory, .sqlite], [ContextStack.nested, .masterMainWorker, .hybrid])
    func `every context shows the newest values after random changes and saves`(_ kind: StoreKind, _ stack: ContextStack)
        async throws
    {
        var numbers = SeededGenerator(test: #function)
        let bed = try TestBed(kind)
        let container = try await bed.container(stack, routing: .ancestors)
        let main = container.mainContext
        let old = container.newBackgroundContext(name: "old")
        var expected = Expected()
        for round in 0..<40 {
            // A context that has kept rows of the rounds before, a new one, or main.
            switch Int.random(in: 0..<5, using: &numbers) {
            case 0: expected.change(main, &numbers)
            case 1: try await main.save()
            case 2:
                try await old.refreshFromParent()
                expected = try await change(old, expected, &numbers)
            default: expected = try await change(container.newBackgroundContext(), expected, &numbers)
            }
            #expect(try Expected(of: main) == expected, "main, round \(round)")
        }
        try await main.save(through: .store)
        #expect(try Expected(of: main) == expected)
        let worker = container.newBackgroundContext()
        let shown = try await worker.perform { try Expected(of: $0) }
        #expect(shown == expected)
        if kind == .sqlite {
            let again = try await bed.container()
            #expect(try Expected(of: again.mainContext) == expected)
        }
    }

    /// Checks what a worker shows, changes it and saves, one level or all; then it must show what it saved.
    private func change(
        _ worker: BackgroundContext, _ expected: Expected, _ numbers: inout SeededGenerator
    ) async throws -> Expected {
        let seed = numbers.next()
        let changed = try await worker.perform { context in
            let shown = try Expected(of: context)
            #expect(shown == expected, "\(context.name)")
            var numbers = SeededGenerator(seed: seed)
            var changed = expected
            changed.change(context, &numbers)
            return changed
        }
        if numbers.chance(1, in: 2) { try await worker.save() } else { try await worker.save(through: .store) }
        let shown = try await worker.perform { try Expected(of: $0) }
        #expect(shown == changed, "\(worker.name) after its save")
        return changed
    }

    @Test(arguments: [ContextStack.nested, .masterMainWorker])
    func `a child keeps a row until it is refreshed`(_ stack: ContextStack) async throws {
        let bed = try TestBed(.sqlite)
        let container = try await bed.container(stack, routing: .ancestors)
        let main = container.mainContext
        let track = main.makeTrack("a", plays: 1)
        let id = track.objectID
        try await main.save(through: .store)
        let (keeping, asking) = (container.newBackgroundContext(), container.newBackgroundContext())
        await keeping.perform { #expect($0.object(with: id)["plays"] == .int(1)) }
        track["plays"] = .int(2)
        // The first request shows the parent's present, unsaved value (S071).
        await asking.perform { #expect($0.object(with: id)["plays"] == .int(2)) }
        await keeping.perform { #expect($0.object(with: id)["plays"] == .int(1)) }
        try await keeping.refreshFromParent()
        await keeping.perform { #expect($0.object(with: id)["plays"] == .int(2)) }
        track["plays"] = .int(3)
        await asking.perform { context in
            context.refresh(context.object(with: id), mergeChanges: true)
            #expect(context.object(with: id)["plays"] == .int(3))
        }
    }

    @Test(arguments: [ContextStack.nested, .masterMainWorker])
    func `a save that fails leaves every level as it was`(_ stack: ContextStack) async throws {
        let bed = try TestBed(.sqlite)
        let container = try await bed.container(stack, routing: .ancestors)
        let main = container.mainContext
        main.makeTrack("kept", plays: 1)["isrc"] = .string("A")
        try await main.save(through: .store)
        main.makeTrack("unsaved", plays: 2)
        let worker = container.newBackgroundContext()
        await worker.perform { $0.makeTrack("twice", plays: 3)["isrc"] = .string("A") }
        await #expect(throws: SaveError.self) { try await worker.save(through: .store) }
        #expect(try main.count(EntityFetchRequest("Track")) == 2)
        #expect(main.insertedObjects.count == 1)
        await worker.perform { #expect($0.insertedObjects.count == 1) }
        await worker.perform { for track in $0.insertedObjects { track["isrc"] = .string("B") } }
        try await worker.save(through: .store)
        #expect(!main.hasChanges)
        #expect(try main.count(EntityFetchRequest("Track")) == 3)
    }
}
