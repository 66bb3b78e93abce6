import Foundation
import GRDB
import Workloads

struct TrackRecord: Codable, Identifiable, TrackValues {
    var id: Int64
    var isrc: String
    var playCount: Int
    var genre: Int
    var rating: Double
    var isFavorite: Bool
    var released: Date
    var artist: String
    var title: String

    init(id: Int64, _ data: TrackData) {
        self.id = id
        isrc = data.isrc
        playCount = data.playCount
        genre = data.genre
        rating = data.rating
        isFavorite = data.isFavorite
        released = data.released
        artist = data.artist
        title = data.title
    }
}

extension TrackRecord: FetchableRecord, PersistableRecord {
    static let databaseTableName = "track"

    enum Columns {
        static let id = Column(CodingKeys.id)
        static let playCount = Column(CodingKeys.playCount)
        static let genre = Column(CodingKeys.genre)
        static let rating = Column(CodingKeys.rating)
        static let title = Column(CodingKeys.title)
    }

    // As numbers, which are much faster than the default text, and exact.
    static func databaseDateEncodingStrategy(for column: String) -> DatabaseDateEncodingStrategy {
        .timeIntervalSinceReferenceDate
    }

    static func databaseDateDecodingStrategy(for column: String) -> DatabaseDateDecodingStrategy {
        .timeIntervalSinceReferenceDate
    }
}

extension GenreTotals: FetchableRecord {}

/// GRDB's Codable records over a pool of connections in WAL mode.
struct GRDBPeer: Peer {
    /// How single records are read and updated.
    private enum Form {
        /// As the documentation shows it first: the library makes the SQL from the key.
        case requests
        /// SQL by hand in cached statements, which the documentation recommends where speed matters. Codable still decodes records.
        case statements
    }

    private let pool: DatabasePool
    private var form = Form.requests

    var forms: [(engine: PeerEngine, peer: GRDBPeer)] {
        var other = self
        other.form = .statements
        return [(.grdb, self), (.grdbSQL, other)]
    }

    init(path: String, durability: DurabilityKind) async throws {
        pool = try DatabasePool(path: path)
        try await pool.writeWithoutTransaction { db in
            // A pool sets NORMAL when it opens the file.
            if durability == .durable { try db.execute(sql: "PRAGMA synchronous = FULL") }
            try db.create(table: TrackRecord.databaseTableName, options: .ifNotExists) { table in
                table.primaryKey("id", .integer)
                table.column("isrc", .text).notNull().unique()
                table.column("playCount", .integer).notNull().indexed()
                table.column("genre", .integer).notNull()
                table.column("rating", .double).notNull()
                table.column("isFavorite", .boolean).notNull()
                table.column("released", .double).notNull()
                table.column("artist", .text).notNull()
                table.column("title", .text).notNull()
            }
        }
    }

    // MARK: Writes

    func insert(_ tracks: ArraySlice<TrackData>) async throws -> [Int64] {
        try await pool.write { db in
            for row in tracks.indices { try TrackRecord(id: Int64(row + 1), tracks[row]).insert(db) }
        }
        return tracks.indices.map { Int64($0 + 1) }
    }

    func raiseRatings(_ keys: ArraySlice<Int64>) async throws {
        let form = form
        try await pool.write { db in
            switch form {
            case .requests:
                for key in keys {
                    var track = try TrackRecord.find(db, key: key)
                    track.rating += 1
                    try track.update(db, columns: [TrackRecord.Columns.rating])
                }
            case .statements:
                let get = try db.cachedStatement(sql: "SELECT * FROM track WHERE id = ?")
                let set = try db.cachedStatement(sql: "UPDATE track SET rating = ? WHERE id = ?")
                for key in keys {
                    guard let track = try TrackRecord.fetchOne(get, arguments: [key]) else { continue }
                    try set.execute(arguments: [track.rating + 1, key])
                }
            }
        }
    }

    func promote(_ key: Int64, playCount: Int) async throws {
        try await pool.write { db in
            var track = try TrackRecord.find(db, key: key)
            track.playCount = playCount
            track.genre = ShownList.genre
            try track.update(db, columns: [TrackRecord.Columns.playCount, TrackRecord.Columns.genre])
        }
    }

    func flush() async throws {}

    // MARK: Reads

    func read(_ keys: [Int64]) throws -> Int {
        try pool.read { db in
            var sum = 0
            switch form {
            case .requests:
                for key in keys { sum &+= try TrackRecord.fetchOne(db, key: key)?.digest ?? 0 }
            case .statements:
                let statement = try db.cachedStatement(sql: "SELECT * FROM track WHERE id = ?")
                for key in keys { sum &+= try TrackRecord.fetchOne(statement, arguments: [key])?.digest ?? 0 }
            }
            return sum
        }
    }

    func readPlayCounts(_ keys: [Int64]) throws -> Int {
        try pool.read { db in
            var sum = 0
            switch form {
            case .requests:
                for key in keys {
                    sum &+= try TrackRecord.filter(key: key).select(\.playCount, as: Int.self).fetchOne(db) ?? 0
                }
            case .statements:
                let statement = try db.cachedStatement(sql: "SELECT playCount FROM track WHERE id = ?")
                for key in keys { sum &+= try Int.fetchOne(statement, arguments: [key]) ?? 0 }
            }
            return sum
        }
    }

    func fetch(_ selections: [TrackSelection]) throws -> Int {
        try pool.read { db in
            var sum = 0
            for selection in selections {
                let request = TrackRecord.filter {
                    $0.playCount >= selection.least && $0.playCount < selection.end && $0.genre == selection.genre
                }.order(\.title)
                for track in try request.fetchAll(db) { sum = TrackSelection.combine(sum, track.digest) }
            }
            return sum
        }
    }

    func count() throws -> Int {
        try pool.read { db in
            try TrackRecord.filter { $0.genre == TrackSelection.countedGenre && $0.rating >= TrackSelection.leastRating }
                .fetchCount(db)
        }
    }

    func totals() throws -> [GenreTotals] {
        try pool.read { db in
            try TrackRecord.select {
                [
                    $0.genre, GRDB.count($0.id).forKey("tracks"), sum($0.playCount).forKey("plays"),
                    max($0.rating).forKey("bestRating"),
                ]
            }.group(\.genre).asRequest(of: GenreTotals.self).fetchAll(db)
        }
    }

    func keepFilled(_ list: ShownList) throws {
        // A constant region lets the pool fetch beside the writer and off the main thread.
        let observation = ValueObservation.trackingConstantRegion { db in
            try TrackRecord.filter { $0.genre == ShownList.genre }.order(\.playCount.desc).limit(ShownList.rowCount).fetchAll(db)
        }
        list.source = observation.start(in: pool) { [weak list] error in
            list?.fail(error)
        } onChange: { [weak list] tracks in
            list?.show(tracks)
        }
    }

    func contents() async throws -> ContentSum {
        try await pool.read { db in
            var sum = ContentSum()
            let tracks = try TrackRecord.fetchCursor(db)
            while let track = try tracks.next() { sum.add(track) }
            return sum
        }
    }

    func close() async throws { try pool.close() }

    // MARK: For tests

    /// Returns the settings of the connection that writes.
    func settings() async throws -> (journal: String?, synchronous: Int?) {
        try await pool.writeWithoutTransaction { db in
            (
                try String.fetchOne(db, sql: "PRAGMA journal_mode"), try Int.fetchOne(db, sql: "PRAGMA synchronous")
            )
        }
    }

    func indexedColumns() async throws -> [String] {
        try await pool.read { db in try db.indexes(on: TrackRecord.databaseTableName).flatMap(\.columns) }
    }
}
