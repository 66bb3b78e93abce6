import LMDB
import PageCodec
import StoreInterface

/// A value that was too much for its transaction.
struct LateValue: Sendable {
    var entity: Int
    var value: Value
}

/// Ends a transaction that is run again when these values are in the file.
struct OversizedValues: Error {
    var values: [LateValue]
    /// How many values that were written before it has claimed.
    var claimed: Int
}

/// Large values that a write puts into the file before its own transaction, because LMDB keeps in memory what a transaction writes.
///
/// Each has a row in `meta` until the transaction claims it, and the file's lock is held that long, so that no other process takes it
/// for one that was given up. Used under the lock of writing.
final class PrewrittenValues {
    /// Tells a value of one entity from others without reading it: while somebody holds its bytes, nothing else lies there.
    struct Place: Hashable {
        var entity: Int
        var address: UInt
        var byteCount: Int

        init(_ entity: Int, _ bytes: UnsafeRawBufferPointer) {
            self.entity = entity
            address = UInt(bitPattern: bytes.baseAddress)
            byteCount = bytes.count
        }
    }

    private let store: LMDBStore
    private let lock: FileLock?
    let mark = UnclaimedValue.Mark.random(in: .min ... .max)
    private var records: [Place: [LargeValueRecord]] = [:]
    /// Holds the bytes that ``records`` names.
    private var values: [LateValue] = []
    /// All that were begun.
    private var rows: [UnclaimedValue] = []
    /// Whether the transaction may leave further values to be written ahead.
    private(set) var takesMore = true
    /// Whether a committed transaction has claimed all.
    private var isClaimed = false

    init(_ store: LMDBStore) {
        self.store = store
        store.collectUnclaimed()
        lock = FileLock(store, .shared)
        // Without the lock another process could take the values away: the transaction writes them itself.
        if lock == nil { takesMore = false }
    }

    /// The `index`-th value of that place.
    func record(_ place: Place, _ index: Int) -> LargeValueRecord? {
        guard let found = records[place], index < found.count else { return nil }
        return found[index]
    }

    /// The transaction was committed.
    func didCommit(claimed count: Int) { isClaimed = count == values.count }

    /// Writes what a transaction has left. Blocking; 16 MiB and a commit at a time.
    /// - Throws: `StoreError` `.full` and others of a write.
    func write(_ late: OversizedValues) throws {
        // Who gives other bytes each time would do so for ever.
        guard takesMore, late.claimed == values.count else { return takesMore = false }
        var step = Step(values: late.values[...])
        while !step.values.isEmpty {
            step = try store.writeAlone(ahead: nil) { opened in try opened.write(step, mark) }
            rows += step.begun
            for (place, record) in step.written { records[place, default: []].append(record) }
        }
        values += late.values
    }

    /// What one transaction has written, and what is left.
    struct Step {
        /// The first one may have some of its chunks.
        var values: ArraySlice<LateValue>
        var progress = LargeValueProgress()
        /// Of this transaction: the values that have their first chunk, and those that are whole.
        var begun: [UnclaimedValue] = []
        var written: [(place: Place, record: LargeValueRecord)] = []
    }

    /// Deletes what was not claimed, and lets other processes look for such values again.
    func finish() {
        defer { lock?.unlock() }
        guard !isClaimed else { return }
        do { try store.delete(rows, of: mark) } catch { store.mayHaveUnclaimed.store(true, ordering: .relaxed) }
    }
}

extension LMDBTransaction {
    /// Goes on with values that are written ahead, as far as one transaction may.
    fileprivate func write(_ step: PrewrittenValues.Step, _ mark: UnclaimedValue.Mark) throws -> PrewrittenValues.Step {
        try recordingFailure {
            var step = step
            (step.begun, step.written) = ([], [])
            // For all that is left, so that a full disk says so before much is written.
            let written = step.progress.chunk * LargeChunk.maximumByteCount
            let all = try step.values.reduce(16) { $0 + mostPages(largeValue: try $1.value.withLargeBytes(\.count)) }
            try checkRoom(pages: all - mostPages(largeValue: written) + 2)
            var left = max(1, store.options.valueBytesOfTransaction / LargeChunk.maximumByteCount)
            while left > 0, let value = step.values.first {
                try value.value.withLargeBytes { bytes in
                    let first = step.progress.chunk
                    let count = LargeChunk.count(byteCount: bytes.count)
                    let end = min(count, first + left)
                    try write(bytes, upTo: end, value.entity, &step, mark)
                    left -= end - first
                    guard end == count else { return }
                    let record = LargeValueRecord(
                        number: step.progress.number, byteCount: bytes.count, hash: step.progress.hash.value)
                    step.written.append((PrewrittenValues.Place(value.entity, bytes), record))
                    step.progress = LargeValueProgress()
                    step.values.removeFirst()
                }
            }
            return step
        }
    }

    private func write(
        _ bytes: UnsafeRawBufferPointer, upTo end: Int, _ entity: Int, _ step: inout PrewrittenValues.Step,
        _ mark: UnclaimedValue.Mark
    ) throws {
        let isNew = step.progress.number == 0
        try writeChunks(of: bytes, upTo: end, entity, &step.progress)
        let row = UnclaimedValue(entity: store.tables.entityNumbers[entity], number: step.progress.number)
        if isNew {
            try MetaTable.put(mark, row.key, store.tables.meta, in: transaction)
            step.begun.append(row)
        } else if try !isUnclaimed(row, of: mark) {
            throw StoreError(
                .inputOutput,
                "\(store.url.path): another process has deleted a large value while it was written, so its file system does not lock. "
                    + "Move it to a local disk")
        }
    }

    /// Makes a value that was written before one of this transaction; nil when it was not.
    func claim(_ bytes: UnsafeRawBufferPointer, _ entity: Int) throws -> LargeValueRecord? {
        guard let ahead else { return nil }
        let place = PrewrittenValues.Place(entity, bytes)
        guard let record = ahead.record(place, large.claims[place, default: 0]) else { return nil }
        let row = UnclaimedValue(entity: store.tables.entityNumbers[entity], number: record.number)
        guard try isUnclaimed(row, of: ahead.mark) else { return nil }
        try MetaTable.remove(row.key, store.tables.meta, in: transaction)
        large.claims[place, default: 0] += 1
        return record
    }
}
