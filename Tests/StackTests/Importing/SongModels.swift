import Foundation
import ObjectGraph
import StoreInterface
import StoreModel

/// Models whose relationships can be set by unique values: songs by code, discs and mixes by name.
final class Song: PersistentModel {
    private let anchor: ModelAnchor
    var managedObject: ManagedObject { anchor.object }

    var code: String? { managedObject.get(0) }
    var title: String {
        get { managedObject.get(1) }
        set { managedObject.set(1, to: newValue) }
    }
    var plays: Int { managedObject.get(2) }
    var rating: Double { managedObject.get(3) }
    var added: Date? { managedObject.get(4) }
    var tags: SongTags { managedObject.get(5) }
    var mood: SongMood { managedObject.get(6) }
    var disc: Disc? { managedObject.toOne(0, 7) }
    var original: Song? { managedObject.toOne(1, 8) }
    var mixes: [Mix] { managedObject.toMany(2) }

    init(managedObject: ManagedObject) { anchor = ModelAnchor(managedObject) }

    static let entityDescription = EntityDescription(
        name: "Song",
        properties: [
            .attribute(AttributeDescription("code", of: \Song.code, index: .unique)),
            .attribute(AttributeDescription("title", of: \Song.title, default: "untitled")),
            .attribute(AttributeDescription("plays", of: \Song.plays)),
            .attribute(AttributeDescription("rating", of: \Song.rating)),
            .attribute(AttributeDescription("added", of: \Song.added)),
            .attribute(AttributeDescription("tags", of: \Song.tags, default: SongTags())),
            .attribute(AttributeDescription("mood", of: \Song.mood, default: .calm)),
            .relationship(RelationshipDescription(name: "disc", destination: "Disc", inverse: "songs", cardinality: .toOne)),
            .relationship(RelationshipDescription(name: "original", destination: "Song", cardinality: .toOne)),
            .relationship(RelationshipDescription(name: "mixes", destination: "Mix", inverse: "songs", cardinality: .toMany)),
        ])

    // Right because it is never changed.
    nonisolated(unsafe) static let columnsByKeyPath: [AnyKeyPath: String] = [
        \Song.code: "code", \Song.title: "title", \Song.plays: "plays", \Song.rating: "rating", \Song.added: "added",
        \Song.tags: "tags", \Song.mood: "mood", \Song.disc: "disc", \Song.original: "original", \Song.mixes: "mixes",
    ]
}

final class Disc: PersistentModel {
    private let anchor: ModelAnchor
    var managedObject: ManagedObject { anchor.object }

    var name: String { managedObject.get(0) }
    var songs: [Song] { managedObject.toMany(0) }

    init(managedObject: ManagedObject) { anchor = ModelAnchor(managedObject) }

    static let entityDescription = EntityDescription(
        name: "Disc",
        properties: [
            .attribute(AttributeDescription("name", of: \Disc.name, index: .unique)),
            .relationship(RelationshipDescription(name: "songs", destination: "Song", inverse: "disc", cardinality: .toMany)),
        ])

    // Right because it is never changed.
    nonisolated(unsafe) static let columnsByKeyPath: [AnyKeyPath: String] = [\Disc.name: "name", \Disc.songs: "songs"]
}

final class Mix: PersistentModel {
    private let anchor: ModelAnchor
    var managedObject: ManagedObject { anchor.object }

    var name: String { managedObject.get(0) }
    var songs: [Song] { managedObject.toMany(0) }

    init(managedObject: ManagedObject) { anchor = ModelAnchor(managedObject) }

    static let entityDescription = EntityDescription(
        name: "Mix",
        properties: [
            .attribute(AttributeDescription("name", of: \Mix.name, index: .unique)),
            .relationship(RelationshipDescription(name: "songs", destination: "Song", inverse: "mixes", cardinality: .toMany)),
        ])

    // Right because it is never changed.
    nonisolated(unsafe) static let columnsByKeyPath: [AnyKeyPath: String] = [\Mix.name: "name", \Mix.songs: "songs"]
}

struct SongTags: CodableAttribute, Sendable, Equatable { var names: [String] = [] }

enum SongMood: String, Codable, Sendable, AttributeValue { case calm, loud }

/// Values as an app decodes them from JSON.
struct SongValue: Codable, Sendable {
    var code: String?
    var title: String?
    var plays: Int?
    var disc: String?

    init(code: String?, title: String? = nil, plays: Int? = nil, disc: String? = nil) {
        self.code = code
        self.title = title
        self.plays = plays
        self.disc = disc
    }
}

enum Songs {
    static let model: Model = {
        do { return try Model([Song.self, Disc.self, Mix.self]) } catch {
            preconditionFailure("the test model is wrong: \(error)")
        }
    }()
}
