import StoreInterface

/// The objects of a live result in their order: immutable, and shared between successive versions but for the parts that differ.
///
/// Chunks of objects lie in blocks of chunks. Replacing k of n objects costs O(k log n) to find them, plus copying the chunks
/// and blocks that hold them, plus O(n / 2048) pointers.
struct ResultList: Sendable {
    /// A place in the list: where it is counted from the start, and where it lies.
    struct Place {
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

    /// `entries` are in the order. O(entries).
    init(order: SortOrder, _ entries: [SortEntry]) {
        self.order = order
        var builder = ResultBlock.Builder()
        builder.append(entries[...])
        append(builder.finish()[...])
    }

    func entry(at place: Place) -> SortEntry { blocks[place.block].chunks[place.chunk].entries[place.index] }

    /// O(log n).
    func key(at position: Int) -> ObjectKey {
        precondition(position >= 0 && position < count, "position \(position) is not in a result of \(count)")
        let block = starts.lastIndex(notAbove: position)
        let within = position - starts[block]
        let chunk = blocks[block].starts.lastIndex(notAbove: within)
        return blocks[block].chunks[chunk].entries[within - blocks[block].starts[chunk]].key
    }

    /// The keys of some positions, in order. O(range + log n).
    func keys(_ range: Range<Int>) -> [ObjectKey] {
        guard !range.isEmpty else { return [] }
        var keys: [ObjectKey] = []
        keys.reserveCapacity(range.count)
        for block in starts.lastIndex(notAbove: range.lowerBound)..<blocks.count where starts[block] < range.upperBound {
            for (start, chunk) in zip(blocks[block].starts, blocks[block].chunks) {
                let first = starts[block] + start
                let low = max(range.lowerBound, first)
                let high = min(range.upperBound, first + chunk.entries.count)
                guard low < high else { continue }
                for index in (low - first)..<(high - first) { keys.append(chunk.entries[index].key) }
            }
        }
        return keys
    }

    /// Where an object with these sort values is; nil when it is not in the list. O(log n) comparisons.
    func place(of entry: SortEntry) -> Place? {
        let place = insertionPlace(of: entry)
        guard place.block < blocks.count else { return nil }
        let entries = blocks[place.block].chunks[place.chunk].entries
        guard place.index < entries.count, order.order(entries[place.index], entry) == 0 else { return nil }
        return place
    }

    /// Before which object an object would go. O(log n) comparisons.
    func insertionPlace(of entry: SortEntry) -> Place {
        guard !blocks.isEmpty else { return Place(position: 0, block: 0, chunk: 0, index: 0) }
        var low = 0
        var high = blocks.count
        while high - low > 1 {
            let middle = (low + high) / 2
            if order.precedes(entry, blocks[middle].first) { high = middle } else { low = middle }
        }
        let (chunk, index) = blocks[low].insertionPlace(of: entry, order)
        return Place(position: starts[low] + blocks[low].starts[chunk] + index, block: low, chunk: chunk, index: index)
    }

    // MARK: Replacing

    /// The list without some objects and with others, and where those others are in it.
    ///
    /// - Parameters:
    ///   - removals: places in this list, ascending.
    ///   - insertions: objects and their ``insertionPlace(of:)`` in this list, in the list's order.
    func replacing(
        _ removals: [Place], with insertions: [(place: Place, entry: SortEntry)]
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
    /// The last index whose element is not above a number; the elements ascend from zero, so there is one.
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
