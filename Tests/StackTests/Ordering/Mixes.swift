import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport

/// The model of the tests of ordered many-to-many relationships: mixes of songs.
enum Mixes {
    /// The hidden entity with the positions of songs in mixes, if these are ordered.
    static let order: EntityIndex = 2

    static func model(songs: Bool = true, mixes: Bool = false, version: Int = 1) throws -> Model {
        try Model(
            [
                EntityDescription(
                    name: "Mix",
                    properties: [
                        .attribute(.init(name: "title", type: .string)),
                        .relationship(
                            .init(name: "songs", destination: "Song", inverse: "mixes", cardinality: .toMany, isOrdered: songs)),
                    ]),
                EntityDescription(
                    name: "Song",
                    properties: [
                        .attribute(.init(name: "title", type: .string)),
                        .relationship(
                            .init(name: "mixes", destination: "Mix", inverse: "songs", cardinality: .toMany, isOrdered: mixes)),
                    ]),
            ], version: .init(version))
    }

    /// Creates a mix with new songs, one per letter, saves it to the store, and returns its id.
    static func make(_ songs: String, in context: BackgroundContext) async throws -> ObjectID {
        let id = await context.perform { context in
            let mix = context.insert("Mix")
            mix.songs = songs.map { context.makeSong("\($0)") }
            return mix.objectID
        }
        try await context.save(through: .store)
        return id
    }

    static func arrange(_ mix: ObjectID, _ songs: String, in context: BackgroundContext) async throws {
        try await context.perform { context throws in
            let mix = try context.existingObject(with: mix)
            let known = try Dictionary(uniqueKeysWithValues: context.fetch(EntityFetchRequest("Song")).map { ($0.title, $0) })
            mix.songs = songs.map { known["\($0)"] ?? context.makeSong("\($0)") }
        }
    }

    static func titles(_ mix: ObjectID, in context: BackgroundContext) async throws -> String {
        try await context.perform { try $0.existingObject(with: mix).songTitles }
    }

    /// The titles of a mix's songs in a new context that reads the store.
    static func stored(_ mix: ObjectID, in container: PersistentContainer) async throws -> String {
        try await container.coordinator.refresh()
        return try await titles(mix, in: container.coordinator.newBackgroundContext())
    }

    /// The number of positions in the store.
    static func positionCount(in container: PersistentContainer) throws -> Int {
        try container.coordinator.store.snapshot().count(StoreQuery(entity: order))
    }
}

extension ManagedObjectContext {
    @discardableResult
    func makeSong(_ title: String) -> ManagedObject {
        let song = insert("Song")
        song["title"] = .string(title)
        return song
    }
}

extension ManagedObject {
    var songs: [ManagedObject] {
        get { relatedObjects("songs") }
        set { setRelatedObjects("songs", to: newValue) }
    }
    var songTitles: String { songs.map(\.title).joined() }
}
