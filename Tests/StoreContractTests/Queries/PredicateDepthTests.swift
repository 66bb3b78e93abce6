import StoreInterface
import Testing

/// Conditions that reach a store without a request. All stores have one limit, which is checked before anything is read.
@Suite struct PredicateDepthTests {
    private static func nested(_ levels: Int) -> StorePredicate {
        (1..<levels).reduce(StorePredicate.compare(Sample.number, .equal, .int(1))) { part, level in
            switch level % 4 {
            case 0: .not(part)
            case 1: .and([part, .constant(true)])
            case 2: .toOne(Sample.parent, part)
            default: .or([part, .constant(false)])
            }
        }
    }

    private static func expectRefused(_ levels: Int, _ snapshot: any StoreSnapshot) {
        let predicate = nested(levels)
        #expect(predicate.depth == levels && predicate == nested(levels))
        #expect(predicate.hashValue == nested(levels).hashValue && "\(predicate)" == "tooDeep")
        let query = StoreQuery(entity: Sample.item, predicate: predicate)
        func expect(_ body: () throws -> Void) {
            let error = #expect(throws: StoreError.self, performing: body)
            #expect(error?.code == .unsupported && error?.message.contains("\(levels) levels") == true)
        }
        expect { _ = try snapshot.keys(query) }
        expect { _ = try snapshot.keys(StoreQuery(entity: Sample.item, predicate: predicate, limit: 0)) }
        expect { _ = try snapshot.count(query) }
        expect { _ = try snapshot.explain(query) }
        expect { _ = try snapshot.groups(StoreAggregation(entity: Sample.item, predicate: predicate, aggregates: [.count])) }
        expect { _ = try predicate.matches(Sample.item, key: 64, in: snapshot) }
    }

    @Test(arguments: StoreKind.allCases)
    func `S134: a store answers conditions up to the limit of nesting and refuses deeper ones`(_ kind: StoreKind) throws {
        let contract = try ContractStore(kind)
        for levels in [StorePredicate.maximumDepth + 1, 100_000] { Self.expectRefused(levels, try contract.snapshot()) }
        try contract.save { layer in
            // An object that is its own parent satisfies a path of any length.
            layer.insertItem(64, number: 1, changing: [Sample.parent: .reference(64)])
            layer.insertItem(65, number: 2)
        }
        let snapshot = try contract.snapshot()
        for levels in 1...StorePredicate.maximumDepth {
            let query = StoreQuery(entity: Sample.item, predicate: Self.nested(levels))
            let expected = try [64, 65].filter { try query.predicate.matches(Sample.item, key: $0, in: snapshot) }
            #expect(try snapshot.keys(query) == expected, "\(levels)")
            #expect(try snapshot.count(query) == expected.count)
        }
        Self.expectRefused(StorePredicate.maximumDepth + 1, snapshot)
    }

    private static let tags = Relation.link(Sample.tags, .forward, destination: Sample.owner)
    private static let items = Relation.link(Sample.tags, .backward, destination: Sample.item)

    /// The ways to nest. Each needs a different number of symbols on the stack of an SQL parser.
    private static let ways: [@Sendable (StorePredicate) -> StorePredicate] = [
        { .not($0) }, { .toOne(Sample.parent, $0) },
        { .and([.compare(Sample.flag, .equal, .bool(false)), $0]) },
        { .or([.compare(Sample.flag, .equal, .bool(true)), $0, .constant(false)]) },
        { .toMany(.referrers(entity: Sample.item, column: Sample.parent), .any, $0) },
        { .toMany(.referrers(entity: Sample.item, column: Sample.parent), .all, $0) },
        { .toMany(tags, .none, .toMany(items, .any, $0)) }, { .toMany(tags, .all, .toMany(items, .all, $0)) },
        { .toManyCount(.referrers(entity: Sample.item, column: Sample.parent), $0, .greaterOrEqual, 1) },
    ]

    private static let leaves: [StorePredicate] = [
        .keys([64]), .isIn(Sample.name, [.string("a"), .null]), .isIn(Sample.number, [.int(1), .null]),
        .string(Sample.name, .hasSuffix, "a", .insensitive), .string(Sample.name, .hasPrefix, "a", .sensitive),
        .compare(Sample.unsigned, .greater, .uint(1 << 63)), .compareColumns(Sample.number, .less, Sample.second),
    ]

    /// Catches: a store that passes a condition to a parser whose limit is below the store's.
    @Test(arguments: StoreKind.allCases)
    func `S134: every condition at the end of every nesting is answered as the reference answers it`(_ kind: StoreKind) throws {
        let contract = try ContractStore(kind)
        try contract.save { layer in
            layer.insertOwner(64, "owner")
            layer.insertItem(64, name: "a", number: 1, changing: [Sample.parent: .reference(64), Sample.second: .int(2)])
            layer.setLink(Sample.tags, 64, 64, linked: true)
        }
        let snapshot = try contract.snapshot()
        for way in Self.ways {
            for leaf in Self.leaves {
                var predicate = leaf
                // SQL has at most 35 such levels, and 7 of a relationship.
                for _ in 0..<(way(leaf).traversesRelationships ? 8 : 36) {
                    predicate = way(predicate)
                    let query = StoreQuery(entity: Sample.item, predicate: predicate)
                    let expected = try predicate.matches(Sample.item, key: 64, in: snapshot) ? 1 : 0
                    #expect(try snapshot.count(query) == expected, "\(predicate)")
                    #expect(try !snapshot.explain(query).isEmpty)
                }
            }
        }
    }
}
