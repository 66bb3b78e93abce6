/// The order of a tree's keys, as LMDB's search needs it. The keys are given in the order of the tree: those of a branch before its child.
///
/// Keys ascend over all leaves. The key of a branch is greater than all keys before its child, and not greater than the child's first key.
/// They may differ: when LMDB deletes the first key of a leaf, the key of the branch stays.
struct KeyOrder {
    enum Kind {
        /// Bytes are compared from the first one on. The beginning of a key comes before the key.
        case bytes
        /// Numbers of eight bytes, lowest byte first.
        case numbers
    }

    enum Place { case branch, leaf }

    private struct Key {
        var page: [UInt8]
        var range: Range<Int>
    }

    private let kind: Kind
    /// The last key of the leaves so far.
    private var last: Key?
    /// The key of a branch, until the first key of its child.
    private var lowest: Key?

    init(_ kind: Kind) { self.kind = kind }

    /// Returns whether the next key is in order. A number has all of its bytes.
    mutating func accepts(_ place: Place, of page: [UInt8], at range: Range<Int>) -> Bool {
        let key = Key(page: page, range: range)
        if let last, !isAscending(last, key) { return false }
        switch place {
        case .branch: lowest = key
        case .leaf:
            if let lowest, isAscending(key, lowest) { return false }
            (last, lowest) = (key, nil)
        }
        return true
    }

    private func isAscending(_ key: Key, _ next: Key) -> Bool {
        let count = min(key.range.count, next.range.count)
        for position in 0..<count {
            let offset = kind == .numbers ? count - 1 - position : position
            let (byte, other) = (key.page[key.range.lowerBound + offset], next.page[next.range.lowerBound + offset])
            if byte != other { return byte < other }
        }
        return key.range.count < next.range.count
    }
}
