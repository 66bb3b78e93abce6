import StoreInterface

/// The objects of a live result in their order: immutable, and shared between successive versions but for the chunks that differ.
///
/// Replacing k of n objects costs O(k log n) to find them, plus copying the chunks that hold them, plus O(n / 64) pointers.
struct ResultList: Sendable {
    /// Objects to a chunk when it is built; one is split when it reaches twice as many.
    static let chunkSize = 64

    /// `Sendable` because it never changes after it is made.
    final class Chunk: Sendable {
        let entries: ContiguousArray<SortEntry>

        init(_ entries: ContiguousArray<SortEntry>) { self.entries = entries }
    }

    /// A place in the list: where it is counted from the start, and where it lies.
    struct Place {
        var position: Int
        var chunk: Int
        var index: Int
    }

    let order: SortOrder
    private(set) var chunks: [Chunk] = []
    /// The position of each chunk's first object.
    private(set) var starts: [Int] = []
    private(set) var count = 0

    /// `entries` are in the order.
    init(order: SortOrder, _ entries: ContiguousArray<SortEntry> = []) {
        self.order = order
        append(entries)
    }

    func entry(at position: Int) -> SortEntry {
        let chunk = chunkIndex(at: position)
        return chunks[chunk].entries[position - starts[chunk]]
    }

    /// The keys of some positions, in order. O(range).
    func keys(_ range: Range<Int>) -> [ObjectKey] {
        guard !range.isEmpty else { return [] }
        var keys: [ObjectKey] = []
        keys.reserveCapacity(range.count)
        var chunk = chunkIndex(at: range.lowerBound)
        var position = range.lowerBound
        while position < range.upperBound {
            let entries = chunks[chunk].entries
            let end = min(range.upperBound - starts[chunk], entries.count)
            for index in (position - starts[chunk])..<end { keys.append(entries[index].key) }
            position = starts[chunk] + end
            chunk += 1
        }
        return keys
    }

    /// Where an object with these sort values is; nil when it is not in the list. O(log n) comparisons.
    func place(of entry: SortEntry) -> Place? {
        let place = insertionPlace(of: entry)
        guard place.chunk < chunks.count, place.index < chunks[place.chunk].entries.count,
            order.order(chunks[place.chunk].entries[place.index], entry) == 0
        else { return nil }
        return place
    }

    /// Before which object an object would go. O(log n) comparisons.
    func insertionPlace(of entry: SortEntry) -> Place {
        guard !chunks.isEmpty else { return Place(position: 0, chunk: 0, index: 0) }
        // The last chunk that begins at or before the entry.
        var low = 0
        var high = chunks.count
        while high - low > 1 {
            let middle = (low + high) / 2
            if order.order(chunks[middle].entries[0], entry) <= 0 { low = middle } else { high = middle }
        }
        let index = Self.lowerBound(chunks[low].entries, entry, order)
        return Place(position: starts[low] + index, chunk: low, index: index)
    }

    private static func lowerBound(_ entries: ContiguousArray<SortEntry>, _ entry: SortEntry, _ order: SortOrder) -> Int {
        var low = 0
        var high = entries.count
        while low < high {
            let middle = (low + high) / 2
            if order.order(entries[middle], entry) < 0 { low = middle + 1 } else { high = middle }
        }
        return low
    }

    private func chunkIndex(at position: Int) -> Int {
        precondition(position >= 0 && position < count, "position \(position) is not in a result of \(count)")
        var low = 0
        var high = starts.count
        while high - low > 1 {
            let middle = (low + high) / 2
            if starts[middle] <= position { low = middle } else { high = middle }
        }
        return low
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
        next.chunks.reserveCapacity(chunks.count + insertions.count / Self.chunkSize + 1)
        next.starts.reserveCapacity(chunks.count + insertions.count / Self.chunkSize + 1)
        var positions: [Int] = []
        positions.reserveCapacity(insertions.count)
        var removal = 0
        var insertion = 0
        var untouched = 0
        while removal < removals.count || insertion < insertions.count {
            let chunk = min(
                removal < removals.count ? removals[removal].chunk : .max,
                insertion < insertions.count ? insertions[insertion].place.chunk : .max)
            next.append(chunks[min(untouched, chunks.count)..<min(chunk, chunks.count)])
            untouched = chunk + 1
            let old = chunk < chunks.count ? chunks[chunk].entries : []
            var entries = ContiguousArray<SortEntry>()
            entries.reserveCapacity(old.count + 8)
            var copied = 0
            while true {
                let removed = removal < removals.count && removals[removal].chunk == chunk ? removals[removal].index : .max
                let inserted =
                    insertion < insertions.count && insertions[insertion].place.chunk == chunk
                    ? insertions[insertion].place.index : .max
                let stop = min(removed, inserted, old.count)
                entries.append(contentsOf: old[copied..<stop])
                copied = stop
                // An object that goes where another leaves lies before it.
                if inserted <= removed, inserted != .max {
                    positions.append(next.count + entries.count)
                    entries.append(insertions[insertion].entry)
                    insertion += 1
                } else if removed != .max {
                    copied = removed + 1
                    removal += 1
                } else {
                    break
                }
            }
            next.append(entries)
        }
        next.append(chunks[min(untouched, chunks.count)...])
        return (next, positions)
    }

    private mutating func append(_ whole: ArraySlice<Chunk>) {
        for chunk in whole {
            chunks.append(chunk)
            starts.append(count)
            count += chunk.entries.count
        }
    }

    /// Appends as few chunks as fit, of even sizes; a small rest joins the chunk before it.
    private mutating func append(_ entries: ContiguousArray<SortEntry>) {
        guard !entries.isEmpty else { return }
        if entries.count < Self.chunkSize / 4, let last = chunks.last, last.entries.count < Self.chunkSize {
            chunks[chunks.count - 1] = Chunk(last.entries + entries)
            count += entries.count
            return
        }
        guard entries.count >= 2 * Self.chunkSize else {
            append([Chunk(entries)])
            return
        }
        let pieces = entries.count / Self.chunkSize
        for piece in 0..<pieces {
            let range = (entries.count * piece / pieces)..<(entries.count * (piece + 1) / pieces)
            append([Chunk(ContiguousArray(entries[range]))])
        }
    }
}
