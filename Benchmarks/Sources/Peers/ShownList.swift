import Figures
import Workloads

/// A list on the screen: the 50 most played tracks of a genre. Each side fills it from its own live result.
@MainActor
final class ShownList {
    nonisolated static let genre = 3
    nonisolated static let rowCount = 50

    /// The live result, which ends when it is released.
    var source: AnyObject?
    /// The sum of the digests of all rows.
    private(set) var digest = 0
    /// The time at which the present first row was first shown.
    private(set) var shownAt: UInt64 = 0
    private var first: Int?
    private let expected = Expectation("the play count in the first row of a list")

    func show(_ tracks: some Sequence<some TrackValues>) {
        var (digest, first) = (0, Int?.none)
        for track in tracks {
            if first == nil { first = track.playCount }
            digest &+= track.digest
        }
        self.digest = digest
        if first != self.first { shownAt = Clock.now() }
        self.first = first
        expected.reached(first ?? 0)
    }

    func fail(_ error: any Error) { expected.fail(error) }

    /// Waits until the first row has this play count. Returns the time at which it was shown.
    nonisolated func wait(for playCount: Int) async throws -> UInt64 {
        try await expected.wait(for: playCount)
        return await shownAt
    }

    /// Returns the rows of a list over these tracks.
    nonisolated static func rows(of tracks: [TrackData]) -> [TrackData] {
        Array(tracks.filter { $0.genre == genre }.sorted { $0.playCount > $1.playCount }.prefix(rowCount))
    }
}
