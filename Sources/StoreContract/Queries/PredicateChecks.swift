import StoreInterface
import StoreModel

/// Conditions and sorts against the reference, on random objects.
enum PredicateChecks {
    static let all: [Check] = [
        Check(
            "S134: every condition selects what the reference selects",
            obligation: "StoreSnapshot.keys and count agree with StorePredicate.matches.",
            everyConditionSelectsWhatTheReferenceSelects),
        Check(
            "S132: sorts place nulls, ties and case alike",
            obligation: "StoreSnapshot.keys sorts by StoreSort.order, then by key; offset and limit follow.",
            sortsPlaceNullsTiesAndCaseAlike),
        Check(
            "S132: an offset past the end selects nothing",
            obligation: "StoreSnapshot.keys returns an empty list if the offset is past the end.", anOffsetPastTheEndIsEmpty),
    ]

    static func everyConditionSelectsWhatTheReferenceSelects(_ trial: Trial) throws {
        var random = trial.random
        let tested = try trial.newStore()
        let objects = ObjectKey(64)..<184
        try tested.save { layer in Population.fill(layer, items: objects, owners: 64..<80, &random) }
        let snapshot = try tested.snapshot()
        let all = try snapshot.all(Sample.item)
        for round in 0..<700 {
            let predicate = RandomPredicate.make(depth: 3, shape: round, &random)
            let expected = try all.filter { try predicate.matches(Sample.item, key: $0, in: snapshot) }
            let query = StoreQuery(entity: Sample.item, predicate: predicate)
            let found = try snapshot.keys(query)
            try expect(found, equals: expected, "\(predicate)")
            try expect(snapshot.count(query), equals: expected.count)
        }
    }

    static func sortsPlaceNullsTiesAndCaseAlike(_ trial: Trial) throws {
        var random = trial.random
        let tested = try trial.newStore()
        try tested.save { layer in Population.fill(layer, items: 64..<184, owners: 64..<80, &random) }
        let snapshot = try tested.snapshot()
        let all = try snapshot.all(Sample.item)
        for _ in 0..<150 {
            let sort = (0..<Int.random(in: 1...3, using: &random)).map { _ in
                StoreSort(
                    column: ColumnIndex(rawValue: Int.random(in: 0...8, using: &random)),
                    direction: random.pick([.ascending, .descending]),
                    caseSensitivity: random.pick([.sensitive, .insensitive]), nulls: random.pick([.lowest, .highest]))
            }
            var query = StoreQuery(entity: Sample.item, sort: sort)
            let expected = try Self.sorted(all, by: sort, in: snapshot)
            try expect(snapshot.keys(query), equals: expected, "\(sort)")
            query.offset = Int.random(in: 0...200, using: &random)
            query.limit = random.chance(50) ? Int.random(in: 0...50, using: &random) : nil
            let window = Array(expected.dropFirst(query.offset).prefix(query.limit ?? .max))
            try expect(snapshot.keys(query), equals: window)
            try expect(snapshot.count(query), equals: window.count, "S131: \(query)")
        }
    }

    private static func sorted(
        _ keys: [ObjectKey], by sort: [StoreSort], in snapshot: any StoreSnapshot
    ) throws -> [ObjectKey] {
        let rows = try keys.map { ($0, try snapshot.pageValues(Sample.item, $0) ?? []) }
        return rows.sorted { StoreSort.precedes($0, $1, by: sort) }.map(\.0)
    }

    static func anOffsetPastTheEndIsEmpty(_ trial: Trial) throws {
        let tested = try trial.newStore()
        try tested.save { $0.insertItem(64) }
        let query = StoreQuery(entity: Sample.item, offset: 5, limit: 10)
        try expect(tested.snapshot().keys(query), equals: [])
        try expect(tested.snapshot().count(query), equals: 0)
    }
}
