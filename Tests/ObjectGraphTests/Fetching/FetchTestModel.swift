import Foundation
import StoreInterface
import StoreModel
import TestSupport

@testable import ObjectGraph

/// Two models as the macro would write them, for predicates and requests. Their objects are never created here.
final class Song: PersistentModel {
    let managedObject: ManagedObject

    init(managedObject: ManagedObject) { self.managedObject = managedObject }

    var title: String { managedObject.get(0) }
    var subtitle: String? { managedObject.get(1) }
    var plays: Int { managedObject.get(2) }
    var rating: Double? { managedObject.get(3) }
    var isFavorite: Bool { managedObject.get(4) }
    var singer: Singer? { managedObject.toOne(0, 5) }
    var rank: Int { managedObject.get(6) }
    /// A computed property, which is not stored.
    var shoutedTitle: String { title + "!" }

    static var entityDescription: EntityDescription {
        EntityDescription(
            name: "Song",
            properties: [
                .attribute(AttributeDescription(name: "title", type: .string)),
                .attribute(AttributeDescription(name: "subtitle", type: .string, isOptional: true)),
                .attribute(AttributeDescription(name: "plays", type: .int64, index: .indexed)),
                .attribute(AttributeDescription(name: "rating", type: .double, isOptional: true)),
                .attribute(AttributeDescription(name: "isFavorite", type: .bool)),
                .relationship(
                    RelationshipDescription(name: "singer", destination: "Singer", inverse: "songs", cardinality: .toOne)),
                .attribute(AttributeDescription(name: "rank", type: .int64)),
            ])
    }

    static var columnsByKeyPath: [AnyKeyPath: String] {
        [
            \Song.title: "title", \Song.subtitle: "subtitle", \Song.plays: "plays", \Song.rating: "rating",
            \Song.isFavorite: "isFavorite", \Song.singer: "singer", \Song.rank: "rank",
        ]
    }
}

final class Singer: PersistentModel {
    let managedObject: ManagedObject

    init(managedObject: ManagedObject) { self.managedObject = managedObject }

    var name: String { managedObject.get(0) }
    var nickname: String? { managedObject.get(1) }
    var songs: [Song] { managedObject.toMany(0) }

    static var entityDescription: EntityDescription {
        EntityDescription(
            name: "Singer",
            properties: [
                .attribute(AttributeDescription(name: "name", type: .string)),
                .attribute(AttributeDescription(name: "nickname", type: .string, isOptional: true)),
                .relationship(
                    RelationshipDescription(name: "songs", destination: "Song", inverse: "singer", cardinality: .toMany)),
            ])
    }

    static var columnsByKeyPath: [AnyKeyPath: String] {
        [\Singer.name: "name", \Singer.nickname: "nickname", \Singer.songs: "songs"]
    }
}

/// The same data as plain Swift objects. Closures over them decide what a predicate must select.
final class PlainSong {
    let key: ObjectKey
    var title = ""
    var subtitle: String?
    var plays = 0
    var rating: Double?
    var isFavorite = false
    var rank = 0
    weak var singer: PlainSinger?

    init(key: ObjectKey) { self.key = key }
}

final class PlainSinger {
    let key: ObjectKey
    var name = ""
    var nickname: String?
    var songs: [PlainSong] = []

    init(key: ObjectKey) { self.key = key }
}

/// Random songs and singers, as plain objects and as a snapshot.
struct RandomSongs {
    let model: Model
    let view: LayeredView
    let store = StoreIdentity(UUID())
    var scope: RequestScope { RequestScope(model: model, store: store) }
    var songs: [PlainSong] = []
    var singers: [PlainSinger] = []

    init(seed: UInt64) throws {
        model = try Model([Song.self, Singer.self])
        var numbers = SeededGenerator(seed: seed)
        var state = PlainState(schema: model.storeSchema)
        let words = ["", "a", "Ab", "abba", "b", "blue", "x"]
        func word() -> String { words.randomElement(using: &numbers) ?? "" }
        for key in 1...8 as ClosedRange<ObjectKey> {
            let singer = PlainSinger(key: key)
            singer.name = word()
            singer.nickname = numbers.chance(1, in: 2) ? word() : nil
            singers.append(singer)
            state.objects[1][key] = .init(values: [.string(singer.name), singer.nickname.storeValue], version: 1)
        }
        for key in 1...100 as ClosedRange<ObjectKey> {
            let song = PlainSong(key: key)
            song.title = word()
            song.subtitle = numbers.chance(1, in: 2) ? word() : nil
            song.plays = Int.random(in: -3...8, using: &numbers)
            song.rating = numbers.chance(1, in: 2) ? Double(Int.random(in: 0...5, using: &numbers)) : nil
            song.isFavorite = numbers.chance(1, in: 2)
            song.rank = Int.random(in: -3...8, using: &numbers)
            song.singer = numbers.chance(2, in: 3) ? singers.dropLast().randomElement(using: &numbers) : nil
            song.singer?.songs.append(song)
            songs.append(song)
            let values: [Value] = [
                .string(song.title), song.subtitle.storeValue, .int(Int64(song.plays)), song.rating.storeValue,
                .bool(song.isFavorite), song.singer.map { .reference($0.key) } ?? .null, .int(Int64(song.rank)),
            ]
            state.objects[0][key] = .init(values: values, version: 1)
        }
        view = LayeredView(base: PlainSnapshot(state, generation: 1))
    }
}
