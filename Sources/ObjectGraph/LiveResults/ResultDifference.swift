import StoreInterface

/// What changed between two snapshots of a live result.
///
/// Take the previous snapshot; remove the deletions and the moves' sources, which are positions in it; then put in the
/// insertions and the moves' targets, which are positions in the next. That gives exactly the next snapshot. An object
/// that only shifts because of others is in none of the lists.
public struct ResultDifference: Sendable, Hashable {
    public struct Move: Sendable, Hashable {
        /// In the previous snapshot.
        public var from: Int
        /// In the next snapshot.
        public var to: Int

        public init(from: Int, to: Int) {
            self.from = from
            self.to = to
        }
    }

    /// Positions in the previous snapshot, ascending.
    public var deletions: [Int]
    /// Positions in the next snapshot, ascending.
    public var insertions: [Int]
    /// Ascending by target. A move implies that the object changed.
    public var moves: [Move]
    /// Positions in the next snapshot of changed objects that did not move, ascending.
    public var updates: [Int]

    public init(deletions: [Int] = [], insertions: [Int] = [], moves: [Move] = [], updates: [Int] = []) {
        self.deletions = deletions
        self.insertions = insertions
        self.moves = moves
        self.updates = updates
    }

    public var isEmpty: Bool { deletions.isEmpty && insertions.isEmpty && moves.isEmpty && updates.isEmpty }
}

extension ResultDifference {
    /// The difference of two whole lists with as few moves as possible. O(n log n).
    init(from old: [ObjectKey], to new: [ObjectKey], isUpdated: (ObjectKey) throws -> Bool) rethrows {
        self.init()
        var oldPositions: [ObjectKey: Int] = [:]
        oldPositions.reserveCapacity(old.count)
        for (position, key) in old.enumerated() { oldPositions[key] = position }
        var common: [Move] = []
        for (position, key) in new.enumerated() {
            if let from = oldPositions.removeValue(forKey: key) {
                common.append(Move(from: from, to: position))
            } else {
                insertions.append(position)
            }
        }
        deletions = oldPositions.values.sorted()
        let stay = Self.longestIncreasing(common.map(\.from))
        for (index, move) in common.enumerated() {
            if !stay[index] {
                moves.append(move)
            } else if try isUpdated(new[move.to]) {
                updates.append(move.to)
            }
        }
    }

    /// Which of distinct numbers belong to one longest increasing subsequence.
    private static func longestIncreasing(_ numbers: [Int]) -> [Bool] {
        // For each length, the index of the smallest number that ends such a subsequence.
        var ends: [Int] = []
        var previous = Array(repeating: -1, count: numbers.count)
        for (index, number) in numbers.enumerated() {
            var low = 0
            var high = ends.count
            while low < high {
                let middle = (low + high) / 2
                if numbers[ends[middle]] < number { low = middle + 1 } else { high = middle }
            }
            if low > 0 { previous[index] = ends[low - 1] }
            if low == ends.count { ends.append(index) } else { ends[low] = index }
        }
        var isIn = Array(repeating: false, count: numbers.count)
        var index = ends.last ?? -1
        while index >= 0 {
            isIn[index] = true
            index = previous[index]
        }
        return isIn
    }
}
