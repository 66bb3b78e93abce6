import StoreInterface
import Testing

/// Compares the evaluation of every store with the reference, on random objects and random conditions.
@Suite struct PredicateTests {
    @Test(arguments: StoreKind.allCases) func S134_everyConditionSelectsWhatTheReferenceSelects(_ kind: StoreKind) throws {
        var random = SeededRandom("predicates on \(kind)")
        let contract = try ContractStore(kind)
        let objects = ObjectKey(64)..<184
        try contract.save { layer in Population.fill(layer, items: objects, owners: 64..<80, &random) }
        let snapshot = try contract.snapshot()
        let all = try snapshot.all(Sample.item)
        for round in 0..<700 {
            let predicate = RandomPredicate.make(depth: 3, shape: round, &random)
            let expected = try all.filter { try predicate.matches(Sample.item, key: $0, in: snapshot) }
            let query = StoreQuery(entity: Sample.item, predicate: predicate)
            let found = try snapshot.keys(query)
            #expect(found == expected, "\(predicate)")
            #expect(try snapshot.count(query) == expected.count)
            if found != expected { return }
        }
    }

    @Test(arguments: StoreKind.allCases) func S132_sortsPlaceNullsTiesAndCaseAlike(_ kind: StoreKind) throws {
        var random = SeededRandom("sorting on \(kind)")
        let contract = try ContractStore(kind)
        try contract.save { layer in Population.fill(layer, items: 64..<184, owners: 64..<80, &random) }
        let snapshot = try contract.snapshot()
        let all = try snapshot.all(Sample.item)
        for _ in 0..<150 {
            let sort = (0..<Int.random(in: 1...3, using: &random)).map { _ in
                StoreSort(
                    column: Int.random(in: 0...8, using: &random), direction: random.pick([.ascending, .descending]),
                    caseSensitivity: random.pick([.sensitive, .insensitive]))
            }
            var query = StoreQuery(entity: Sample.item, sort: sort)
            let expected = try Self.sorted(all, sort, snapshot)
            #expect(try snapshot.keys(query) == expected, "\(sort)")
            query.offset = Int.random(in: 0...200, using: &random)
            query.limit = random.chance(50) ? Int.random(in: 0...50, using: &random) : nil
            let window = Array(expected.dropFirst(query.offset).prefix(query.limit ?? .max))
            #expect(try snapshot.keys(query) == window)
            #expect(try snapshot.count(query) == window.count, "S131")
        }
    }

    private static func sorted(
        _ keys: [ObjectKey], _ sort: [StoreSort], _ snapshot: any StoreSnapshot
    ) throws -> [ObjectKey] {
        let rows = try keys.map { ($0, try snapshot.pageValues(Sample.item, $0) ?? []) }
        return rows.sorted { a, b in
            for part in sort {
                let order = part.order(a.1[part.column], b.1[part.column])
                if order != 0 { return order < 0 }
            }
            return a.0 < b.0
        }.map(\.0)
    }

    @Test(arguments: StoreKind.allCases) func S132_anOffsetPastTheEndIsEmpty(_ kind: StoreKind) throws {
        let contract = try ContractStore(kind)
        try contract.save { $0.insertItem(64) }
        let query = StoreQuery(entity: Sample.item, offset: 5, limit: 10)
        #expect(try contract.snapshot().keys(query) == [])
        #expect(try contract.snapshot().count(query) == 0)
    }
}
