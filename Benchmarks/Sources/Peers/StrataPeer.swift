import Foundation
import Strata
import Workloads

@Model final class Track {
    @Attribute(.unique) var isrc: String
    @Attribute(.indexed) var playCount: Int
    var genre: Int
    var rating: Double
    var isFavorite: Bool
    var released: Date
    var artist: String
    var title: String
}

extension Track: TrackValues {}

/// Strata's typed models.
struct StrataPeer: Peer {
    private let container: PersistentContainer
    private let writer: BackgroundContext
    private let durability: Durability

    var forms: [(engine: PeerEngine, peer: StrataPeer)] { [(.strata, self)] }

    init(path: String, durability: DurabilityKind) async throws {
        container = try await PersistentContainer(for: Track.self, store: .lmdb(URL(filePath: path)))
        writer = await container.makeBackgroundContext(name: "writer")
        self.durability = durability.durability
    }

    // MARK: Writes

    func insert(_ tracks: ArraySlice<TrackData>) async throws -> [ObjectID] {
        let ids = await writer.perform { context in
            tracks.map { data in
                let track = Track(
                    isrc: data.isrc, playCount: data.playCount, genre: data.genre, rating: data.rating,
                    isFavorite: data.isFavorite, released: data.released, artist: data.artist, title: data.title)
                context.insert(track)
                return track.id
            }
        }
        try await writer.save(durability)
        return ids
    }

    func raiseRatings(_ keys: ArraySlice<ObjectID>) async throws {
        try await writer.perform { context throws in
            for key in keys { try context.existingObject(Track.self, with: key).rating += 1 }
        }
        try await writer.save(durability)
    }

    func promote(_ key: ObjectID, playCount: Int) async throws {
        try await writer.perform { context throws in
            let track = try context.existingObject(Track.self, with: key)
            track.playCount = playCount
            track.genre = ShownList.genre
        }
        try await writer.save(durability)
    }

    func flush() async throws { try await container.flush() }

    // MARK: Reads

    func read(_ keys: [ObjectID]) throws -> Int {
        let context = container.mainContext
        var sum = 0
        for key in keys { sum &+= try context.existingObject(Track.self, with: key).digest }
        return sum
    }

    func readPlayCounts(_ keys: [ObjectID]) throws -> Int {
        let context = container.mainContext
        var sum = 0
        for key in keys { sum &+= try context.existingObject(Track.self, with: key).playCount }
        return sum
    }

    func fetch(_ selections: [TrackSelection]) throws -> Int {
        let context = container.mainContext
        var sum = 0
        for selection in selections {
            let (least, end, genre) = (selection.least, selection.end, selection.genre)
            let request = FetchRequest<Track>(
                where: #Predicate { $0.playCount >= least && $0.playCount < end && $0.genre == genre },
                sortBy: [.init(\.title)])
            for track in try context.fetch(request) { sum = TrackSelection.combine(sum, track.digest) }
        }
        return sum
    }

    func count() throws -> Int {
        let (genre, least) = (TrackSelection.countedGenre, TrackSelection.leastRating)
        return try container.mainContext.count(
            FetchRequest<Track>(where: #Predicate { $0.genre == genre && $0.rating >= least }))
    }

    func totals() throws -> [GenreTotals] {
        let request = ValueRequest<Track>(
            [
                .property(\.genre), .count.named("tracks"), .sum(\.playCount).named("plays"),
                .max(\.rating).named("bestRating"),
            ], groupBy: [.property(\.genre)])
        return try container.mainContext.fetch(request).map { row in
            GenreTotals(
                genre: row.value(\Track.genre) ?? -1, tracks: row["tracks", as: Int.self] ?? 0,
                plays: row["plays", as: Int.self] ?? 0, bestRating: row["bestRating", as: Double.self] ?? 0)
        }
    }

    func keepFilled(_ list: ShownList) throws {
        let genre = ShownList.genre
        let results = try FetchedResultsController(
            FetchRequest<Track>(
                where: #Predicate { $0.genre == genre }, sortBy: [.init(\.playCount, .descending)], limit: ShownList.rowCount),
            context: container.mainContext)
        try results.performFetch()
        results.onChange = { [weak results, weak list] _ in
            MainActor.assumeIsolated { list?.show(results?.fetchedObjects ?? []) }
        }
        results.onFailure = { [weak list] error in MainActor.assumeIsolated { list?.fail(error) } }
        list.source = results
        list.show(results.fetchedObjects)
    }

    func contents() async throws -> ContentSum {
        try await container.read { context in
            var sum = ContentSum()
            for track in try context.fetchInBatches(FetchRequest<Track>()) { sum.add(track) }
            return sum
        }
    }

    func close() async throws { try await container.close() }
}
