import ObjectGraph
import StoreInterface
import StoreModel
import Testing

/// The examples of derived attributes in documentation comments, compiled. The architecture tests compare both.
@Suite struct DerivationExamples {
    @Test func `S200: the documented derivations fit a model`() throws {
        // Sources/ObjectGraph/Derivation/Derivation.swift
        let album = EntityDescription(
            name: "Album",
            properties: [
                .attribute(AttributeDescription(name: "title", type: .string)),
                .attribute(
                    AttributeDescription(name: "trackCount", type: .int64, index: .indexed, derivation: .count(of: "tracks"))),
                .attribute(
                    AttributeDescription(
                        name: "artistName", type: .string, isOptional: true, derivation: .value(at: "artist.name"))),
                .attribute(AttributeDescription(name: "searchTitle", type: .string, derivation: .folded("title"))),
                .relationship(
                    RelationshipDescription(name: "artist", destination: "Artist", inverse: "albums", cardinality: .toOne)),
                .relationship(
                    RelationshipDescription(name: "tracks", destination: "Track", inverse: "album", cardinality: .toMany)),
            ])
        // end
        let artist = EntityDescription(
            name: "Artist",
            properties: [
                .attribute(AttributeDescription(name: "name", type: .string)),
                .relationship(
                    RelationshipDescription(name: "albums", destination: "Album", inverse: "artist", cardinality: .toMany)),
            ])
        let track = EntityDescription(
            name: "Track",
            properties: [
                .relationship(
                    RelationshipDescription(name: "album", destination: "Album", inverse: "tracks", cardinality: .toOne))
            ])
        let model = try Model([album, artist, track])
        let derived = model.entity(named: "Album")?.attributes.filter(\.isDerived).map(\.name)
        #expect(derived == ["trackCount", "artistName", "searchTitle"])
    }

    private static func describing() -> AttributeDescription {
        // Sources/ObjectGraph/ObjectGraph.docc/DerivedAttributes.md
        let trackCount = AttributeDescription(
            name: "trackCount", type: .int64, index: .indexed, derivation: .count(of: "tracks"))
        // end
        return trackCount
    }
}
