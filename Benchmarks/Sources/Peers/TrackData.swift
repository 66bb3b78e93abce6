import Datasets
import Foundation
import Workloads

/// The properties of a track, which all sides have. Reads use every property, so that no side gains by decoding only one.
protocol TrackValues {
    var isrc: String { get }
    var playCount: Int { get }
    var genre: Int { get }
    var rating: Double { get }
    var isFavorite: Bool { get }
    var released: Date { get }
    var artist: String { get }
    var title: String { get }
}

extension TrackValues {
    /// A sum over all properties, which is cheap to compute.
    var digest: Int {
        playCount &+ genre &+ Int(rating) &+ (isFavorite ? 1 : 0) &+ Int(released.timeIntervalSinceReferenceDate)
            &+ isrc.utf8.count &+ artist.utf8.count &+ title.utf8.count
    }
}

/// A track as plain data, from which each side makes its own object.
struct TrackData: TrackValues, Sendable, Hashable {
    var isrc: String
    var playCount: Int
    var genre: Int
    var rating: Double
    var isFavorite: Bool
    var released: Date
    var artist: String
    var title: String

    /// Returns tracks of about 75 bytes. Codes are unique, and so are play counts, so that every sort has one result.
    static func make(_ count: Int, seed: UInt64) -> [TrackData] {
        var random = SeededNumbers(seed: seed)
        return (0..<count).shuffled(using: &random).map { number in
            TrackData(
                isrc: random.word(5...5) + "\(number)", playCount: number * playCountStep + random.below(playCountStep),
                genre: random.below(genres), rating: Double(random.below(100_000)) / 100, isFavorite: random.below(2) == 0,
                released: Date(timeIntervalSinceReferenceDate: Double(random.below(1_000_000_000))),
                artist: random.word(8...16), title: random.word(14...22))
        }
    }

    static let genres = 10
    /// The mean distance between two play counts.
    static let playCountStep = 10
}

/// The number of tracks in a file and a checksum of all their values, in any order.
struct ContentSum: Hashable, Sendable {
    private(set) var tracks = 0
    private(set) var sum: UInt64 = 0

    init() {}

    init(_ tracks: some Sequence<some TrackValues>) {
        for track in tracks { add(track) }
    }

    mutating func add(_ track: some TrackValues) {
        tracks += 1
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        func mix(_ number: UInt64) { hash = (hash ^ number) &* 0x100_0000_01B3 }
        func mix(_ text: String) {
            for byte in text.utf8 { mix(UInt64(byte)) }
            mix(0xFF)
        }
        mix(track.isrc)
        mix(UInt64(bitPattern: Int64(track.playCount)))
        mix(UInt64(bitPattern: Int64(track.genre)))
        mix(track.rating.bitPattern)
        mix(track.isFavorite ? 1 : 0)
        mix(track.released.timeIntervalSinceReferenceDate.bitPattern)
        mix(track.artist)
        mix(track.title)
        sum &+= hash
    }
}

/// The totals of one genre.
struct GenreTotals: Hashable, Sendable, Codable {
    var genre: Int
    var tracks: Int
    var plays: Int
    var bestRating: Double
}
