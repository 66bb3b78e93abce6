import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Random changes of objects of a hierarchy, compared with a plain model.
@Suite struct InheritanceRandomTests {
    /// An object of the plain model.
    struct Plain: Sendable, Hashable {
        var kind: String
        var name: String
        var days: Int64 = 1
        /// nil for an object of an entity without the attribute.
        var perDiem: Double?
        var place: String?
        var traveler: ObjectID?
    }

    typealias World = [ObjectID: Plain]

    private static let supers = [
        "Trip": ["Trip"], "BusinessTrip": ["Trip", "BusinessTrip"], "Conference": ["Trip", "BusinessTrip", "Conference"],
        "Holiday": ["Trip", "Holiday"],
    ]

    private static func world(_ context: ManagedObjectContext) throws -> World {
        var world: World = [:]
        for object in try context.fetch(EntityFetchRequest("Trip")) {
            let kind = object.entityName
            var plain = Plain(kind: kind, name: "\(object["name"])")
            if case .int(let days) = object["days"] { plain.days = days }
            if kind == "BusinessTrip" || kind == "Conference", case .double(let value) = object["perDiem"] {
                plain.perDiem = value
            }
            if kind != "Trip", case .string(let place) = object["place"] { plain.place = place }
            plain.traveler = object.relatedObject("traveler")?.objectID
            world[object.objectID] = plain
        }
        return world
    }

    private static func change(
        _ world: inout World, _ people: [ObjectID], in context: ManagedObjectContext, _ random: inout SeededGenerator
    ) throws {
        let ids = world.keys.sorted { $0.key < $1.key }
        if ids.isEmpty || random.chance(35) {
            let kind = Trips.kinds[random.below(Trips.kinds.count)]
            let object = context.insert(kind)
            let name = "n\(random.below(1_000_000))"
            object["name"] = .string(name)
            let isBusiness = kind == "BusinessTrip" || kind == "Conference"
            world[object.objectID] = Plain(kind: kind, name: "\(Value.string(name))", perDiem: isBusiness ? 20 : nil)
            return
        }
        let id = ids[random.below(ids.count)]
        let object = try context.existingObject(with: id)
        let kind = world[id]?.kind ?? ""
        switch random.below(6) {
        case 0:
            context.delete(object)
            world[id] = nil
        case 1 where kind == "BusinessTrip" || kind == "Conference":
            let value = Double(random.below(100))
            object["perDiem"] = .double(value)
            world[id]?.perDiem = value
        case 2 where kind != "Trip":
            let place = random.chance(20) ? nil : "p\(random.below(20))"
            object["place"] = place.map { .string($0) } ?? .null
            world[id]?.place = place
        case 3:
            let person = random.chance(30) ? nil : people[random.below(people.count)]
            object.setRelatedObject("traveler", to: try person.map { try context.existingObject(with: $0) })
            world[id]?.traveler = person
        default:
            let days = Int64(random.below(50))
            object["days"] = .int(days)
            world[id]?.days = days
        }
    }

    /// Compares all kinds of reads with the plain model.
    private static func check(
        _ world: World, _ people: [ObjectID], in context: ManagedObjectContext, _ random: inout SeededGenerator,
        _ comment: Comment
    ) throws {
        #expect(try Self.world(context) == world, comment)
        for kind in Trips.kinds {
            let expected = world.filter { supers[$0.value.kind]?.contains(kind) == true }
            let request = EntityFetchRequest(kind)
            #expect(try Set(context.fetchIDs(request)) == Set(expected.keys), comment)
            #expect(try context.count(request) == expected.count, comment)
            let days = expected.values.reduce(0) { $0 + $1.days }
            #expect(try context.aggregate(.sum("days"), of: request) == .int(days), comment)
            let limit = Double(random.below(60))
            let condition = Condition.isKind(of: "BusinessTrip", where: .compare("perDiem", .less, to: .double(limit)))
            let cheap = expected.filter { ($0.value.perDiem ?? .infinity) < limit }
            #expect(try Set(context.fetchIDs(EntityFetchRequest(kind, matching: condition))) == Set(cheap.keys), comment)
            let rest = try context.count(EntityFetchRequest(kind, matching: .not(condition)))
            #expect(rest == expected.count - cheap.count, comment)
        }
        for person in people {
            let object = try context.existingObject(with: person)
            let expected = world.filter { $0.value.traveler == person }
            #expect(Set(object.relatedObjects("trips").map(\.objectID)) == Set(expected.keys), comment)
            let holidays = expected.values.count { $0.kind == "Holiday" }
            let request = EntityFetchRequest(
                "Person",
                matching: .all([
                    .ids([person]), .relatedCount("trips", where: .isKind(of: "Holiday"), .equal, to: holidays),
                ]))
            #expect(try context.count(request) == 1, comment)
        }
    }

    @Test(arguments: Combination.all)
    func `S180: random changes of a hierarchy in contexts and children equal those of a plain model`(
        _ combination: Combination
    ) async throws {
        var random = SeededGenerator()
        let seed = random.seed
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack, model: try Trips.model())
        let first = await container.newBackgroundContext()
        let people = await first.perform { context in (0..<3).map { _ in context.insert("Person").objectID } }
        try await first.save(through: .store)
        var committed: World = [:]
        for round in 0..<Rounds.of(4, long: 150) {
            let worker = await container.newBackgroundContext()
            if random.chance(50) { try await container.coordinator.refresh() }
            await worker.perform { $0.undoHistory = UndoHistory() }
            var pending = committed
            for step in 0..<1 + random.below(3) {
                let inChild = random.chance(40)
                let context = inChild ? await worker.newBackgroundChild() : worker
                let (start, generator) = (pending, random)
                (pending, random) = try await context.perform { context throws in
                    var (world, random) = (start, generator)
                    for _ in 0..<1 + random.below(15) { try Self.change(&world, people, in: context, &random) }
                    try Self.check(world, people, in: context, &random, "round \(round), step \(step), STRATA_SEED=\(seed)")
                    return (world, random)
                }
                if inChild { try await context.save() }
                guard random.chance(30), pending != start else { continue }
                let changed = pending
                try await worker.perform { context throws in
                    try context.undoHistory?.undo()
                    try context.undoHistory?.redo()
                    #expect(try Self.world(context) == changed, "undo, round \(round), STRATA_SEED=\(seed)")
                }
            }
            if random.chance(20) {
                await worker.perform { $0.rollback() }
            } else {
                try await worker.save(through: .store, random.chance(30) ? .deferred(within: .seconds(30)) : .durable)
                committed = pending
            }
            try await container.coordinator.refresh()
            let (world, generator) = (committed, random)
            random = try await container.coordinator.newBackgroundContext().perform { context throws in
                var random = generator
                try Self.check(world, people, in: context, &random, "saved, round \(round), STRATA_SEED=\(seed)")
                return random
            }
        }
        try await container.flush()
        #expect(try container.coordinator.store.verify() == [], "STRATA_SEED=\(seed)")
        try await container.close()
    }

    // MARK: Unique values

    /// Makes a random change of numbered trips and their relationships. There are few numbers, so that contexts set the same ones.
    private static func changeNumbered(_ context: ManagedObjectContext, _ random: inout SeededGenerator) throws {
        let trips = try context.fetch(EntityFetchRequest("Trip"))
        let people = try context.fetch(EntityFetchRequest("Person"))
        guard let trip = trips.randomElement(using: &random), let person = people.randomElement(using: &random), random.chance(60)
        else {
            let kind = Trips.kinds[random.below(Trips.kinds.count)]
            let new = context.insert(kind)
            new["number"] = .string("\(random.below(3))")
            if kind == "Holiday", random.chance(50) { context.insert("Person").setRelatedObject("favorite", to: new) }
            return
        }
        switch random.below(8) {
        case 0, 1, 2: context.delete(trip)
        case 3: trip["number"] = random.chance(30) ? .null : .string("\(random.below(3))")
        case 4: trip.setRelatedObject("traveler", to: person)
        case 5 where trip.entityName == "Holiday": person.setRelatedObject("favorite", to: trip)
        case 5 where trip.entityName == "Conference": trip.add(person, to: "speakers")
        default:
            let stop = trips[random.below(trips.count)]
            if stop !== trip { trip.add(stop, to: "stops") }
        }
    }

    /// Returns a fault of the committed state, in words, or nil. Every object has the class that it had before, and relationships lead to
    /// objects of their class (S181), which refer back. Numbers are unique (S108).
    private static func classFault(in context: ManagedObjectContext, _ kinds: inout [ObjectID: String]) throws -> String? {
        var numbers: Set<Value> = []
        for trip in try context.fetch(EntityFetchRequest("Trip")) {
            let (id, kind) = (trip.objectID, trip.entityName)
            let former = kinds.updateValue(kind, forKey: id)
            if let former, former != kind { return "\(id) was a \(former) and is a \(kind)" }
            let number = trip["number"]
            if !number.isNull, !numbers.insert(number).inserted { return "two trips have the number \(number)" }
            if let traveler = trip.relatedObject("traveler"), !traveler.relatedObjects("trips").contains(trip) {
                return "\(id) is not among the trips of its traveler"
            }
            for stop in trip.relatedObjects("stops") where !stop.relatedObjects("parts").contains(trip) {
                return "\(id) is not among the parts of its stop \(stop.objectID)"
            }
        }
        for person in try context.fetch(EntityFetchRequest("Person")) {
            let favorite = person.relatedObject("favorite")
            if (favorite == nil) != person["favorite"].isNull { return "a favorite leads to nothing" }
            if let favorite, favorite.entityName != "Holiday" { return "a favorite is a \(favorite.entityName)" }
            for talk in person.relatedObjects("talks") {
                if talk.entityName != "Conference" { return "a talk is a \(talk.entityName)" }
                if !talk.relatedObjects("speakers").contains(person) { return "a person is not among the speakers of a talk" }
            }
        }
        return nil
    }

    /// Catches: an object that takes the place of one of another class, because a merge policy settles equal unique values.
    @Test(arguments: StoreKind.allCases)
    func `S108, S181: random saves of equal unique values keep the classes of objects and of destinations`(
        _ kind: StoreKind
    ) async throws {
        var random = SeededGenerator()
        let seed = random.seed
        let bed = try TestBed(kind)
        let container = try await bed.container(model: try Trips.numberedModel())
        let coordinator = container.coordinator
        var kinds: [ObjectID: String] = [:]
        for round in 0..<Rounds.of(15, long: 1500) {
            var roots: [BackgroundContext] = []
            var editors: [BackgroundContext] = []
            for _ in 0..<2 {
                let policy = IntegrityTests.policies[random.below(IntegrityTests.policies.count)]
                let root = coordinator.newBackgroundContext()
                await root.perform { $0.mergePolicy = policy }
                let inChild = random.chance(30)
                let editor = inChild ? await root.newBackgroundChild() : root
                let generator = random
                random = try await editor.perform { context throws in
                    var random = generator
                    for _ in 0..<1 + random.below(6) { try Self.changeNumbered(context, &random) }
                    return random
                }
                roots.append(root)
                editors.append(editor)
            }
            for editor in editors {
                let durability: Durability = random.chance(30) ? .deferred(within: .seconds(30)) : .durable
                do { try await editor.save(through: .store, durability) } catch is SaveError {}
            }
            let known = kinds
            let (fault, found) = try await coordinator.newBackgroundContext().perform { context throws in
                var found = known
                let fault = try Self.classFault(in: context, &found)
                return (fault, found)
            }
            kinds = found
            if let fault { return _ = Issue.record("\(fault), round \(round), STRATA_SEED=\(seed)") }
            // The contexts live until here, because children save to their roots.
            withExtendedLifetime(roots) {}
        }
        try await container.flush()
        #expect(try coordinator.store.verify() == [], "STRATA_SEED=\(seed)")
        try await container.close()
    }
}
