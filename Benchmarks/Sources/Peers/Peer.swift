import Workloads

/// One side of the comparison: the same operations, each written as that library's documentation recommends.
///
/// Reads run on the main actor, as in an app. Writes run in the background.
protocol Peer: Sendable {
    /// The identifier of a stored track.
    associatedtype Key: Sendable

    /// The side itself, and its other forms over the same file. Forms differ in ``read(_:)``, ``readPlayCounts(_:)`` and
    /// ``raiseRatings(_:)`` only.
    var forms: [(engine: PeerEngine, peer: Self)] { get }

    /// Opens a file, and creates it with its indexes if it is missing.
    init(path: String, durability: DurabilityKind) async throws

    // MARK: Writes

    /// Inserts tracks in one save. The indices of the slice are the tracks' rows.
    func insert(_ tracks: ArraySlice<TrackData>) async throws -> [Key]
    /// Reads tracks and adds 1 to their ratings, in one save. A track may be listed more than once.
    func raiseRatings(_ keys: ArraySlice<Key>) async throws
    /// Moves a track to the top of ``ShownList``, in one save.
    func promote(_ key: Key, playCount: Int) async throws
    /// Waits until all saves are on disk.
    func flush() async throws

    // MARK: Reads

    /// Reads whole tracks. Returns the sum of their digests.
    @MainActor func read(_ keys: [Key]) throws -> Int
    /// Reads one property of tracks. Returns its sum.
    @MainActor func readPlayCounts(_ keys: [Key]) throws -> Int
    /// Fetches the tracks of each selection, sorted by title. Returns ``TrackSelection/combine(_:_:)`` of their digests.
    @MainActor func fetch(_ selections: [TrackSelection]) throws -> Int
    /// Returns the number of tracks that ``TrackSelection/isCounted(_:)`` selects.
    @MainActor func count() throws -> Int
    /// Returns the totals of each genre, in any order.
    @MainActor func totals() throws -> [GenreTotals]
    /// Fills the list, and fills it again after every save that changes it.
    @MainActor func keepFilled(_ list: ShownList) throws
    /// Returns the sum of all values in the file.
    func contents() async throws -> ContentSum

    /// Closes the file.
    func close() async throws
}

/// The condition of a filtered and sorted fetch: a range of the indexed attribute, and a value of an attribute without an index.
struct TrackSelection: Sendable, Hashable {
    /// The range of play counts has about a thousand tracks, of which about a hundred have the genre.
    static let width = 1_000 * TrackData.playCountStep

    var least: Int
    var genre: Int

    var end: Int { least + Self.width }

    func contains(_ track: some TrackValues) -> Bool {
        track.playCount >= least && track.playCount < end && track.genre == genre
    }

    /// Adds a digest to a sum that depends on the order of the digests.
    static func combine(_ sum: Int, _ digest: Int) -> Int { sum &* 31 &+ digest }

    // MARK: The filtered count

    static let countedGenre = 3
    static let leastRating = 500.0

    static func isCounted(_ track: some TrackValues) -> Bool {
        track.genre == countedGenre && track.rating >= leastRating
    }
}

enum PeerEngine: String, Sendable, CaseIterable {
    case strata
    case grdb
    case grdbSQL = "grdb-sql"
}

enum PeerOperation: String, Sendable, CaseIterable {
    /// All tracks, in saves of 500.
    case importing = "import"
    /// All properties of a track under a random key.
    case read = "read by key"
    case readProperty = "one property by key"
    /// All properties of about a hundred tracks of a range and a genre, by title.
    case fetch = "filtered, sorted fetch"
    /// A count under two conditions on attributes without an index, per stored track.
    case count = "filtered count"
    /// Count, sum and maximum of each genre, per stored track.
    case totals = "totals by group"
    /// One property of a random track, read and changed, in saves of 500.
    case update = "read and update"
    /// From the call that changes and saves one track in the background until main shows the new list.
    case refresh = "save to list on main"
}
