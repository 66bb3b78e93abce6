import PageCodec
import StoreInterface
import StoreModel
import TestSupport
import Testing

@Suite struct KeyCodecTests {
    @Test(arguments: ColumnType.allCases)
    func keysOrderAsTheirValuesDo(_ type: ColumnType) throws {
        var random = SeededGenerator(test: "keys of \(type.rawValue)")
        let column = ColumnSchema(name: "c", type: type, isOptional: true)
        for _ in 0..<2000 {
            let a = random.value(column)
            let b = random.value(column)
            let left = try KeyCodec.encode(a, column: column)
            let right = try KeyCodec.encode(b, column: column)
            #expect(left.bytes.count <= KeyCodec.maximumCount)
            if left.isCut || right.isCut {
                #expect(a.order(b) < 0 ? !right.bytes.lexicographicallyPrecedes(left.bytes) : true)
            } else {
                let order = left.bytes == right.bytes ? 0 : (left.bytes.lexicographicallyPrecedes(right.bytes) ? -1 : 1)
                #expect(order == a.order(b).signum(), "seed \(random.seed): \(a) and \(b)")
            }
        }
    }

    @Test(arguments: ColumnType.allCases)
    func keysDecodeToTheirValuesUnlessCut(_ type: ColumnType) throws {
        var random = SeededGenerator(test: "decoding keys of \(type.rawValue)")
        let column = ColumnSchema(name: "c", type: type, isOptional: true)
        for _ in 0..<1000 {
            let value = random.value(column)
            let key = try KeyCodec.encode(value, column: column)
            let decoded = try key.bytes.withUnsafeBytes { try KeyCodec.decode($0, column: column) }
            if key.isCut {
                #expect(decoded == nil)
            } else if key.bytes.count < KeyCodec.maximumCount {
                #expect(decoded?.order(value) == 0, "seed \(random.seed): \(value)")
            }
        }
    }

    @Test(arguments: ColumnType.allCases)
    func anyBytesAreAKeyOrAnError(_ type: ColumnType) {
        var random = SeededGenerator(test: "any bytes as keys of \(type.rawValue)")
        let column = ColumnSchema(name: "c", type: type)
        for _ in 0..<1000 {
            let bytes = (0..<random.below(random.chance(90) ? 20 : 600)).map { _ in
                UInt8(truncatingIfNeeded: random.next() & 0x81)
            }
            _ = bytes.withUnsafeBytes { bytes in try? KeyCodec.decode(bytes, column: column) }
        }
    }

    @Test func aValueOfAnotherClassIsRefused() {
        let column = ColumnSchema(name: "age", type: .int8)
        for value in [Value.int(128), .int(-129), .double(1), .string("1"), .uint(1)] {
            #expect(throws: PageError.self) { try KeyCodec.encode(value, column: column) }
        }
    }

    @Test func keysHaveTheDocumentedBytes() throws {
        func key(_ type: ColumnType, _ value: Value) throws -> String {
            hex(try KeyCodec.encode(value, column: ColumnSchema(name: "c", type: type)).bytes)
        }
        #expect(try key(.int16, .null) == "00")
        #expect(try key(.bool, .bool(true)) == "0101")
        #expect(try key(.int16, .int(-2)) == "017ffe")
        #expect(try key(.uint32, .int(258)) == "0100000102")
        #expect(try key(.reference, .reference(65)) == "010000000000000041")
        #expect(try key(.double, .double(1)) == "01bff0000000000000")
        #expect(try key(.date, .double(-1)) == "01400fffffffffffff")
        #expect(try key(.float, .double(-0.0)) == "0180000000")
        #expect(try key(.string, .string("aé")) == "0161c3a9")
    }
}

func hex(_ bytes: some Sequence<UInt8>) -> String {
    bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
}
