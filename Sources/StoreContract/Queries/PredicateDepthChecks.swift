import StoreInterface
import StoreModel

/// The limit of nesting, which a store checks before it reads anything.
enum PredicateDepthChecks {
    static let all: [Check] = [
        Check(
            "S134: a store answers conditions up to the limit of nesting and refuses deeper ones",
            obligation: "Every query calls StorePredicate.checkDepth() first, which throws StoreError .unsupported.",
            conditionsUpToTheLimit),
        Check(
            "S134: every condition at the end of every nesting is answered as the reference answers it",
            obligation: "StoreSnapshot.count agrees with StorePredicate.matches at every depth.", everyNesting),
    ]

    private static func nested(_ levels: Int) -> StorePredicate {
        (1..<levels).reduce(StorePredicate.compare(Sample.number, .equal, to: .int(1))) { part, level in
            switch level % 4 {
            case 0: .not(part)
            case 1: .and([part, .constant(true)])
            case 2: .toOne(Sample.parent, part)
            default: .or([part, .constant(false)])
            }
        }
    }

    private static func expectRefused(_ levels: Int, _ snapshot: any StoreSnapshot) throws {
        let predicate = nested(levels)
        let query = StoreQuery(entity: Sample.item, predicate: predicate)
        let aggregation = StoreAggregation(entity: Sample.item, predicate: predicate, aggregates: [.count])
        try expectError(.unsupported) { _ = try snapshot.keys(query) }
        try expectError(.unsupported) {
            _ = try snapshot.keys(StoreQuery(entity: Sample.item, predicate: predicate, limit: 0))
        }
        try expectError(.unsupported) { _ = try snapshot.count(query) }
        try expectError(.unsupported) { _ = try snapshot.explain(query) }
        try expectError(.unsupported) { _ = try snapshot.groups(aggregation) }
    }

    static func conditionsUpToTheLimit(_ trial: Trial) throws {
        let tested = try trial.newStore()
        for levels in [StorePredicate.maximumDepth + 1, 100_000] { try Self.expectRefused(levels, try tested.snapshot()) }
        try tested.save { layer in
            // An object that is its own parent satisfies a path of any length.
            layer.insertItem(64, number: 1, changing: [Sample.parent: .reference(64)])
            layer.insertItem(65, number: 2)
        }
        let snapshot = try tested.snapshot()
        for levels in 1...StorePredicate.maximumDepth {
            let query = StoreQuery(entity: Sample.item, predicate: Self.nested(levels))
            let expected = try [64, 65].filter { try query.predicate.matches(Sample.item, key: $0, in: snapshot) }
            try expect(snapshot.keys(query), equals: expected, "\(levels)")
            try expect(snapshot.count(query), equals: expected.count)
        }
        try Self.expectRefused(StorePredicate.maximumDepth + 1, snapshot)
    }

    private static let tags = Relation.link(Sample.tags, .forward, destination: Sample.owner)
    private static let items = Relation.link(Sample.tags, .backward, destination: Sample.item)

    /// The ways to nest. Each needs a different number of symbols on the stack of an SQL parser.
    private static let ways: [@Sendable (StorePredicate) -> StorePredicate] = [
        { .not($0) }, { .toOne(Sample.parent, $0) },
        { .and([.compare(Sample.flag, .equal, to: .bool(false)), $0]) },
        { .or([.compare(Sample.flag, .equal, to: .bool(true)), $0, .constant(false)]) },
        { .toMany(.referrers(entity: Sample.item, column: Sample.parent), .any, where: $0) },
        { .toMany(.referrers(entity: Sample.item, column: Sample.parent), .all, where: $0) },
        { .toMany(tags, .none, where: .toMany(items, .any, where: $0)) },
        { .toMany(tags, .all, where: .toMany(items, .all, where: $0)) },
        { .toManyCount(.referrers(entity: Sample.item, column: Sample.parent), where: $0, .greaterOrEqual, to: 1) },
    ]

    private static let leaves: [StorePredicate] = [
        .keys([64]), .isIn(Sample.name, [.string("a"), .null]), .isIn(Sample.number, [.int(1), .null]),
        .string(Sample.name, .hasSuffix, pattern: "a", sensitivity: .insensitive),
        .string(Sample.name, .hasPrefix, pattern: "a", sensitivity: .sensitive),
        .compare(Sample.unsigned, .greater, to: .uint(1 << 63)), .compareColumns(Sample.number, .less, to: Sample.second),
    ]

    /// Catches a store that passes a condition to a parser whose own limit is lower.
    static func everyNesting(_ trial: Trial) throws {
        let tested = try trial.newStore()
        try tested.save { layer in
            layer.insertOwner(64, "owner")
            layer.insertItem(64, name: "a", number: 1, changing: [Sample.parent: .reference(64), Sample.second: .int(2)])
            layer.setLink(Sample.tags, from: 64, to: 64, linked: true)
        }
        let snapshot = try tested.snapshot()
        for way in Self.ways {
            for leaf in Self.leaves {
                var predicate = leaf
                // SQL has at most 35 such levels, and 7 of a relationship.
                for _ in 0..<(way(leaf).traversesRelationships ? 8 : 36) {
                    predicate = way(predicate)
                    let query = StoreQuery(entity: Sample.item, predicate: predicate)
                    let expected = try predicate.matches(Sample.item, key: 64, in: snapshot) ? 1 : 0
                    try expect(snapshot.count(query), equals: expected, "\(predicate)")
                    try expect(!snapshot.explain(query).isEmpty, "a plan in words")
                }
            }
        }
    }
}
