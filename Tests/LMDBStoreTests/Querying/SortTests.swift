import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import LMDBStore

/// Sorts by one column of numbers use a separate implementation. It must have the order of values.
@Suite struct SortTests {
    private static let schema = StoreSchema(entities: [
        EntitySchema(
            name: "Sample",
            columns: [
                ColumnSchema(name: "double", type: .double, isOptional: true),
                ColumnSchema(name: "float", type: .float, isOptional: true),
                ColumnSchema(name: "int", type: .int64, isOptional: true),
                ColumnSchema(name: "uint", type: .uint64, isOptional: true),
                ColumnSchema(name: "bool", type: .bool, isOptional: true),
                ColumnSchema(name: "date", type: .date, isOptional: true),
            ])
    ])

    private static let doubles: [Double] = [0, -0.0, 1, -1, .nan, .infinity, -.infinity, 1e300, -1e-300, .leastNonzeroMagnitude]

    private func sample(_ random: inout SeededGenerator) -> [Value] {
        let ints: [Int64] = [.min, .max, 0, -1, 1, 7]
        let values: [Value] = [
            .double(Self.doubles.randomElement(using: &random) ?? 0),
            .double(Double(Float(Self.doubles.randomElement(using: &random) ?? 0))),
            .int(ints.randomElement(using: &random) ?? 0), .uint([0, 1, .max, 1 << 63].randomElement(using: &random) ?? 0),
            .bool(.random(using: &random)), .double(Double(Int.random(in: -9...9, using: &random))),
        ]
        return values.map { random.chance(20) ? .null : $0 }
    }

    @Test func numbersSortAsValuesDo() throws {
        let scratch = try Scratch()
        let store = try LMDBStore.open(scratch.url, schema: Self.schema)
        var random = SeededGenerator()
        var samples: [ObjectKey: [Value]] = [:]
        try store.save { layer, _ in
            for key in 64..<1800 as Range<ObjectKey> {
                let values = sample(&random)
                samples[key] = values
                layer.put(Samples.row(values, in: layer), entity: 0, key: key)
            }
        }
        let snapshot = try store.snapshot()
        for column in Self.schema.entities[0].columnIndices {
            for direction in [StoreSort.Direction.ascending, .descending] {
                let sort = StoreSort(column: column, direction: direction)
                let expected = samples.keys.sorted { a, b in
                    let order = sort.order(samples[a]?[column] ?? .null, samples[b]?[column] ?? .null)
                    return order != 0 ? order < 0 : a < b
                }
                var query = StoreQuery(entity: 0, sort: [sort])
                #expect(try snapshot.keys(query) == expected)
                query.offset = 3
                for limit in [1, 20, 700, 5000] {
                    query.limit = limit
                    #expect(try snapshot.keys(query) == Array(expected.dropFirst(3).prefix(limit)))
                }
            }
        }
    }
}
