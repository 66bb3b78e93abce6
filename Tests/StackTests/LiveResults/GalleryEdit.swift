import ObjectGraph
import StoreModel
import TestSupport

/// Random changes of the objects of a ``Gallery``, each described in words.
struct GalleryEdit {
    private let context: ManagedObjectContext
    private var random: SeededGenerator

    /// Makes some changes in a context. Returns them in words.
    static func run(in context: ManagedObjectContext, seed: UInt64) throws -> String {
        var edit = GalleryEdit(context: context, random: SeededGenerator(seed: seed))
        let count = 1 + edit.random.below(4)
        return try (0..<count).map { _ in try edit.once() }.joined(separator: ", ")
    }

    private mutating func once() throws -> String {
        switch random.below(20) {
        case 0..<3: try insertTrack()
        case 3: try insertAlbum()
        case 4: insertNamed(random.chance(50) ? "Artist" : "Playlist")
        case 5..<8: try updateTrack()
        case 8: try change(.title, of: "Album")
        case 9: try random.chance(50) ? change(.name, of: "Artist") : change(.born, of: "Artist")
        case 10: try change(.name, of: "Playlist")
        case 11, 12: try relate("Track", "album", to: "Album")
        case 13: try relate("Album", "artist", to: "Artist")
        case 14, 15: try relateMany("Playlist", "tracks", to: "Track", shuffled: true)
        case 16: try relateMany("Album", "tracks", to: "Track", shuffled: false)
        case 17: try relateMany("Artist", "albums", to: "Album", shuffled: true)
        default: try deleteOne(["Track", "Track", "Album", "Artist", "Playlist"][random.below(5)])
        }
    }

    private enum Column: String {
        case title, name, born
    }

    private mutating func any(_ entity: String) throws -> ManagedObject? {
        try context.fetch(EntityFetchRequest(entity)).randomElement(using: &random)
    }

    private mutating func name() -> Value { .string(Gallery.names[random.below(Gallery.names.count)]) }

    /// A text that is stored as a large value.
    private mutating func notes() -> Value { .string(String(repeating: "x", count: 20_000) + "\(random.below(3))") }

    private mutating func insertTrack() throws -> String {
        let track = context.insert("Track")
        track["title"] = name()
        track["plays"] = .int(Int64(random.below(8)))
        if random.chance(50) { track["rating"] = .double(Double(random.below(4))) }
        if random.chance(20) { track["notes"] = notes() }
        if random.chance(15) { track["code"] = .string("c\(random.below(3))") }
        if random.chance(60) { track.setRelatedObject("album", to: try any("Album")) }
        return "insert track \(track.objectID.key)"
    }

    private mutating func insertAlbum() throws -> String {
        let album = context.insert("Album")
        album["title"] = name()
        if random.chance(60) { album.setRelatedObject("artist", to: try any("Artist")) }
        return "insert album \(album.objectID.key)"
    }

    private mutating func insertNamed(_ entity: String) -> String {
        let object = context.insert(entity)
        object["name"] = name()
        return "insert \(entity) \(object.objectID.key)"
    }

    private mutating func updateTrack() throws -> String {
        guard let track = try any("Track") else { return "nothing" }
        let column = ["title", "plays", "rating", "notes", "code"][random.below(5)]
        track[column] =
            switch column {
            case "title": name()
            case "plays": .int(Int64(random.below(8)))
            case "rating": random.chance(30) ? .null : .double(Double(random.below(4)))
            case "notes": random.chance(30) ? .null : notes()
            default: random.chance(50) ? .null : .string("c\(random.below(3))")
            }
        return "\(column) of track \(track.objectID.key)"
    }

    private mutating func change(_ column: Column, of entity: String) throws -> String {
        guard let object = try any(entity) else { return "nothing" }
        object[column.rawValue] = column == .born ? random.chance(30) ? .null : .int(Int64(random.below(4))) : name()
        return "\(column) of \(entity) \(object.objectID.key)"
    }

    private mutating func relate(_ entity: String, _ relationship: String, to destination: String) throws -> String {
        guard let object = try any(entity) else { return "nothing" }
        let other = random.chance(30) ? nil : try any(destination)
        object.setRelatedObject(relationship, to: other)
        return "\(relationship) of \(entity) \(object.objectID.key) to \(other.map { "\($0.objectID.key)" } ?? "nil")"
    }

    private mutating func relateMany(
        _ entity: String, _ relationship: String, to destination: String, shuffled: Bool
    ) throws -> String {
        guard let object = try any(entity) else { return "nothing" }
        var others: [ManagedObject] = []
        for other in try context.fetch(EntityFetchRequest(destination)) where random.chance(30) { others.append(other) }
        if shuffled { others.shuffle(using: &random) }
        object.setRelatedObjects(relationship, to: others)
        return "\(relationship) of \(entity) \(object.objectID.key) to \(others.map(\.objectID.key))"
    }

    private mutating func deleteOne(_ entity: String) throws -> String {
        guard let object = try any(entity) else { return "nothing" }
        context.delete(object)
        return "delete \(entity) \(object.objectID.key)"
    }
}
