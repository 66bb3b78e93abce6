import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
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

    @Sendable private static func fill(_ context: ManagedObjectContext) {
        let conference = context.insert("Conference")
        (conference["name"], conference["topic"], conference["perDiem"]) = ("Köln", "pages", 20.0)
        let trip = context.insert("Trip")
        trip["name"] = "Home"
        let stops = (1...3).map { price in
            let stop = context.insert("Stop")
            stop["price"] = .double(Double(price))
            return stop
        }
        conference.setRelatedObjects("stops", to: stops.reversed())
        conference.setRelatedObjects("guests", to: (0..<2).map { _ in context.insert("Guest") }.reversed())
        conference.setRelatedObject("company", to: context.insert("Company"))
    }

    /// Catches: verbs that ask for the columns of types and positions, or for those of another entity.
    @Test(arguments: fileKinds) func `every verb shows hierarchies, orders and derived values`(_ kind: StoreKind) async throws {
        let folder = try ToolFolder()
        try await folder.fill("trips", kind, try Self.model(), Self.fill)
        let trips = folder.path("trips")
        let all = try await ToolRun("query", trips, "trip", "--sort", "name", "--json").list()
        #expect(all.map { $0["name"] as? String } == ["Home", "Köln"])
        #expect(Set(all[1].keys) == ["$key", "name", "stopCount", "cost", "searchName"])
        #expect(all[1]["cost"] as? Double == 6 && all[1]["searchName"] as? String == "koln")
        let conferences = try await ToolRun("query", trips, "conference", "topic = 'pages' and perDiem > 5", "--json").list()
        #expect(conferences.count == 1 && conferences[0]["topic"] as? String == "pages")
        #expect(await ToolRun("query", trips, "Trip", "perDiem > 5").isRefused(naming: "perDiem"))
        let key = try #require(conferences[0]["$key"] as? Int)
        let found = try await ToolRun("get", trips, "Trip", "\(key)", "--json").object()
        #expect(found["$entity"] as? String == "Conference" && found["topic"] as? String == "pages")
        let stops = try #require(found["stops"] as? [Int])
        #expect(stops == stops.sorted(by: >) && stops.count == 3)
        let text = await ToolRun("get", trips, "Conference", "\(key)")
        #expect(text.status == 0 && text.output.contains("3 of Stop: "))
        let info = try await ToolRun("info", trips, "--json").object()
        let entities = try #require(info["entities"] as? [[String: Any]])
        #expect(entities.map { $0["name"] as? String } == ["Trip", "Stop", "Company", "Guest"])
        #expect(entities.map { $0["objects"] as? Int } == [2, 3, 1, 2])
        let history = await ToolRun("history", trips, "--json")
        #expect(history.status == 0 && history.output.contains("Trip"))
        #expect(await ToolRun("verify", trips).status == 0)
        for (copy, arguments) in [("lines", ["lines.jsonl"]), ("tables", ["--format", "csv", "tables"])] {
            let path = folder.path(arguments.last ?? "")
            let export = await ToolRun(["export", trips] + arguments.dropLast() + [path])
            #expect(export.status == 0, "\(export)")
            let back = await ToolRun(
                "import", path, folder.path(copy + "-store"), "--kind", kind == .lmdb ? "lmdb" : "sqlite", "--swift",
                folder.path(copy + ".swift"))
            #expect(back.status == 0, "\(back)")
            #expect(await ToolRun("diff", trips, folder.path(copy + "-store")).lines == ["no differences"])
            #expect(await ToolRun("verify", folder.path(copy + "-store")).status == 0)
            let model = await ToolRun("model", trips)
            #expect(try String(contentsOfFile: folder.path(copy + ".swift"), encoding: .utf8) == model.output)
        }
        #expect(await ToolRun("repair", trips, folder.path("repaired")).status == 0)
        #expect(await ToolRun("diff", trips, folder.path("repaired")).lines == ["no differences"])
    }

    /// Catches: a comparison that knows the columns of the first entity of a hierarchy only.
    @Test(arguments: fileKinds) func `diff shows changed properties of a subentity`(_ kind: StoreKind) async throws {
        let folder = try ToolFolder()
        try await folder.fill("trips", kind, try Self.model(), Self.fill)
        let (trips, old) = (folder.path("trips"), folder.path("old"))
        #expect(await ToolRun("backup", trips, old).status == 0)
        try await folder.fill("trips", kind, try Self.model()) { context in
            for conference in try context.fetch(EntityFetchRequest("Conference")) { conference["perDiem"] = 30.0 }
        }
        for arguments in [["diff", old, trips], ["diff", trips, "--from", "1"]] {
            let run = await ToolRun(arguments)
            #expect(run.status == 1 && run.output.contains("perDiem: ") && run.output.contains("→ 30"), "\(run)")
        }
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

    /// Catches: lists that are shown under the name of another link, or as the objects of hidden entities. The file does not tell to which
    /// of several links between two entities an order belongs.
    @Test(arguments: fileKinds) func `orders of several links between two entities are shown with their own members`(
        _ kind: StoreKind
    ) async throws {
        func many(_ name: String, _ destination: String, _ inverse: String, isOrdered: Bool) -> PropertyDescription {
            .relationship(
                .init(name: name, destination: destination, inverse: inverse, cardinality: .toMany, isOrdered: isOrdered))
        }
        let name = PropertyDescription.attribute(.init(name: "name", type: .string))
        let lists = ["none", "best", "empty", "all"]
        let model = try Model([
            EntityDescription(name: "Song", properties: [name] + lists.map { many("of \($0)", "Tape", $0, isOrdered: false) }),
            EntityDescription(
                name: "Tape", properties: [name] + lists.reversed().map { many($0, "Song", "of \($0)", isOrdered: $0 != "none") }
            ),
        ])
        let folder = try ToolFolder()
        try await folder.fill("out", kind, model) { context in
            let songs = (0..<100).map { number in
                let song = context.insert("Song")
                song["name"] = .string("\(number)")
                return song
            }
            for number in 0..<3 {
                let tape = context.insert("Tape")
                tape["name"] = .string("tape \(number)")
                tape.setRelatedObjects("best", to: songs.prefix(30 - number).reversed())
                tape.setRelatedObjects("all", to: songs.reversed())
            }
        }
        let tapes = try await ToolRun("query", folder.path("out"), "Tape", "--json").list()
        let songs = try await ToolRun("query", folder.path("out"), "Song", "--json").list()
        let names = Dictionary(uniqueKeysWithValues: songs.map { ($0["$key"] as? Int ?? 0, $0["name"] as? String ?? "") })
        for (number, tape) in tapes.enumerated() {
            let found = try await ToolRun("get", folder.path("out"), "Tape", "\(tape["$key"] ?? "")", "--json").object()
            #expect((found["best"] as? [Int])?.map { names[$0] } == (0..<30 - number).reversed().map { "\($0)" })
            #expect((found["all"] as? [Int])?.map { names[$0] } == (0..<100).reversed().map { "\($0)" })
        }
        #expect(await ToolRun("query", folder.path("out"), "Tape", "empty.count = 0", "--count").output == "3\n")
        #expect(await ToolRun("info", folder.path("out"), "--json").output.contains("order of Tape.best\",\"objects") == false)
        #expect(
            await ToolRun("model", folder.path("out")).output.contains(
                "@Relationship(.ordered, inverse: \\Song.`of best`) var best"))
    }
}
