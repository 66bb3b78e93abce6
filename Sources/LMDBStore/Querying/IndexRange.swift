import LMDB
import PageCodec

/// A contiguous range of an index's keys, from a lower to an upper bound.
struct IndexRange {
    /// The condition under which a key is at a bound.
    enum Reach {
        /// The key equals the bound.
        case whole
        /// The key begins with the bound: further columns follow, or the bound is a prefix.
        case leading
    }

    /// The lower bound. If empty, the range begins at the first key.
    var lower: [UInt8]
    var upper: [UInt8]
    var lowerReach: Reach
    var upperReach: Reach
    var includesLower = true
    var includesUpper = true

    /// Creates the range of all keys that begin with some bytes. If `bytes` is empty, it contains all keys.
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

    /// Extends the range to all keys that cannot be distinguished from its bounds by this many bytes.
    mutating func widen(to count: Int) {
        if lower.count > count { lower.removeSubrange(count...) }
        if upper.count > count { upper.removeSubrange(count...) }
        (includesLower, includesUpper) = (true, true)
    }

    private func isAt(_ bound: [UInt8], reach: Reach, key: UnsafeRawBufferPointer) -> Bool {
        switch reach {
        case .whole: IndexBytes.order(key, bound) == 0
        case .leading: key.starts(with: bound)
        }
    }

    /// Returns whether a key that is not less than the lower bound is nevertheless before the range.
    func skips(_ key: UnsafeRawBufferPointer) -> Bool { !includesLower && isAt(lower, reach: lowerReach, key: key) }

    /// Returns whether a key is after the range.
    func isAfter(_ key: UnsafeRawBufferPointer) -> Bool {
        var key = key
        // A key that begins with the bound is at the bound.
        if upperReach == .leading, key.count > upper.count { key = UnsafeRawBufferPointer(rebasing: key[..<upper.count]) }
        let order = IndexBytes.order(key, upper)
        return order == 0 ? !includesUpper : order > 0
    }

    /// Returns whether a key is before the range.
    func isBefore(_ key: UnsafeRawBufferPointer) -> Bool {
        skips(key) || (IndexBytes.order(key, lower) < 0)
    }

    /// Moves to the first key of the range. Returns nil if there is none.
    func first(_ cursor: Cursor) throws -> Cursor.Entry? {
        var entry = try Self.seek(lower, cursor)
        while let found = entry, skips(found.key) { entry = try cursor.move(.nextKey) }
        guard let found = entry, !isAfter(found.key) else { return nil }
        return found
    }

    /// Moves to the last key of the range. Returns nil if there is none.
    func last(_ cursor: Cursor) throws -> Cursor.Entry? {
        let end = successor
        let next = end.isEmpty ? nil : try Self.seek(end, cursor)
        let entry = try cursor.move(next == nil ? .last : .previousKey)
        guard let found = entry, !isBefore(found.key), !isAfter(found.key) else { return nil }
        return found
    }

    /// The least bytes after every key of the range; empty if there are none.
    private var successor: [UInt8] {
        if !includesUpper { return upper }
        if upperReach == .whole, upper.count < KeyCodec.maximumCount { return upper + [0] }
        var bytes = upper
        while let last = bytes.popLast() {
            if last < 0xFF { return bytes + [last + 1] }
        }
        return []
    }

    /// Moves to the first key that is not before `bytes`. LMDB has no empty keys.
    static func seek(_ bytes: [UInt8], _ cursor: Cursor) throws -> Cursor.Entry? {
        if bytes.isEmpty { return try cursor.move(.first) }
        return try bytes.withUnsafeBytes { try cursor.seek($0) }
    }
}
