import StoreInterface
import StoreModel

/// The objects of a live result in order. It is immutable, and successive versions share the parts that do not differ.
///
/// Objects are in chunks, and chunks in blocks. Replacing k of n objects costs O(k log n) to find them, plus copying their chunks
/// (256 objects of three words) and blocks (64 pointers). Sort values are not stored: if prefixes tie, the values are
/// read from the view of the list.
struct ResultList: Sendable {
    /// Returns the sort values of an object in the list, as they were when it was inserted.
    typealias Values = (ObjectKey) throws -> [Value]

    /// A place in the list: the position from the start, and the block, chunk and index.
    struct Location {
        var position: Int
        var block: Int
        var chunk: Int
        var index: Int
    }

    let order: SortOrder
    private(set) var blocks: [ResultBlock] = []
    /// The position of each block's first object.
    private var starts: [Int] = []
    private(set) var count = 0

    init(order: SortOrder) { self.order = order }

    /// Creates a list of entries that are in the order. O(entries).
    init(order: SortOrder, _ entries: ContiguousArray<SortEntry>) {
        self.order = order
        var builder = ResultBlock.Builder()
        builder.append(entries)
        append(builder.finish()[...])
    }

    func entry(at place: Location) -> SortEntry { blocks[place.block].parts[place.chunk].chunk.entries[place.index] }

    /// Returns the key at a position. O(log n).
    func key(at position: Int) -> ObjectKey {
        precondition(position >= 0 && position < count, "position \(position) is not in a result of \(count)")
        let block = starts.lastIndex(notAbove: position)
        let within = position - starts[block]
        let chunk = blocks[block].starts.lastIndex(notAbove: within)
        return blocks[block].parts[chunk].chunk.entries[within - blocks[block].starts[chunk]].key
    }

    /// Returns the keys of a range of positions, in order. O(range + log n).
    func keys(_ range: Range<Int>) -> [ObjectKey] {
        guard !range.isEmpty else { return [] }
        var keys: [ObjectKey] = []
        keys.reserveCapacity(range.count)
        for block in starts.lastIndex(notAbove: range.lowerBound)..<blocks.count where starts[block] < range.upperBound {
            for (start, part) in zip(blocks[block].starts, blocks[block].parts) {
                let first = starts[block] + start
                let low = max(range.lowerBound, first)
                let high = min(range.upperBound, first + part.count)
                guard low < high else { continue }
                for index in (low - first)..<(high - first) { keys.append(part.chunk.entries[index].key) }
            }
        }
        return keys
    }

    /// Returns the place of an object; nil if it is not in the list. O(log n) comparisons.
    func place(of candidate: SortCandidate, _ values: Values) throws -> Location? {
        guard !blocks.isEmpty else { return nil }
        if !candidate.entry.prefix.isExact {
            // Few objects share a prefix, and comparing keys needs no reads, so try that first.
            var cursor = normalized(prefixBound(candidate.entry.prefix))
            for _ in 0..<Self.scanned {
                guard let place = cursor else { return nil }
                let entry = entry(at: place)
                if entry.prefix != candidate.entry.prefix { return nil }
                if entry.key == candidate.entry.key { return place }
                cursor = next(place)
            }
        }
        let found = try insertionLocation(of: candidate, values)
        guard let place = normalized(found), entry(at: place).key == candidate.entry.key,
            entry(at: place).prefix == candidate.entry.prefix
        else { return nil }
        return place
    }

    private static let scanned = 32

    /// Returns the place at which an object would be inserted. O(log n) comparisons.
    func insertionLocation(of candidate: SortCandidate, _ values: Values) throws -> Location {
        try lowerBound { entry in
            if entry.prefix != candidate.entry.prefix { return entry.prefix < candidate.entry.prefix }
            if entry.prefix.isExact { return entry.key < candidate.entry.key }
            return try order.precedes(values(entry.key), key: entry.key, candidate.values, key: candidate.entry.key)
        }
    }

    /// Returns the first place whose prefix is not less than another.
    private func prefixBound(_ prefix: SortPrefix) -> Location { lowerBound { $0.prefix < prefix } }

    /// Returns the first place whose object does not satisfy `precedes`. If that would be the start of a chunk, returns the end of
    /// the chunk before it.
    private func lowerBound<E: Error>(_ precedes: (SortEntry) throws(E) -> Bool) throws(E) -> Location {
        guard !blocks.isEmpty else { return Location(position: 0, block: 0, chunk: 0, index: 0) }
        var low = 0
        var high = blocks.count
        while high - low > 1 {
            let middle = (low + high) / 2
            if try precedes(blocks[middle].parts[0].first) { low = middle } else { high = middle }
        }
        let (chunk, index) = try blocks[low].lowerBound(precedes)
        return Location(position: starts[low] + blocks[low].starts[chunk] + index, block: low, chunk: chunk, index: index)
    }

    /// Returns the place of the object at or after a bound; nil at the end.
    private func normalized(_ place: Location) -> Location? {
        var place = place
        if place.index == blocks[place.block].parts[place.chunk].count {
            place.index = 0
            place.chunk += 1
            if place.chunk == blocks[place.block].parts.count {
                place.chunk = 0
                place.block += 1
            }
        }
        return place.block < blocks.count ? place : nil
    }

    private func next(_ place: Location) -> Location? {
        var next = place
        next.index += 1
        next.position += 1
        return normalized(next)
    }

    // MARK: Replacing

    /// Returns the list with some objects removed and some inserted, and the new positions of the inserted objects.
    ///
    /// - Parameters:
    ///   - removals: Places in this list, ascending.
    ///   - insertions: Objects and their ``insertionLocation(of:_:)`` in this list, in the list's order.
    func replacing(
        _ removals: [Location], with insertions: [(place: Location, entry: SortEntry)]
    ) -> (list: ResultList, positions: [Int]) {
        var next = ResultList(order: order)
        var positions: [Int] = []
        positions.reserveCapacity(insertions.count)
        var removals = removals[...]
        var insertions = insertions[...]
        var untouched = 0
        while let number = Self.smallest(removals.first?.block, insertions.first?.place.block) {
            next.append(blocks[untouched..<min(number, blocks.count)])
            untouched = min(number + 1, blocks.count)
            let leaving = removals.prefix { $0.block == number }
            let arriving = insertions.prefix { $0.place.block == number }
            removals = removals[leaving.endIndex...]
            insertions = insertions[arriving.endIndex...]
            let old = number < blocks.count ? blocks[number] : nil
            let (made, relative) = ResultBlock.replacing(leaving, with: arriving, in: old)
            positions.append(contentsOf: relative.map { $0 + next.count })
            next.append(made[...])
        }
        next.append(blocks[untouched...])
        return (next, positions)
    }

    static func smallest(_ a: Int?, _ b: Int?) -> Int? {
        guard let a, let b else { return a ?? b }
        return min(a, b)
    }

    private mutating func append(_ whole: ArraySlice<ResultBlock>) {
        for block in whole {
            blocks.append(block)
            starts.append(count)
            count += block.count
        }
    }
}

extension [Int] {
    /// Returns the last index whose element is not greater than a number. The elements ascend from zero, so there is one.
    func lastIndex(notAbove number: Int) -> Int {
        var low = 0
        var high = count
        while high - low > 1 {
            let middle = (low + high) / 2
            if self[middle] <= number { low = middle } else { high = middle }
        }
        return low
    }
}
