import StoreInterface
import Testing

/// Compares the aggregates of every store with a plain computation, on random objects, conditions and groups (S133).
@Suite struct AggregateTests {
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

    @Test(arguments: StoreKind.allCases) func S133_aggregatesOfGroupsAreThoseOfAPlainLoop(_ kind: StoreKind) throws {
        var random = SeededRandom("aggregates on \(kind)")
        let contract = try ContractStore(kind)
        try contract.save { Population.fill($0, items: 64..<300, owners: 64..<80, &random) }
        let snapshot = try contract.snapshot()
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

    @Test(arguments: StoreKind.allCases) func S133_theLeastAndGreatestOfAllObjectsAreThoseOfAPlainLoop(_ kind: StoreKind) throws {
        var random = SeededRandom("least and greatest on \(kind)")
        for items: ObjectKey in [64, 67, 300] {
            let contract = try ContractStore(kind)
            try contract.save { Population.fill($0, items: 64..<items, owners: 64..<68, &random) }
            let snapshot = try contract.snapshot()
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
        func value(_ key: ObjectKey, _ column: Int) throws -> Value { try snapshot.value(Sample.item, key, column) ?? .null }
        let groups = try Dictionary(grouping: keys) { key in try GroupKey(aggregation.groupBy.map { try value(key, $0) }) }
        let found = try snapshot.groups(aggregation)
        #expect(Set(found.keys) == (aggregation.groupBy.isEmpty ? [GroupKey([])] : Set(groups.keys)), "\(aggregation)")
        #expect(Set(found.keys).count == found.keys.count)
        for (key, states) in zip(found.keys, found.states) {
            for (aggregate, state) in zip(aggregation.aggregates, states) {
                let values = try (groups[key] ?? []).map { key in try aggregate.column.map { try value(key, $0) } ?? .bool(true) }
                expectState(state, aggregate, values.filter { !$0.isNull })
            }
        }
    }

    /// Compares a state with a plain computation over values without nulls.
    private static func expectState(_ state: AggregateState, _ aggregate: StoreAggregate, _ values: [Value]) {
        let sorted = values.sorted { $0.order($1) < 0 }
        switch aggregate {
        case .count, .countValues: #expect(state.count == values.count)
        case .minimum: #expect(state.extreme.order(sorted.first ?? .null) == 0)
        case .maximum: #expect(state.extreme.order(sorted.last ?? .null) == 0)
        case .sum, .average:
            var integers: Int128 = 0
            var doubles = 0.0
            for value in values {
                switch value {
                case .int(let number): integers += Int128(number)
                case .uint(let number): integers += Int128(number)
                case .double(let number): doubles += number
                default: Issue.record("\(value) is no number")
                }
            }
            #expect(state.count == values.count)
            #expect(state.integers == integers)
            #expect(state.doubles == doubles || (state.doubles.isNaN && doubles.isNaN))
        }
    }

    @Test func S133_aSumThatFitsNoNumberOfTheColumnIsToldApart() {
        var state = AggregateState()
        state.add(.int(.max), to: .sum(0))
        #expect(state.result(.sum(0), of: .int64) == .int(.max))
        state.add(.int(1), to: .sum(0))
        #expect(state.result(.sum(0), of: .int64) == nil)
        #expect(state.result(.sum(0), of: .uint64) == .uint(1 << 63))
        #expect(AggregateState().result(.sum(0), of: .double) == .double(0))
        #expect(AggregateState().result(.average(0), of: .double) == .null)
    }
}
