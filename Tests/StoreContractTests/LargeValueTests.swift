import Foundation
import StoreInterface
import Testing

/// Values that a store may keep out of line. They must behave like all other values.
@Suite struct LargeValueTests {
    static let sizes = [1, 511, 512, 513, 514, 4096, 65_503, 65_504, 65_505, 131_008, 131_009, 300_000]

    /// Returns data that does not compress. `text` returns a string that does.
    static func data(_ count: Int, _ random: inout SeededRandom) -> Data {
        Data((0..<count).map { _ in UInt8.random(in: 0...255, using: &random) })
    }
    static func text(_ count: Int) -> String {
        String(repeating: "abcdefghij", count: count / 10) + String(repeating: "z", count: count % 10)
    }

    private static let string = ColumnType.allCases.firstIndex(of: .string) ?? 0
    private static let bytes = ColumnType.allCases.firstIndex(of: .data) ?? 0
    private static let number = ColumnType.allCases.firstIndex(of: .int64) ?? 0

    private static func row(_ values: [Int: Value]) -> [Value] { ColumnType.allCases.indices.map { values[$0] ?? .null } }

    private static func update(_ layer: Layer, _ key: ObjectKey, _ values: [Int: Value]) {
        layer.update(Sample.everything, key, of: ColumnType.allCases.count, values)
    }

    @Test(arguments: StoreKind.allCases) func valuesOfAnySizeComeBackAndStayWhenANeighbourChanges(_ kind: StoreKind) throws {
        var random = SeededRandom("sizes on \(kind)")
        var contract = try ContractStore(kind)
        let all = Self.sizes.map { (Self.data($0, &random), Self.text($0)) }
        try contract.save { layer in
            for (position, (data, text)) in all.enumerated() {
                let row = Self.row([Self.bytes: .data(data), Self.string: .string(text), Self.number: .int(1)])
                layer.insert(Sample.everything, 64 + ObjectKey(position), row)
            }
        }
        func check() throws {
            let snapshot = try contract.snapshot()
            for (position, (data, text)) in all.enumerated() {
                let key = 64 + ObjectKey(position)
                #expect(try snapshot.value(Sample.everything, key, Self.bytes) == .data(data))
                #expect(try snapshot.value(Sample.everything, key, Self.string) == .string(text))
                #expect(try snapshot.lookup(Sample.everything, column: Self.bytes, value: .data(data)) == [key])
                #expect(try snapshot.lookup(Sample.everything, column: Self.string, value: .string(text)) == [key])
            }
        }
        try check()
        try contract.save { layer in
            for position in all.indices { Self.update(layer, 64 + ObjectKey(position), [Self.number: .int(2)]) }
        }
        if StoreKind.persistent.contains(kind) { contract.store = try contract.openAgain() }
        try check()
        #expect(try contract.store.verify() == [])
    }

    @Test(arguments: StoreKind.allCases) func partsOfAValueAreTheValue(_ kind: StoreKind) throws {
        var random = SeededRandom("parts on \(kind)")
        let contract = try ContractStore(kind)
        let values = Self.sizes.map { Self.data($0, &random) } + [Data()]
        try contract.save { layer in
            for (position, data) in values.enumerated() {
                let row = Self.row([Self.bytes: .data(data), Self.string: .string(Self.text(data.count)), Self.number: .int(1)])
                layer.insert(Sample.everything, 64 + ObjectKey(position), row)
            }
            layer.insert(Sample.everything, 120, Self.row([:]))
        }
        let snapshot = try contract.snapshot()
        func joined(_ key: ObjectKey, _ column: Int) throws -> Data? {
            guard var parts = try snapshot.parts(Sample.everything, key, column) else { return nil }
            var bytes = Data()
            while let part = try parts.next() {
                #expect(!part.isEmpty && part.count <= 1 << 16)
                bytes.append(part)
            }
            #expect(parts.byteCount == bytes.count)
            return bytes
        }
        for (position, data) in values.enumerated() {
            #expect(try joined(64 + ObjectKey(position), Self.bytes) == data)
            #expect(try joined(64 + ObjectKey(position), Self.string) == Data(Self.text(data.count).utf8))
        }
        #expect(try joined(64, Self.number) == nil)
        #expect(try joined(120, Self.bytes) == nil)
        #expect(try joined(121, Self.bytes) == nil)
    }

    @Test(arguments: StoreKind.allCases) func aLargeValueIsReplacedByAnotherASmallOneAndNull(_ kind: StoreKind) throws {
        let contract = try ContractStore(kind)
        let values: [Value] = [
            .string(Self.text(2000)), .string(Self.text(100_000)), .string("small"), .string(Self.text(600)), .null,
            .string(Self.text(513)),
        ]
        try contract.save { $0.insert(Sample.everything, 64, Self.row([Self.string: .string(Self.text(70_000))])) }
        let before = try contract.snapshot()
        for value in values {
            try contract.save { Self.update($0, 64, [Self.string: value]) }
            #expect(try contract.snapshot().value(Sample.everything, 64, Self.string) == value)
            #expect(try contract.snapshot().lookup(Sample.everything, column: Self.string, value: value) == [64])
            #expect(try contract.store.verify() == [])
        }
        if StoreKind.isolated.contains(kind) {
            #expect(
                try before.value(Sample.everything, 64, Self.string) == .string(Self.text(70_000)), "a snapshot keeps what it saw"
            )
        }
        try contract.save { $0.delete(Sample.everything, 64) }
        #expect(try contract.snapshot().all(Sample.everything).isEmpty)
        #expect(try contract.store.verify() == [])
    }

    @Test(arguments: StoreKind.allCases) func conditionsSortsAndNullTestsSeeWholeValues(_ kind: StoreKind) throws {
        let contract = try ContractStore(kind)
        let base = Self.text(70_000)
        let texts = [base + "a", base + "B", base, "x" + base, "small", Self.text(600) + "É"]
        try contract.save { layer in
            for (position, text) in texts.enumerated() {
                layer.insertItem(
                    64 + ObjectKey(position), name: text, changing: [Sample.note: position == 0 ? .null : .string(text)])
            }
        }
        let snapshot = try contract.snapshot()
        func keys(_ predicate: StorePredicate) throws -> [ObjectKey] {
            try snapshot.keys(StoreQuery(entity: Sample.item, predicate: predicate))
        }
        for column in [Sample.name, Sample.note] {
            let first: [ObjectKey] = column == Sample.name ? [64] : []
            #expect(try keys(.compare(column, .equal, .string(base))) == [66])
            #expect(try keys(.compare(column, .greater, .string(base))) == first + [65, 67, 68, 69])
            #expect(try keys(.string(column, .hasSuffix, "b", .insensitive)) == [65])
            #expect(try keys(.string(column, .contains, "jx", .sensitive)) == [])
            #expect(try keys(.string(column, .hasSuffix, "é", .insensitive)) == [69])
            #expect(try keys(.isIn(column, [.string(base), .string("small")])) == [66, 68])
        }
        #expect(try keys(.compare(Sample.note, .equal, .null)) == [64])
        #expect(try keys(.compare(Sample.note, .notEqual, .null)) == [65, 66, 67, 68, 69])
        #expect(try keys(.compareColumns(Sample.name, .equal, Sample.note)) == [65, 66, 67, 68, 69])
        let sorted = try snapshot.keys(StoreQuery(entity: Sample.item, sort: [StoreSort(column: Sample.name)]))
        #expect(
            sorted == texts.indices.sorted { Value.string(texts[$0]).order(.string(texts[$1])) < 0 }.map { 64 + ObjectKey($0) })
    }

    @Test(arguments: StoreKind.allCases) func aValuePastOneGibibyteIsRefusedByName(_ kind: StoreKind) throws {
        guard kind == .lmdb else { return }
        let contract = try ContractStore(kind)
        // Untouched memory, because nothing of it is read.
        let count = 1 << 30 + 1
        let room = UnsafeMutableRawPointer.allocate(byteCount: count, alignment: 8)
        let data = Data(bytesNoCopy: room, count: count, deallocator: .custom { pointer, _ in pointer.deallocate() })
        let error = #expect(throws: StoreError.self) {
            try contract.save { $0.insert(Sample.everything, 64, Self.row([Self.bytes: .data(data)])) }
        }
        #expect(error?.code == .valueTooLarge)
        #expect(
            error?.message.contains("Everything.Version was set to 1073741825 bytes") ?? false, "\(String(describing: error))")
    }
}
