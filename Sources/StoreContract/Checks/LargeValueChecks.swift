#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

import StoreInterface
import StoreModel

/// Values that a store may keep out of line. Callers see no difference.
enum LargeValueChecks {
    static let all: [Check] = [
        Check(
            "values of any size come back, also after another column changed",
            obligation: "A store keeps values of any size up to 1 GiB, in line or out of line.",
            valuesOfAnySizeComeBackAndStayWhenANeighbourChanges),
        Check(
            "the parts of a value are the value",
            obligation:
                "StoreSnapshot.parts returns the bytes of a string or of data in parts of at most 64 KiB, and nil otherwise.",
            partsOfAValueAreTheValue),
        Check(
            "a large value is replaced by another, a small one and null",
            obligation: "StoreTransaction.apply replaces values of any size.", aLargeValueIsReplacedByAnotherASmallOneAndNull),
        Check(
            "a snapshot keeps a large value that was replaced",
            obligation: "A StoreSnapshot shows one state for as long as it is held.", aSnapshotKeepsALargeValue),
        Check(
            "conditions and sorts see whole values",
            obligation: "StoreSnapshot.keys evaluates conditions and sorts on whole values.",
            conditionsSortsAndNullTestsSeeWholeValues),
    ]

    static let sizes = [1, 511, 512, 513, 514, 4096, 65_503, 65_504, 65_505, 131_008, 131_009, 300_000]

    /// Data that does not shrink, and a string that does.
    static func data(_ count: Int, _ random: inout SeededRandom) -> Data {
        Data((0..<count).map { _ in UInt8.random(in: 0...255, using: &random) })
    }
    static func text(_ count: Int) -> String {
        String(repeating: "abcdefghij", count: count / 10) + String(repeating: "z", count: count % 10)
    }

    private static let string = Sample.column(of: .string)
    private static let bytes = Sample.column(of: .data)
    private static let number = Sample.column(of: .int64)

    private static func row(_ values: [ColumnIndex: Value]) -> [Value] {
        ColumnType.allCases.map { values[Sample.column(of: $0)] ?? .null }
    }

    private static func update(_ layer: Layer, key: ObjectKey, values: [ColumnIndex: Value]) {
        layer.update(Sample.everything, key: key, of: ColumnType.allCases.count, values: values)
    }

    static func valuesOfAnySizeComeBackAndStayWhenANeighbourChanges(_ trial: Trial) throws {
        var random = trial.random
        var tested = try trial.newStore()
        let all = Self.sizes.map { (Self.data($0, &random), Self.text($0)) }
        try tested.save { layer in
            for (position, (data, text)) in all.enumerated() {
                let row = Self.row([Self.bytes: .data(data), Self.string: .string(text), Self.number: .int(1)])
                layer.insert(Sample.everything, key: ObjectKey(64 + position), values: row)
            }
        }
        func check() throws {
            let snapshot = try tested.snapshot()
            for (position, (data, text)) in all.enumerated() {
                let key = ObjectKey(64 + position)
                try expect(snapshot.value(Sample.everything, key: key, column: Self.bytes), equals: .data(data))
                try expect(snapshot.value(Sample.everything, key: key, column: Self.string), equals: .string(text))
                try expect(snapshot.lookup(Sample.everything, column: Self.bytes, value: .data(data)), equals: [key])
                try expect(snapshot.lookup(Sample.everything, column: Self.string, value: .string(text)), equals: [key])
            }
        }
        try check()
        try tested.save { layer in
            for position in all.indices { Self.update(layer, key: ObjectKey(64 + position), values: [Self.number: .int(2)]) }
        }
        try tested.reopen()
        try check()
        try expect(tested.store.verify(), equals: [])
    }

    static func partsOfAValueAreTheValue(_ trial: Trial) throws {
        var random = trial.random
        let tested = try trial.newStore()
        let values = Self.sizes.map { Self.data($0, &random) } + [Data()]
        try tested.save { layer in
            for (position, data) in values.enumerated() {
                let row = Self.row([Self.bytes: .data(data), Self.string: .string(Self.text(data.count)), Self.number: .int(1)])
                layer.insert(Sample.everything, key: ObjectKey(64 + position), values: row)
            }
            layer.insert(Sample.everything, key: 120, values: Self.row([:]))
        }
        let snapshot = try tested.snapshot()
        func joined(_ key: ObjectKey, _ column: ColumnIndex) throws -> Data? {
            guard var parts = try snapshot.parts(Sample.everything, key: key, column: column) else { return nil }
            var bytes = Data()
            while let part = try parts.next() {
                try expect(!part.isEmpty && part.count <= 1 << 16, "1 to 65,536 bytes per part, not \(part.count)")
                bytes.append(part)
            }
            try expect(parts.byteCount, equals: bytes.count)
            return bytes
        }
        for (position, data) in values.enumerated() {
            try expect(joined(ObjectKey(64 + position), Self.bytes), equals: data)
            try expect(joined(ObjectKey(64 + position), Self.string), equals: Data(Self.text(data.count).utf8))
        }
        try expect(joined(64, Self.number), equals: nil)
        try expect(joined(120, Self.bytes), equals: nil)
        try expect(joined(121, Self.bytes), equals: nil)
    }

    static func aLargeValueIsReplacedByAnotherASmallOneAndNull(_ trial: Trial) throws {
        let tested = try trial.newStore()
        let values: [Value] = [
            .string(Self.text(2000)), .string(Self.text(100_000)), .string("small"), .string(Self.text(600)), .null,
            .string(Self.text(513)),
        ]
        try tested.save { $0.insert(Sample.everything, key: 64, values: Self.row([Self.string: .string(Self.text(70_000))])) }
        for value in values {
            try tested.save { Self.update($0, key: 64, values: [Self.string: value]) }
            try expect(tested.snapshot().value(Sample.everything, key: 64, column: Self.string), equals: value)
            try expect(tested.snapshot().lookup(Sample.everything, column: Self.string, value: value), equals: [64])
            try expect(tested.store.verify(), equals: [])
        }
        try tested.save { $0.delete(Sample.everything, 64) }
        try expect(tested.snapshot().all(Sample.everything), equals: [])
        try expect(tested.store.verify(), equals: [])
    }

    static func conditionsSortsAndNullTestsSeeWholeValues(_ trial: Trial) throws {
        let tested = try trial.newStore()
        let base = Self.text(70_000)
        let texts = [base + "a", base + "B", base, "x" + base, "small", Self.text(600) + "É"]
        try tested.save { layer in
            for (position, text) in texts.enumerated() {
                layer.insertItem(
                    ObjectKey(64 + position), name: text, changing: [Sample.note: position == 0 ? .null : .string(text)])
            }
        }
        let snapshot = try tested.snapshot()
        func keys(_ predicate: StorePredicate) throws -> [ObjectKey] {
            try snapshot.keys(StoreQuery(entity: Sample.item, predicate: predicate))
        }
        for column in [Sample.name, Sample.note] {
            let first: [ObjectKey] = column == Sample.name ? [64] : []
            try expect(keys(.compare(column, .equal, to: .string(base))), equals: [66])
            try expect(keys(.compare(column, .greater, to: .string(base))), equals: first + [65, 67, 68, 69])
            try expect(keys(.string(column, .hasSuffix, pattern: "b", sensitivity: .insensitive)), equals: [65])
            try expect(keys(.string(column, .contains, pattern: "jx", sensitivity: .sensitive)), equals: [])
            try expect(keys(.string(column, .hasSuffix, pattern: "é", sensitivity: .insensitive)), equals: [69])
            try expect(keys(.isIn(column, [.string(base), .string("small")])), equals: [66, 68])
        }
        try expect(keys(.compare(Sample.note, .equal, to: .null)), equals: [64])
        try expect(keys(.compare(Sample.note, .notEqual, to: .null)), equals: [65, 66, 67, 68, 69])
        try expect(keys(.compareColumns(Sample.name, .equal, to: Sample.note)), equals: [65, 66, 67, 68, 69])
        let sorted = try snapshot.keys(StoreQuery(entity: Sample.item, sort: [StoreSort(column: Sample.name)]))
        let expected = texts.indices.sorted { Value.string(texts[$0]).order(.string(texts[$1])) < 0 }
        try expect(sorted, equals: expected.map { ObjectKey(64 + $0) })
    }

    static func aSnapshotKeepsALargeValue(_ trial: Trial) throws {
        let tested = try trial.newStore()
        let old = Value.string(Self.text(70_000))
        try tested.save { $0.insert(Sample.everything, key: 64, values: Self.row([Self.string: old])) }
        let before = try tested.snapshot()
        for value in [.string(Self.text(100_000)), .null] as [Value] {
            try tested.save { Self.update($0, key: 64, values: [Self.string: value]) }
            try expect(before.value(Sample.everything, key: 64, column: Self.string), equals: old)
        }
        try tested.save { $0.delete(Sample.everything, 64) }
        try expect(before.value(Sample.everything, key: 64, column: Self.string), equals: old)
    }
}
