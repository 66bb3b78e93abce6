import LMDB
import PageCodec
import StoreInterface
import StoreModel

/// One state of the file: a read transaction, shared by all references to the snapshot.
///
/// Threads take turns in the transaction only until the page is found. The page's bytes are in the map and do not change
/// while the transaction exists, so they are decoded outside the lock.
final class LMDBSnapshot: StoreSnapshot {
    /// The part that pages retain. The snapshot itself has weak references, and Swift counts strong references to such an object at
    /// several times the cost.
    let reader: SnapshotReader
    // Of the reader. Stored here too, because a scan would otherwise count references to them for each page.
    let store: LMDBStore
    let transaction: ReadTransaction
    let generation: Generation
    /// LMDB's number of the commit that the snapshot reads.
    let transactionNumber: UInt64
    /// The indexes that do not contain all objects yet.
    private let unbuilt: Set<Database>

    var schema: StoreSchema { store.schema }
    /// Pages are views into the map, of about 100 bytes each.
    var pagesWorthKeeping: Int { 1 << 14 }

    init(_ store: LMDBStore, _ transaction: ReadTransaction) throws {
        reader = SnapshotReader(store, transaction)
        (self.store, self.transaction) = (store, transaction)
        transactionNumber = transaction.transactionNumber
        guard let found = try transaction.metaGeneration(store.tables.meta), found.isPlausible else {
            throw StoreError.damaged(store, "the meta table has no generation that can be right")
        }
        generation = found
        unbuilt = try store.unfinished.names(of: store, in: transaction)
    }

    /// Returns whether an index contains all objects of this state, so that queries may use it.
    func isReady(_ index: Tables.Index) -> Bool { isReady(index.database) }

    func isReady(_ index: Database) -> Bool { unbuilt.isEmpty || !unbuilt.contains(index) }

    /// Returns the index over one column only, if it is ready.
    func index(_ entity: EntityIndex, _ column: ColumnIndex) -> Tables.Index? {
        store.tables.index(entity, column).flatMap { isReady($0) ? $0 : nil }
    }

    /// Returns the index over exactly these columns in this order, if it is ready.
    func index(_ entity: EntityIndex, _ columns: [ColumnIndex]) -> Tables.Index? {
        store.tables.index(entity, columns).flatMap { isReady($0) ? $0 : nil }
    }

    /// Returns the values of a key in a table of numbers, ascending.
    func values(of key: ObjectKey, in table: Database) throws -> [ObjectKey] {
        try store.mappingErrors {
            try transaction.withCursor(table) { cursor in
                var values: [ObjectKey] = []
                if let first = try cursor.find(key) { try cursor.appendValues(after: first, to: &values) }
                return values
            }
        }
    }

    // MARK: One object

    func page(_ entity: EntityIndex, _ number: PageNumber) throws -> (any StorePage)? { try page(entity, number, check: .header) }

    /// Returns a page whose checksum and structure are checked now, and whose large values are checked when they are read.
    func checkedPage(_ entity: EntityIndex, _ number: PageNumber) throws -> (any StorePage)? {
        try page(entity, number, check: .full)
    }

    private func page(_ entity: EntityIndex, _ number: PageNumber, check: ObjectPage.Check) throws -> LMDBPage? {
        guard let bytes = try pageBytes(entity, number) else { return nil }
        let unpacked =
            PackedPage.isPacked(bytes)
            ? try store.unpacked(bytes, entity: entity, number: number, for: .reading, in: transaction) : nil
        do {
            let page = try ObjectPage(
                unpacked?.bytes ?? bytes, layout: store.entities[entity].layout, number: number, check: check,
                large: LargeValues(reader, entity: entity))
            return LMDBPage(
                page, unpacked: unpacked, entity: entity, number: number, reader: reader, checksLargeValues: check == .full)
        } catch {
            throw StoreError.damagedPage(store, entity: entity, number: number, error: error)
        }
    }

    /// Calls `body` with a page, which is valid only inside `body`. Returns nil if there is no page.
    @inline(__always)
    func withPage<R>(_ entity: EntityIndex, number: PageNumber, _ body: (ObjectPage) throws -> R?) throws -> R? {
        guard let bytes = try pageBytes(entity, number) else { return nil }
        return try store.withPage(bytes, entity: entity, number: number, for: .reading, in: reader, body)
    }

    /// Returns the bytes of a page in the map, raw or packed. They are valid while the snapshot is referenced.
    func pageBytes(_ entity: EntityIndex, _ number: PageNumber) throws -> UnsafeRawBufferPointer? {
        do {
            return try transaction.get(store.entities[entity].pages, number.rawValue)
        } catch {
            throw StoreError(error, path: store.url.path)
        }
    }

    func value(_ entity: EntityIndex, key: ObjectKey, column: ColumnIndex) throws -> Value? {
        let number = key.page
        let slot = key.slot
        return try withPage(entity, number: number) { page in
            page.presence >> UInt64(slot) & 1 != 0 ? try page.value(slot, column) : nil
        }
    }

    func version(_ entity: EntityIndex, _ key: ObjectKey) throws -> Generation? {
        let number = key.page
        let slot = key.slot
        return try withPage(entity, number: number) { page in
            page.presence >> UInt64(slot) & 1 != 0 ? try page.version(slot) : nil
        }
    }

    func pageNumbers(_ entity: EntityIndex) throws -> [PageNumber] {
        var numbers: [PageNumber] = []
        try forEachPage(entity) { number, _ in
            numbers.append(number)
            return .next
        }
        return numbers
    }

    // MARK: Many pages

    /// Whether a walk continues.
    enum Step { case next, stop }

    /// A page found by a walk, not decoded yet.
    struct FoundPage {
        var number: PageNumber
        var bytes: UnsafeRawBufferPointer
    }

    /// Calls `body` with each page of an entity from a number on, ascending. The lock is acquired once for many pages, and is
    /// never locked while `body` runs.
    func forEachPage(
        _ entity: EntityIndex, from first: PageNumber = 0, _ body: (PageNumber, UnsafeRawBufferPointer) throws -> Step
    ) throws {
        let table = store.tables.pages[entity]
        var batch: [FoundPage] = []
        batch.reserveCapacity(256)
        var size = 16
        var next = first
        repeat {
            batch.removeAll(keepingCapacity: true)
            try store.mappingErrors {
                try transaction.withCursor(table) { cursor in
                    var entry = try cursor.seek(next.rawValue)
                    while let found = entry {
                        batch.append(FoundPage(number: found.pageNumber, bytes: found.value))
                        if batch.count == size { break }
                        entry = try cursor.move(.next)
                    }
                }
            }
            for (position, page) in batch.enumerated() {
                if position + 4 < batch.count { prefetch(batch[position + 4].bytes, lines: 3) }
                if try body(page.number, page.bytes) == .stop { return }
            }
            guard batch.count == size, let last = batch.last?.number, last >= next, last < .max else { return }
            next = last.next
            size = 256
        } while true
    }
}
