#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif
import StoreInterface
import StoreModel

/// Reading a column of data in the order of its bytes.
enum OrderedDataChecks {
    static let all: [Check] = [
        Check(
            "a range of data comes in the order of its bytes, with the bytes",
            obligation: "StoreSnapshot.orderedData returns the objects that keys returns for the same range, with their bytes.",
            aRangeOfDataComesInItsOrder),
        Check(
            "objects are found by their bytes, and bytes are read in place, as by values",
            obligation:
                "StoreSnapshot.holder finds the first object that lookup finds; StorePage.withData has the bytes that value has.",
            bytesAreFoundAndReadInPlace),
    ]

    private static let column = Sample.column(of: .data)

    /// Few bytes, so that several objects have the same, and some more than an index keeps.
    private static func bytes(_ random: inout SeededRandom) -> [UInt8] {
        if random.chance(10) { return Array(repeating: 2, count: Int.random(in: 500...520, using: &random)) }
        return (0..<Int.random(in: 0...3, using: &random)).map { _ in random.pick([0, 1, 2, 255]) }
    }

    /// Saves objects with bytes, changes some and deletes some. Returns the bytes of those that have any.
    private static func fill(_ tested: StoreUnderTest, _ random: inout SeededRandom) throws -> [ObjectKey: [UInt8]] {
        let columns = Sample.schema.entities[Sample.everything].columns.count
        var existing = Set(ObjectKey(64)..<160)
        var stored: [ObjectKey: [UInt8]] = [:]
        func value(_ key: ObjectKey) -> Value {
            stored[key] = random.chance(10) ? nil : bytes(&random)
            return stored[key].map { .data(Data($0)) } ?? .null
        }
        try tested.save { layer in
            for key in existing.sorted() {
                var values = Array(repeating: Value.null, count: columns)
                values[column] = value(key)
                layer.insert(Sample.everything, key: key, values: values)
            }
        }
        for _ in 0..<2 {
            try tested.save { layer in
                for key in existing.sorted() where random.chance(25) {
                    if random.chance(70) {
                        layer.update(Sample.everything, key: key, of: columns, values: [column: value(key)])
                        continue
                    }
                    layer.delete(Sample.everything, key)
                    stored[key] = nil
                    existing.remove(key)
                }
            }
        }
        return stored
    }

    private static func aRangeOfDataComesInItsOrder(_ trial: Trial) throws {
        var random = trial.random
        let tested = try trial.newStore()
        let stored = try fill(tested, &random)
        let snapshot = try tested.snapshot()
        for _ in 0..<200 {
            let query = OrderedDataQuery(
                entity: Sample.everything, column: column, lower: bytes(&random), upper: bytes(&random),
                direction: random.pick([.ascending, .descending]), limit: random.pick([nil, 0, 1, 5, 1000]))
            let isAscending = query.direction == .ascending
            let expected = stored.filter { !$0.value.precedes(query.lower) && $0.value.precedes(query.upper) }
                .sorted { a, b in
                    if a.value == b.value { return a.key < b.key }
                    return isAscending ? a.value.precedes(b.value) : b.value.precedes(a.value)
                }
                .prefix(query.limit ?? .max)
            let found = try snapshot.orderedData(query)
            try expect(found.keys, equals: expected.map(\.key), "\(query)")
            try expect(found.keys.indices.map { Array(found.data(at: $0)) }, equals: expected.map(\.value), "\(query)")
        }
    }

    private static func bytesAreFoundAndReadInPlace(_ trial: Trial) throws {
        var random = trial.random
        let tested = try trial.newStore()
        let stored = try fill(tested, &random)
        let snapshot = try tested.snapshot()
        for _ in 0..<200 {
            let wanted = bytes(&random)
            let found = try wanted.withUnsafeBytes { try snapshot.holder(Sample.everything, column: column, of: $0) }
            try expect(found, equals: stored.filter { $0.value == wanted }.keys.min(), "\(wanted)")
        }
        for key in ObjectKey(64)..<192 {
            var found: [UInt8]?
            let isRead = try snapshot.page(Sample.everything, key.page)?.withData(key.slot, column: column) { found = Array($0) }
            try expect(found, equals: stored[key], "\(key)")
            try expect(isRead ?? false, equals: stored[key] != nil, "\(key)")
        }
    }
}

extension [UInt8] {
    fileprivate func precedes(_ other: [UInt8]) -> Bool { lexicographicallyPrecedes(other) }
}
