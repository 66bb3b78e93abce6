import Foundation
import ObjectGraph
import StoreInterface
import StoreModel

// The examples in the documentation comments of models, compiled. The architecture tests compare both.

final class Track: PersistentModel {
    private let anchor: ModelAnchor
    var managedObject: ManagedObject { anchor.object }

    var title: String {
        get { managedObject.get(0) }
        set { managedObject.set(0, to: newValue) }
    }
    var isrc: String { managedObject.get(1) }
    var playCount: Int {
        get { managedObject.get(2) }
        set { managedObject.set(2, to: newValue) }
    }
    var recording: Data { managedObject.get(3) }
    var album: Album? {
        get { managedObject.toOne(0, 4) }
        set { managedObject.setToOne(0, 4, to: newValue) }
    }

    init(managedObject: ManagedObject) { anchor = ModelAnchor(managedObject) }

    convenience init(title: String) {
        self.init(managedObject: ManagedObject(detached: DetachedEntity(Self.entityDescription)))
        self.title = title
    }

    static let entityDescription = EntityDescription(
        name: "Track",
        properties: [
            .attribute(AttributeDescription("title", of: \Track.title)),
            .attribute(AttributeDescription("isrc", of: \Track.isrc)),
            .attribute(AttributeDescription("playCount", of: \Track.playCount)),
            .attribute(AttributeDescription("recording", of: \Track.recording)),
            .relationship(RelationshipDescription(name: "album", destination: "Album", cardinality: .toOne)),
        ])

    // Right because it is never changed.
    nonisolated(unsafe) static let columnsByKeyPath: [AnyKeyPath: String] = [
        \Track.title: "title", \Track.isrc: "isrc", \Track.playCount: "playCount", \Track.recording: "recording",
        \Track.album: "album",
    ]
}

// Sources/ObjectGraph/Model/PersistentModel.swift
final class Album: PersistentModel {
    private let anchor: ModelAnchor
    var managedObject: ManagedObject { anchor.object }

    var title: String {
        get { managedObject.get(0) }
        set { managedObject.set(0, to: newValue) }
    }

    init(managedObject: ManagedObject) { anchor = ModelAnchor(managedObject) }

    convenience init(title: String) {
        self.init(managedObject: ManagedObject(detached: DetachedEntity(Self.entityDescription)))
        self.title = title
    }

    static let entityDescription = EntityDescription(
        name: "Album", properties: [.attribute(AttributeDescription("title", of: \Album.title))])
    // Immutable: it is created once, and key paths do not change.
    nonisolated(unsafe) static let columnsByKeyPath: [AnyKeyPath: String] = [\Album.title: "title"]
}
// end

// Sources/ObjectGraph/Model/PersistentModel.swift
extension Album: ManagedObjectLifecycle {
    struct NoTitle: Error {}

    func validateForInsert() throws {
        if title.isEmpty { throw NoTitle() }
    }
}
// end

// Sources/ObjectGraph/Model/AttributeValue.swift
enum Genre: String, AttributeValue, CaseIterable { case jazz, rock }
// end

// Sources/ObjectGraph/Model/AttributeValue.swift
struct Size: CodableAttribute {
    var width: Int
    var height: Int
}
// end

private enum ModelExamples {
    static func descriptions() throws -> Model {
        // Sources/ObjectGraph/Model/EntityDescription.swift
        let track = EntityDescription(
            name: "Track",
            properties: [
                .attribute(AttributeDescription(name: "title", type: .string)),
                .relationship(
                    RelationshipDescription(name: "album", destination: "Album", inverse: "tracks", cardinality: .toOne)),
            ],
            indexes: [.index("album", "title")])
        // end
        // Sources/ObjectGraph/Model/EntityDescription.swift
        let playCount = AttributeDescription(name: "playCount", type: .int64, index: .indexed, defaultValue: 0)
        // end
        // Sources/ObjectGraph/Model/EntityDescription.swift
        let tracks = RelationshipDescription(
            name: "tracks", destination: "Track", inverse: "album", cardinality: .toMany, deleteRule: .cascade)
        // end
        // Sources/ObjectGraph/Model/EntityDescription.swift
        let indexes: [IndexDescription] = [.index("album", "title"), .unique("isrc")]
        // end
        let album = EntityDescription(
            name: "Album", properties: [.attribute(playCount), .relationship(tracks)], indexes: indexes)
        // Sources/ObjectGraph/Model/Model.swift
        let model = try Model([track, album], version: SchemaVersion(2, 0, 0))
        // end
        return model
    }

    static func values(_ context: ManagedObjectContext, plays: Int) {
        // Sources/StoreModel/Rows/Value.swift
        let track = context.insert("Track")
        track["title"] = "Baguette"
        track["playCount"] = .int(Int64(plays))
        if case .string(let title) = track["title"] { print(title) }
        // end
    }

    static func objects(_ context: ManagedObjectContext) {
        // Sources/ObjectGraph/Objects/ManagedObject.swift
        let album = context.insert("Album")
        let track = context.insert("Track")
        track["title"] = "Baguette"
        track.setRelatedObject("album", to: album)
        // end
    }

    static func ids(_ context: ManagedObjectContext, _ track: Track) throws {
        // Sources/ObjectGraph/Objects/ObjectID.swift
        let text = track.id.description  // may be stored, or sent to another process
        if let id = ObjectID(text) {
            let same = try context.existingObject(Track.self, with: id)
            print(same.title)
        }
        // end
    }
}
