import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// A model with a property of each stored type. Some are indexed.
final class Measure: PersistentModel {
    private let anchor: ModelAnchor
    var managedObject: ManagedObject { anchor.object }

    var small: Int8? { managedObject.get(0) }
    var big: Int { managedObject.get(1) }
    var other: Int { managedObject.get(2) }
    var unsigned: UInt64? { managedObject.get(3) }
    var single: Float? { managedObject.get(4) }
    var double: Double { managedObject.get(5) }
    var ratio: Double? { managedObject.get(6) }
    var amount: Decimal? { managedObject.get(7) }
    var date: Date? { managedObject.get(8) }
    var text: String { managedObject.get(9) }
    var note: String? { managedObject.get(10) }
    var bytes: Data? { managedObject.get(11) }
    var uuid: UUID? { managedObject.get(12) }
    var flag: Bool? { managedObject.get(13) }
    var next: Measure? { managedObject.toOne(0, 14) }

    init(managedObject: ManagedObject) { anchor = ModelAnchor(managedObject) }

    static let entityDescription = EntityDescription(
        name: "Measure",
        properties: [
            .attribute(AttributeDescription("small", of: \Measure.small)),
            .attribute(AttributeDescription("big", of: \Measure.big, index: .indexed)),
            .attribute(AttributeDescription("other", of: \Measure.other)),
            .attribute(AttributeDescription("unsigned", of: \Measure.unsigned, index: .indexed)),
            .attribute(AttributeDescription("single", of: \Measure.single, index: .indexed)),
            .attribute(AttributeDescription("double", of: \Measure.double, index: .indexed)),
            .attribute(AttributeDescription("ratio", of: \Measure.ratio)),
            .attribute(AttributeDescription("amount", of: \Measure.amount, index: .indexed)),
            .attribute(AttributeDescription("date", of: \Measure.date, index: .indexed)),
            .attribute(AttributeDescription("text", of: \Measure.text, index: .indexed)),
            .attribute(AttributeDescription("note", of: \Measure.note)),
            .attribute(AttributeDescription("bytes", of: \Measure.bytes, index: .indexed)),
            .attribute(AttributeDescription("uuid", of: \Measure.uuid, index: .indexed)),
            .attribute(AttributeDescription("flag", of: \Measure.flag, index: .indexed)),
            .relationship(
                RelationshipDescription(name: "next", destination: "Measure", cardinality: .toOne, inference: .refused)),
        ])

    // Right because it is never changed.
    nonisolated(unsafe) static let columnsByKeyPath: [AnyKeyPath: String] = [
        \Measure.small: "small", \Measure.big: "big", \Measure.other: "other", \Measure.unsigned: "unsigned",
        \Measure.single: "single", \Measure.double: "double", \Measure.ratio: "ratio", \Measure.amount: "amount",
        \Measure.date: "date", \Measure.text: "text", \Measure.note: "note", \Measure.bytes: "bytes", \Measure.uuid: "uuid",
        \Measure.flag: "flag", \Measure.next: "next",
    ]
}

/// Random predicates over values at the limits of their types, compared with Swift's own evaluation of the same predicate.
@Suite struct ExtremeValueTests {
    typealias Part = any StandardPredicateExpression<Bool>
    typealias Object = PredicateExpressions.Variable<Measure>

    // MARK: Values

    static let smalls: [Int8] = [.min, -1, 0, 1, .max]
    static let bigs: [Int] = [.min, .min + 1, -1, 0, 1, 1 << 53, 1 << 53 + 1, .max - 1, .max]
    static let unsigneds: [UInt64] = [0, 1, UInt64(Int64.max), UInt64(Int64.max) + 1, .max]
    static let singles: [Float] = [
        -.infinity, -.greatestFiniteMagnitude, -0.0, 0, .leastNonzeroMagnitude, 0.1, 16_777_216, .greatestFiniteMagnitude,
        .infinity,
        .nan,
    ]
    static let doubles: [Double] = [
        -.infinity, -.greatestFiniteMagnitude, -1, -0.0, 0, .leastNonzeroMagnitude, 0.1, 9_007_199_254_740_992, .infinity, .nan,
    ]
    static let amounts: [Decimal] = [
        -Decimal.greatestFiniteMagnitude, -1, Decimal(string: "-0.10") ?? 0, 0, Decimal.leastNonzeroMagnitude,
        Decimal(string: "0.1") ?? 0, Decimal(string: "1.00") ?? 0, 10, Decimal.greatestFiniteMagnitude,
    ]
    static let dates: [Date] = [
        .distantPast, Date(timeIntervalSinceReferenceDate: -0.0), Date(timeIntervalSinceReferenceDate: 0),
        Date(timeIntervalSinceReferenceDate: 0.000_001), .distantFuture, Date(timeIntervalSinceReferenceDate: .infinity),
    ]
    static let texts = [
        "", "\0", "a", "a\0", "a\0b", "A", "ab", "é", "ß", "ﬃ", "\u{FFFD}", "😀", "z\u{10FFFF}", "%", "_", "'\"\\",
    ]
    static let blobs: [Data] = [Data(), Data([0]), Data([0, 0]), Data([127]), Data([128]), Data([255]), Data([255, 255])]
    static let uuids: [UUID] = [
        UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)),
        UUID(uuid: (127, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1)),
        UUID(uuid: (128, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)),
        UUID(uuid: (255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255)),
    ]

    private static func fill(_ object: ManagedObject, _ others: [ManagedObject], _ random: inout SeededGenerator) {
        func pick<V: AttributeValue>(_ name: String, _ values: [V], nils: Int = 25) {
            object[name] = random.chance(nils) ? .null : values[random.below(values.count)].storeValue
        }
        pick("small", smalls)
        pick("big", bigs, nils: 0)
        pick("other", bigs, nils: 0)
        pick("unsigned", unsigneds)
        pick("single", singles)
        pick("double", doubles, nils: 0)
        pick("ratio", doubles)
        pick("amount", amounts)
        pick("date", dates)
        pick("text", texts, nils: 0)
        pick("note", texts)
        pick("bytes", blobs)
        pick("uuid", uuids)
        pick("flag", [true, false])
        object.setRelatedObject("next", to: random.chance(70) ? others.randomElement(using: &random) : nil)
    }

    private static func change(_ context: ManagedObjectContext, steps: Int, _ random: inout SeededGenerator) throws {
        for _ in 0..<steps {
            let all = try context.fetch(EntityFetchRequest("Measure"))
            switch random.below(6) {
            case 0 where all.count > 10: context.delete(all[random.below(all.count)])
            case 1 where !all.isEmpty, 2 where !all.isEmpty: fill(all[random.below(all.count)], all, &random)
            default: fill(context.insert("Measure"), all, &random)
            }
        }
    }

    // MARK: Predicates

    private static func compared<A: StandardPredicateExpression, B: StandardPredicateExpression>(
        _ a: A, _ b: B, _ random: inout SeededGenerator
    ) -> Part where A.Output == B.Output, A.Output: Comparable {
        switch random.below(6) {
        case 0: PredicateExpressions.build_Equal(lhs: a, rhs: b)
        case 1: PredicateExpressions.build_NotEqual(lhs: a, rhs: b)
        case 2: PredicateExpressions.build_Comparison(lhs: a, rhs: b, op: .lessThan)
        case 3: PredicateExpressions.build_Comparison(lhs: a, rhs: b, op: .lessThanOrEqual)
        case 4: PredicateExpressions.build_Comparison(lhs: a, rhs: b, op: .greaterThan)
        default: PredicateExpressions.build_Comparison(lhs: a, rhs: b, op: .greaterThanOrEqual)
        }
    }

    private static func value<V: Comparable & Codable & Sendable, E: StandardPredicateExpression<V>>(
        _ property: E, _ values: [V], _ random: inout SeededGenerator
    ) -> Part {
        let one = values[random.below(values.count)]
        let some = (0..<random.below(4)).map { _ in values[random.below(values.count)] }
        switch random.below(4) {
        case 0: return PredicateExpressions.build_contains(PredicateExpressions.build_Arg(some), property)
        case 1:
            let (lower, upper) = (values[random.below(values.count)], values[random.below(values.count)])
            guard lower <= upper else { return compared(property, PredicateExpressions.build_Arg(one), &random) }
            return random.chance(50)
                ? PredicateExpressions.build_contains(PredicateExpressions.build_Arg(lower...upper), property)
                : PredicateExpressions.build_contains(PredicateExpressions.build_Arg(lower..<upper), property)
        case 2: return compared(PredicateExpressions.build_Arg(one), property, &random)
        default: return compared(property, PredicateExpressions.build_Arg(one), &random)
        }
    }

    private static func optional<V: Comparable & Codable & Sendable, E: StandardPredicateExpression<V?>>(
        _ property: E, _ values: [V], _ random: inout SeededGenerator
    ) -> Part {
        let one: V? = random.chance(20) ? nil : values[random.below(values.count)]
        let other = values[random.below(values.count)]
        let some = (0..<random.below(4)).map { _ in random.chance(30) ? nil : values[random.below(values.count)] }
        switch random.below(7) {
        case 0: return PredicateExpressions.build_Equal(lhs: property, rhs: PredicateExpressions.build_Arg(one))
        case 1: return PredicateExpressions.build_NotEqual(lhs: PredicateExpressions.build_Arg(one), rhs: property)
        case 2: return PredicateExpressions.build_Equal(lhs: property, rhs: PredicateExpressions.build_NilLiteral())
        case 3: return PredicateExpressions.build_contains(PredicateExpressions.build_Arg(some), property)
        case 4:
            let filled = PredicateExpressions.build_NilCoalesce(lhs: property, rhs: PredicateExpressions.build_Arg(other))
            return value(filled, values, &random)
        case 5:
            let mapped = PredicateExpressions.build_flatMap(property) {
                PredicateExpressions.build_Comparison(lhs: $0, rhs: PredicateExpressions.build_Arg(other), op: .lessThan)
            }
            let wanted: Bool? = [true, false, nil][random.below(3)]
            return random.chance(50)
                ? PredicateExpressions.build_Equal(lhs: mapped, rhs: PredicateExpressions.build_Arg(wanted))
                : PredicateExpressions.build_NotEqual(lhs: mapped, rhs: PredicateExpressions.build_Arg(wanted))
        default:
            let filled = PredicateExpressions.build_NilCoalesce(
                lhs: PredicateExpressions.build_flatMap(property) {
                    PredicateExpressions.build_NotEqual(lhs: $0, rhs: PredicateExpressions.build_Arg(other))
                }, rhs: PredicateExpressions.build_Arg(random.chance(50)))
            return filled
        }
    }

    private static func own<E: StandardPredicateExpression<Measure>>(_ object: E, _ random: inout SeededGenerator) -> Part {
        func at<V>(_ path: any KeyPath<Measure, V> & Sendable) -> PredicateExpressions.KeyPath<E, V> {
            PredicateExpressions.build_KeyPath(root: object, keyPath: path)
        }
        switch random.below(18) {
        case 0: return optional(at(\.small), smalls, &random)
        case 1: return value(at(\.big), bigs, &random)
        case 2: return optional(at(\.unsigned), unsigneds, &random)
        case 3: return optional(at(\.single), singles, &random)
        case 4: return value(at(\.double), doubles, &random)
        case 5: return optional(at(\.ratio), doubles, &random)
        case 6: return optional(at(\.amount), amounts, &random)
        case 7: return optional(at(\.date), dates, &random)
        case 8: return value(at(\.text), texts, &random)
        case 9: return optional(at(\.note), texts, &random)
        case 10: return optional(at(\.uuid), uuids, &random)
        case 11: return compared(at(\.big), at(\.other), &random)
        case 12:
            let text = texts[random.below(texts.count)]
            return random.chance(50)
                ? PredicateExpressions.build_contains(at(\.text), PredicateExpressions.build_Arg(text))
                : PredicateExpressions.build_starts(at(\.text), with: PredicateExpressions.build_Arg(text))
        case 13:
            let one: Data? = random.chance(20) ? nil : blobs[random.below(blobs.count)]
            return random.chance(50)
                ? PredicateExpressions.build_Equal(lhs: at(\.bytes), rhs: PredicateExpressions.build_Arg(one))
                : PredicateExpressions.build_NotEqual(lhs: at(\.bytes), rhs: PredicateExpressions.build_Arg(one))
        case 14:
            let one: Bool? = [true, false, nil][random.below(3)]
            return random.chance(50)
                ? PredicateExpressions.build_Equal(lhs: at(\.flag), rhs: PredicateExpressions.build_Arg(one))
                : PredicateExpressions.build_NotEqual(lhs: at(\.flag), rhs: PredicateExpressions.build_Arg(one))
        case 15:
            return PredicateExpressions.build_NilCoalesce(lhs: at(\.flag), rhs: PredicateExpressions.build_Arg(random.chance(50)))
        case 16:
            return random.chance(50)
                ? PredicateExpressions.build_Equal(lhs: at(\.note), rhs: at(\.note))
                : PredicateExpressions.build_NotEqual(lhs: at(\.ratio), rhs: at(\.ratio))
        default: return compared(at(\.double), at(\.double), &random)
        }
    }

    private static func through<E: StandardPredicateExpression<Measure>>(_ object: E, _ random: inout SeededGenerator) -> Part {
        let next = PredicateExpressions.build_KeyPath(root: object, keyPath: \Measure.next)
        let amount = PredicateExpressions.build_flatMap(next) {
            PredicateExpressions.build_KeyPath(root: $0, keyPath: \Measure.amount)
        }
        let text = PredicateExpressions.build_flatMap(next) {
            PredicateExpressions.build_KeyPath(root: $0, keyPath: \Measure.text)
        }
        let double = PredicateExpressions.build_flatMap(next) {
            PredicateExpressions.build_KeyPath(root: $0, keyPath: \Measure.double)
        }
        let far = PredicateExpressions.build_flatMap(next) { next in
            PredicateExpressions.build_flatMap(PredicateExpressions.build_KeyPath(root: next, keyPath: \Measure.next)) {
                PredicateExpressions.build_KeyPath(root: $0, keyPath: \Measure.note)
            }
        }
        switch random.below(4) {
        case 0: return optional(amount, amounts, &random)
        case 1: return optional(text, texts, &random)
        case 2: return optional(double, doubles, &random)
        default: return optional(far, texts, &random)
        }
    }

    private static func both<A: StandardPredicateExpression<Bool>, B: StandardPredicateExpression<Bool>>(
        _ a: A, _ b: B, isAnd: Bool
    ) -> Part {
        isAnd ? PredicateExpressions.build_Conjunction(lhs: a, rhs: b) : PredicateExpressions.build_Disjunction(lhs: a, rhs: b)
    }

    private static func not<A: StandardPredicateExpression<Bool>>(_ a: A) -> Part { PredicateExpressions.build_Negation(a) }

    private static func same<A: StandardPredicateExpression<Bool>, B: StandardPredicateExpression<Bool>>(_ a: A, _ b: B) -> Part {
        PredicateExpressions.build_Equal(lhs: a, rhs: b)
    }

    private static func choice<A: StandardPredicateExpression<Bool>, B: StandardPredicateExpression<Bool>>(_ a: A, _ b: B) -> Part
    {
        PredicateExpressions.build_Conditional(a, b, PredicateExpressions.build_Negation(b))
    }

    private static func part(_ object: Object, depth: Int, _ random: inout SeededGenerator) -> Part {
        switch random.below(depth > 0 ? 8 : 3) {
        case 0, 1: return own(object, &random)
        case 2: return through(object, &random)
        case 3: return not(part(object, depth: depth - 1, &random))
        case 4: return same(part(object, depth: depth - 1, &random), part(object, depth: depth - 1, &random))
        case 5: return choice(part(object, depth: depth - 1, &random), part(object, depth: depth - 1, &random))
        default:
            let (a, b) = (part(object, depth: depth - 1, &random), part(object, depth: depth - 1, &random))
            return both(a, b, isAnd: random.chance(50))
        }
    }

    // MARK: Comparing

    private static func compare(_ context: ManagedObjectContext, _ what: String, _ random: inout SeededGenerator) throws {
        let objects = try context.fetch(FetchRequest<Measure>())
        for _ in 0..<Rounds.of(60, long: 3000) {
            let start = random
            var end = random
            let predicate = Predicate<Measure> { object in
                var copy = start
                defer { end = copy }
                return part(object, depth: copy.below(4), &copy)
            }
            random = end
            let expected = try objects.filter { try predicate.evaluate($0) }.map(\.id)
            let found = try context.fetchIDs(FetchRequest(where: predicate))
            guard found == expected else {
                let wrong = objects.first { found.contains($0.id) != expected.contains($0.id) }
                Issue.record(
                    """
                    \(what), STRATA_SEED=\(random.seed): \(found.count) instead of \(expected.count)
                    \(predicate)
                    \(wrong.map { "\($0.managedObject)" } ?? "")
                    """)
                return
            }
            #expect(try context.count(FetchRequest(where: predicate)) == expected.count)
        }
    }

    private static let names = [
        "small", "big", "other", "unsigned", "single", "double", "ratio", "amount", "date", "text", "note", "bytes", "uuid",
        "flag",
    ]

    /// Compares sorts, with limits and offsets, and aggregates with those of plain values.
    private static func compareOrders(_ context: ManagedObjectContext, _ what: String, _ random: inout SeededGenerator) throws {
        let objects = try context.fetch(EntityFetchRequest("Measure"))
        for _ in 0..<Rounds.of(25, long: 600) {
            let sorts = (0...random.below(2)).map { _ -> AttributeSort in
                var name = names[random.below(names.count)]
                if random.chance(20) { name = "next." + name }
                return AttributeSort(
                    name, random.chance(50) ? .ascending : .descending, nils: [.byDirection, .first, .last][random.below(3)])
            }
            func value(_ object: ManagedObject, _ sort: AttributeSort) -> Value {
                guard sort.attribute.hasPrefix("next.") else { return object[sort.attribute] }
                return object.relatedObject("next")?[String(sort.attribute.dropFirst(5))] ?? .null
            }
            let expected = objects.enumerated().sorted { a, b in
                for sort in sorts {
                    let (x, y) = (value(a.element, sort), value(b.element, sort))
                    if x.isNull != y.isNull {
                        let isNilFirst = sort.nils == .first || sort.nils == .byDirection && sort.direction == .ascending
                        return x.isNull == isNilFirst
                    }
                    let order = x.order(y)
                    if order != 0 { return (order < 0) == (sort.direction == .ascending) }
                }
                return a.offset < b.offset
            }.map(\.element.objectID)
            let (limit, offset) = (random.chance(50) ? nil : random.below(20), random.chance(50) ? 0 : random.below(20))
            let request = EntityFetchRequest("Measure", sortBy: sorts, limit: limit, offset: offset)
            let wanted = Array(expected.dropFirst(offset).prefix(limit ?? .max))
            let comment = Comment("\(what), STRATA_SEED=\(random.seed): \(sorts), limit \(limit ?? -1), offset \(offset)")
            try #require(try context.fetchIDs(request) == wanted, comment)
        }
        for name in names {
            let values = objects.map { $0[name] }.filter { !$0.isNull }
            let request = EntityFetchRequest("Measure")
            let least = values.min { $0.order($1) < 0 } ?? .null
            let greatest = values.max { $0.order($1) < 0 } ?? .null
            #expect(try context.aggregate(.min(name), of: request).order(least) == 0, "\(what): least \(name)")
            #expect(try context.aggregate(.max(name), of: request).order(greatest) == 0, "\(what): greatest \(name)")
            let groups = try context.fetch(
                EntityValueRequest("Measure", fetching: [.property(name), .count], groupBy: [name]))
            let sorted = objects.map { $0[name] }.sorted { $0.order($1) < 0 }
            var counts: [Int64] = []
            for (number, value) in sorted.enumerated() {
                if number > 0, value.order(sorted[number - 1]) == 0 { counts[counts.count - 1] += 1 } else { counts.append(1) }
            }
            #expect(groups.map { $0.values[1] } == counts.map { .int($0) }, "\(what): groups of \(name)")
        }
    }

    /// Compares unsaved objects of a root, the saved ones, and those that a child has changed.
    private static func compareInContexts(
        _ kind: StoreKind, _ compare: @Sendable (ManagedObjectContext, String, inout SeededGenerator) throws -> Void
    ) async throws {
        let seed = SeededGenerator().seed
        let bed = try TestBed(kind)
        let container = try await bed.container(model: try Model([Measure.self]))
        let root = container.coordinator.newBackgroundContext()
        try await root.perform { context throws in
            var random = SeededGenerator(seed: seed)
            try Self.change(context, steps: 60, &random)
            try compare(context, "\(kind) unsaved", &random)
        }
        try await root.save()
        try await root.perform { context throws in
            var random = SeededGenerator(seed: seed &+ 1)
            try compare(context, "\(kind) saved", &random)
        }
        let child = await root.newBackgroundChild()
        try await child.perform { context throws in
            var random = SeededGenerator(seed: seed &+ 2)
            try Self.change(context, steps: 20, &random)
            try compare(context, "\(kind) child", &random)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `S132, S133: sorts and aggregates of values at their limits are those of plain values`(_ kind: StoreKind) async throws {
        try await Self.compareInContexts(kind) { try Self.compareOrders($0, $1, &$2) }
    }

    @Test(arguments: StoreKind.allCases)
    func `S134: random predicates over values at their limits select what Swift selects, saved and unsaved`(
        _ kind: StoreKind
    ) async throws {
        try await Self.compareInContexts(kind) { try Self.compare($0, $1, &$2) }
    }

    /// Catches: a prefix that is looked for among the bytes of an index.
    @Test(arguments: StoreKind.allCases)
    func `S134: a condition on strings selects no value of another type`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: Model(Measure.self))
        let context = container.newBatchOperationContext()
        await context.perform { context in
            for bytes in [Data("abc".utf8), Data([127, 1])] { context.insert("Measure")["bytes"] = .data(bytes) }
        }
        for _ in 0..<2 {
            for pattern in ["ab", "", "\u{7F}"] {
                let isPrefixed = Condition.string("bytes", .hasPrefix, pattern: pattern, sensitivity: .sensitive)
                let found = try await context.perform { try $0.count(EntityFetchRequest("Measure", matching: isPrefixed)) }
                let others = try await context.perform {
                    try $0.count(EntityFetchRequest("Measure", matching: .not(isPrefixed)))
                }
                #expect(found == 0 && others == 2, "\(pattern)")
            }
            try await context.save()
        }
    }
}
