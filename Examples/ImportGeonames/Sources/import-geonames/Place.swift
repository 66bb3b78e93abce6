import ObjectGraph
import StoreInterface

/// A place as a file of geographical names lists it. Its properties have the names of the entity's properties.
struct Place: Codable, Sendable {
    var number: Int
    var name: String
    /// The code of a country, by which the import finds the object.
    var country: String
    var latitude: Double
    var longitude: Double
    var population: Int
}

/// Generated places. The place at a position is always the same, so an import that was stopped can go on later.
struct GeneratedPlaces: RandomAccessCollection, Sendable {
    static let countries = ["AT", "CH", "DE", "DK", "ES", "FI", "FR", "IT", "NL", "NO", "PL", "SE"]
    private static let starts = ["Al", "Bern", "Dorn", "Eich", "Gras", "Hohen", "Kirch", "Linden", "Mar", "Neu", "Ober", "Stein"]
    private static let ends = [
        "bach", "berg", "burg", "dorf", "feld", "hausen", "heim", "ingen", "kirchen", "stadt", "tal", "wil",
    ]

    var startIndex = 0
    var endIndex: Int

    init(count: Int) { endIndex = count }

    subscript(position: Int) -> Place {
        var random = SplitMix(state: UInt64(position))
        // Many villages and few cities: each power of ten is about as populated as the next.
        let digits = Int.random(in: 0...6, using: &random)
        return Place(
            number: position + 1,
            name: Self.starts.randomElement(using: &random)! + Self.ends.randomElement(using: &random)!,
            country: Self.countries.randomElement(using: &random)!,
            latitude: .random(in: 36...70, using: &random), longitude: .random(in: -9...30, using: &random),
            population: (0..<digits).reduce(Int.random(in: 1...9, using: &random)) { number, _ in
                number * 10 + Int.random(in: 0...9, using: &random)
            })
    }
}

/// The generator of random numbers by Steele, Lea and Flood.
private struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = (state ^ state >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return mixed ^ mixed >> 31
    }
}

extension Model {
    /// Places and their countries, described without classes, so that this program compiles without macros.
    static func places() throws -> Model {
        func attribute(_ name: String, _ type: ColumnType, _ index: IndexKind = .none) -> PropertyDescription {
            .attribute(AttributeDescription(name: name, type: type, index: index))
        }
        let places = RelationshipDescription(name: "places", destination: "Place", inverse: "country", cardinality: .toMany)
        let country = RelationshipDescription(name: "country", destination: "Country", cardinality: .toOne)
        return try Model([
            EntityDescription(name: "Country", properties: [attribute("code", .string, .unique), .relationship(places)]),
            EntityDescription(
                name: "Place",
                properties: [
                    attribute("number", .int64, .unique), attribute("name", .string, .indexed), .relationship(country),
                    attribute("latitude", .double), attribute("longitude", .double),
                    attribute("population", .int64, .indexed),
                ]),
        ])
    }
}
