import ObjectGraph
import StoreInterface
import StoreModel

/// The model of the stack tests: a small music library, defined at run time.
///
/// Artist 1—n Album (cascade), Album 1—n Track (deny), Track n—n Playlist, Artist 1—1 Profile, Artist mentor (self).
public enum Music {
    public static let model: Model = {
        do { return try Model(entities) } catch { preconditionFailure("the test model is wrong: \(error)") }
    }()

    /// The same model with an order of the albums of artists, the tracks of albums and the tracks of playlists.
    public static let ordered: Model = {
        do {
            return try Model(
                entities.map { entity in
                    var entity = entity
                    entity.properties = entity.properties.map { property in
                        guard case .relationship(var relationship) = property, ["albums", "tracks"].contains(relationship.name)
                        else {
                            return property
                        }
                        relationship.isOrdered = true
                        return .relationship(relationship)
                    }
                    return entity
                })
        } catch { preconditionFailure("the test model is wrong: \(error)") }
    }()

    static var entities: [EntityDescription] {
        [
            EntityDescription(
                name: "Artist",
                properties: [
                    .attribute(.init(name: "name", type: .string)),
                    .attribute(.init(name: "born", type: .int64, isOptional: true)),
                    toMany("albums", "Album", inverse: "artist", .cascade),
                    toOne("profile", "Profile", inverse: "artist", .cascade),
                    toOne("mentor", "Artist", inverse: "pupils", .nullify),
                    toMany("pupils", "Artist", inverse: "mentor", .nullify),
                ]),
            EntityDescription(
                name: "Profile",
                properties: [
                    .attribute(.init(name: "text", type: .string)),
                    toOne("artist", "Artist", inverse: "profile", .nullify),
                ]),
            EntityDescription(
                name: "Album",
                properties: [
                    .attribute(.init(name: "title", type: .string)),
                    toOne("artist", "Artist", inverse: "albums", .nullify),
                    toMany("tracks", "Track", inverse: "album", .deny),
                ]),
            EntityDescription(
                name: "Track",
                properties: [
                    .attribute(.init(name: "title", type: .string)),
                    .attribute(.init(name: "isrc", type: .string, isOptional: true, index: .unique)),
                    .attribute(.init(name: "plays", type: .int64, index: .indexed)),
                    .attribute(.init(name: "rating", type: .double, defaultValue: .double(2.5))),
                    toOne("album", "Album", inverse: "tracks", .nullify),
                    toMany("playlists", "Playlist", inverse: "tracks", .nullify),
                ]),
            EntityDescription(
                name: "Playlist",
                properties: [
                    .attribute(.init(name: "name", type: .string)),
                    toMany("tracks", "Track", inverse: "playlists", .nullify),
                ]),
        ]
    }

    private static func toOne(
        _ name: String, _ destination: String, inverse: String, _ rule: DeleteRule
    ) -> PropertyDescription {
        .relationship(
            .init(name: name, destination: destination, inverse: inverse, cardinality: .toOne, deleteRule: rule))
    }

    private static func toMany(
        _ name: String, _ destination: String, inverse: String, _ rule: DeleteRule
    ) -> PropertyDescription {
        .relationship(
            .init(name: name, destination: destination, inverse: inverse, cardinality: .toMany, deleteRule: rule))
    }

    /// Creates a query by the names of an entity and its columns.
    public static func query(
        _ entity: String, _ predicate: StorePredicate = .constant(true), sort: [StoreSort] = []
    ) -> StoreQuery {
        guard let entity = model.entity(named: entity) else { preconditionFailure("no entity \(entity)") }
        return StoreQuery(entity: entity.number, predicate: predicate, sort: sort)
    }

    public static func column(_ entity: String, _ property: String) -> ColumnIndex {
        guard let column = model.entity(named: entity)?.column(named: property) else {
            preconditionFailure("no property \(entity).\(property)")
        }
        return column
    }
}

extension ManagedObjectContext {
    @discardableResult
    public func makeTrack(_ title: String, plays: Int = 0) -> ManagedObject {
        let track = insert("Track")
        track["title"] = .string(title)
        track["plays"] = .int(Int64(plays))
        return track
    }

    @discardableResult
    public func makeArtist(_ name: String) -> ManagedObject {
        let artist = insert("Artist")
        artist["name"] = .string(name)
        return artist
    }

    /// Returns the titles of the tracks that the context shows, ascending.
    public func trackTitles() throws -> [String] {
        try objects("Track").compactMap { if case .string(let title) = $0["title"] { title } else { nil } }.sorted()
    }

    /// Returns all objects of an entity, by key.
    public func objects(_ entity: String) throws -> [ManagedObject] {
        let query = Music.query(entity)
        return try keys(matching: query).map {
            object(with: ObjectID(store: storeIdentity, entity: query.entity, key: $0))
        }
    }
}
