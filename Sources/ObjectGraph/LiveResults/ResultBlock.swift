import StoreInterface

/// Some thousand neighbours of a ``ResultList``. `Sendable` because it never changes after it is made; never empty.
final class ResultBlock: Sendable {
    /// Some dozen neighbours; never changes after it is made, never empty.
    final class Chunk: Sendable {
        let entries: ContiguousArray<SortEntry>

        init(_ entries: ContiguousArray<SortEntry>) { self.entries = entries }
    }

    let chunks: [Chunk]
    /// The position of each chunk's first object, from the block's start.
    let starts: [Int]
    /// The prefix of each chunk's first object: searched without touching the chunks.
    private let prefixes: [UInt64]
    let count: Int

    private init(_ chunks: [Chunk]) {
        self.chunks = chunks
        var starts: [Int] = []
        var prefixes: [UInt64] = []
        starts.reserveCapacity(chunks.count)
        prefixes.reserveCapacity(chunks.count)
        var count = 0
        for chunk in chunks {
            starts.append(count)
            prefixes.append(chunk.entries[0].prefix)
            count += chunk.entries.count
        }
        self.starts = starts
        self.prefixes = prefixes
        self.count = count
    }

    var first: SortEntry { chunks[0].entries[0] }

    /// In the last chunk that begins at or before the entry.
    func insertionPlace(of entry: SortEntry, _ order: SortOrder) -> (chunk: Int, index: Int) {
        var low = 0
        var high = chunks.count
        while high - low > 1 {
            let middle = (low + high) / 2
            let isAfter =
                prefixes[middle] == entry.prefix
                ? order.precedes(entry, chunks[middle].entries[0]) : entry.prefix < prefixes[middle]
            if isAfter { high = middle } else { low = middle }
        }
        let index = chunks[low].entries.withUnsafeBufferPointer { entries in
            var first = 0
            var last = entries.count
            while first < last {
                let middle = (first + last) / 2
                if order.precedes(entries[middle], entry) { first = middle + 1 } else { last = middle }
            }
            return first
        }
        return (low, index)
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
        let chunks = old?.chunks ?? []
        var untouched = 0
        while let number = ResultList.smallest(removals.first?.chunk, insertions.first?.place.chunk) {
            builder.append(chunks[untouched..<min(number, chunks.count)])
            untouched = min(number + 1, chunks.count)
            let entries = number < chunks.count ? chunks[number].entries : []
            var made: [SortEntry] = []
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
            builder.append(made[...])
        }
        builder.append(chunks[untouched...])
        return (builder.finish(), positions)
    }

    /// Collects chunks and cuts them into blocks.
    struct Builder {
        /// Objects to a chunk when it is built; one is split when it reaches twice as many.
        private static let chunkSize = 32
        /// Chunks to a block when it is built; one is split when it reaches twice as many.
        private static let blockSize = 64

        private var chunks: [Chunk] = []
        private(set) var count = 0

        mutating func append(_ whole: ArraySlice<Chunk>) {
            chunks.append(contentsOf: whole)
            for chunk in whole { count += chunk.entries.count }
        }

        /// Appends as few chunks as fit, of even sizes; a small rest joins the chunk before it.
        mutating func append(_ entries: ArraySlice<SortEntry>) {
            guard !entries.isEmpty else { return }
            count += entries.count
            if entries.count < Self.chunkSize / 4, let last = chunks.last, last.entries.count < Self.chunkSize {
                chunks[chunks.count - 1] = Chunk(last.entries + entries)
                return
            }
            for part in Self.parts(of: entries.count, size: Self.chunkSize) {
                let range = (entries.startIndex + part.lowerBound)..<(entries.startIndex + part.upperBound)
                chunks.append(Chunk(ContiguousArray(entries[range])))
            }
        }

        func finish() -> [ResultBlock] {
            guard !chunks.isEmpty else { return [] }
            return Self.parts(of: chunks.count, size: Self.blockSize).map { ResultBlock(Array(chunks[$0])) }
        }

        /// One part when there are fewer than twice the size, else even parts of about the size.
        private static func parts(of count: Int, size: Int) -> [Range<Int>] {
            guard count >= 2 * size else { return [0..<count] }
            let parts = count / size
            return (0..<parts).map { (count * $0 / parts)..<(count * ($0 + 1) / parts) }
        }
    }
}
