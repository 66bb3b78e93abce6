import LMDB
import PageCodec

/// A stretch of an index's keys, from a lower to an upper bound.
struct IndexRange {
    /// When a key is at a bound.
    enum Reach {
        /// When it is the bound.
        case whole
        /// When it begins with the bound: further columns follow, or the bound is a prefix.
        case leading
    }

    /// Empty: from the first key on.
    var lower: [UInt8]
    var upper: [UInt8]
    var lowerReach: Reach
    var upperReach: Reach
    var includesLower = true
    var includesUpper = true

    /// All keys that begin with some bytes; all keys at all when there are none.
    init(beginningWith bytes: [UInt8]) {
        lower = bytes
        upper = bytes
        lowerReach = .leading
        upperReach = .leading
    }

    init(lower: [UInt8], upper: [UInt8], reach: Reach) {
        self.lower = lower
        self.upper = upper
        lowerReach = reach
        upperReach = reach
    }

    /// Takes in all keys that are the same as far as so many bytes tell.
    mutating func widen(to count: Int) {
        if lower.count > count { lower.removeSubrange(count...) }
        if upper.count > count { upper.removeSubrange(count...) }
        (includesLower, includesUpper) = (true, true)
    }

    private func isAt(_ bound: [UInt8], _ reach: Reach, _ key: UnsafeRawBufferPointer) -> Bool {
        switch reach {
        case .whole: IndexBytes.order(key, bound) == 0
        case .leading: key.starts(with: bound)
        }
    }

    /// Whether a key that is not before the lower bound lies before the stretch all the same.
    func skips(_ key: UnsafeRawBufferPointer) -> Bool { !includesLower && isAt(lower, lowerReach, key) }

    /// Whether a key lies behind the stretch.
    func isPast(_ key: UnsafeRawBufferPointer) -> Bool {
        var key = key
        // What begins with the bound is at it.
        if upperReach == .leading, key.count > upper.count { key = UnsafeRawBufferPointer(rebasing: key[..<upper.count]) }
        let order = IndexBytes.order(key, upper)
        return order == 0 ? !includesUpper : order > 0
    }

    /// Whether a key lies before the stretch.
    func isBefore(_ key: UnsafeRawBufferPointer) -> Bool {
        skips(key) || (IndexBytes.order(key, lower) < 0)
    }

    /// Goes to the first key of the stretch; nil when there is none.
    func first(_ cursor: Cursor) throws -> Cursor.Entry? {
        var entry = try Self.seek(lower, cursor)
        while let found = entry, skips(found.key) { entry = try cursor.move(.nextKey) }
        guard let found = entry, !isPast(found.key) else { return nil }
        return found
    }

    /// Goes to the last key of the stretch; nil when there is none.
    func last(_ cursor: Cursor) throws -> Cursor.Entry? {
        let behind = beyond
        let next = behind.isEmpty ? nil : try Self.seek(behind, cursor)
        let entry = try cursor.move(next == nil ? .last : .previousKey)
        guard let found = entry, !isBefore(found.key), !isPast(found.key) else { return nil }
        return found
    }

    /// The least bytes behind every key of the stretch; empty when there are none.
    private var beyond: [UInt8] {
        if !includesUpper { return upper }
        if upperReach == .whole, upper.count < KeyCodec.maximumCount { return upper + [0] }
        var bytes = upper
        while let last = bytes.popLast() {
            if last < 0xFF { return bytes + [last + 1] }
        }
        return []
    }

    /// LMDB has no empty keys.
    static func seek(_ bytes: [UInt8], _ cursor: Cursor) throws -> Cursor.Entry? {
        if bytes.isEmpty { return try cursor.move(.first) }
        return try bytes.withUnsafeBytes { try cursor.seek($0) }
    }
}
