import StoreInterface
import Testing

/// Arguments at the ends of their ranges give the same results in all stores, and trap in none.
@Suite struct ExtremeArgumentTests {
    private static let ends = [0, -1, Int.max, Int.min]

    private func filled(_ kind: StoreKind) throws -> ContractStore {
        let contract = try ContractStore(kind)
        for save in 0..<3 as Range<ObjectKey> {
            try contract.save { layer in
                for key in (64 + save * 4)..<(68 + save * 4) as Range<ObjectKey> {
                    layer.insertItem(key, name: "n", number: Int64(key))
                }
            }
        }
        return contract
    }

    @Test(arguments: StoreKind.allCases) func offsetsAndLimitsOfQueries(_ kind: StoreKind) throws {
        let snapshot = try filled(kind).snapshot()
        let predicates: [StorePredicate] = [
            .constant(true), .compare(Sample.number, .greater, .int(0)), .string(Sample.name, .contains, "N", .insensitive),
            // SQL cannot express this condition.
            .compare(Sample.number, .less, .double(1e300)),
        ]
        for predicate in predicates {
            for sort in [[], [StoreSort(column: Sample.number, direction: .descending)]] {
                let all = sort.isEmpty ? Array(64..<76 as Range<ObjectKey>) : (64..<76 as Range<ObjectKey>).reversed()
                for offset in Self.ends + [2] {
                    for limit in [nil, 3] + Self.ends {
                        var query = StoreQuery(
                            entity: Sample.item, predicate: predicate, sort: sort, offset: offset, limit: limit)
                        let expected = Array(all.dropFirst(max(0, offset)).prefix(max(0, limit ?? .max)))
                        #expect(try snapshot.keys(query) == expected)
                        #expect(try snapshot.count(query) == expected.count)
                        query.offset = 0
                        query.limit = nil
                        (query.offset, query.limit) = (offset, limit)
                        #expect(try snapshot.keys(query) == expected)
                    }
                }
            }
        }
    }

    @Test(arguments: StoreKind.allCases) func limitsOfTheHistory(_ kind: StoreKind) throws {
        let contract = try filled(kind)
        for limit in Self.ends {
            let count = limit > 0 ? 3 : 0
            #expect(try contract.store.history(after: nil, limit: limit)?.count == count)
            #expect(try contract.store.history(after: 0, limit: limit)?.count == count)
            #expect(try contract.store.history(after: .max, limit: limit)?.count == 0)
        }
        for limit in [0, -1, Int.min] {
            #expect(try contract.store.write(.durable) { try $0.deleteHistory(.through(.max), limit: limit) } == 0)
        }
        #expect(try contract.store.write(.durable) { try $0.deleteHistory(.through(2), limit: .max) } == 2)
        #expect(try contract.store.history(after: 0, limit: 0) == [])
        #expect(try contract.store.history(after: 0, limit: -1) == [])
        #expect(try contract.store.history(after: 0, limit: 1) == nil)
    }

    @Test(arguments: StoreKind.allCases) func aLeaseOfNoPagesIsOneOfOne(_ kind: StoreKind) throws {
        let contract = try filled(kind)
        for pages in [0, -1, Int.min] {
            #expect(
                try contract.store.write(.durable) { try $0.allocateKeys(Sample.owner, pages: pages) }.count == PageAddress.slots)
        }
    }

    @Test(arguments: StoreKind.allCases) func aFloatColumnHasNoMoreDigitsThanAFloat(_ kind: StoreKind) throws {
        let contract = try ContractStore(kind)
        let columns = Sample.schema.entities[Sample.everything].columns
        let float = try #require(columns.firstIndex { $0.type == .float })
        let (narrow, other) = (Value.double(Double(Float(0.1))), Value.double(Double(Float(0.3))))
        try contract.save { layer in
            layer.insert(Sample.everything, 64, columns.indices.map { $0 == float ? .double(0.1) : .null })
        }
        #expect(try contract.snapshot().value(Sample.everything, 64, float) == narrow)
        #expect(try contract.snapshot().lookup(Sample.everything, column: float, value: narrow) == [64])
        #expect(try contract.snapshot().lookup(Sample.everything, column: float, value: .double(0.1)) == [])
        try contract.save { $0.update(Sample.everything, 64, of: columns.count, [float: .double(0.3)]) }
        #expect(try contract.snapshot().value(Sample.everything, 64, float) == other)
        #expect(try contract.snapshot().pageValues(Sample.everything, 64)?[float] == other)
    }

    @Test(arguments: StoreKind.allCases) func aLookUpOfAnotherStorageClassFindsNothing(_ kind: StoreKind) throws {
        let contract = try ContractStore(kind)
        try contract.save { layer in
            layer.insertItem(64, name: "5", number: 5, changing: [Sample.ratio: .double(5), Sample.unsigned: .uint(5)])
        }
        let snapshot = try contract.snapshot()
        let values: [Value] = [.int(5), .uint(5), .double(5), .string("5"), .bool(true), .reference(5)]
        for column in [Sample.name, Sample.number, Sample.ratio, Sample.unsigned, Sample.second, Sample.flag, Sample.note] {
            let own = try snapshot.value(Sample.item, 64, column)
            for value in values {
                let found = try snapshot.lookup(Sample.item, column: column, value: value)
                #expect(found == (value == own ? [64] : []), "\(column), \(value)")
            }
        }
        let columns = [Sample.name, Sample.number]
        #expect(try snapshot.lookup(Sample.item, columns: columns, values: [.string("5"), .int(5)]) == [64])
        #expect(try snapshot.lookup(Sample.item, columns: columns, values: [.string("5"), .double(5)]) == [])
    }
}
