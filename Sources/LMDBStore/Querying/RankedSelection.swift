import StoreInterface
import StoreModel

/// A ``SortedSelection`` for a sort by one numeric column. Values become words with the same order, so that no reference is
/// counted and only three words per object are copied.
struct RankedSelection {
    private struct Entry: Comparable {
        /// 1 for a value, and 0 or 2 for null; inverted for descending sorts, like the rank.
        var hasValue: UInt64
        var rank: UInt64
        var key: ObjectKey

        @inline(__always)
        static func < (a: Entry, b: Entry) -> Bool {
            if a.rank != b.rank || a.hasValue != b.hasValue { return a.isBefore(b.hasValue, b.rank) }
            return a.key < b.key
        }

        @inline(__always)
        func isBefore(_ hasValue: UInt64, _ rank: UInt64) -> Bool {
            self.hasValue != hasValue ? self.hasValue < hasValue : self.rank < rank
        }
    }

    private let turned: UInt64
    private let null: UInt64
    private let wanted: Int
    private let most: Int
    private var entries: [Entry] = []
    private var worst: Entry?

    /// Creates a selection. Returns nil unless the sort is by one column whose values are numbers.
    init?(_ sort: [StoreSort], columns: [ColumnSchema], wanted: Int?) {
        guard sort.count == 1, let only = sort.first, Self.isRanked(columns[only.column].type) else { return nil }
        turned = only.direction == .ascending ? 0 : ~0
        null = only.nulls == .lowest ? 0 : 2
        self.wanted = wanted ?? Int.max
        most = self.wanted < Int.max / 4 ? 2 * self.wanted + 512 : Int.max
    }

    private static func isRanked(_ type: ColumnType) -> Bool {
        switch type {
        case .string, .data, .uuid: false
        default: true
        }
    }

    /// Adds an object. Objects must be added in the order of their keys, which decides between equal values.
    @inline(__always)
    mutating func add(_ key: ObjectKey, _ value: Value) {
        var rank: UInt64 = 0
        var hasValue: UInt64 = 1
        switch value {
        case .bool(let flag): rank = flag ? 1 : 0
        case .int(let number): rank = UInt64(bitPattern: number) ^ 1 << 63
        case .uint(let number): rank = number
        case .reference(let key): rank = key.rawValue
        case .double(let number): rank = Self.rank(number)
        default: hasValue = null
        }
        let entry = Entry(hasValue: hasValue ^ turned, rank: rank ^ turned, key: key)
        if let worst, !entry.isBefore(worst.hasValue, worst.rank) { return }
        entries.append(entry)
        if entries.count >= most { prune() }
    }

    /// Returns a rank with the order of ``Value/order(_:)``: both zeros are equal, NaN is last.
    @inline(__always)
    private static func rank(_ number: Double) -> UInt64 {
        if number.isNaN { return .max }
        let bits = number == 0 ? 0 : number.bitPattern
        return bits >> 63 == 0 ? bits | 1 << 63 : ~bits
    }

    private mutating func prune() {
        entries.sort()
        entries.removeLast(entries.count - wanted)
        worst = entries.last
    }

    /// Returns the selected keys in order.
    mutating func finish() -> [ObjectKey] {
        entries.sort()
        return entries.prefix(wanted).map(\.key)
    }
}
