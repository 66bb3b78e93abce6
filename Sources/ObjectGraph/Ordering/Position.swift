import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The place of an object in an ordered relationship. Members are read in the order of their positions, and equal positions in the
/// order of keys. Members without a position come first.
///
/// A position is a list of numbers, so that there is always one between two others. Its bytes compare like the list. Moving an
/// object gives it a new position and changes no other object.
struct Position: Sendable, Hashable, Comparable {
    let bytes: Data
    /// The first bytes as a number, which decides most comparisons.
    private let prefix: UInt64

    init(bytes: Data) {
        self.bytes = bytes
        var prefix: UInt64 = 0
        for byte in bytes.prefix(8) { prefix = prefix << 8 | UInt64(byte) }
        self.prefix = prefix << UInt64(8 * (8 - min(bytes.count, 8)))
    }

    /// Reads the value of a position's column. Returns nil if the object has no position.
    init?(_ value: Value) {
        guard case .data(let bytes) = value else { return nil }
        self.init(bytes: bytes)
    }

    var value: Value { .data(bytes) }

    static func < (a: Position, b: Position) -> Bool {
        a.prefix == b.prefix ? a.bytes.lexicographicallyPrecedes(b.bytes) : a.prefix < b.prefix
    }

    // MARK: Bytes

    /// The numbers from -64 to 63 are one byte, with this byte for 0.
    private static let zero = 0x80
    private static let small: ClosedRange<Int64> = -64...63

    init(numbers: [Int64]) {
        var bytes = Data()
        for number in numbers {
            if Self.small.contains(number) {
                bytes.append(UInt8(Self.zero + Int(number)))
                continue
            }
            // A number with more bytes is farther from zero. Its first byte is farther from that of zero.
            let magnitude = UInt64(number < 0 ? ~number : number)
            let count = (71 - magnitude.leadingZeroBitCount) / 8
            bytes.append(UInt8(number < 0 ? 0x40 - count : 0xBF + count))
            for position in (0..<count).reversed() {
                bytes.append(UInt8(truncatingIfNeeded: number >> Int64(8 * position)))
            }
        }
        self.init(bytes: bytes)
    }

    /// The numbers; nil for bytes that no position has, which only another program can have written.
    var numbers: [Int64]? {
        var numbers: [Int64] = []
        var rest = bytes[...]
        while let first = rest.popFirst() {
            if (0x40...0xBF).contains(first) {
                numbers.append(Int64(first) - Int64(Self.zero))
                continue
            }
            let isNegative = first < 0x40
            let count = isNegative ? 0x40 - Int(first) : Int(first) - 0xBF
            guard count <= 8, rest.count >= count else { return nil }
            var number: Int64 = isNegative ? -1 : 0
            for byte in rest.prefix(count) { number = number << 8 | Int64(byte) }
            rest = rest.dropFirst(count)
            numbers.append(number)
        }
        return Position(numbers: numbers) == self ? numbers : nil
    }

    // MARK: New positions

    /// The number of bytes that no new position exceeds. Where it would, neighbors get new positions of at most half as many bytes.
    static let maximumLength = 32

    /// The distance between the numbers of neighbors below the first level.
    private static let gap: Int64 = 1 << 16

    /// Returns ascending positions between two others. Returns nil if there is no room for positions of at most `limit` bytes.
    ///
    /// The positions contain a key, so that objects that two contexts insert at one place do not alternate.
    /// - Parameters:
    ///   - lower: The position before the new ones; nil for none.
    ///   - upper: The position after them; nil for none.
    ///   - key: The key of the object that gets the first position.
    ///   - continues: Whether `lower` is a position that no other context knows, so that this one may go on from there.
    static func between(
        _ lower: Position?, _ upper: Position?, count: Int, key: ObjectKey, continues: Bool = false, limit: Int = maximumLength
    ) -> [Position]? {
        let (low, high) = (lower?.numbers, upper?.numbers)
        guard lower == nil || low != nil, upper == nil || high != nil else { return nil }
        var next: [Int64]?
        if continues, let low, let following = following(low), high.map({ following.lexicographicallyPrecedes($0) }) ?? true {
            next = following
        }
        next = next ?? between(low ?? [], high, key: Int64(truncatingIfNeeded: key.rawValue & UInt64(Int64.max)))
        let depth = next?.count
        var made: [Position] = []
        made.reserveCapacity(count)
        for _ in 0..<count {
            guard let numbers = next else { return nil }
            made.append(Position(numbers: numbers))
            next = numbers.count == depth ? numbers + [0] : following(numbers)
        }
        // The last position is the longest.
        guard let first = made.first, let last = made.last, last.bytes.count <= limit else { return nil }
        if let lower, !(lower < first) { return nil }
        if let upper, !(last < upper) { return nil }
        return made
    }

    /// Returns the numbers of a position between two others; nil if there are none.
    private static func between(_ low: [Int64], _ high: [Int64]?, key: Int64) -> [Int64]? {
        guard let high else {
            guard let first = low.first else { return [0, key] }
            return first < .max ? [first + 1, key] : nil
        }
        let same = zip(low, high).prefix { $0 == $1 }.count
        guard same < high.count else { return nil }
        let step = same == 0 ? 1 : gap
        if same == low.count {
            let (number, overflows) = high[same].subtractingReportingOverflow(step)
            return overflows ? nil : Array(high[..<same]) + [number, key]
        }
        guard low[same] < high[same] else { return nil }
        let (distance, overflows) = high[same].subtractingReportingOverflow(low[same])
        if overflows { return nil }
        if distance > 1 { return Array(low[..<same]) + [low[same] + distance / 2, key] }
        guard same + 1 < low.count else { return low + [0, key] }
        let (number, isTooLarge) = low[same + 1].addingReportingOverflow(gap)
        return isTooLarge ? nil : Array(low[...same]) + [number, key]
    }

    /// Returns the next numbers in a row of positions that begins with an object's key; nil if there are none.
    private static func following(_ numbers: [Int64]) -> [Int64]? {
        if numbers.count == 2 { return numbers + [0] }
        guard numbers.count > 2, let last = numbers.last, last < .max else { return nil }
        return Array(numbers.dropLast()) + [last + 1]
    }
}

extension Value {
    /// Returns the value of a position's column for the member of a new list with a number, from 0. It has 2 to 10 bytes, and there are
    /// positions before, after and between such positions.
    package static func position(inNewList number: Int) -> Value { Position(numbers: [0, Int64(number)]).value }
}

extension Position: CustomStringConvertible {
    /// The numbers, for messages.
    var description: String { numbers.map { $0.map(String.init).joined(separator: ".") } ?? bytes.description }
}
