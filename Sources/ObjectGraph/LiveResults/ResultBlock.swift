import StoreInterface
import StoreModel

/// Some thousand consecutive objects of a ``ResultList``. It is `Sendable` because it is immutable; it is never empty.
final class ResultBlock: Sendable {
    /// Some hundred consecutive objects. Immutable and never empty.
    final class Chunk: Sendable {
        let entries: ContiguousArray<SortEntry>

        init(_ entries: ContiguousArray<SortEntry>) { self.entries = entries }
    }

    /// A chunk with its first object and count. A search thus reads only the chunk that it needs.
    struct Part: Sendable {
        let chunk: Chunk
        let first: SortEntry
        let count: Int

        /// Creates a part.
        ///
        /// - Precondition: `entries` is not empty.
        init(_ entries: ContiguousArray<SortEntry>) {
            chunk = Chunk(entries)
            first = entries[0]
            count = entries.count
        }
    }

    let parts: [Part]
    /// The position of each part's first object, from the block's start.
    let starts: [Int]
    let count: Int

    private init(_ parts: [Part]) {
        self.parts = parts
        var starts: [Int] = []
        starts.reserveCapacity(parts.count)
        var count = 0
        for part in parts {
            starts.append(count)
            count += part.count
        }
        self.starts = starts
        self.count = count
    }

    /// Returns the first place whose object does not satisfy `precedes`. If that would be the start of a part, returns the end of
    /// the part before it.
    @inline(__always)
    func lowerBound<E: Error>(_ precedes: (SortEntry) throws(E) -> Bool) throws(E) -> (part: Int, index: Int) {
        var low = 0
        var high = parts.count
        while high - low > 1 {
            let middle = (low + high) / 2
            if try precedes(parts[middle].first) { low = middle } else { high = middle }
        }
        let entries = parts[low].chunk.entries
        var first = 0
        var last = entries.count
        while first < last {
            let middle = (first + last) / 2
            if try precedes(entries[middle]) { first = middle + 1 } else { last = middle }
        }
        return (low, first)
    }

    // MARK: Replacing

    /// Returns the blocks that replace this one, none if it loses all objects, and the positions of the insertions in them.
    static func replacing(
        _ removals: ArraySlice<ResultList.Location>, with insertions: ArraySlice<(place: ResultList.Location, entry: SortEntry)>,
        in old: ResultBlock?
    ) -> (blocks: [ResultBlock], positions: [Int]) {
        var builder = Builder()
        var positions: [Int] = []
        var removals = removals
        var insertions = insertions
        let parts = old?.parts ?? []
        var untouched = 0
        while let number = ResultList.smallest(removals.first?.chunk, insertions.first?.place.chunk) {
            builder.append(parts[untouched..<min(number, parts.count)])
            untouched = min(number + 1, parts.count)
            let entries = number < parts.count ? parts[number].chunk.entries : []
            var made = ContiguousArray<SortEntry>()
            made.reserveCapacity(entries.count + 8)
            var copied = 0
            while true {
                let removed = removals.first.flatMap { $0.chunk == number ? $0.index : nil }
                let inserted = insertions.first.flatMap { $0.place.chunk == number ? $0.place.index : nil }
                guard let stop = ResultList.smallest(removed, inserted) else { break }
                made.append(contentsOf: entries[copied..<stop])
                copied = stop
                // An object inserted at the index of a removed object comes before it.
                if stop == inserted, let arrived = insertions.popFirst() {
                    positions.append(builder.count + made.count)
                    made.append(arrived.entry)
                } else {
                    copied = stop + 1
                    removals.removeFirst()
                }
            }
            made.append(contentsOf: entries[copied...])
            builder.append(made)
        }
        builder.append(parts[untouched...])
        return (builder.finish(), positions)
    }

    /// Collects parts and divides them into blocks.
    struct Builder {
        /// The number of objects per new chunk. A chunk is split when it reaches twice this number.
        private static let chunkSize = 256
        /// The number of parts per new block. A block is split when it reaches twice this number.
        private static let blockSize = 64

        private var parts: [Part] = []
        private(set) var count = 0

        mutating func append(_ whole: ArraySlice<Part>) {
            parts.append(contentsOf: whole)
            for part in whole { count += part.count }
        }

        /// Appends as few chunks as possible, of equal sizes. A small number of entries is added to the previous chunk.
        mutating func append(_ entries: ContiguousArray<SortEntry>) {
            guard !entries.isEmpty else { return }
            count += entries.count
            if entries.count < Self.chunkSize / 4, let last = parts.last, last.count < Self.chunkSize {
                parts[parts.count - 1] = Part(last.chunk.entries + entries)
            } else if entries.count < 2 * Self.chunkSize {
                parts.append(Part(entries))
            } else {
                for range in Self.ranges(of: entries.count, size: Self.chunkSize) {
                    parts.append(Part(ContiguousArray(entries[range])))
                }
            }
        }

        func finish() -> [ResultBlock] {
            guard !parts.isEmpty else { return [] }
            guard parts.count >= 2 * Self.blockSize else { return [ResultBlock(parts)] }
            return Self.ranges(of: parts.count, size: Self.blockSize).map { ResultBlock(Array(parts[$0])) }
        }

        /// Returns ranges of equal length, each of about the given size.
        private static func ranges(of count: Int, size: Int) -> [Range<Int>] {
            let number = count / size
            return (0..<number).map { (count * $0 / number)..<(count * ($0 + 1) / number) }
        }
    }
}
