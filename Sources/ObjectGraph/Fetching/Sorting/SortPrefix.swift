import StoreInterface
import StoreModel

/// The first fifteen bytes of an object's sort values, encoded so that their order equals the sort order.
///
/// It is two words without references, because live results copy and compare it thousands of times. The last byte is the length
/// of the encoding. If the encoding is longer than fifteen bytes, objects with the same prefix are compared by their values.
struct SortPrefix: Sendable, Hashable, Comparable {
    private(set) var high: UInt64 = 0
    private(set) var low: UInt64 = 0

    private static let capacity = 15
    private static let tooLong: UInt64 = 0xFF

    /// Whether equal prefixes mean equal sort values.
    var isExact: Bool { low & 0xFF != Self.tooLong }

    @inline(__always)
    static func < (a: SortPrefix, b: SortPrefix) -> Bool { a.high != b.high ? a.high < b.high : a.low < b.low }

    init(_ values: [Value], _ sort: [StoreSort]) {
        var count = 0
        for (value, sort) in zip(values, sort) where count <= Self.capacity {
            append(value, by: sort, count: &count)
        }
        finish(count)
    }

    init(_ value: Value, _ sort: StoreSort) {
        var count = 0
        append(value, by: sort, count: &count)
        finish(count)
    }

    private mutating func finish(_ count: Int) {
        low |= count > Self.capacity ? Self.tooLong : UInt64(count)
    }

    /// Appends a class byte, then the value. Null has the lowest or the highest class byte.
    private mutating func append(_ value: Value, by sort: StoreSort, count: inout Int) {
        let mask: UInt64 = sort.direction == .descending ? 0xFF : 0
        switch value {
        case .null: append(sort.nulls == .lowest ? 0 : 3, mask: mask, count: &count)
        case .bool(let flag): append(flag ? 2 : 1, mask: mask, count: &count)
        case .int(let number): append(number: UInt64(bitPattern: number) ^ 1 << 63, mask, &count)
        case .uint(let number): append(number: number, mask, &count)
        case .double(let number): append(number: Self.ordered(number), mask, &count)
        case .reference(let key): append(number: key.rawValue, mask, &count)
        case .string(var text): text.withUTF8 { append(bytes: $0, mask, &count) }
        case .data(let data): append(bytes: data, mask, &count)
        case .uuid(let uuid):
            append(1, mask: mask, count: &count)
            withUnsafeBytes(of: uuid.uuid) { for byte in $0 { append(UInt64(byte), mask: mask, count: &count) } }
        }
    }

    private mutating func append(number: UInt64, _ mask: UInt64, _ count: inout Int) {
        append(1, mask: mask, count: &count)
        for shift in stride(from: UInt64(56), through: 0, by: -8) { append(number >> shift & 0xFF, mask: mask, count: &count) }
    }

    /// Appends bytes and a terminator of two zero bytes. Zero bytes in the text are escaped, so that a prefix sorts before any longer
    /// text.
    private mutating func append(bytes: some Sequence<UInt8>, _ mask: UInt64, _ count: inout Int) {
        append(1, mask: mask, count: &count)
        for byte in bytes {
            guard count <= Self.capacity else { return }
            append(UInt64(byte), mask: mask, count: &count)
            if byte == 0 { append(0xFF, mask: mask, count: &count) }
        }
        append(0, mask: mask, count: &count)
        append(0, mask: mask, count: &count)
    }

    /// Appends a byte. Bytes after the capacity are only counted.
    @inline(__always)
    private mutating func append(_ byte: UInt64, mask: UInt64, count: inout Int) {
        if count < 8 {
            high |= (byte ^ mask) << UInt64(56 - 8 * count)
        } else if count < Self.capacity {
            low |= (byte ^ mask) << UInt64(56 - 8 * (count - 8))
        }
        count += 1
    }

    /// Returns the bits of a number in an order-preserving encoding. Minus zero equals zero, and NaN comes last.
    private static func ordered(_ number: Double) -> UInt64 {
        if number.isNaN { return .max }
        let bits = (number == 0 ? 0 : number).bitPattern
        return bits >> 63 == 0 ? bits | 1 << 63 : ~bits
    }
}
