import StoreInterface
import StoreModel

/// Conditions and sorts that an index can serve, against a model without indexes.
enum IndexChecks {
    static let all: [Check] = [
        Check(
            "S135: indexes change no result",
            obligation: "StoreSnapshot.keys and count return the same with every plan.", indexesChangeNoResult),
        Check(
            "S135: a range behind a long string finds its objects",
            obligation: "StoreSnapshot.keys compares whole values, not the beginnings that an index keeps.",
            aRangeBehindAStringThatAnIndexCutsFindsItsObjects),
    ]

    private static let indexed = [
        Sample.name, Sample.number, Sample.ratio, Sample.unsigned, Sample.second, Sample.flag, Sample.note,
    ]

    private static func value(_ column: ColumnIndex, _ random: inout SeededRandom) -> Value {
        if random.chance(8) { return .null }
        return Population.value(column, items: 64..<700, owners: 64..<80, &random)
    }

    private static func leaf(_ random: inout SeededRandom) -> StorePredicate {
        let column = random.pick(indexed)
        switch Int.random(in: 0...9, using: &random) {
        case 0...3: return .compare(column, .equal, to: value(column, &random))
        case 4...6:
            return .compare(column, random.pick([.less, .lessOrEqual, .greater, .greaterOrEqual]), to: value(column, &random))
        case 7: return .isIn(column, Set((0..<3).map { _ in value(column, &random) }))
        case 8:
            return .string(
                random.pick([Sample.name, Sample.note]), .hasPrefix, pattern: random.pick(["a", "A", "x", "S"]),
                sensitivity: .sensitive)
        default: return .compare(Sample.owned, .equal, to: .reference(ObjectKey.random(in: 64..<80, using: &random)))
        }
    }

    private static func predicate(_ random: inout SeededRandom) -> StorePredicate {
        var parts = (0..<Int.random(in: 0...3, using: &random)).map { _ in leaf(&random) }
        if random.chance(20) { parts.append(.or([leaf(&random), leaf(&random)])) }
        if random.chance(10) {
            parts.append(.toOne(Sample.owned, .string(0, .hasPrefix, pattern: random.pick(["a", "b"]), sensitivity: .sensitive)))
        }
        if random.chance(10) { parts.append(.toOne(Sample.parent, leaf(&random))) }
        if random.chance(10) { parts.append(.keys(Set((0..<40).map { _ in ObjectKey.random(in: 64..<800, using: &random) }))) }
        return parts.count == 1 ? parts[0] : .and(parts)
    }

    private static func sort(_ random: inout SeededRandom) -> [StoreSort] {
        let direction = random.pick([StoreSort.Direction.ascending, .descending])
        let columns = random.pick([
            [], [Sample.name], [Sample.number], [Sample.ratio], [Sample.unsigned], [Sample.name, Sample.number],
            [Sample.second, Sample.note], [Sample.note], [Sample.flag, Sample.second, Sample.note],
        ])
        return columns.map {
            StoreSort(
                column: $0, direction: random.chance(90) ? direction : .ascending,
                nulls: random.chance(20) ? .highest : .lowest)
        }
    }

    private static func indexesChangeNoResult(_ trial: Trial) throws {
        var random = trial.random
        let tested = try trial.newStore()
        var model = PlainModel(schema: Sample.schema)
        let saved = random
        let long = String(repeating: "long", count: 200)
        let saves: [(Layer) -> Void] = [
            { layer in
                var random = saved
                Population.fill(layer, items: 64..<700, owners: 64..<80, &random)
            },
            { layer in
                for key in ObjectKey(64)..<80 { layer.updateItem(key, [Sample.name: .string(long + "\(key.rawValue % 3)")]) }
                for key in ObjectKey(80)..<90 { layer.delete(Sample.item, key) }
            },
        ]
        for save in saves {
            let layer = Layer(schema: Sample.schema)
            save(layer)
            model.save(layer, as: try tested.save(.deferred, save))
        }
        let found = try tested.snapshot()
        for _ in 0..<500 {
            let query = StoreQuery(
                entity: Sample.item, predicate: Self.predicate(&random), sort: Self.sort(&random),
                offset: random.chance(30) ? Int.random(in: 0...20, using: &random) : 0,
                limit: random.chance(60) ? Int.random(in: 0...40, using: &random) : nil)
            let keys = try model.keys(query)
            let plan = try found.explain(query)
            try expect(found.keys(query), equals: keys, "\(query): \(plan)")
            try expect(found.count(query), equals: keys.count, "\(query)")
        }
    }

    /// Catches a bound after a cut index key, which no key reaches.
    static func aRangeBehindAStringThatAnIndexCutsFindsItsObjects(_ trial: Trial) throws {
        let tested = try trial.newStore()
        // From one byte less than an index keeps of a name to many more.
        let names = [500, 505, 506, 507, 508, 509, 510, 511, 512, 600].map { String(repeating: "n", count: $0) }
        try tested.save { layer in
            for (number, name) in names.enumerated() {
                for value in 0..<3 {
                    layer.insertItem(ObjectKey(64 + 3 * number + value), name: name, number: Int64(value))
                }
            }
        }
        let snapshot = try tested.snapshot()
        for (number, name) in names.enumerated() {
            let keys = (0..<3).map { ObjectKey(64 + 3 * number + $0) }
            let cases: [(StorePredicate.Comparison, ArraySlice<ObjectKey>)] = [
                (.lessOrEqual, keys[...1]), (.less, keys[..<1]), (.greater, keys[2...]), (.greaterOrEqual, keys[1...]),
                (.equal, keys[1...1]),
            ]
            for (comparison, expected) in cases {
                let condition = StorePredicate.and([
                    .compare(Sample.name, .equal, to: .string(name)), .compare(Sample.number, comparison, to: .int(1)),
                ])
                let found = try snapshot.keys(StoreQuery(entity: Sample.item, predicate: condition))
                try expect(found, equals: Array(expected), "\(name.count) letters, number \(comparison) 1")
            }
        }
    }
}
