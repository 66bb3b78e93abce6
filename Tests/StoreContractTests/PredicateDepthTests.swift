import StoreInterface
import Testing

/// Conditions that reach a store without a request: one limit, checked before anything is read.
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
            // An object that is its own parent has every path.
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
}
