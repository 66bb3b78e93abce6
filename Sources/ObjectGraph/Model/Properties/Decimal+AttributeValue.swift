import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Decimals are stored exactly, as bytes whose order is the order of the numbers. So predicates, sorts and indexes compare them, but
/// stores cannot add them up.
///
/// The first byte is the class: not a number, negative, zero, positive. For the value 0.d₁d₂d₃… × 10ᵉ with d₁ ≠ 0, two bytes of the
/// exponent follow, then a byte per two digits. The bytes of negative numbers are complemented and end with 0xFF.
extension Decimal: AttributeValue {
    private enum Class {
        static let notANumber: UInt8 = 0
        static let negative: UInt8 = 1
        static let zero: UInt8 = 2
        static let positive: UInt8 = 3
    }

    private static let exponentBias = 1 << 12

    /// The column type of bytes.
    public static var columnType: ColumnType { .data }

    /// The bytes of zero.
    public static var missingValue: Value { .data(Data([Class.zero])) }

    /// Creates the number from `.data`. No bytes are zero. Returns nil for another storage class, and for bytes of another origin.
    public init?(_ value: Value) {
        guard case .data(let bytes) = value else { return nil }
        switch bytes.first {
        case nil, Class.zero: self = 0
        case Class.notANumber: self = .nan
        case Class.positive:
            guard let number = Self.magnitude(Array(bytes.dropFirst())) else { return nil }
            self = number
        case Class.negative:
            guard let number = Self.magnitude(bytes.dropFirst().dropLast().map { ~$0 }) else { return nil }
            self = -number
        default: return nil
        }
    }

    /// The bytes of the number as `.data`.
    public var storeValue: Value {
        if isNaN { return .data(Data([Class.notANumber])) }
        guard self != 0 else { return Self.missingValue }
        // Digits and a point, without an exponent.
        let parts = magnitude.description.split(separator: ".", omittingEmptySubsequences: false)
        let whole = parts[0].drop { $0 == "0" }
        let fraction = parts.count > 1 ? parts[1] : ""
        let leadingZeros = whole.isEmpty ? fraction.prefix { $0 == "0" }.count : 0
        let exponent = whole.isEmpty ? -leadingZeros : whole.count
        var digits = (whole + fraction.dropFirst(leadingZeros)).utf8.map { $0 &- UInt8(ascii: "0") }
        while digits.last == 0 { digits.removeLast() }
        if !digits.count.isMultiple(of: 2) { digits.append(0) }
        let biased = exponent + Self.exponentBias
        var bytes = [UInt8(truncatingIfNeeded: biased >> 8), UInt8(truncatingIfNeeded: biased)]
        for position in stride(from: 0, to: digits.count, by: 2) {
            bytes.append(digits[position] * 10 + digits[position + 1] + 1)
        }
        guard sign == .minus else { return .data(Data([Class.positive] + bytes)) }
        return .data(Data([Class.negative] + bytes.map { ~$0 } + [0xFF]))
    }

    private static func magnitude(_ bytes: [UInt8]) -> Decimal? {
        guard bytes.count > 2, bytes.count < 32 else { return nil }
        let exponent = Int(bytes[0]) << 8 + Int(bytes[1]) - exponentBias
        var digits = ""
        for byte in bytes.dropFirst(2) {
            guard (1...100).contains(byte) else { return nil }
            digits += byte > 10 ? "\(byte - 1)" : "0\(byte - 1)"
        }
        return Decimal(string: "\(digits)E\(exponent - digits.count)")
    }
}

extension Value {
    /// The number as the bytes of a decimal; nil for not-a-number and for values of other storage classes.
    ///
    /// Foundation converts fractions, as it does those of literals: `8.95` becomes 8.949999999999997952.
    var asDecimal: Value? {
        switch self {
        case .int(let number): Decimal(number).storeValue
        case .uint(let number): Decimal(number).storeValue
        case .double(let number): Decimal(nearest: number)?.storeValue
        default: nil
        }
    }
}

extension Decimal {
    /// Creates the decimal of a number, or the nearest one if the number is out of range; nil for not-a-number.
    fileprivate init?(nearest number: Double) {
        guard !number.isNaN else { return nil }
        // Foundation stops the program for an infinite number, and returns not-a-number for other numbers outside of its range.
        let decimal: Decimal = number.isFinite ? Decimal(number) : .nan
        if !decimal.isNaN {
            self = decimal
        } else if number.magnitude < 1 {
            self = 0
        } else {
            self = number < 0 ? -Decimal.greatestFiniteMagnitude : .greatestFiniteMagnitude
        }
    }
}
