import StoreInterface
import StoreModel

/// Arguments at the ends of their ranges, which must not trap.
enum ExtremeArgumentChecks {
    static let all: [Check] = [
        Check(
            "offsets and limits of queries may have any value",
            obligation: "StoreSnapshot.keys and count apply offset and limit to every condition and sort.",
            offsetsAndLimitsOfQueries),
        Check(
            "limits of the history may have any value",
            obligation: "ObjectStore.history and StoreTransaction.deleteHistory treat a negative limit as 0.", limitsOfTheHistory),
        Check(
            "an allocation of no pages is one of one page",
            obligation: "StoreTransaction.allocateKeys returns at least one page.", aLeaseOfNoPagesIsOneOfOne),
        Check(
            "a float column has no more digits than a float",
            obligation: "StoreTransaction.apply stores ColumnType.stored(_:) of a value.", aFloatColumnHasNoMoreDigitsThanAFloat),
        Check(
            "a look-up by a value of another storage class finds nothing",
            obligation: "StoreSnapshot.lookup compares values of one storage class only.",
            aLookUpOfAnotherStorageClassFindsNothing),
    ]

    private static let ends = [0, -1, Int.max, Int.min]

    private static func filled(_ trial: Trial) throws -> StoreUnderTest {
        let tested = try trial.newStore()
        for save in 0..<3 {
            try tested.save { layer in
                for key in ObjectKey(64 + save * 4)..<ObjectKey(68 + save * 4) {
                    layer.insertItem(key, name: "n", number: Int64(key.rawValue))
                }
            }
        }
        return tested
    }

    static func offsetsAndLimitsOfQueries(_ trial: Trial) throws {
        let snapshot = try filled(trial).snapshot()
        let predicates: [StorePredicate] = [
            .constant(true), .compare(Sample.number, .greater, to: .int(0)),
            .string(Sample.name, .contains, pattern: "N", sensitivity: .insensitive),
            // SQL cannot express this condition.
            .compare(Sample.number, .less, to: .double(1e300)),
        ]
        for predicate in predicates {
            for sort in [[], [StoreSort(column: Sample.number, direction: .descending)]] {
                let all = sort.isEmpty ? Array(64..<76 as Range<ObjectKey>) : (64..<76 as Range<ObjectKey>).reversed()
                for offset in Self.ends + [2] {
                    for limit in [nil, 3] + Self.ends {
                        var query = StoreQuery(
                            entity: Sample.item, predicate: predicate, sort: sort, offset: offset, limit: limit)
                        let expected = Array(all.dropFirst(max(0, offset)).prefix(max(0, limit ?? .max)))
                        try expect(snapshot.keys(query), equals: expected)
                        try expect(snapshot.count(query), equals: expected.count)
                        query.offset = 0
                        query.limit = nil
                        (query.offset, query.limit) = (offset, limit)
                        try expect(snapshot.keys(query), equals: expected)
                    }
                }
            }
        }
    }

    static func limitsOfTheHistory(_ trial: Trial) throws {
        let tested = try filled(trial)
        for limit in Self.ends {
            let count = limit > 0 ? 3 : 0
            try expect(tested.store.history(after: nil, limit: limit)?.count, equals: count)
            try expect(tested.store.history(after: 0, limit: limit)?.count, equals: count)
            try expect(tested.store.history(after: .max, limit: limit)?.count, equals: 0)
        }
        let saves = try require(tested.store.changes(after: 0)).map(\.generation)
        for limit in [0, -1, Int.min] {
            try expect(tested.store.write(.durable) { try $0.deleteHistory(.through(.max), limit: limit) }, equals: 0)
        }
        try expect(tested.store.write(.durable) { try $0.deleteHistory(.through(saves[1]), limit: .max) }, equals: 2)
        try expect(tested.store.history(after: 0, limit: 0), equals: [])
        try expect(tested.store.history(after: 0, limit: -1), equals: [])
        try expect(tested.store.history(after: 0, limit: 1), equals: nil)
    }

    static func aLeaseOfNoPagesIsOneOfOne(_ trial: Trial) throws {
        let tested = try filled(trial)
        for pages in [0, -1, Int.min] {
            try expect(
                tested.store.write(.durable) { try $0.allocateKeys(Sample.owner, pages: pages) }.count, equals: PageAddress.slots)
        }
    }

    static func aFloatColumnHasNoMoreDigitsThanAFloat(_ trial: Trial) throws {
        let tested = try trial.newStore()
        let columns = Sample.schema.entities[Sample.everything].columns
        let float = Sample.column(of: .float)
        let (narrow, other) = (Value.double(Double(Float(0.1))), Value.double(Double(Float(0.3))))
        try tested.save { layer in
            layer.insert(
                Sample.everything, key: 64,
                values: columns.indices(as: ColumnIndex.self).map { $0 == float ? .double(0.1) : .null })
        }
        try expect(tested.snapshot().value(Sample.everything, key: 64, column: float), equals: narrow)
        try expect(tested.snapshot().lookup(Sample.everything, column: float, value: narrow), equals: [64])
        try expect(tested.snapshot().lookup(Sample.everything, column: float, value: .double(0.1)), equals: [])
        try tested.save { $0.update(Sample.everything, key: 64, of: columns.count, values: [float: .double(0.3)]) }
        try expect(tested.snapshot().value(Sample.everything, key: 64, column: float), equals: other)
        try expect(tested.snapshot().pageValues(Sample.everything, 64)?[float], equals: other)
    }

    static func aLookUpOfAnotherStorageClassFindsNothing(_ trial: Trial) throws {
        let tested = try trial.newStore()
        try tested.save { layer in
            layer.insertItem(64, name: "5", number: 5, changing: [Sample.ratio: .double(5), Sample.unsigned: .uint(5)])
        }
        let snapshot = try tested.snapshot()
        let values: [Value] = [.int(5), .uint(5), .double(5), .string("5"), .bool(true), .reference(5)]
        for column in [Sample.name, Sample.number, Sample.ratio, Sample.unsigned, Sample.second, Sample.flag, Sample.note] {
            let own = try snapshot.value(Sample.item, key: 64, column: column)
            for value in values {
                let found = try snapshot.lookup(Sample.item, column: column, value: value)
                try expect(found, equals: value == own ? [64] : [], "\(column), \(value)")
            }
        }
        let columns = [Sample.name, Sample.number]
        try expect(snapshot.lookup(Sample.item, columns: columns, values: [.string("5"), .int(5)]), equals: [64])
        try expect(snapshot.lookup(Sample.item, columns: columns, values: [.string("5"), .double(5)]), equals: [])
    }
}
