import LMDB
import PageCodec
import StoreInterface
import StoreModel

/// The read transaction of a snapshot, for the snapshot, its pages and the parts of its values.
final class SnapshotReader: PageReading, Sendable {
    let store: LMDBStore
    let transaction: ReadTransaction

    init(_ store: LMDBStore, _ transaction: ReadTransaction) {
        self.store = store
        self.transaction = transaction
    }

    // Ends the transaction first, because the last reader may release the store, which then closes the file.
    deinit { transaction.end() }

    func get(_ database: Database, _ key: UnsafeRawBufferPointer) throws(LMDBError) -> UnsafeRawBufferPointer? {
        try transaction.get(database, key)
    }

    @inline(__always)
    func get(_ database: Database, _ key: UInt64) throws(LMDBError) -> UnsafeRawBufferPointer? {
        try transaction.get(database, key)
    }

    func largeChunk(_ entity: EntityIndex, key: UInt64) throws(PageError) -> UnsafeRawBufferPointer? {
        store.counters.chunkReads.add(1, ordering: .relaxed)
        do { return try transaction.get(store.entities[entity].large, key) } catch { throw PageError(unreadable: key, error) }
    }
}
