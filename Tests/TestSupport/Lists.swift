import ObjectGraph
import StoreInterface
import StoreModel

/// A model with inheritance, ordered relationships and derived attributes: collections of items.
public enum Lists {
    /// Returns the model. `Playlist` inherits from `Collection`, and `Song` from `Item`.
    ///
    /// - Parameter withMixes: Whether the model has the entity `Mix`, which inherits from `Playlist`.
    public static func model(withMixes: Bool = false) throws -> Model {
        let collection = EntityDescription(
            name: "Collection",
            properties: [
                .attribute(.init(name: "name", type: .string)),
                .relationship(
                    .init(
                        name: "items", destination: "Item", inverse: "collection", cardinality: .toMany, deleteRule: .cascade,
                        isOrdered: true)),
                .attribute(.init(name: "itemCount", type: .int64, index: .indexed, derivation: .count(of: "items"))),
                .attribute(.init(name: "total", type: .int64, derivation: .sum(of: "items.size"))),
            ], isAbstract: true)
        let playlist = EntityDescription(
            name: "Playlist",
            properties: [
                .attribute(.init(name: "mood", type: .string, isOptional: true)),
                .relationship(
                    .init(name: "songs", destination: "Song", inverse: "playlists", cardinality: .toMany, isOrdered: true)),
            ], superentity: "Collection")
        let item = EntityDescription(
            name: "Item",
            properties: [
                .attribute(.init(name: "size", type: .int64)),
                .attribute(.init(name: "owner", type: .string, isOptional: true, derivation: .value(at: "collection.name"))),
                .relationship(.init(name: "collection", destination: "Collection", inverse: "items", cardinality: .toOne)),
            ])
        let song = EntityDescription(
            name: "Song",
            properties: [
                .attribute(.init(name: "title", type: .string)),
                .relationship(.init(name: "playlists", destination: "Playlist", inverse: "songs", cardinality: .toMany)),
            ], superentity: "Item")
        let mix = EntityDescription(
            name: "Mix", properties: [.attribute(.init(name: "speed", type: .int64, defaultValue: 90))], superentity: "Playlist")
        return try Model([collection, playlist, item, song] + (withMixes ? [mix] : []), version: .init(withMixes ? 2 : 1))
    }
}
