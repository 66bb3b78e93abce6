import StoreInterface

/// Some thousand neighbours of a ``ResultList``. `Sendable` because it never changes after it is made; never empty.
final class ResultBlock: Sendable {
    /// Some hundred neighbours; never changes after it is made, never empty.
    final class Chunk: Sendable {
        let entries: ContiguousArray<SortEntry>

        init(_ entries: ContiguousArray<SortEntry>) { self.entries = entries }
    }

    /// A chunk and what is asked of it most: chunks of other parts need not be touched.
    struct Part: Sendable {
        let chunk: Chunk
        let first: SortEntry
        let count: Int

        /// Precondition: there are entries.
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

    /// The first place that does not precede, in the last part that begins with one that does.
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

    /// The blocks that take this one's place, none when it loses all, and where the insertions are in them.
    static func replacing(
        _ removals: ArraySlice<ResultList.Place>, with insertions: ArraySlice<(place: ResultList.Place, entry: SortEntry)>,
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
                // An object that goes where another leaves lies before it.
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

    /// Collects parts and cuts them into blocks.
    struct Builder {
        /// Objects to a chunk when it is built; one is split when it reaches twice as many.
        private static let chunkSize = 256
        /// Parts to a block when it is built; one is split when it reaches twice as many.
        private static let blockSize = 64

        private var parts: [Part] = []
        private(set) var count = 0

        mutating func append(_ whole: ArraySlice<Part>) {
            parts.append(contentsOf: whole)
            for part in whole { count += part.count }
        }

        /// Appends as few chunks as fit, of even sizes; a small rest joins the chunk before it.
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

        /// Even ranges of about the size.
        private static func ranges(of count: Int, size: Int) -> [Range<Int>] {
            let number = count / size
            return (0..<number).map { (count * $0 / number)..<(count * ($0 + 1) / number) }
        }
    }
}
