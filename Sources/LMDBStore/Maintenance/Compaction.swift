import LMDB
import PageCodec
internal import Platform
import StoreInterface
import StoreModel

/// One run over all pages, which packs them in batches. Reading, compressing and checking take long and run outside the write
/// transaction. The transaction only writes the prepared pages that have not changed meanwhile.
struct Compaction {
    /// The maximum number of pages per batch, so that a batch needs little memory.
    private static let maximumBatch = 512
    /// The minimum number of pages per batch. Each transaction copies LMDB's branches and waits for the disk once, so smaller
    /// batches cost more and shorten no wait.
    private static let smallestBatch = 64
    /// The duration above which a batch is halved. A batch grows if its transaction takes less than a quarter of it.
    private static let longestWrite = Duration.milliseconds(4)
    /// The number of pages read in one snapshot, which is kept meanwhile.
    private static let lookAhead = 4096

    private struct PreparedPage {
        var number: PageNumber
        /// The header of the page, which includes its checksum. It shows whether the page has changed since it was packed.
        var header: [UInt8]
        var packed: [UInt8]
        var rawByteCount: Int
    }

    private let store: LMDBStore
    private let options: CompactionOptions
    private let cancellation: Cancellation
    private let report: (CompactionProgress) -> Void
    private var progress = CompactionProgress()
    private var batchSize = 64

    init(
        _ store: LMDBStore, options: CompactionOptions, cancellation: Cancellation,
        report: @escaping (CompactionProgress) -> Void
    ) {
        self.store = store
        self.options = options
        self.cancellation = cancellation
        self.report = report
    }

    /// Runs the compaction. Blocks: 0.1 to 1 ms per packed page.
    mutating func run() throws -> CompactionProgress {
        progress.pages = try pageCount()
        for entity in store.schema.entityIndices {
            try cancellation.check()
            try pack(entity)
        }
        progress.pagesSeen = max(progress.pagesSeen, progress.pages)
        report(progress)
        return progress
    }

    /// Returns the number of pages of all entities.
    ///
    /// The snapshot is released on return, before pages are written. LMDB does not reuse pages that were freed after the oldest
    /// snapshot.
    private func pageCount() throws -> Int {
        let snapshot = try store.newestSnapshot()
        return try store.schema.entityIndices.reduce(0) { $0 + (try snapshot.pageCount($1)) }
    }

    private mutating func pack(_ entity: EntityIndex) throws {
        let training = CompactionDictionary(store: store, entity: entity, options: options, cancellation: cancellation)
        guard let packer = try training.packer() else {
            progress.pagesSeen += try store.newestSnapshot().pageCount(entity)
            return
        }
        var next: PageNumber? = 0
        while let first = next {
            try cancellation.check()
            let (prepared, following) = try prepare(entity, from: first, packer)
            next = following
            if prepared.isEmpty { continue }
            try write(prepared, entity)
            report(progress)
        }
    }

    // MARK: Outside the transaction

    /// Prepares packed pages. Each call reads the newest state, so that no snapshot is kept for long.
    /// - Returns: The packed pages, and the page to continue with; nil at the end.
    private mutating func prepare(
        _ entity: EntityIndex, from first: PageNumber, _ packer: PagePacker
    ) throws -> (pages: [PreparedPage], next: PageNumber?) {
        let snapshot = try store.newestSnapshot()
        let cost = PageCost(pageSize: store.pageSize)
        var prepared: [PreparedPage] = []
        var next: PageNumber?
        var looks = 0
        let options = options
        try snapshot.forEachPage(entity, from: first) { number, bytes in
            guard prepared.count < batchSize, looks < Self.lookAhead else {
                next = number
                return .stop
            }
            looks += 1
            guard !PackedPage.isPacked(bytes) else { return .next }
            let isOld = try store.withPage(bytes, entity: entity, number: number, for: .scanning, in: snapshot.reader) {
                try options.age.includes($0, newest: snapshot.generation)
            }
            guard isOld else { return .next }
            try cancellation.check()
            do {
                guard let packed = try packer.pack(bytes, place: store.entities[entity].layout.place(number)),
                    cost.pays(packed.count, insteadOf: bytes.count, canSplit: store.pageOverflow.allows(entity, number))
                else { return .next }
                let header = Array(bytes.prefix(PackedPage.headerByteCount))
                prepared.append(PreparedPage(number: number, header: header, packed: packed, rawByteCount: bytes.count))
            } catch let error as PageError {
                throw StoreError.damagedPage(store, entity: entity, number: number, error: error)
            }
            return .next
        }
        progress.pagesSeen += looks
        return (prepared, next)
    }

    // MARK: Inside the transaction

    private mutating func write(_ prepared: [PreparedPage], _ entity: EntityIndex) throws {
        let clock = ContinuousClock()
        var begun: ContinuousClock.Instant?
        let table = store.tables.pages[entity]
        let cost = PageCost(pageSize: store.pageSize)
        // Half-full leaves, and the branches and leaves on the way to them.
        let most = 2 * prepared.reduce(0) { $0 + $1.packed.count } / store.pageSize + prepared.count / 8 + 32
        let written = try store.writeTables(pages: most) { transaction -> [Int] in
            // The time does not include waiting for other writers.
            begun = clock.now
            return try transaction.withCursor(table) { cursor in
                var written: [Int] = []
                for (index, page) in prepared.enumerated() {
                    guard let found = try cursor.find(page.number.rawValue), found.value.count == page.rawByteCount,
                        found.value.prefix(page.header.count).elementsEqual(page.header)
                    else { continue }
                    let first = cost.firstPart(page.packed.count)
                    let target = try cursor.reserve(page.number.rawValue, byteCount: first, order: .any)
                    try page.packed.withUnsafeBytes { packed in
                        target.copyMemory(from: UnsafeRawBufferPointer(rebasing: packed[..<first]))
                        guard first < packed.count else { return }
                        let rest = UnsafeRawBufferPointer(rebasing: packed[first...])
                        try store.pageOverflow.put(rest, entity: entity, number: page.number, in: transaction)
                    }
                    written.append(index)
                }
                return written
            }
        }
        let time = begun.map { clock.now - $0 } ?? .zero
        progress.longestWrite = max(progress.longestWrite, time)
        for index in written {
            progress.pagesPacked += 1
            progress.bytesBefore += prepared[index].rawByteCount
            progress.bytesAfter += prepared[index].packed.count
        }
        if time > Self.longestWrite {
            batchSize = max(Self.smallestBatch, batchSize / 2)
        } else if time < Self.longestWrite / 4 {
            batchSize = min(Self.maximumBatch, batchSize + batchSize / 4)
        }
    }
}

/// The space that a value of a page table takes in LMDB's file.
struct PageCost {
    let pageSize: Int

    /// The maximum size of values that share a leaf with other values. Larger values have pages of their own. LMDB requires
    /// room for two nodes in a leaf, and a node has 8 bytes and the key, which has 8.
    private var largestInLeaf: Int { ((pageSize - 16) / 2) & ~1 - 2 - 16 }

    /// Returns the space for one value.
    func bytes(_ byteCount: Int) -> Int {
        if byteCount <= largestInLeaf { return byteCount + 18 }
        return (byteCount + 16 + pageSize - 1) / pageSize * pageSize + 26
    }

    /// Returns the size of a packed page's part in the page table. Two such parts fill a leaf. The rest, if any, is stored in
    /// `tails`.
    func firstPart(_ packed: Int) -> Int { packed > largestInLeaf && packed <= 2 * largestInLeaf ? largestInLeaf : packed }

    /// Returns whether packing saves at least an eighth.
    func pays(_ packed: Int, insteadOf raw: Int, canSplit: Bool) -> Bool {
        let first = firstPart(packed)
        if first < packed, !canSplit { return false }
        let cost = bytes(first) + (first < packed ? bytes(packed - first) : 0)
        return cost * 8 <= bytes(raw) * 7
    }
}

extension CompactionOptions.Age {
    /// Returns whether the newest write of the page's objects is old enough.
    fileprivate func includes(_ page: ObjectPage, newest: Generation) throws -> Bool {
        guard case .saves(let count) = self else { return true }
        for slot in SlotIterator(page.presence) {
            let version = try page.version(slot)
            // Avoids an addition, which a large count would overflow.
            if version > newest || version.distance(to: newest) < count { return false }
        }
        return true
    }
}
