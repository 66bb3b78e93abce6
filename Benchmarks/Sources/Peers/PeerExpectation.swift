/// The right results of all operations, computed from the data without any store.
struct PeerExpectation: Sendable {
    /// The tracks as imported.
    var tracks: [TrackData]
    /// The sum of the digests of the picked rows.
    var digest: Int
    var playCounts: Int
    /// The result of all fetches, and the number of fetched tracks.
    var fetch = 0
    var fetched = 0
    var counted: Int
    var totals: Set<GenreTotals>

    init(_ tracks: [TrackData], picks: [Int], selections: [TrackSelection]) {
        self.tracks = tracks
        digest = picks.reduce(0) { $0 &+ tracks[$1].digest }
        playCounts = picks.reduce(0) { $0 &+ tracks[$1].playCount }
        counted = tracks.count(where: TrackSelection.isCounted)
        totals = Set(
            Dictionary(grouping: tracks, by: \.genre).map { genre, tracks in
                GenreTotals(
                    genre: genre, tracks: tracks.count, plays: tracks.reduce(0) { $0 + $1.playCount },
                    bestRating: tracks.reduce(0) { max($0, $1.rating) })
            })
        for selection in selections {
            let found = tracks.filter(selection.contains).sorted { $0.title < $1.title }
            fetched += found.count
            fetch = found.reduce(fetch) { TrackSelection.combine($0, $1.digest) }
        }
    }

    /// Returns the tracks in the file at the end.
    ///
    /// - Parameter raises: How often the ratings of the picked rows were raised.
    func stored(picks: [Int], raises: Int, promoted: [Int]) -> [TrackData] {
        var result = tracks
        for _ in 0..<raises {
            for row in picks { result[row].rating += 1 }
        }
        for (number, row) in promoted.enumerated() {
            result[row].playCount = Self.promotedPlayCount(number, of: tracks.count)
            result[row].genre = ShownList.genre
        }
        return result
    }

    /// Returns a play count above all others.
    static func promotedPlayCount(_ number: Int, of tracks: Int) -> Int { tracks * TrackData.playCountStep + 1 + number }
}
