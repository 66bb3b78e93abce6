import Foundation
import Strata
import Testing

/// Models with properties that the macro stores although their types do not conform to `AttributeValue`.
private enum Tasks {
    enum Status: String, Codable, CaseIterable { case done, open, waiting }
    enum Rank: Int { case low = 1, high = 5 }
    struct Place: Codable, Equatable { var city: String }
    struct Ticket: RawRepresentable, Codable, Hashable { var rawValue: UUID }

    @Model final class Project {
        @Attribute(.unique) var code: String
        var name: String
        var kind: Status = Status.open
        var note: String?
        init(code: String, name: String) {
            self.code = code
            self.name = name
        }
    }

    @Model final class Chore {
        #Unique<Chore>([\.rank], [\.slot])
        var title: String
        var status: Status
        var former: Status?
        var slot: Status?
        var rank: Rank
        var place: Place
        var places: [Place] = []
        var other: Place?
        var ticket: Ticket?
        var cost: Decimal = 0
        var tip: Decimal?
        @Relationship(inverse: nil) var project: Project
        var parent: Chore?
        init(_ title: String, _ status: Status, rank: Rank, project: Project) {
            self.title = title
            self.status = status
            self.rank = rank
            self.project = project
            place = Place(city: title)
        }
    }

    static let types: [any PersistentModel.Type] = [Project.self, Chore.self]
    static let ticket = Ticket(rawValue: UUID())
}

/// Requests, batches and aggregates by key paths of such properties, on every store.
@Suite @MainActor struct TypedRequestTests {
    private typealias Chore = Tasks.Chore

    private static func decimal(_ text: String) -> Decimal { Decimal(string: text) ?? .nan }

    private func open(
        _ store: TestStore, _ body: @MainActor (PersistentContainer, ManagedObjectContext) async throws -> Void
    ) async throws {
        try await store.use { description in
            let container = try await PersistentContainer(model: Model(Tasks.types), store: description)
            let context = container.mainContext
            let a = Tasks.Project(code: "a", name: "Zoo")
            let b = Tasks.Project(code: "b", name: "Attic")
            b.kind = .done
            let first = Chore("first", .waiting, rank: .low, project: a)
            first.former = .open
            first.ticket = Tasks.ticket
            let second = Chore("second", .done, rank: .high, project: b)
            second.parent = first
            for object in [first, second] { context.insert(object) }
            try await context.save()
            try await body(container, context)
        }
    }

    @Test(arguments: TestStore.allCases)
    func `S139: sorts take raw values and relationships that are not optional`(_ store: TestStore) async throws {
        try await open(store) { _, context in
            func titles(_ sort: SortBy<Chore>...) throws -> [String] {
                try context.fetch(FetchRequest<Chore>(sortBy: sort)).map(\.title)
            }
            #expect(try titles(.init(\.status)) == ["second", "first"])
            #expect(try titles(.init(\.rank, .descending)) == ["second", "first"])
            #expect(try titles(.init(\.former, nils: .last)) == ["first", "second"])
            #expect(try titles(.init(\.project, by: \.name)) == ["second", "first"])
            #expect(try titles(.init(\.project, by: \.name, .descending, comparing: .localizedStandard)) == ["first", "second"])
            #expect(try titles(.init(\.project, by: \.kind, .descending)) == ["first", "second"])
            #expect(try titles(.init(\.project, by: \.note), .init(\.title, .descending)) == ["second", "first"])
            #expect(try titles(.init(\.parent, by: \.status, nils: .last)) == ["second", "first"])
            #expect(try titles(.init(\.parent, .init(\.project, by: \.name))) == ["first", "second"])
            let results = try FetchedResultsController(
                FetchRequest<Chore>(sortBy: [.init(\.title)]), sectionedBy: .init(\.status), context: context)
            try results.performFetch()
            #expect(results.snapshot.sections.map(\.name) == ["done", "waiting"])
            let costs = ["0.05", "12.5"]
            for (chore, cost) in zip(try context.fetch(FetchRequest<Chore>(sortBy: [.init(\.title)])), costs) {
                chore.cost = Self.decimal(cost)
            }
            let byCost = try FetchedResultsController(FetchRequest<Chore>(), sectionedBy: .init(\.cost), context: context)
            try byCost.performFetch()
            #expect(byCost.snapshot.sections.map(\.name) == costs)
        }
    }

    @Test(arguments: TestStore.allCases)
    func `S139: batches set raw values, Codable values and relationships`(_ store: TestStore) async throws {
        try await open(store) { container, context in
            let all = FetchRequest<Chore>(where: #Predicate { $0.title == "first" })
            let chore = try #require(try context.fetch(all).first)
            let project = try #require(try context.find(unique: \Tasks.Project.code, "b"))
            try await container.coordinator.batchUpdate(
                all, .set(\.status, to: .open), .set(\.former, to: nil), .set(\.place, to: Tasks.Place(city: "Oslo")),
                .set(\.places, to: [Tasks.Place(city: "Rome")]), .set(\.other, to: nil), .set(\.rank, to: .low),
                .set(\.cost, to: 12.5), .set(\.project, \.code, to: "b"))
            let other = container.newBackgroundContext()
            let id = chore.id
            let projectID = project.id
            try await other.perform { context throws in
                let chore = try #require(context.model(for: id) as? Chore)
                #expect(chore.status == .open && chore.former == nil && chore.place.city == "Oslo")
                #expect(chore.places == [Tasks.Place(city: "Rome")] && chore.rank == .low && chore.cost == 12.5)
                #expect(chore.project.id == projectID)
            }
            try await container.coordinator.batchUpdate(
                all, .set(\.former, to: .done), .set(\.other, to: Tasks.Place(city: "Bern")), .set(\.project, to: projectID))
            try await container.newBackgroundContext().perform { context throws in
                let chore = try #require(context.model(for: id) as? Chore)
                #expect(chore.former == .done && chore.other?.city == "Bern" && chore.project.id == projectID)
            }
        }
    }

    @Test(arguments: TestStore.allCases)
    func `S133, S139: rows, columns, aggregates and look-ups take raw and Codable values`(_ store: TestStore) async throws {
        try await open(store) { _, context in
            let rows = try context.rows(\Chore.title, \.status, sortBy: [.init(.property(\.status))])
            #expect(rows.map(\.0) == ["second", "first"] && rows.map(\.1) == [.done, .waiting])
            let sorted = try context.rows(\Chore.title, \.status, sortBy: [.init(\.status, .descending)])
            #expect(sorted.map(\.0) == ["first", "second"])
            let open = try context.fetch(
                where: #Predicate<Chore> { $0.title != "" }, sortBy: [.init(\.title, .descending)], limit: 1)
            #expect(open.map(\.title) == ["second"])
            let values = try context.rows(\Chore.rank, \.former, \.place, \.other, where: #Predicate { $0.title == "first" })
            #expect(values.count == 1 && values[0].0 == .low && values[0].1 == .open)
            #expect(values[0].2.city == "first" && values[0].3 == nil)
            let request = ValueRequest<Chore>(
                [.property(\.status), .count, .max(\.rank), .min(\.former), .count(\.former)], groupBy: [.property(\.status)])
            let groups = try context.fetch(request)
            #expect(groups.map { $0.value(\Chore.status) } == [.done, .waiting])
            #expect(groups.map { $0["max(rank)"] } == [.int(5), .int(1)])
            #expect(groups.map { $0["count(former)"] } == [.int(0), .int(1)])
            let pairs = ValueRequest<Chore>(
                [.property(\.project, \.name), .property(\.project, \.kind), .property(\.place)],
                sortBy: [.init(.property(\.title))])
            let tuples = try context.rows(pairs, as: (String, Tasks.Status, Tasks.Place).self)
            #expect(tuples.map(\.0) == ["Zoo", "Attic"] && tuples.map(\.1) == [.open, .done])
            #expect(tuples.map(\.2.city) == ["first", "second"])
            struct Row: Decodable { var ticket: Tasks.Ticket? }
            let tickets = ValueRequest<Chore>([.property(\.ticket)], sortBy: [.init(.property(\.title))])
            #expect(try context.rows(tickets, as: Row.self).map(\.ticket) == [Tasks.ticket, nil])
            let given = ValueRequest<Chore>([.property(\.ticket)], where: #Predicate { $0.title == "first" })
            #expect(try context.rows(given, as: Tasks.Ticket.self) == [Tasks.ticket])
            #expect(throws: FetchError.self) { try context.rows(tickets, as: Tasks.Ticket.self) }
            let lists = ValueRequest<Chore>([.property(\.places)])
            #expect(try context.rows(lists, as: [Tasks.Place].self) == [[], []])
            let states = ValueRequest<Chore>([.property(\.status)], sortBy: [.init(.property(\.title))])
            #expect(try context.rows(states, as: Tasks.Status.self) == [.waiting, .done])
            #expect(throws: FetchError.self) { try context.rows(\Chore.title, \.parent) }
            #expect(try context.minimum(\Chore.status) == .done && context.maximum(\Chore.status) == .waiting)
            #expect(try context.maximum(\Chore.former) == .open && context.minimum(\Chore.rank) == .low)
            #expect(try context.find(unique: \Chore.rank, .high)?.title == "second")
            let project = try #require(try context.find(unique: \Tasks.Project.code, "a"))
            let found = try context.upsert(unique: \Chore.rank, .low) { $0.project = project }
            #expect(found.title == "first")
            found.slot = .done
            #expect(try context.upsert(unique: \Chore.slot, .done) { $0.title += "!" } === found && found.title == "first!")
            #expect(try context.find(unique: \Chore.slot, .done) === found && context.find(unique: \Chore.slot, .open) == nil)
        }
    }

    @Test(arguments: TestStore.allCases)
    func `S133: sums and means of decimals are exact, with unsaved changes`(_ store: TestStore) async throws {
        try await open(store) { _, context in
            #expect(try context.sum(\Chore.cost) == 0 && context.sum(\Chore.tip) == 0 && context.average(\Chore.tip) == nil)
            let project = try #require(try context.find(unique: \Tasks.Project.code, "a"))
            let chores = try context.fetch(FetchRequest<Chore>())
            let cents = Self.decimal("0.1")
            for chore in chores { chore.cost = cents }
            try await context.save()
            #expect(try context.sum(\Chore.cost) == Decimal(string: "0.2"))
            let large = Chore("third", .open, rank: .low, project: project)
            large.cost = Self.decimal("12345678901234567890123456.01")
            large.tip = Self.decimal("-0.30")
            context.insert(large)
            chores[0].cost = Self.decimal("0.05")
            #expect(try context.sum(\Chore.cost) == Decimal(string: "12345678901234567890123456.16"))
            let tips = Decimal(string: "-0.3")
            #expect(try context.sum(\Chore.tip) == tips && context.average(\Chore.tip) == tips)
            let some = FetchRequest<Chore>(where: #Predicate { $0.title != "third" })
            #expect(try context.average(\Chore.cost, of: some) == Decimal(string: "0.075"))
            let one = FetchRequest<Chore>(sortBy: [.init(\.cost, .descending)], limit: 1)
            #expect(try context.sum(\Chore.cost, of: one) == large.cost)
            context.rollback()
            #expect(try context.sum(\Chore.cost) == Decimal(string: "0.2"))
        }
    }

    /// Catches: groups whose decimals a store adds up as other numbers, or not at all.
    @Test(arguments: TestStore.allCases)
    func `S133: sums and means of decimals are computed per group, with unsaved changes`(_ store: TestStore) async throws {
        try await open(store) { _, context in
            let project = try #require(try context.find(unique: \Tasks.Project.code, "a"))
            for (chore, cost) in zip(try context.fetch(FetchRequest<Chore>(sortBy: [.init(\.title)])), ["0.1", "7"]) {
                chore.cost = Self.decimal(cost)
            }
            try await context.save()
            let third = Chore("third", .open, rank: .low, project: project)
            third.cost = Self.decimal("0.20")
            third.tip = Self.decimal("-0.5")
            context.insert(third)
            var request = ValueRequest<Chore>(
                [
                    .property(\.project, \.code), .sum(\.cost).named("cost"), .average(\.cost), .sum(\.tip), .average(\.tip),
                    .count,
                ],
                groupBy: [.property(\.project, \.code)])
            func fetch() throws -> [(String, Decimal, Decimal, Decimal, Decimal?, Int)] {
                try context.rows(request, as: (String, Decimal, Decimal, Decimal, Decimal?, Int).self)
            }
            let rows = try fetch()
            #expect(rows.map(\.0) == ["a", "b"] && rows.map(\.5) == [2, 1])
            #expect(rows.map(\.1) == [Self.decimal("0.3"), 7] && rows.map(\.2) == [Self.decimal("0.15"), 7])
            #expect(rows.map(\.3) == [Self.decimal("-0.5"), 0] && rows.map(\.4) == [Self.decimal("-0.5"), nil])
            #expect("\(try context.fetch(request)[0])".contains("cost: 0.3, average(cost): 0.15, sum(tip): -0.5"))
            request.sortBy = [.init(.sum(\.cost).named("cost"), .descending)]
            #expect(try fetch().map(\.0) == ["b", "a"])
            request.having = ModelColumn<Chore>.sum(\.cost).named("cost").is(.greater, Self.decimal("0.3"))
            #expect(try fetch().map(\.0) == ["b"])
            let all = try context.rows(ValueRequest<Chore>([.sum(\.cost), .count]), as: (Decimal, Int).self)
            #expect(all.map(\.0) == [Self.decimal("7.3")] && all.map(\.1) == [3])
            #expect(try context.aggregate(ModelColumn<Chore>.sum(\.cost)) == Self.decimal("7.3").storeValue)
            #expect(try context.aggregate(ModelColumn<Chore>.average(\.tip)) == Self.decimal("-0.5").storeValue)
            context.rollback()
            #expect(try fetch().map(\.1) == [7])
        }
    }

    private func setCosts(_ context: ManagedObjectContext) throws {
        for (chore, cost) in zip(try context.fetch(FetchRequest<Chore>(sortBy: [.init(\.title)])), ["0.1", "7"]) {
            chore.cost = Self.decimal(cost)
        }
    }

    /// Catches: numbers that are compared with the bytes of decimals, which are greater than every number.
    @Test(arguments: TestStore.allCases)
    func `S134: conditions by name compare numbers with decimals as decimals`(_ store: TestStore) async throws {
        try await open(store) { _, context in
            try setCosts(context)
            func count(_ condition: Condition) throws -> Int {
                try context.count(EntityFetchRequest("Chore", matching: condition))
            }
            for isSaved in [false, true] {
                if isSaved { try await context.save() }
                #expect(try count(.compare("cost", .greater, to: 5)) == 1)
                #expect(try count(.compare("cost", .lessOrEqual, to: .uint(7))) == 2)
                #expect(try count(.equal("cost", 7)) == 1 && count(.compare("cost", .notEqual, to: 7)) == 1)
                #expect(try count(.not(.equal("cost", 7))) == 1)
                #expect(try count(.between("cost", 0, and: 10)) == 2 && count(.between("cost", 1, and: 10)) == 1)
                #expect(try count(.isIn("cost", [7])) == 1 && count(.isIn("cost", [0.1, 7, 8])) == 2)
                #expect(try count(.equal("cost", 0.1)) == 1 && count(.compare("cost", .less, to: 0.5)) == 1)
                #expect(try count(.compare("parent.cost", .less, to: 5)) == 1)
                #expect(try count(.compare("tip", .less, to: 5)) == 0)
                for number in [Double.infinity, 1e200] {
                    #expect(try count(.compare("cost", .less, to: .double(number))) == 2)
                    #expect(try count(.compare("cost", .greater, to: .double(number))) == 0)
                    #expect(try count(.compare("cost", .greater, to: .double(-number))) == 2)
                }
                #expect(try count(.compare("cost", .greater, to: .double(1e-200))) == 2)
                for comparison in [StorePredicate.Comparison.less, .equal, .greater] {
                    #expect(try count(.compare("cost", comparison, to: .double(.nan))) == 0)
                }
            }
        }
    }

    /// Catches: a condition that selects every object, because values of its type come after all numbers.
    @Test(arguments: TestStore.allCases)
    func `S134: a comparison of order with a constant of another type is refused`(_ store: TestStore) async throws {
        try await open(store) { _, context in
            func count(_ condition: Condition) throws -> Int {
                try context.count(EntityFetchRequest("Chore", matching: condition))
            }
            let error = #expect(throws: FetchError.self) { try count(.compare("title", .greater, to: 5)) }
            #expect(
                error?.message == "cannot evaluate a predicate: it uses 5 instead of a value of the type string in a comparison "
                    + "of Chore.title, which is not supported. Fetch with the other conditions, and filter the objects in Swift.")
            #expect(throws: FetchError.self) { try count(.between("project.code", 1, and: 2)) }
            #expect(throws: FetchError.self) { try count(.compare("rank", .less, to: "5")) }
            let decimal = #expect(throws: FetchError.self) { try count(.compare("cost", .less, to: "5")) }
            #expect(decimal?.message.contains("\"5\" instead of a value of the type decimal") == true)
            let counts = try [
                count(.equal("title", 5)), count(.compare("title", .less, to: .null)), count(.compare("rank", .less, to: 1.5)),
                count(.compare("rank", .less, to: .double(.nan))),
            ]
            #expect(counts == [0, 0, 1, 0])
        }
    }

    @Test(arguments: TestStore.allCases)
    func `S133: having compares numbers with decimals as decimals`(_ store: TestStore) async throws {
        try await open(store) { _, context in
            try setCosts(context)
            let cost = ModelColumn<Chore>.sum(\.cost)
            let (mean, least) = (ModelColumn<Chore>.average(\.cost), ModelColumn<Chore>.min(\.cost))
            func codes(_ having: Condition) throws -> [String] {
                let request = ValueRequest<Chore>(
                    [.property(\.project, \.code), cost, mean, least, .count], groupBy: [.property(\.project, \.code)],
                    having: having)
                return try context.rows(request, as: (String, Decimal, Decimal, Decimal, Int).self).map(\.0)
            }
            for isSaved in [false, true] {
                if isSaved { try await context.save() }
                #expect(try codes(cost.is(.greater, 100)) == [] && codes(cost.is(.less, 100)) == ["a", "b"])
                #expect(try codes(cost.is(.equal, 7)) == ["b"] && codes(cost.is(.equal, 0.1)) == ["a"])
                #expect(try codes(mean.is(.lessOrEqual, 5)) == ["a"] && codes(least.is(.greater, 5)) == ["b"])
                #expect(try codes(.between("sum(cost)", 1, and: 10)) == ["b"] && codes(.isIn("sum(cost)", [7])) == ["b"])
                #expect(try codes(.not(cost.is(.greaterOrEqual, 7))) == ["a"])
                let parts = [cost.is(.greater, 100), ModelColumn<Chore>.count.is(.equal, 1)]
                #expect(try codes(.any(parts)) == ["a", "b"] && codes(.all(parts)) == [])
            }
        }
    }

    @Test(arguments: TestStore.allCases)
    func `S130, S140: a live result refuses a typed request that leaves out unsaved changes`(_ store: TestStore) async throws {
        try await open(store) { _, context in
            var request = FetchRequest<Chore>(sortBy: [.init(\.title)])
            request.includesPendingChanges = false
            let error = #expect(throws: FetchError.self) { try Results(request, context: context) }
            #expect(
                error?.message == "cannot create a live result of Chore: the request leaves out unsaved changes, which a live "
                    + "result follows. Set includesPendingChanges to true, or fetch the request.")
            #expect(throws: FetchError.pendingChangesRequired(entity: "Chore")) {
                try FetchedResultsController(request, sectionedBy: .init(\.status), context: context)
            }
        }
    }

    @Test(arguments: TestStore.allCases)
    func `S138: a sort by an optional chain is refused with the spelling that works`(_ store: TestStore) async throws {
        try await open(store) { _, context in
            let request = FetchRequest<Chore>(sortBy: [.init(\.parent?.title)])
            let error = #expect(throws: FetchError.self) { try context.fetch(request) }
            #expect(
                error?.message == "cannot sort Chore by \\.relationship?.attribute: the parts of an optional chain have no names "
                    + "at run time. Write .init(\\.relationship, by: \\.attribute).")
        }
    }

    @Test(arguments: TestStore.allCases)
    func `S134: an optional to-many relationship is never nil in a predicate`(_ store: TestStore) async throws {
        try await store.use { description in
            let container = try await PersistentContainer(model: Model(Shelves.types), store: description)
            let context = container.mainContext
            context.insert(Shelves.Shelf(name: "empty", volumes: nil))
            context.insert(Shelves.Shelf(name: "full", volumes: [Shelves.Volume(title: "one")]))
            for isSaved in [false, true] {
                if isSaved { try await context.save() }
                #expect(try context.count(where: #Predicate<Shelves.Shelf> { $0.volumes == nil }) == 0)
                #expect(try context.count(where: #Predicate<Shelves.Shelf> { $0.volumes != nil }) == 2)
            }
        }
    }
}
