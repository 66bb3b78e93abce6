import Foundation
import StoreInterface
import Testing

@Suite struct ValueTests {
    /// The extremes of each type. The column of the sample model has the number of its type.
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
        .reference: [.reference(64), .reference(ObjectKey(Int64.max))],
    ]

    @Test(arguments: StoreKind.allCases, ColumnType.allCases)
    func valuesAtTheirExtremesComeBack(_ kind: StoreKind, _ type: ColumnType) throws {
        var contract = try ContractStore(kind)
        let column = try #require(ColumnType.allCases.firstIndex(of: type))
        let values = try #require(Self.extremes[type]) + [.null]
        try contract.save { layer in
            for (position, value) in values.enumerated() {
                var row = Array(repeating: Value.null, count: ColumnType.allCases.count)
                row[column] = value
                layer.insert(Sample.everything, ObjectKey(64 + position), row)
            }
        }
        if StoreKind.persistent.contains(kind) { contract.store = try contract.openAgain() }
        let snapshot = try contract.snapshot()
        for (position, value) in values.enumerated() {
            let key = ObjectKey(64 + position)
            let read = try #require(try snapshot.value(Sample.everything, key, column))
            #expect(Self.isSame(read, value))
            let row = try #require(try snapshot.pageValues(Sample.everything, key))
            #expect(Self.isSame(row[column], value))
            #expect(row.enumerated().allSatisfy { $0.offset == column || $0.element == .null })
            guard value == value else { continue }
            #expect(try snapshot.lookup(Sample.everything, column: column, value: value).contains(key))
            let query = StoreQuery(entity: Sample.everything, predicate: .compare(column, .equal, value))
            #expect(try snapshot.keys(query) == [key])
        }
    }

    /// SQLite does not keep the sign of zero.
    static func isSame(_ a: Value, _ b: Value) -> Bool {
        if case .double(let x) = a, case .double(let y) = b { return x == y || (x.isNaN && y.isNaN) }
        return a == b && a.order(b) == 0
    }

    @Test(arguments: StoreKind.allCases) func longStringsThatDifferLateAreToldApartByAnIndex(_ kind: StoreKind) throws {
        let contract = try ContractStore(kind)
        let start = String(repeating: "s", count: 600)
        try contract.save { layer in
            for (position, end) in ["", "a", "b", "é", "zz"].enumerated() {
                layer.insertItem(ObjectKey(64 + position), name: start + end)
            }
        }
        let snapshot = try contract.snapshot()
        #expect(try snapshot.lookup(Sample.item, column: Sample.name, value: .string(start + "b")) == [66])
        func keys(_ predicate: StorePredicate) throws -> [ObjectKey] {
            try snapshot.keys(
                StoreQuery(
                    entity: Sample.item, predicate: predicate, sort: [StoreSort(column: Sample.name, direction: .descending)]))
        }
        #expect(try keys(.compare(Sample.name, .greater, .string(start + "a"))) == [67, 68, 66])
        #expect(try keys(.string(Sample.name, .hasPrefix, start, .sensitive)) == [67, 68, 66, 65, 64])
    }
}
