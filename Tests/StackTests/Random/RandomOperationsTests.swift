import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// The same random work on a stack and on plain dictionaries. After every step both must show the same.
@Suite struct RandomOperationsTests {
    /// The expected content of a store.
    struct Library: Sendable, Equatable {
        struct Track: Sendable, Equatable {
            var title: String
            var plays: Int64
            var album: ObjectID?
        }

        var tracks: [ObjectID: Track] = [:]
        var albums: Set<ObjectID> = []
        var playlists: Set<ObjectID> = []
        var links: Set<Pair> = []
    }

    struct Pair: Hashable, Sendable {
        var playlist: ObjectID
        var track: ObjectID
    }

    @Test(arguments: Combination.all)
    func S066_randomWorkOnAStackEqualsTheSameOnDictionaries(_ combination: Combination) async throws {
        let seed = Seed.value
        var random = SeededGenerator(seed: seed)
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        var committed = Library()
        for round in 0..<Rounds.of(6, long: 150) {
            let worker = await container.newBackgroundContext(name: "round \(round)")
            var pending = committed
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                let steps = (0..<Int.random(in: 1...40, using: &random)).map { _ in random.next() }
                let start = pending
                pending = try await worker.perform { context in
                    var library = start
                    for step in steps { try Self.step(context, &library, step) }
                    return library
                }
                let shown = try await worker.perform { try Self.library(of: $0) }
                try #require(shown == pending, "pending changes, STRATA_SEED=\(seed), round \(round)")
            }
            switch Int.random(in: 0..<6, using: &random) {
            case 0:
                await worker.perform { $0.rollback() }
                let shown = try await worker.perform { try Self.library(of: $0) }
                try #require(shown == committed, "after a rollback, STRATA_SEED=\(seed), round \(round)")
            case 1:
                try await worker.save(through: .store, .deferred(within: .seconds(30)))
                committed = pending
            default:
                try await worker.save(through: .store)
                committed = pending
            }
            // With `.split` on SQLite the save used another connection.
            let reader = container.coordinator.newBackgroundContext()
            let stored = try await reader.perform { try Self.library(of: $0) }
            try #require(stored == committed, "after the save, STRATA_SEED=\(seed), round \(round)")
        }
        try await container.flush()
        #expect(try container.coordinator.store.verify().isEmpty, "STRATA_SEED=\(seed)")
    }

    // MARK: Reading

    private static func library(of context: ManagedObjectContext) throws -> Library {
        var library = Library()
        for track in try context.objects("Track") {
            guard case .string(let title) = track["title"], case .int(let plays) = track["plays"] else { continue }
            library.tracks[track.objectID] = .init(
                title: title, plays: plays, album: track.relatedObject("album")?.objectID)
        }
        library.albums = Set(try context.objects("Album").map(\.objectID))
        for playlist in try context.objects("Playlist") {
            library.playlists.insert(playlist.objectID)
            for track in playlist.relatedObjects("tracks") {
                library.links.insert(Pair(playlist: playlist.objectID, track: track.objectID))
            }
        }
        for album in library.albums {
            let tracks = Set(context.object(with: album).relatedObjects("tracks").map(\.objectID))
            let expected = Set(library.tracks.filter { $0.value.album == album }.keys)
            try #require(tracks == expected, "a to-many equals its inverse")
        }
        return library
    }

    // MARK: One step

    private static func step(_ context: ManagedObjectContext, _ library: inout Library, _ step: UInt64) throws {
        var random = SeededGenerator(seed: step)
        // Sorted, so that the seed alone decides.
        let tracks = library.tracks.keys.sorted { $0.key < $1.key }
        let albums = library.albums.sorted { $0.key < $1.key }
        let playlists = library.playlists.sorted { $0.key < $1.key }
        switch Int.random(in: 0..<12, using: &random) {
        case 0...2:
            let track = context.makeTrack("t\(step % 97)", plays: Int(step % 13))
            library.tracks[track.objectID] = .init(title: "t\(step % 97)", plays: Int64(step % 13), album: nil)
        case 3:
            library.albums.insert(context.insert("Album").objectID)
        case 4:
            library.playlists.insert(context.insert("Playlist").objectID)
        case 5, 6:
            guard let id = tracks.randomElement(using: &random) else { return }
            context.object(with: id)["plays"] = .int(Int64(step % 1000))
            library.tracks[id]?.plays = Int64(step % 1000)
        case 7:
            guard let id = tracks.randomElement(using: &random), let album = albums.randomElement(using: &random) else { return }
            let clears = Bool.random(using: &random)
            context.object(with: id).setRelatedObject("album", to: clears ? nil : context.object(with: album))
            library.tracks[id]?.album = clears ? nil : album
        case 8, 9:
            guard let id = tracks.randomElement(using: &random), let list = playlists.randomElement(using: &random) else {
                return
            }
            link(context, &library, list, id, linked: Bool.random(using: &random))
        case 10:
            guard let id = tracks.randomElement(using: &random) else { return }
            context.delete(context.object(with: id))
            library.tracks[id] = nil
            library.links = library.links.filter { $0.track != id }
        default:
            // Albums deny deletion while they have tracks, so only empty albums are deleted. Playlists can always be deleted.
            if let album = albums.first(where: { album in !library.tracks.values.contains { $0.album == album } }) {
                context.delete(context.object(with: album))
                library.albums.remove(album)
            } else if let list = playlists.randomElement(using: &random) {
                context.delete(context.object(with: list))
                library.playlists.remove(list)
                library.links = library.links.filter { $0.playlist != list }
            }
        }
    }

    private static func link(
        _ context: ManagedObjectContext, _ library: inout Library, _ list: ObjectID, _ track: ObjectID, linked: Bool
    ) {
        let pair = Pair(playlist: list, track: track)
        if linked {
            context.object(with: list).add(context.object(with: track), to: "tracks")
            library.links.insert(pair)
        } else {
            context.object(with: list).remove(context.object(with: track), from: "tracks")
            library.links.remove(pair)
        }
    }
}
