import ObjectGraph
import StoreModel
import TestSupport

/// A model with derived values, ordered relationships and unique values, and queries of many kinds over it.
enum Gallery {
    /// A query, and the sort by which its live result has sections; nil for none.
    typealias Query = (request: EntityFetchRequest, section: AttributeSort?)

    static let model: Model = {
        do {
            return try Model([artist, album, track, playlist])
        } catch {
            preconditionFailure("the model is wrong: \(error)")
        }
    }()

    private static let artist = EntityDescription(
        name: "Artist",
        properties: [
            .attribute(.init(name: "name", type: .string)),
            .attribute(.init(name: "born", type: .int64, isOptional: true)),
            .relationship(
                .init(
                    name: "albums", destination: "Album", inverse: "artist", cardinality: .toMany, deleteRule: .cascade,
                    isOrdered: true)),
            .attribute(.init(name: "albumCount", type: .int32, derivation: .count(of: "albums"))),
        ])

    private static let album = EntityDescription(
        name: "Album",
        properties: [
            .attribute(.init(name: "title", type: .string)),
            .relationship(.init(name: "artist", destination: "Artist", inverse: "albums", cardinality: .toOne)),
            .relationship(.init(name: "tracks", destination: "Track", inverse: "album", cardinality: .toMany)),
            .attribute(
                .init(
                    name: "artistName", type: .string, isOptional: true, index: .indexed, derivation: .value(at: "artist.name"))),
            .attribute(.init(name: "trackCount", type: .int64, index: .indexed, derivation: .count(of: "tracks"))),
            .attribute(.init(name: "total", type: .int64, derivation: .sum(of: "tracks.plays"))),
        ])

    private static let track = EntityDescription(
        name: "Track",
        properties: [
            .attribute(.init(name: "title", type: .string)),
            .attribute(.init(name: "plays", type: .int64, index: .indexed)),
            .attribute(.init(name: "rating", type: .double, isOptional: true)),
            .attribute(.init(name: "code", type: .string, isOptional: true, index: .unique)),
            .attribute(.init(name: "notes", type: .string, isOptional: true)),
            .relationship(.init(name: "album", destination: "Album", inverse: "tracks", cardinality: .toOne)),
            .relationship(.init(name: "playlists", destination: "Playlist", inverse: "tracks", cardinality: .toMany)),
        ])

    private static let playlist = EntityDescription(
        name: "Playlist",
        properties: [
            .attribute(.init(name: "name", type: .string)),
            .relationship(
                .init(name: "tracks", destination: "Track", inverse: "playlists", cardinality: .toMany, isOrdered: true)),
        ])

    /// The columns by which a live result must report an update of an object.
    static let columns = [
        "Artist": ["name", "born", "albumCount"], "Album": ["title", "artist", "artistName", "trackCount", "total"],
        "Track": ["title", "plays", "rating", "code", "notes", "album"], "Playlist": ["name"],
    ]

    /// Names that are equal, or close, in some of the comparisons of strings. The long ones differ behind the prefix that indexes keep.
    static let names = [
        "a", "A", "b", "B", "ä", "a10", "a9", "longer name with prefix 1", "longer name with prefix 2",
        "longer name with PREFIX 1", "",
    ]

    static let queries: [Query] = trackQueries + albumQueries + artistQueries + playlistQueries

    private static let trackQueries: [Query] = [
        (.init("Track", sortBy: [.init("title", comparing: .localizedStandard)]), nil),
        (
            .init(
                "Track", matching: .compare("plays", .greater, to: .int(2)),
                sortBy: [.init("plays", .descending), .init("title", comparing: .caseInsensitive)], limit: 4, offset: 1), nil
        ),
        (.init("Track", matching: .equal("album.artist.name", "a"), sortBy: [.init("album.title", nils: .last)]), nil),
        (
            .init(
                "Track",
                matching: .related(
                    "playlists", .any, where: .string("name", .contains, pattern: "a", sensitivity: .insensitive)),
                sortBy: [.init("rating", .descending, nils: .first)], limit: 3), nil
        ),
        (
            .init(
                "Track", matching: .not(.related("playlists", .none, where: .always)),
                sortBy: [.init("album.artist.born"), .init("title", .descending)]), nil
        ),
        (.init("Track", matching: .isNil("album"), sortBy: [.init("notes", .descending)]), nil),
        (.init("Track", sortBy: [.init("title", comparing: .numeric)], limit: 5), .init("album.title")),
        (
            .init("Track", matching: .compare("plays", .less, to: .int(5)), sortBy: [.init("title")], offset: 2),
            .init("album.artist.name", .descending)
        ),
        (
            .init(
                "Track", matching: .related("album.tracks", .all, where: .compare("plays", .less, to: .int(6))),
                sortBy: [.init("plays")]), .init("rating")
        ),
    ]

    private static let albumQueries: [Query] = [
        (
            .init(
                "Album",
                matching: .relatedCount("tracks", where: .compare("plays", .greater, to: .int(2)), .greaterOrEqual, to: 1),
                sortBy: [.init("title", comparing: .caseInsensitive)]), nil
        ),
        (
            .init(
                "Album", matching: .related("tracks", .any, where: .related("playlists", .any, where: .equal("name", "b"))),
                sortBy: [.init("artist.name", comparing: .localizedStandard)]), nil
        ),
        (
            .init(
                "Album", matching: .compare("trackCount", .greater, to: .int(0)),
                sortBy: [.init("total", .descending), .init("artistName")]), nil
        ),
        (.init("Album", sortBy: [.init("position in artist")]), .init("artist.name")),
    ]

    private static let artistQueries: [Query] = [
        (
            .init(
                "Artist",
                matching: .related("albums", .any, where: .relatedCount("tracks", where: .always, .greater, to: 1)),
                sortBy: [.init("name")]), nil
        ),
        (
            .init(
                "Artist", matching: .relatedCount("albums", where: .always, .greaterOrEqual, to: 1),
                sortBy: [.init("albumCount"), .init("name", .descending)]), nil
        ),
        (
            .init(
                "Artist",
                matching: .related(
                    "albums", .all, where: .related("tracks", .any, where: .compare("plays", .greater, to: .int(3)))),
                sortBy: [.init("born", .descending)]), nil
        ),
    ]

    private static let playlistQueries: [Query] = [
        (
            .init(
                "Playlist", matching: .related("tracks", .any, where: .equal("album.artist.name", "A")),
                sortBy: [.init("name", comparing: .localizedStandard)]), nil
        ),
        (
            .init("Playlist", matching: .related("tracks", .all, where: .not(.isNil("album"))), sortBy: [.init("name")]), nil
        ),
    ]
}
