import Strata

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

enum Mood: String, AttributeValue, Equatable { case calm, wild }

enum Format: String, AttributeValue, CaseIterable { case single, album }

struct Place: CodableAttribute, Equatable {
    var city: String
    var seats: Int
}

@Model final class Track {
    // Sources/Strata/Macros.swift
    @Attribute(.unique) var isrc: String
    var title: String
    @Attribute(.indexed) var playCount = 0
    // end
    var mood: Mood = .calm
    // A closure is no default of the description.
    var format: Format = { Format.allCases[1] }()
    var released: Date?
    @Relationship(deleteRule: .nullify, inverse: \Artist.tracks) var artist: Artist?
    @Relationship var tags: [Tag]
    @Transient var isPlaying = false

    #Index<Track>([\.artist, \.title])
    #Unique<Track>([\.title, \.playCount])

    var shout: String { title + "!" }
}

@Model final class Artist {
    var name: String
    var home: Place?
    @Relationship(deleteRule: .cascade) var tracks: [Track] = []
    @Relationship(inverse: \Artist.pupils) var mentor: Artist?
    @Relationship var pupils: [Artist]

    init(name: String, home: Place? = nil) {
        self.name = name
        self.home = home
    }
}

@Model final class Tag {
    var name: String
    @Relationship(inverse: \Track.tags) var tracks: [Track]

    /// Assigns properties more than once, in no particular order, and also a relationship.
    init(_ name: String, on tracks: [Track] = []) {
        self.tracks = []
        self.name = ""
        self.name = name
        self.tracks = tracks
    }
}

/// A model with every type that a property can have.
@Model final class Everything {
    var bool: Bool = true
    var int8: Int8 = .min
    var int16: Int16 = .min
    var int32: Int32 = .min
    var int64: Int64 = .min
    var int: Int = .min
    var uint8: UInt8 = .max
    var uint16: UInt16 = .max
    var uint32: UInt32 = .max
    var uint64: UInt64 = .max
    var uint: UInt = .max
    var float: Float = 0.1
    var double: Double = 0.1
    var string = "ü\u{0}🎵"
    var data: Data = Data([0, 255])
    var date: Date = Date(timeIntervalSinceReferenceDate: 0.125)
    var uuid: UUID = UUID()
    var url: URL?
    var mood: Mood? = .wild
    var place: Place = Place(city: "Oslo", seats: 3)
    var nothing: Int?
}

/// A model that counts its hooks.
@Model final class Watched: ManagedObjectLifecycle {
    var name: String
    var stamp = 0
    @Transient var calls: [String] = []

    func awakeFromInsert() { calls.append("inserted") }
    func awakeFromFetch() { calls.append("fetched") }
    func willSave() { if stamp == 0 { stamp = 1 } }
    func didSave() { calls.append("saved") }
    func validateForInsert() throws { if name.isEmpty { throw Nameless() } }

    struct Nameless: Error {}
}

/// Names that Swift requires in backticks.
@Model final class `Protocol` {
    @Attribute(.unique) var `extension`: String
    var `play count` = 0
    @Relationship(inverse: \`Protocol`.`default`) var `in`: `Protocol`?
    @Relationship var `default`: [`Protocol`]

    #Index<`Protocol`>([\.`extension`, \.`play count`])
}

/// A member of the set in another file.
@Model final class SetBook {
    var title: String
    var owner: BookSet?
    init(_ title: String) { self.title = title }
}
