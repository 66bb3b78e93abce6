import StoreInterface

/// One object's place in a sorted result.
///
/// Three words, because live results copy them by the thousand: most comparisons look at ``prefix`` only.
struct SortEntry: Sendable {
    /// Orders as the first sort does, as far as 64 bits can tell.
    var prefix: UInt64
    var key: ObjectKey
    /// nil when the prefix says everything: a single sort by a number, a date, a flag or a short string.
    var tail: SortTail?
}

/// The values that an object is sorted by. Case-insensitive strings are kept lowercased: they are compared often and read once.
final class SortTail: Sendable {
    let values: [Value]

    init(_ values: [Value]) { self.values = values }
}

/// Compares objects by a request's sort; the key breaks every tie, ascending, so that the order is total.
struct SortOrder: Sendable {
    let sort: [StoreSort]
    private let isDescending: Bool

    init(_ sort: [StoreSort]) {
        self.sort = sort
        isDescending = sort.first?.direction == .descending
    }

    /// Reads the sort values of an object that exists.
    func entry(_ entity: Int, _ key: ObjectKey, in reader: some ObjectReader) throws -> SortEntry {
        guard let first = sort.first else { return SortEntry(prefix: 0, key: key, tail: nil) }
        let value = try Self.read(first, entity, key, in: reader)
        let (prefix, isExact) = value.sortPrefix
        var entry = SortEntry(prefix: isDescending ? ~prefix : prefix, key: key, tail: nil)
        if sort.count > 1 {
            let rest = try sort.dropFirst().map { try Self.read($0, entity, key, in: reader) }
            entry.tail = SortTail([value] + rest)
        } else if !isExact {
            entry.tail = SortTail([value])
        }
        return entry
    }

    private static func read(_ sort: StoreSort, _ entity: Int, _ key: ObjectKey, in reader: some ObjectReader) throws -> Value {
        let value = try reader.value(entity, key, sort.column) ?? .null
        guard sort.caseSensitivity == .insensitive, case .string(let text) = value else { return value }
        return .string(text.lowercased())
    }

    /// Negative, zero (the same object in the same place) or positive.
    @inline(__always)
    func order(_ a: SortEntry, _ b: SortEntry) -> Int {
        if a.prefix != b.prefix { return a.prefix < b.prefix ? -1 : 1 }
        return orderWithinPrefix(a, b)
    }

    @inline(__always)
    func precedes(_ a: SortEntry, _ b: SortEntry) -> Bool {
        if a.prefix != b.prefix { return a.prefix < b.prefix }
        return orderWithinPrefix(a, b) < 0
    }

    @inline(never)
    private func orderWithinPrefix(_ a: SortEntry, _ b: SortEntry) -> Int {
        switch (a.tail, b.tail) {
        case (nil, nil): break
        // A value that its prefix tells whole orders before longer ones with the same prefix.
        case (nil, _): return isDescending ? 1 : -1
        case (_, nil): return isDescending ? -1 : 1
        case (let left?, let right?):
            for (index, sort) in sort.enumerated() {
                let result = left.values[index].order(right.values[index])
                if result != 0 { return sort.direction == .ascending ? result : -result }
            }
        }
        return a.key < b.key ? -1 : (a.key == b.key ? 0 : 1)
    }
}

extension Value {
    /// A number that never orders otherwise than the value does among values of one column, and whether it tells all: then values with
    /// the same prefix that it does not tell whole order after this one.
    var sortPrefix: (prefix: UInt64, isExact: Bool) {
        switch self {
        case .null: (0, true)
        case .bool(let flag): (flag ? 2 : 1, true)
        // The least number shares its prefix with null.
        case .int(let number): (UInt64(bitPattern: number) ^ 1 << 63, number != .min)
        case .uint(let number): (number, number != 0)
        case .double(let number): (Self.sortPrefix(of: number), true)
        case .string(var text): text.withUTF8 { Self.sortPrefix(of: $0) }
        case .data(let data): Self.sortPrefix(of: data)
        case .uuid(let uuid): withUnsafeBytes(of: uuid.uuid) { (Self.bigEndian($0.prefix(8), count: 8), false) }
        case .reference(let key): (key, true)
        }
    }

    private static func sortPrefix(of number: Double) -> UInt64 {
        if number.isNaN { return .max }
        // Minus zero equals zero.
        let bits = (number == 0 ? 0 : number).bitPattern
        return bits >> 63 == 0 ? bits | 1 << 63 : ~bits
    }

    /// Seven bytes, then how many there are: eight stands for more.
    private static func sortPrefix(of bytes: some Collection<UInt8>) -> (prefix: UInt64, isExact: Bool) {
        let count = bytes.count
        return (bigEndian(bytes.prefix(7), count: 7) << 8 | UInt64(min(count, 8) + 1), count < 8)
    }

    private static func bigEndian(_ bytes: some Sequence<UInt8>, count: Int) -> UInt64 {
        var number: UInt64 = 0
        var shift = count * 8
        for byte in bytes {
            shift -= 8
            number |= UInt64(byte) << UInt64(shift)
        }
        return number
    }
}
