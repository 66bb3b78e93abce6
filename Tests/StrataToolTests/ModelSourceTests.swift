import ObjectGraph
import StoreInterface
import TestSupport
import Testing

/// `strata model` for models with inheritance, order and derived attributes.
@Suite struct ModelSourceTests {
    private static func model() throws -> Model {
        let trip = EntityDescription(
            name: "Trip",
            properties: [
                .attribute(.init(name: "name", type: .string)),
                .relationship(
                    .init(name: "stops", destination: "Stop", inverse: "trip", cardinality: .toMany, isOrdered: true)),
                .attribute(.init(name: "stopCount", type: .int64, index: .indexed, derivation: .count(of: "stops"))),
                .attribute(.init(name: "cost", type: .double, derivation: .sum(of: "stops.price"))),
                .attribute(.init(name: "searchName", type: .string, derivation: .folded("name"))),
                .relationship(
                    .init(name: "guests", destination: "Guest", inverse: "trips", cardinality: .toMany, isOrdered: true)),
            ])
        // The file lists a subentity before the one from which it inherits.
        let conference = EntityDescription(
            name: "Conference", properties: [.attribute(.init(name: "topic", type: .string))], superentity: "BusinessTrip")
        let business = EntityDescription(
            name: "BusinessTrip",
            properties: [
                .attribute(.init(name: "perDiem", type: .double, isOptional: true)),
                .relationship(.init(name: "company", destination: "Company", inverse: "trips", cardinality: .toOne)),
            ], superentity: "Trip", isAbstract: true)
        let stop = EntityDescription(
            name: "Stop",
            properties: [
                .attribute(.init(name: "price", type: .double)),
                .relationship(.init(name: "trip", destination: "Trip", inverse: "stops", cardinality: .toOne)),
                .attribute(.init(name: "tripName", type: .string, isOptional: true, derivation: .value(at: "trip.name"))),
            ])
        let company = EntityDescription(
            name: "Company",
            properties: [
                .relationship(.init(name: "trips", destination: "BusinessTrip", inverse: "company", cardinality: .toMany))
            ])
        let guest = EntityDescription(
            name: "Guest",
            properties: [.relationship(.init(name: "trips", destination: "Trip", inverse: "guests", cardinality: .toMany))])
        return try Model([trip, conference, business, stop, company, guest])
    }

    /// Catches: a printed model that drops the order, the derivations or the classes of a file that is opened with it.
    @Test(arguments: fileKinds) func `model prints superclasses, orders and derivations`(_ kind: StoreKind) async throws {
        let folder = try ToolFolder()
        try await folder.fill("trips", kind, try Self.model()) { _ in }
        let run = await ToolRun("model", folder.path("trips"))
        #expect(
            run.output == """
                import Strata

                @Model class Trip {
                    var name: String
                    @Derived(count: \\Trip.stops) @Attribute(.indexed) var stopCount: Int
                    @Derived(sum: \\Stop.price, in: \\Trip.stops) var cost: Double
                    @Derived(folded: \\Trip.name) var searchName: String
                    @Relationship(.ordered) var guests: [Guest]
                    @Relationship(.ordered, inverse: \\Stop.trip) var stops: [Stop]
                }

                @Model final class Conference: BusinessTrip {
                    var topic: String

                    init(name: String, topic: String) {
                        self.topic = topic
                        super.init(name: name)
                    }
                }

                @Model(isAbstract: true) class BusinessTrip: Trip {
                    var perDiem: Double?
                    @Relationship var company: Company?

                    init(name: String) {
                        super.init(name: name)
                    }
                }

                @Model final class Stop {
                    var price: Double
                    @Relationship var trip: Trip?
                    @Derived(from: \\Stop.trip?.name) var tripName: String?
                }

                @Model final class Company {
                    @Relationship(inverse: \\BusinessTrip.company) var trips: [BusinessTrip]
                }

                @Model final class Guest {
                    @Relationship(inverse: \\Trip.guests) var trips: [Trip]
                }

                """)
    }
}
