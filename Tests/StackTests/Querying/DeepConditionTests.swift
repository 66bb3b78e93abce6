import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Nesting has one limit on every store and stack. Lists have none.
@Suite struct DeepConditionTests {
    /// Every way to nest: each adds one level around a condition that is true for the artist Ann.
    private static let ways: [(name: String, around: @Sendable (Condition, Int) -> Condition)] = [
        ("not", { part, _ in .not(part) }),
        ("lists", { part, level in level % 2 == 0 ? .all([part, isNamed]) : .any([part, isUnnamed]) }),
        ("related", { part, _ in .related("pupils", .any, where: part) }),
        ("every related", { part, _ in .related("pupils", .all, where: part) }),
        ("counts", { part, _ in .relatedCount("pupils", where: part, .equal, to: 1) }),
        ("mixed", { part, level in level % 2 == 0 ? .related("pupils", .any, where: part) : .all([part, isNamed]) }),
    ]
    private static let isUnnamed = Condition.equal("name", .string(""))
    private static let isNamed = Condition.compare("name", .notEqual, to: .string(""))

    private static func nested(_ way: (Condition, Int) -> Condition, levels: Int) -> Condition {
        var condition = Condition.equal("name", .string("Ann"))
        while condition.depth < levels { condition = way(condition, condition.depth) }
        return condition
    }

    private static func path(_ names: Int) -> Condition {
        .equal((Array(repeating: "mentor", count: names - 1) + ["name"]).joined(separator: "."), .string("Ann"))
    }

    /// Inserts Ann, who is a pupil of herself, so that a condition may follow the relationship any number of times.
    private static func addAnn(_ context: ManagedObjectContext) {
        let ann = context.makeArtist("Ann")
        ann.setRelatedObject("mentor", to: ann)
    }

    private static func found(_ condition: Condition, _ context: ManagedObjectContext) throws -> Int {
        let request = EntityFetchRequest("Artist", matching: condition, sortBy: [AttributeSort("name")])
        let found = try context.fetch(request).count
        #expect(try context.count(request) == found)
        #expect(try !context.explain(request).isEmpty)
        #expect(try context.aggregate(.count, of: request) == .int(Int64(found)))
        return found
    }

    private static func expectAtTheLimit(_ context: ManagedObjectContext) throws {
        let limit = Condition.maximumDepth
        for way in ways {
            let condition = nested(way.around, levels: limit)
            #expect(condition.depth == limit, "\(way.name)")
            // Ann is her own only pupil. A condition with an odd number of negations is false for her.
            let expected = way.name == "not" && limit % 2 == 0 ? 0 : 1
            #expect(try found(condition, context) == expected, "\(way.name)")
        }
        #expect(try found(path(limit), context) == 1)
    }

    private static func expectRefused(_ condition: Condition, _ context: ManagedObjectContext) {
        let error = FetchError.conditionTooDeep(entity: "Artist", depth: condition.depth, limit: Condition.maximumDepth)
        #expect(condition == condition && condition.hashValue == condition.hashValue)
        #expect("\(condition)".utf8.count < 100)
        let request = EntityFetchRequest("Artist", matching: condition)
        #expect(throws: error) { try context.fetch(request) }
        #expect(throws: error) { try context.fetchIDs(request) }
        #expect(throws: error) { try context.count(request) }
        #expect(throws: error) { try context.explain(request) }
        #expect(throws: error) { try context.aggregate(.count, of: request) }
        let values = EntityValueRequest("Artist", fetching: [.property("name")], matching: condition)
        #expect(throws: error) { try context.fetch(values) }
        let groups = EntityValueRequest("Artist", fetching: [.property("name"), .count], groupBy: ["name"], having: condition)
        #expect(throws: error) { try context.fetch(groups) }
    }

    @Test(arguments: Combination.all)
    func `S134: conditions are answered up to the limit of nesting and refused beyond it`(
        _ combination: Combination
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let context = await container.newBackgroundContext()
        try await context.perform { context throws in
            Self.addAnn(context)
            try Self.expectAtTheLimit(context)
        }
        try await context.save(through: .store)
        try await context.perform { context throws in
            try Self.expectAtTheLimit(context)
            for levels in [Condition.maximumDepth + 1, 2_000] {
                for way in Self.ways {
                    let condition = Self.nested(way.around, levels: levels)
                    #expect(condition.depth == levels)
                    Self.expectRefused(condition, context)
                }
                Self.expectRefused(Self.path(levels), context)
            }
        }
    }

    @Test func `S134: a condition of 100,000 levels is made, compared, printed and refused`() async throws {
        try await TestBed(.memory).container().newBackgroundContext().perform { context in
            for way in Self.ways { Self.expectRefused(Self.nested(way.around, levels: 100_000), context) }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `S134: a batch with a condition that is nested too deep changes nothing`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let condition = Self.nested(Self.ways[0].around, levels: 2_001)
        let request = EntityFetchRequest("Artist", matching: condition)
        let error = FetchError.conditionTooDeep(entity: "Artist", depth: 2_001, limit: Condition.maximumDepth)
        await #expect(throws: error) { try await container.coordinator.batchDelete(request) }
        await #expect(throws: error) {
            try await container.coordinator.batchUpdate(request, set: ["name": .string("changed")])
        }
        #expect("\(error)".contains("2001 levels") && "\(error)".contains("64"))
    }

    @Test(arguments: StoreKind.allCases)
    func `S134: a list of 10,000 parts is answered, also inside of other conditions`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let context = await container.newBackgroundContext()
        await context.perform { context in
            for number in 0..<12 { context.makeTrack("\(number)", plays: number) }
        }
        try await context.save(through: .store)
        try await context.perform { context throws in
            func list(_ count: Int, _ part: (Value) -> Condition) -> [Condition] { (0..<count).map { part(.int(Int64($0) * 3)) } }
            func count(_ condition: Condition) throws -> Int {
                try context.count(EntityFetchRequest("Track", matching: condition))
            }
            let plays = list(10_000) { .equal("plays", $0) }
            #expect(try count(.any(plays)) == 4)
            #expect(try count(.any(list(17_000) { .between("plays", $0, and: $0) })) == 4)
            #expect(try count(.all(list(2_000) { .compare("plays", .notEqual, to: $0) })) == 8)
            let few = Condition.any(list(200) { .equal("plays", $0) })
            let isOther = Condition.not(.equal("title", .string("3")))
            #expect(try count(.not(.any([.not(.all([few, isOther])), .isNil("title")]))) == 3)
            let chained = (0..<500).reduce(Condition.any([])) { .any([$0, .equal("plays", .int(Int64($1) * 3))]) }
            #expect(try chained.depth == 2 && count(chained) == 4)
        }
    }
}
