import StoreInterface
import StoreModel
import TestSupport

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Random schemas, rows and values.
extension SeededGenerator {
    mutating func schema(columns: Int? = nil) -> EntitySchema {
        let count = columns ?? below(10)
        return EntitySchema(
            name: "Thing",
            columns: (0..<count).map { number in
                let type = ColumnType.allCases.randomElement(using: &self)!  // Never empty.
                return ColumnSchema(
                    name: "c\(number)", type: type, isOptional: chance(50), destination: type == .reference ? 0 : nil)
            })
    }

    /// Returns a value for a column. Small values are frequent, so that rows are often equal, and every width occurs.
    mutating func value(_ column: ColumnSchema) -> Value {
        if column.isOptional, chance(25) { return .null }
        switch column.type {
        case .bool: return .bool(chance(50))
        case .int8: return .int(Int64(Int8(truncatingIfNeeded: integer())))
        case .int16: return .int(Int64(Int16(truncatingIfNeeded: integer())))
        case .int32: return .int(Int64(Int32(truncatingIfNeeded: integer())))
        case .int64: return .int(integer())
        case .uint8: return .int(Int64(UInt8(truncatingIfNeeded: integer())))
        case .uint16: return .int(Int64(UInt16(truncatingIfNeeded: integer())))
        case .uint32: return .int(Int64(UInt32(truncatingIfNeeded: integer())))
        case .uint64: return .uint(UInt64(bitPattern: integer()))
        case .reference: return .reference(ObjectKey(rawValue: UInt64(bitPattern: integer())))
        case .float: return .double(Double(Float(real())))
        case .double, .date: return .double(real())
        case .string: return .string(text())
        case .data: return .data(Data((0..<length()).map { _ in UInt8(truncatingIfNeeded: next() & 3) }))
        case .uuid:
            let tail = UInt8(below(3))
            let head = chance(50) ? 0 : UInt8(below(256))
            return .uuid(UUID(uuid: (head, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, tail)))
        }
    }

    private mutating func integer() -> Int64 {
        if chance(60) { return Int64(below(7)) - 3 }
        return Int64(bitPattern: next()) >> Int64(below(64))
    }

    private mutating func real() -> Double {
        let special: [Double] = [0, -0.0, .nan, .infinity, -.infinity, 1, -1, .leastNonzeroMagnitude]
        if chance(30) { return special.randomElement(using: &self)! }  // Never empty.
        return chance(50) ? Double(below(5)) : Double.random(in: -1e9...1e9, using: &self)
    }

    private mutating func length() -> Int {
        if chance(70) { return below(5) }
        return chance(95) ? below(40) : below(2000)
    }

    mutating func text() -> String {
        let letters: [Character] = ["a", "b", "A", "B", "é", "e\u{301}", "İ", "ß", "\u{212A}", "k", "😀", "\0", "z"]
        return String((0..<length()).map { _ in letters.randomElement(using: &self)! })  // Never empty.
    }
}
