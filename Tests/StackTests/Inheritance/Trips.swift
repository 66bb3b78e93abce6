import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport

/// The model of the tests of inheritance: trips of several kinds, by people, for companies.
///
/// `Vehicle` is abstract. `Trip` has the subentities `BusinessTrip` and `Holiday`, and `BusinessTrip` has `Conference`.
enum Trips {
    static let kinds = ["Trip", "BusinessTrip", "Conference", "Holiday"]

    static func model(_ change: (inout [EntityDescription]) -> Void = { _ in }, version: Int = 1) throws -> Model {
        var entities = [trip, business, conference, holiday, person, company, vehicle, car, bike]
        change(&entities)
        return try Model(entities, version: .init(version))
    }

    /// The model with unique numbers of trips.
    static func numberedModel() throws -> Model {
        try model { entities in
            guard let trip = entities.firstIndex(where: { $0.name == "Trip" }) else { return }
            entities[trip].properties.append(.attribute(.init(name: "number", type: .string, isOptional: true, index: .unique)))
        }
    }

    static let trip = EntityDescription(
        name: "Trip",
        properties: [
            .attribute(.init(name: "name", type: .string, index: .indexed)),
            .attribute(.init(name: "days", type: .int64, defaultValue: 1, rules: [.range(0...1_000)])),
            .relationship(
                .init(
                    name: "traveler", destination: "Person", inverse: "trips", cardinality: .toOne)),
            .relationship(.init(name: "stops", destination: "Trip", inverse: "parts", cardinality: .toMany)),
            .relationship(.init(name: "parts", destination: "Trip", inverse: "stops", cardinality: .toMany)),
        ])

    static let business = EntityDescription(
        name: "BusinessTrip",
        properties: [
            .attribute(.init(name: "perDiem", type: .double, defaultValue: 20.0, rules: [.range(0.0...500)])),
            .attribute(.init(name: "code", type: .string, isOptional: true, index: .unique)),
            .attribute(.init(name: "place", type: .string, isOptional: true)),
            .relationship(
                .init(name: "company", destination: "Company", inverse: "trips", cardinality: .toOne, deleteRule: .nullify)),
        ], superentity: "Trip")

    static let conference = EntityDescription(
        name: "Conference",
        properties: [
            .attribute(.init(name: "topic", type: .string)),
            .relationship(.init(name: "speakers", destination: "Person", inverse: "talks", cardinality: .toMany)),
        ], superentity: "BusinessTrip")

    static let holiday = EntityDescription(
        name: "Holiday",
        properties: [
            .attribute(.init(name: "place", type: .string, isOptional: true, rules: [.length(1...20)])),
            .attribute(.init(name: "isAbroad", type: .bool)),
        ], superentity: "Trip")

    static let person = EntityDescription(
        name: "Person",
        properties: [
            .attribute(.init(name: "name", type: .string)),
            .relationship(
                .init(name: "trips", destination: "Trip", inverse: "traveler", cardinality: .toMany, deleteRule: .cascade)),
            .relationship(.init(name: "talks", destination: "Conference", inverse: "speakers", cardinality: .toMany)),
            .relationship(.init(name: "favorite", destination: "Holiday", cardinality: .toOne, inference: .refused)),
        ])

    static let company = EntityDescription(
        name: "Company",
        properties: [
            .attribute(.init(name: "name", type: .string)),
            .relationship(
                .init(name: "trips", destination: "BusinessTrip", inverse: "company", cardinality: .toMany, deleteRule: .deny)),
        ])

    static let vehicle = EntityDescription(
        name: "Vehicle", properties: [.attribute(.init(name: "wheels", type: .int16))], isAbstract: true)
    static let car = EntityDescription(
        name: "Car", properties: [.attribute(.init(name: "plate", type: .string, index: .unique))], superentity: "Vehicle")
    static let bike = EntityDescription(name: "Bike", properties: [], superentity: "Vehicle")

    /// Inserts an object of each kind: its name is that of the kind.
    @discardableResult
    static func insertAll(_ context: ManagedObjectContext) -> [ManagedObject] {
        kinds.enumerated().map { number, kind in
            let trip = context.insert(kind)
            trip["name"] = .string(kind)
            trip["days"] = .int(Int64(number + 1))
            return trip
        }
    }
}

extension ManagedObjectContext {
    /// The entity names of the objects that a request selects.
    func kinds(_ entity: String, _ condition: Condition = .always) throws -> [String] {
        let request = EntityFetchRequest(entity, matching: condition, sortBy: [.init("days")])
        let found = try fetch(request)
        guard try count(request) == found.count, try fetchIDs(request) == found.map(\.objectID) else { return ["disagreement"] }
        return found.map(\.entityName)
    }
}
