import LMDB
import PageCodec
import StoreInterface
import StoreModel

extension LMDBTransaction: PageReading {
    func get(_ database: Database, _ key: UnsafeRawBufferPointer) throws(LMDBError) -> UnsafeRawBufferPointer? {
        try transaction.get(database, key)
    }

    func get(_ database: Database, _ key: UInt64) throws(LMDBError) -> UnsafeRawBufferPointer? {
        try transaction.get(database, key)
    }

    func largeChunk(_ entity: EntityIndex, key: UInt64) throws(PageError) -> UnsafeRawBufferPointer? {
        store.counters.chunkReads.add(1, ordering: .relaxed)
        do { return try transaction.get(store.entities[entity].large, key) } catch { throw PageError(unreadable: key, error) }
    }
}

extension PageError {
    /// Creates the error for a chunk that LMDB cannot look up.
    init(unreadable key: UInt64, _ error: LMDBError) {
        self.init(field: "large value \(LargeChunk.number(ofKey: key))", reason: "\(error)")
    }
}

/// The large values written by a transaction.
struct LargeValueWrites {
    /// The number of LMDB's pages that they have taken.
    var pages = 0
    /// The size in bytes of the values that are large enough to be written ahead.
    var byteCount = 0
    /// The packer, created for the first value.
    var packer: LargeChunkPacker?
    /// The number of claimed prewritten values, per range of bytes.
    var claims: [PrewrittenValues.ByteRange: Int] = [:]
    /// The values that were too much for this transaction. If there are any, the transaction must not be committed.
    var late: [LateValue] = []

    var claimed: Int { claims.values.reduce(0, +) }
    var lateValues: OversizedValues? { late.isEmpty ? nil : OversizedValues(values: late, claimed: claimed) }
}

/// The progress of writing a value.
struct LargeValueProgress {
    /// The number of the value; 0 before its first chunk.
    var number: UInt64 = 0
    /// The index of the next chunk.
    var chunk = 0
    var hash = LargeValueHash()
}

extension Value {
    /// Calls `body` with the bytes of a string or data value.
    func withLargeBytes<R>(_ body: (UnsafeRawBufferPointer) throws -> R) throws -> R {
        switch self {
        case .data(let data): return try data.withUnsafeBytes(body)
        case .string(var text): return try text.withUTF8 { try body(UnsafeRawBufferPointer($0)) }
        default: throw StoreError(.internalInconsistency, "a number was taken for a large value; report this as a bug")
        }
    }
}

/// Writing out-of-line values. A value never changes: a new value gets a new number.
extension LMDBTransaction {
    /// The minimum size of values to write ahead. Smaller values do not justify a row of `meta`, and add little to the memory
    /// for their objects.
    private static let smallestAhead = 1 << 14

    /// Writes a string or data value in chunks, compressed if that saves pages of LMDB. If the value was written before,
    /// claims it instead.
    ///
    /// LMDB keeps the chunks in memory until the transaction is committed. If they become too many, further values are not
    /// written, and the returned record is invalid. The transaction then ends with ``OversizedValues``.
    /// - Throws: `StoreError` `.valueTooLarge`, `.full`.
    func writeLarge(_ value: Value, entity: EntityIndex, column: ColumnIndex) throws -> LargeValueRecord {
        try value.withLargeBytes { bytes in
            if let error = StoreError.tooLarge(value, in: store.schema.entities[entity], column) { throw error }
            if let record = try claim(bytes, entity) { return record }
            if bytes.count >= Self.smallestAhead {
                large.byteCount += bytes.count
                if large.byteCount > store.options.valueBytesOfTransaction, ahead?.takesMore ?? true {
                    large.late.append(LateValue(entity: entity, value: value))
                    return LargeValueRecord(number: 0, byteCount: bytes.count, hash: 0)
                }
            }
            large.pages += mostPages(largeValue: bytes.count)
            try checkSpace(pages: large.pages)
            var progress = LargeValueProgress()
            try writeChunks(of: bytes, upTo: LargeChunk.count(byteCount: bytes.count), entity, &progress)
            return LargeValueRecord(number: progress.number, byteCount: bytes.count, hash: progress.hash.value)
        }
    }

    /// Returns the maximum number of pages for a value of this size.
    func mostPages(largeValue byteCount: Int) -> Int {
        byteCount / store.pageSize + 2 + byteCount / LargeChunk.maximumByteCount
    }

    /// Writes a value's chunks up to `end`, from its progress on. A new value gets its number.
    func writeChunks(
        of bytes: UnsafeRawBufferPointer, upTo end: Int, _ entity: EntityIndex, _ progress: inout LargeValueProgress
    ) throws {
        let cost = PageCost(pageSize: store.pageSize)
        let packer = try large.packer ?? LargeChunkPacker.take()
        large.packer = packer
        try transaction.withCursor(store.tables.large[entity]) { cursor in
            let last = try cursor.move(.last)?.number
            if progress.number == 0 { progress.number = last.map { LargeChunk.number(ofKey: $0) + 1 } ?? 1 }
            guard progress.number < LargeChunk.numberLimit else {
                throw StoreError(
                    .full, "\(store.url.path) has used up the numbers of its large values. Export the store and import it again")
            }
            // A later value of another process may follow a value that is written in several transactions.
            let isLast = last.map { $0 < LargeChunk.key(progress.number, progress.chunk) } ?? true
            try packer.write(progress.chunk..<end, of: bytes, number: progress.number, hash: &progress.hash) { raw, packed in
                cost.bytes(packed) * 8 <= cost.bytes(raw) * 7
            } put: { key, byteCount, fill in
                fill(try cursor.reserve(key, byteCount: byteCount, order: isLast ? .ascending : .any))
            }
            progress.chunk = end
        }
    }

    /// Deletes a value. Precondition: no page of this transaction has the record any more.
    func deleteLarge(_ record: LargeValueRecord, _ entity: EntityIndex) throws {
        let table = store.tables.large[entity]
        for index in 0..<record.chunkCount { try transaction.delete(table, LargeChunk.key(record.number, index)) }
    }
}
