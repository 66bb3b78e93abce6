#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

import StoreInterface
import StoreModel

/// Values of each type, at the ends of their ranges.
enum ValueChecks {
    static let all: [Check] =
        ColumnType.allCases.map { type in
            Check(
                "values of type \(type.rawValue) come back, and look-ups and conditions find them",
                obligation: "A column returns the value that was written, for every value of its type."
            ) { try valuesAtTheirExtremesComeBack($0, type) }
        } + [
            Check(
                "long strings that differ late are told apart",
                obligation: "StoreSnapshot.lookup and keys compare whole values, not the beginnings that an index keeps.",
                longStringsThatDifferLateAreToldApartByAnIndex)
        ]

    /// The extremes of each type; a column of the sample model has the number of its type.
    static let extremes: [ColumnType: [Value]] = [
        .bool: [.bool(true), .bool(false)],
        .int8: [.int(Int64(Int8.min)), .int(-1), .int(0), .int(Int64(Int8.max))],
        .int16: [.int(Int64(Int16.min)), .int(Int64(Int16.max))],
        .int32: [.int(Int64(Int32.min)), .int(Int64(Int32.max))],
        .int64: [.int(.min), .int(.max), .int(1 << 53 + 1)],
        .uint8: [.int(0), .int(255)], .uint16: [.int(65535)], .uint32: [.int(Int64(UInt32.max))],
        .uint64: [.uint(0), .uint(1 << 63), .uint(.max)],
        .float: [.double(Double(Float.greatestFiniteMagnitude)), .double(Double(Float.leastNonzeroMagnitude)), .double(.nan)],
        .double: [
            .double(.nan), .double(-0.0), .double(.infinity), .double(-.infinity), .double(.leastNonzeroMagnitude),
            .double(.greatestFiniteMagnitude), .double(0.1),
        ],
        .date: [.double(Date.distantPast.timeIntervalSinceReferenceDate), .double(0), .double(1e-6)],
        .string: [
            .string(""), .string("a\0b"), .string("𝄞👩‍👩‍👧 \u{10ffff}"), .string("e\u{301}"), .string("é"), .string("'\"; --"),
            .string(String(repeating: "long", count: 400)), .string(String(repeating: "x", count: 200_000)),
        ],
        .data: [.data(Data()), .data(Data([0, 255, 0])), .data(Data(repeating: 7, count: 300_000))],
        .uuid: [.uuid(UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))), .uuid(UUID())],
        .reference: [.reference(64), .reference(ObjectKey(Int.max))],
    ]

    private static func valuesAtTheirExtremesComeBack(_ trial: Trial, _ type: ColumnType) throws {
        var tested = try trial.newStore()
        let column = Sample.column(of: type)
        let values = try require(Self.extremes[type]) + [.null]
        try tested.save { layer in
            for (position, value) in values.enumerated() {
                var row = Array(repeating: Value.null, count: ColumnType.allCases.count)
                row[column] = value
                layer.insert(Sample.everything, key: ObjectKey(64 + position), values: row)
            }
        }
        try tested.reopen()
        let snapshot = try tested.snapshot()
        for (position, value) in values.enumerated() {
            let key = ObjectKey(64 + position)
            let read = try require(snapshot.value(Sample.everything, key: key, column: column))
            try expect(Self.isSame(read, value), "\(value), but StoreSnapshot.value returns \(read)")
            let row = try require(snapshot.pageValues(Sample.everything, key))
            try expect(Self.isSame(row[column], value), "\(value), but StorePage.value returns \(row[column])")
            try expect(
                row.enumerated(as: ColumnIndex.self).allSatisfy { $0 == column || $1 == .null }, "the other columns are null")
            guard value == value else {
                try expect(snapshot.lookup(Sample.everything, column: column, value: value), equals: [], "NaN equals nothing")
                continue
            }
            try expect(snapshot.lookup(Sample.everything, column: column, value: value).contains(key), "a look-up finds \(value)")
            let query = StoreQuery(entity: Sample.everything, predicate: .compare(column, .equal, to: value))
            try expect(snapshot.keys(query), equals: [key])
        }
    }

    /// Compares values as a store must keep them: NaN is NaN, and the sign of zero may be lost.
    static func isSame(_ a: Value, _ b: Value) -> Bool {
        if case .double(let x) = a, case .double(let y) = b { return x == y || (x.isNaN && y.isNaN) }
        return a == b && a.order(b) == 0
    }

    static func longStringsThatDifferLateAreToldApartByAnIndex(_ trial: Trial) throws {
        let tested = try trial.newStore()
        let start = String(repeating: "s", count: 600)
        try tested.save { layer in
            for (position, end) in ["", "a", "b", "é", "zz"].enumerated() {
                layer.insertItem(ObjectKey(64 + position), name: start + end)
            }
        }
        let snapshot = try tested.snapshot()
        try expect(snapshot.lookup(Sample.item, column: Sample.name, value: .string(start + "b")), equals: [66])
        func keys(_ predicate: StorePredicate) throws -> [ObjectKey] {
            try snapshot.keys(
                StoreQuery(
                    entity: Sample.item, predicate: predicate, sort: [StoreSort(column: Sample.name, direction: .descending)]))
        }
        try expect(keys(.compare(Sample.name, .greater, to: .string(start + "a"))), equals: [67, 68, 66])
        try expect(keys(.string(Sample.name, .hasPrefix, pattern: start, sensitivity: .sensitive)), equals: [67, 68, 66, 65, 64])
    }
}
