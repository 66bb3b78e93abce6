import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport

/// A model with every kind of derived attribute: artists with albums, albums with tracks, and albums with tags.
enum RecordLibrary {
    /// The names of the derived attributes of albums.
    static let derived = [
        "artistName", "mentorName", "trackCount", "totalLength", "longest", "firstTitle", "meanRating", "ratingSum", "tagCount",
        "heaviest", "searchTitle", "lowerTitle",
    ]

    static let model = make()

    /// - Parameters:
    ///   - isDerived: Whether the model has its derived attributes.
    ///   - name: The attribute of artists from which `artistName` is derived.
    static func make(isDerived: Bool = true, name: String = "name", version: Int = 1) -> Model {
        let album = EntityDescription(name: "Album", properties: albumProperties(name).filter { isDerived || !$0.isDerived })
        let track = EntityDescription(
            name: "Track",
            properties: [
                .attribute(.init(name: "title", type: .string)),
                .attribute(.init(name: "length", type: .int32, isOptional: true)),
                .attribute(.init(name: "rating", type: .double)),
                toOne("album", "Album", inverse: "tracks"),
                .attribute(.init(name: "albumTitle", type: .string, derivation: .value(at: "album.title"))),
            ].filter { isDerived || !$0.isDerived })
        let artist = EntityDescription(
            name: "Artist",
            properties: [
                .attribute(.init(name: "name", type: .string)),
                .attribute(.init(name: "sortName", type: .string, isOptional: true)),
                toMany("albums", "Album", inverse: "artist", .cascade),
                toOne("mentor", "Artist", inverse: "pupils"),
                toMany("pupils", "Artist", inverse: "mentor"),
                .attribute(.init(name: "albumCount", type: .int32, derivation: .count(of: "albums"))),
                .attribute(.init(name: "pupilCount", type: .uint64, derivation: .count(of: "pupils"))),
            ].filter { isDerived || !$0.isDerived })
        let tag = EntityDescription(
            name: "Tag",
            properties: [
                .attribute(.init(name: "weight", type: .int64)), toMany("albums", "Album", inverse: "tags"),
            ])
        do {
            return try Model([artist, album, track, tag], version: .init(version))
        } catch { preconditionFailure("\(error)") }
    }

    private static func albumProperties(_ name: String) -> [PropertyDescription] {
        [
            .attribute(.init(name: "title", type: .string)),
            .attribute(
                .init(
                    name: "artistName", type: .string, isOptional: true, index: .indexed, derivation: .value(at: "artist.\(name)")
                )),
            .attribute(.init(name: "mentorName", type: .string, isOptional: true, derivation: .value(at: "artist.mentor.name"))),
            .attribute(.init(name: "trackCount", type: .int64, index: .indexed, derivation: .count(of: "tracks"))),
            .attribute(.init(name: "totalLength", type: .int64, derivation: .sum(of: "tracks.length"))),
            .attribute(.init(name: "longest", type: .int32, isOptional: true, derivation: .maximum(of: "tracks.length"))),
            .attribute(.init(name: "firstTitle", type: .string, isOptional: true, derivation: .minimum(of: "tracks.title"))),
            .attribute(.init(name: "meanRating", type: .double, isOptional: true, derivation: .average(of: "tracks.rating"))),
            .attribute(.init(name: "ratingSum", type: .double, derivation: .sum(of: "tracks.rating"))),
            .attribute(.init(name: "tagCount", type: .int64, derivation: .count(of: "tags"))),
            .attribute(.init(name: "heaviest", type: .int64, isOptional: true, derivation: .maximum(of: "tags.weight"))),
            .attribute(.init(name: "searchTitle", type: .string, index: .indexed, derivation: .folded("title"))),
            .attribute(.init(name: "lowerTitle", type: .string, derivation: .lowercased("title"))),
            toOne("artist", "Artist", inverse: "albums"), toMany("tracks", "Track", inverse: "album", .cascade),
            toMany("tags", "Tag", inverse: "albums"),
        ]
    }

    private static func toOne(_ name: String, _ destination: String, inverse: String) -> PropertyDescription {
        .relationship(.init(name: name, destination: destination, inverse: inverse, cardinality: .toOne))
    }

    private static func toMany(
        _ name: String, _ destination: String, inverse: String, _ rule: DeleteRule = .nullify
    ) -> PropertyDescription {
        .relationship(.init(name: name, destination: destination, inverse: inverse, cardinality: .toMany, deleteRule: rule))
    }

    /// The values of an object's derived attributes, computed from related objects.
    static func wanted(_ object: ManagedObject) -> [String: Value] {
        switch object.entityName {
        case "Artist":
            return [
                "albumCount": .int(Int64(object.relatedObjects("albums").count)),
                "pupilCount": .uint(UInt64(object.relatedObjects("pupils").count)),
            ]
        case "Track": return ["albumTitle": object.relatedObject("album")?["title"] ?? ""]
        default: break
        }
        let tracks = object.relatedObjects("tracks")
        let lengths = tracks.compactMap { track -> Int64? in if case .int(let length) = track["length"] { length } else { nil } }
        let ratings = tracks.compactMap { track -> Double? in
            if case .double(let rating) = track["rating"] { rating } else { nil }
        }
        let weights = object.relatedObjects("tags").compactMap { tag -> Int64? in
            if case .int(let weight) = tag["weight"] { weight } else { nil }
        }
        let titles = tracks.compactMap { track -> String? in if case .string(let title) = track["title"] { title } else { nil } }
        guard case .string(let title) = object["title"] else { return [:] }
        let artist = object.relatedObject("artist")
        return [
            "artistName": artist?["name"] ?? .null, "mentorName": artist?.relatedObject("mentor")?["name"] ?? .null,
            "trackCount": .int(Int64(tracks.count)), "totalLength": .int(lengths.reduce(0, +)),
            "longest": lengths.max().map(Value.int) ?? .null, "firstTitle": titles.min().map(Value.string) ?? .null,
            "meanRating": ratings.isEmpty ? .null : .double(ratings.reduce(0, +) / Double(ratings.count)),
            "ratingSum": .double(ratings.reduce(0, +)), "tagCount": .int(Int64(object.relatedObjects("tags").count)),
            "heaviest": weights.max().map(Value.int) ?? .null,
            "searchTitle": .string(title.lowercased().replacing("é", with: "e")), "lowerTitle": .string(title.lowercased()),
        ]
    }

    /// Returns the derived values of a context that differ from the related objects, as text.
    static func differences(in context: ManagedObjectContext) throws -> [String] {
        var differences: [String] = []
        for entity in ["Artist", "Album", "Track"] {
            for object in try context.fetch(EntityFetchRequest(entity)) {
                for (name, value) in wanted(object).sorted(by: { $0.key < $1.key }) where object[name] != value {
                    differences.append("\(entity) \(object.objectID.key).\(name) is \(object[name]), wanted \(value)")
                }
            }
        }
        return differences
    }

    /// Returns the wrong derived values of the store's newest state, and what its verification finds.
    static func differences(in container: PersistentContainer) async throws -> [String] {
        try await container.coordinator.refresh()
        let found = try await container.coordinator.newBackgroundContext().perform { try differences(in: $0) }
        try await container.flush()
        return try await found + container.coordinator.verify().map(\.description)
    }
}

extension PropertyDescription {
    fileprivate var isDerived: Bool {
        if case .attribute(let attribute) = self { attribute.derivation != nil } else { false }
    }
}

extension ManagedObjectContext {
    func makeRecord(_ title: String) -> ManagedObject {
        let album = insert("Album")
        album["title"] = .string(title)
        return album
    }

    func makeSong(_ title: String, length: Int64? = nil, rating: Double = 0, on album: ManagedObject?) {
        let track = insert("Track")
        track["title"] = .string(title)
        track["length"] = length.map(Value.int) ?? .null
        track["rating"] = .double(rating)
        track.setRelatedObject("album", to: album)
    }

    func makeArtist(named name: String) -> ManagedObject {
        let artist = insert("Artist")
        artist["name"] = .string(name)
        return artist
    }
}
