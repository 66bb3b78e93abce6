import StoreInterface
import StoreModel

/// Groups and aggregates against a plain loop, on random objects, conditions and groups.
enum AggregateChecks {
    static let all: [Check] = [
        Check(
            "S133: aggregates of groups are those of a plain loop",
            obligation: "StoreSnapshot.groups returns each group once, with the state of each aggregate.",
            aggregatesOfGroupsAreThoseOfAPlainLoop),
        Check(
            "S133: the least and greatest values are those of a plain loop",
            obligation: "StoreSnapshot.groups returns one group if nothing is grouped, also of no objects.",
            theLeastAndGreatestOfAllObjectsAreThoseOfAPlainLoop),
    ]

    private static let columns = [
        Sample.name, Sample.number, Sample.ratio, Sample.unsigned, Sample.flag, Sample.note, Sample.owned, Sample.second,
    ]

    private static func randomAggregate(_ random: inout SeededRandom) -> StoreAggregate {
        let numbers = [Sample.number, Sample.ratio, Sample.unsigned, Sample.second]
        switch Int.random(in: 0...5, using: &random) {
        case 0: return .count
        case 1: return .countValues(random.pick(columns))
        case 2: return .sum(random.pick(numbers))
        case 3: return .minimum(random.pick(columns))
        case 4: return .maximum(random.pick(columns))
        default: return .average(random.pick(numbers))
        }
    }

    static func aggregatesOfGroupsAreThoseOfAPlainLoop(_ trial: Trial) throws {
        var random = trial.random
        let tested = try trial.newStore()
        try tested.save { Population.fill($0, items: 64..<300, owners: 64..<80, &random) }
        let snapshot = try tested.snapshot()
        let all = try snapshot.all(Sample.item)
        for round in 0..<250 {
            let predicate = round % 5 == 0 ? .constant(true) : RandomPredicate.make(depth: 2, &random)
            let aggregation = StoreAggregation(
                entity: Sample.item, predicate: predicate,
                groupBy: (0..<Int.random(in: 0...2, using: &random)).map { _ in random.pick(Self.columns) },
                aggregates: (0..<Int.random(in: 0...3, using: &random)).map { _ in Self.randomAggregate(&random) })
            let matching = try all.filter { try predicate.matches(Sample.item, key: $0, in: snapshot) }
            try Self.expectGroups(aggregation, of: matching, in: snapshot)
        }
    }

    static func theLeastAndGreatestOfAllObjectsAreThoseOfAPlainLoop(_ trial: Trial) throws {
        var random = trial.random
        for items: ObjectKey in [64, 67, 300] {
            let tested = try trial.newStore()
            try tested.save { Population.fill($0, items: 64..<items, owners: 64..<68, &random) }
            let snapshot = try tested.snapshot()
            let all = try snapshot.all(Sample.item)
            for column in Self.columns {
                let aggregation = StoreAggregation(entity: Sample.item, aggregates: [.minimum(column), .maximum(column)])
                try Self.expectGroups(aggregation, of: all, in: snapshot)
            }
        }
    }

    private static func expectGroups(
        _ aggregation: StoreAggregation, of keys: [ObjectKey], in snapshot: any StoreSnapshot
    ) throws {
        func value(_ key: ObjectKey, _ column: ColumnIndex) throws -> Value {
            try snapshot.value(Sample.item, key: key, column: column) ?? .null
        }
        let groups = try Dictionary(grouping: keys) { key in try GroupKey(aggregation.groupBy.map { try value(key, $0) }) }
        let found = try snapshot.groups(aggregation)
        try expect(Set(found.keys), equals: aggregation.groupBy.isEmpty ? [GroupKey([])] : Set(groups.keys), "\(aggregation)")
        try expect(Set(found.keys).count, equals: found.keys.count)
        for (key, states) in zip(found.keys, found.states) {
            for (aggregate, state) in zip(aggregation.aggregates, states) {
                let values = try (groups[key] ?? []).map { key in try aggregate.column.map { try value(key, $0) } ?? .bool(true) }
                try expectState(state, aggregate: aggregate, values: values.filter { !$0.isNull })
            }
        }
    }

    /// Compares a state with a plain computation over values without nulls.
    private static func expectState(_ state: AggregateState, aggregate: StoreAggregate, values: [Value]) throws {
        let sorted = values.sorted { $0.order($1) < 0 }
        switch aggregate {
        case .count, .countValues: try expect(state.count, equals: values.count)
        case .minimum: try expect(state.extreme.order(sorted.first ?? .null), equals: 0)
        case .maximum: try expect(state.extreme.order(sorted.last ?? .null), equals: 0)
        case .sum, .average:
            var integers: Int128 = 0
            var doubles = 0.0
            for value in values {
                switch value {
                case .int(let number): integers += Int128(number)
                case .uint(let number): integers += Int128(number)
                case .double(let number): doubles += number
                default: try expect(false, "a number, not \(value)")
                }
            }
            try expect(state.count, equals: values.count)
            try expect(state.integers, equals: integers)
            try expect(
                state.doubles == doubles || (state.doubles.isNaN && doubles.isNaN),
                "a sum of \(doubles), but found \(state.doubles)")
        }
    }
}
