import LMDB
import PageCodec
import StoreInterface

extension LMDBSnapshot: PageReading {
    func get(_ database: Database, _ key: UnsafeRawBufferPointer) throws(LMDBError) -> UnsafeRawBufferPointer? {
        try transaction.get(database, key)
    }

    @inline(__always)
    func get(_ database: Database, _ key: UInt64) throws(LMDBError) -> UnsafeRawBufferPointer? {
        try transaction.get(database, key)
    }

    func largeChunk(_ entity: Int, key: UInt64) throws(PageError) -> UnsafeRawBufferPointer? {
        store.chunkReads.add(1, ordering: .relaxed)
        do { return try transaction.get(store.entities[entity].large, key) } catch { throw PageError(unreadable: key, error) }
    }
}

extension LMDBTransaction: PageReading {
    func get(_ database: Database, _ key: UnsafeRawBufferPointer) throws(LMDBError) -> UnsafeRawBufferPointer? {
        try transaction.get(database, key)
    }

    func get(_ database: Database, _ key: UInt64) throws(LMDBError) -> UnsafeRawBufferPointer? {
        try transaction.get(database, key)
    }

    func largeChunk(_ entity: Int, key: UInt64) throws(PageError) -> UnsafeRawBufferPointer? {
        store.chunkReads.add(1, ordering: .relaxed)
        do { return try transaction.get(store.entities[entity].large, key) } catch { throw PageError(unreadable: key, error) }
    }
}

extension PageError {
    /// LMDB could not find out whether there is a chunk.
    init(unreadable key: UInt64, _ error: LMDBError) {
        self.init(field: "large value \(LargeChunk.number(ofKey: key))", reason: "\(error)")
    }
}

/// Writing values that lie outside of pages. A value never changes: another one has another number.
extension LMDBTransaction {
    /// Writes a string or data into chunks of its own, compressed where that saves pages of LMDB.
    ///
    /// LMDB keeps the chunks in memory until the transaction is committed.
    /// - Throws: `StoreError` `.valueTooLarge`, `.full`.
    func writeLarge(_ value: Value, _ entity: Int, _ column: Int) throws -> LargeValueRecord {
        switch value {
        case .data(let data): return try data.withUnsafeBytes { try writeLarge($0, entity, column) }
        case .string(var text): return try text.withUTF8 { try writeLarge(UnsafeRawBufferPointer($0), entity, column) }
        default: throw StoreError(.internalInconsistency, "a number was taken for a large value; report this as a bug")
        }
    }

    private func writeLarge(_ bytes: UnsafeRawBufferPointer, _ entity: Int, _ column: Int) throws -> LargeValueRecord {
        guard bytes.count <= LargeValueRecord.maximumByteCount else {
            let schema = store.schema.entities[entity]
            throw StoreError(
                .valueTooLarge,
                "\(schema.name).\(schema.columns[column].name) was set to \(bytes.count) bytes; a value has at most 1 GiB. "
                    + "Divide it among several objects, or keep it in a file of its own")
        }
        let cost = PageCost(pageSize: store.pageSize)
        largePages += bytes.count / store.pageSize + 2 + bytes.count / LargeChunk.maximumByteCount
        try checkRoom(pages: largePages)
        let packer = try packer ?? LargeChunkPacker.take()
        self.packer = packer
        return try transaction.withCursor(store.tables.large[entity]) { cursor in
            let last = try cursor.move(.last)?.number
            let number = last.map { LargeChunk.number(ofKey: $0) + 1 } ?? 1
            guard number < LargeChunk.numberLimit else {
                throw StoreError(
                    .full, "\(store.url.path) has used up the numbers of its large values. Export it and import it anew")
            }
            return try packer.write(bytes, number: number) { raw, packed in
                cost.bytes(packed) * 8 <= cost.bytes(raw) * 7
            } put: { key, byteCount, fill in
                fill(try cursor.reserve(key, byteCount: byteCount, order: .ascending))
            }
        }
    }

    /// Precondition: no page of this transaction has the record any more.
    func deleteLarge(_ record: LargeValueRecord, _ entity: Int) throws {
        let table = store.tables.large[entity]
        for index in 0..<record.chunkCount { try transaction.delete(table, LargeChunk.key(record.number, index)) }
    }
}
