import StoreInterface
import StoreModel

/// The difference between two snapshots of a live result.
///
/// To get the next snapshot, start with the previous snapshot. Remove the objects at `deletions` and at the sources of `moves`,
/// which are positions in the previous snapshot. Then insert the objects at `insertions` and at the targets of `moves`, which are
/// positions in the next snapshot. An object whose position shifts only because of other objects is in none of the lists.
///
/// ```swift
/// for position in (difference.deletions + difference.moves.map(\.from)).sorted(by: >) { rows.remove(at: position) }
/// for position in (difference.insertions + difference.moves.map(\.to)).sorted() {
///     rows.insert(snapshot[position], at: position)
/// }
/// ```
public struct ResultDifference: Sendable, Hashable {
    /// A move of one object.
    public struct Move: Sendable, Hashable {
        /// The position in the previous snapshot.
        public var from: Int
        /// The position in the next snapshot.
        public var to: Int

        /// Creates a move.
        public init(from: Int, to: Int) {
            self.from = from
            self.to = to
        }
    }

    /// The positions of deleted objects in the previous snapshot, ascending.
    public var deletions: [Int]
    /// The positions of inserted objects in the next snapshot, ascending.
    public var insertions: [Int]
    /// The moved objects, ascending by target. A move implies that the object changed.
    public var moves: [Move]
    /// The positions in the next snapshot of changed objects that did not move, ascending.
    public var updates: [Int]

    /// Creates a difference. Without arguments, it is empty.
    public init(deletions: [Int] = [], insertions: [Int] = [], moves: [Move] = [], updates: [Int] = []) {
        self.deletions = deletions
        self.insertions = insertions
        self.moves = moves
        self.updates = updates
    }

    /// A Boolean value that indicates whether the snapshots do not differ.
    public var isEmpty: Bool { deletions.isEmpty && insertions.isEmpty && moves.isEmpty && updates.isEmpty }
}

extension ResultDifference {
    /// Computes the difference of two complete lists with the fewest moves of changed objects. O(n log n).
    ///
    /// Unchanged objects move only if a list contains them in another order although their own properties are the same.
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
        let isChanged = try common.map { try isUpdated(new[$0.to]) }
        let stay = Self.staying(common.map(\.from), isChanged)
        for (index, move) in common.enumerated() {
            if !stay[index] {
                moves.append(move)
            } else if isChanged[index] {
                updates.append(move.to)
            }
        }
    }

    /// Returns which objects do not move: unchanged ones that are in order, then as many changed ones between them as are in order too.
    ///
    /// - Parameter numbers: The previous positions, in the order of the next snapshot.
    private static func staying(_ numbers: [Int], _ isChanged: [Bool]) -> [Bool] {
        var stay = Array(repeating: false, count: numbers.count)
        func keep(_ indices: [Int]) {
            for (index, isIn) in zip(indices, longestIncreasing(indices.map { numbers[$0] })) where isIn { stay[index] = true }
        }
        keep(numbers.indices.filter { !isChanged[$0] })
        // The position of the next object that stays.
        var upper = Array(repeating: Int.max, count: numbers.count)
        var next = Int.max
        for index in numbers.indices.reversed() {
            upper[index] = next
            if stay[index] { next = numbers[index] }
        }
        var lower = -1
        var between: [Int] = []
        for index in numbers.indices {
            if stay[index] {
                keep(between)
                (lower, between) = (numbers[index], [])
            } else if numbers[index] > lower, numbers[index] < upper[index] {
                between.append(index)
            }
        }
        keep(between)
        return stay
    }

    /// Returns, for each of the distinct numbers, whether it belongs to one longest increasing subsequence.
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
