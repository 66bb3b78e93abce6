import LMDB
import PageCodec
import StoreInterface
import StoreModel

/// A value that was too much for its transaction.
struct LateValue: Sendable {
    var entity: EntityIndex
    var value: Value
}

/// An error that ends a transaction. The transaction runs again after these values were written.
struct OversizedValues: Error {
    var values: [LateValue]
    /// The number of prewritten values that the transaction has claimed.
    var claimed: Int
}

/// The large values that a write puts into the file before its own transaction, because LMDB keeps a transaction's writes in
/// memory.
///
/// Each value has a row in `meta` until the transaction claims it. The file's lock is kept until then, so that no other
/// process treats the value as abandoned. Used under the writing lock.
final class PrewrittenValues {
    /// The memory of a value, which identifies it without reading it: while its bytes are referenced, the memory has no other
    /// content.
    struct ByteRange: Hashable {
        var entity: EntityIndex
        var address: UInt
        var byteCount: Int

        init(_ entity: EntityIndex, _ bytes: UnsafeRawBufferPointer) {
            self.entity = entity
            address = UInt(bitPattern: bytes.baseAddress)
            byteCount = bytes.count
        }
    }

    private let store: LMDBStore
    private let lock: FileLock?
    let mark = UnreferencedValue.Mark.random(in: .min ... .max)
    private var records: [ByteRange: [LargeValueRecord]] = [:]
    /// References to the values in ``records``, which keep their bytes in place.
    private var values: [LateValue] = []
    /// The rows of all values whose writing has begun.
    private var rows: [UnreferencedValue] = []
    /// Whether the transaction may leave further values to be written ahead.
    private(set) var takesMore = true
    /// Whether a committed transaction has claimed all values.
    private var isClaimed = false

    init(_ store: LMDBStore) {
        self.store = store
        store.collectUnreferenced()
        lock = FileLock(store, .shared)
        // Without the lock, another process could delete the values. The transaction therefore writes them itself.
        if lock == nil { takesMore = false }
    }

    /// Returns the record of the `index`-th value with these bytes.
    func record(_ range: ByteRange, _ index: Int) -> LargeValueRecord? {
        guard let found = records[range], index < found.count else { return nil }
        return found[index]
    }

    /// Records the commit of the transaction.
    func didCommit(claimed count: Int) { isClaimed = count == values.count }

    /// Writes the values that a transaction has left. Blocks; writes and commits 16 MiB at a time.
    /// - Throws: `StoreError` `.full` and other errors of a write.
    func write(_ late: OversizedValues) throws {
        // A body that passes other bytes each time would repeat forever.
        guard takesMore, late.claimed == values.count else { return takesMore = false }
        var step = Step(values: late.values[...])
        while !step.values.isEmpty {
            step = try store.writeAlone(ahead: nil) { opened in try opened.write(step, mark) }
            rows += step.begun
            for (range, record) in step.written { records[range, default: []].append(record) }
        }
        values += late.values
    }

    /// The values written by one transaction, and the values that are left.
    struct Step {
        /// The values that are left. The first value may already have some chunks.
        var values: ArraySlice<LateValue>
        var progress = LargeValueProgress()
        /// The values of this transaction: `begun` have their first chunk, `written` are complete.
        var begun: [UnreferencedValue] = []
        var written: [(range: ByteRange, record: LargeValueRecord)] = []
    }

    /// Deletes the values that were not claimed, and allows other processes to look for such values again.
    func finish() {
        defer { lock?.unlock() }
        guard !isClaimed else { return }
        do { try store.delete(rows, of: mark) } catch { store.counters.mayHaveUnreferenced.store(true, ordering: .relaxed) }
    }
}

extension LMDBTransaction {
    /// Continues with the values to write ahead, as far as one transaction may.
    fileprivate func write(_ step: PrewrittenValues.Step, _ mark: UnreferencedValue.Mark) throws -> PrewrittenValues.Step {
        try recordingFailure {
            var step = step
            (step.begun, step.written) = ([], [])
            // Checks the room for all values that are left, so that a full disk is detected before much is written.
            let written = step.progress.chunk * LargeChunk.maximumByteCount
            let all = try step.values.reduce(16) { $0 + mostPages(largeValue: try $1.value.withLargeBytes(\.count)) }
            try checkSpace(pages: all - mostPages(largeValue: written) + 2)
            var left = max(1, store.options.valueBytesOfTransaction / LargeChunk.maximumByteCount)
            while left > 0, let value = step.values.first {
                try value.value.withLargeBytes { bytes in
                    let first = step.progress.chunk
                    let count = LargeChunk.count(byteCount: bytes.count)
                    let end = min(count, first + left)
                    try write(bytes, upTo: end, entity: value.entity, step: &step, mark: mark)
                    left -= end - first
                    guard end == count else { return }
                    let record = LargeValueRecord(
                        number: step.progress.number, byteCount: bytes.count, hash: step.progress.hash.value)
                    step.written.append((PrewrittenValues.ByteRange(value.entity, bytes), record))
                    step.progress = LargeValueProgress()
                    step.values.removeFirst()
                }
            }
            return step
        }
    }

    private func write(
        _ bytes: UnsafeRawBufferPointer, upTo end: Int, entity: EntityIndex, step: inout PrewrittenValues.Step,
        mark: UnreferencedValue.Mark
    ) throws {
        let isNew = step.progress.number == 0
        try writeChunks(of: bytes, upTo: end, entity, &step.progress)
        let row = UnreferencedValue(entityNumber: store.tables.entityNumbers[entity], number: step.progress.number)
        if isNew {
            try MetaTable.put(mark, key: row.key, meta: store.tables.meta, in: transaction)
            step.begun.append(row)
        } else if try !isUnreferenced(row, of: mark) {
            throw StoreError(
                .inputOutput,
                "\(store.url.path): another process has deleted a large value while it was written, so its file system does not lock. "
                    + "Move it to a local disk")
        }
    }

    /// Claims a prewritten value for this transaction. Returns nil if the value was not written before.
    func claim(_ bytes: UnsafeRawBufferPointer, _ entity: EntityIndex) throws -> LargeValueRecord? {
        guard let ahead else { return nil }
        let range = PrewrittenValues.ByteRange(entity, bytes)
        guard let record = ahead.record(range, large.claims[range, default: 0]) else { return nil }
        let row = UnreferencedValue(entityNumber: store.tables.entityNumbers[entity], number: record.number)
        guard try isUnreferenced(row, of: ahead.mark) else { return nil }
        try MetaTable.remove(row.key, store.tables.meta, in: transaction)
        large.claims[range, default: 0] += 1
        return record
    }
}
