import LMDB
import PageCodec
import StoreInterface

/// One state of the file: a read transaction, shared by all who hold the snapshot.
///
/// Threads take turns in the transaction only until the page is found. What is found lies in the map and does not change while
/// the transaction lives, so it is decoded outside.
final class LMDBSnapshot: StoreSnapshot {
    let transaction: ReadTransaction
    let store: LMDBStore
    let generation: Generation
    /// LMDB's number of the commit that the snapshot sees.
    let transactionNumber: UInt64
    /// Indexes that do not have all objects yet.
    private let unbuilt: Set<Database>

    var schema: StoreSchema { store.schema }
    /// Views into the map, about 100 bytes each.
    var pagesWorthKeeping: Int { 1 << 14 }

    init(_ store: LMDBStore, _ transaction: ReadTransaction) throws {
        self.store = store
        self.transaction = transaction
        transactionNumber = transaction.transactionNumber
        // More saves than any file has had: the next numbers must not overflow.
        guard let found = try transaction.metaNumber(MetaTable.Key.generation, store.tables.meta), found < 1 << 62 else {
            throw StoreError.damaged(store, "the meta table has no generation that can be right")
        }
        generation = found
        unbuilt = try store.unfinished.names(of: store, in: transaction)
    }

    /// Whether an index has all objects of this state, so that it may answer.
    func isReady(_ index: Tables.Index) -> Bool { unbuilt.isEmpty || !unbuilt.contains(index.database) }

    /// The index over one column alone, if it is ready.
    func index(_ entity: Int, _ column: Int) -> Tables.Index? {
        store.tables.index(entity, column).flatMap { isReady($0) ? $0 : nil }
    }

    /// The index over exactly these columns in this order, if it is ready.
    func index(_ entity: Int, _ columns: [Int]) -> Tables.Index? {
        store.tables.index(entity, columns).flatMap { isReady($0) ? $0 : nil }
    }

    // The store may go with the last snapshot and closes the file then, so the transaction must have ended before.
    deinit { transaction.end() }

    /// The values of a key in a table of numbers, ascending.
    func values(of key: UInt64, in table: Database) throws -> [UInt64] {
        try store.mappingErrors {
            try transaction.withCursor(table) { cursor in
                var values: [UInt64] = []
                if let first = try cursor.find(key) { try cursor.appendValues(after: first, to: &values) }
                return values
            }
        }
    }

    // MARK: One object

    func page(_ entity: Int, _ number: UInt64) throws -> (any StorePage)? {
        guard let bytes = try pageBytes(entity, number) else { return nil }
        let unpacked =
            PackedPage.isPacked(bytes) ? try store.unpacked(bytes, entity, number, for: .reading, in: transaction) : nil
        do {
            let page = try ObjectPage(
                unpacked?.bytes ?? bytes, layout: store.entities[entity].layout, check: .header,
                large: LargeValues(self, entity: entity))
            return LMDBPage(page, unpacked, entity, number, self)
        } catch {
            throw StoreError.damagedPage(store, entity, number, error)
        }
    }

    /// Calls `body` with a page, which is valid inside; nil when there is none.
    @inline(__always)
    func withPage<R>(_ entity: Int, _ number: UInt64, _ body: (ObjectPage) throws -> R?) throws -> R? {
        guard let bytes = try pageBytes(entity, number) else { return nil }
        return try store.withPage(bytes, entity, number, for: .reading, in: self, body)
    }

    /// The bytes of a page in the map, raw or packed, valid while the snapshot is held.
    func pageBytes(_ entity: Int, _ number: UInt64) throws -> UnsafeRawBufferPointer? {
        do {
            return try transaction.get(store.entities[entity].pages, number)
        } catch {
            throw StoreError(error, path: store.url.path)
        }
    }

    func value(_ entity: Int, _ key: ObjectKey, _ column: Int) throws -> Value? {
        let number = PageAddress.page(of: key)
        let slot = PageAddress.slot(of: key)
        return try withPage(entity, number) { page in
            page.presence >> UInt64(slot) & 1 != 0 ? try page.value(slot, column) : nil
        }
    }

    func version(_ entity: Int, _ key: ObjectKey) throws -> Generation? {
        let number = PageAddress.page(of: key)
        let slot = PageAddress.slot(of: key)
        return try withPage(entity, number) { page in
            page.presence >> UInt64(slot) & 1 != 0 ? try page.version(slot) : nil
        }
    }

    func pageNumbers(_ entity: Int) throws -> [UInt64] {
        var numbers: [UInt64] = []
        try forEachPage(entity) { number, _ in
            numbers.append(number)
            return .next
        }
        return numbers
    }

    // MARK: Many pages

    /// Whether a walk goes on.
    enum Step { case next, stop }

    /// A page that a walk has come to, not decoded yet.
    struct FoundPage {
        var number: UInt64
        var bytes: UnsafeRawBufferPointer
    }

    /// Calls `body` with each page of an entity from a number on, ascending. The lock is held for many pages at a time, never while `body` runs.
    func forEachPage(_ entity: Int, from first: UInt64 = 0, _ body: (UInt64, UnsafeRawBufferPointer) throws -> Step) throws {
        let table = store.tables.pages[entity]
        var batch: [FoundPage] = []
        batch.reserveCapacity(256)
        var size = 16
        var next = first
        repeat {
            batch.removeAll(keepingCapacity: true)
            try store.mappingErrors {
                try transaction.withCursor(table) { cursor in
                    var entry = try cursor.seek(next)
                    while let found = entry {
                        batch.append(FoundPage(number: found.number, bytes: found.value))
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
            next = last + 1
            size = 256
        } while true
    }
}

/// One page, held together with its snapshot, without which its bytes could be written over, or with what it was unpacked to.
///
/// `@unchecked Sendable`: all it has is immutable, the bytes included, while snapshot and unpacked page are held.
final class LMDBPage: StorePage, @unchecked Sendable {
    private let page: ObjectPage
    /// Where the bytes of a packed page are.
    private let unpacked: UnpackedPage?
    private let entity: Int
    private let number: UInt64
    private let snapshot: LMDBSnapshot

    init(_ page: ObjectPage, _ unpacked: UnpackedPage?, _ entity: Int, _ number: UInt64, _ snapshot: LMDBSnapshot) {
        self.page = page
        self.unpacked = unpacked
        self.entity = entity
        self.number = number
        self.snapshot = snapshot
    }

    var presence: UInt64 { page.presence }

    func version(_ slot: Int) throws -> Generation {
        do {
            return try page.version(slot)
        } catch {
            throw StoreError.damagedPage(snapshot.store, entity, number, error)
        }
    }

    func presentValue(_ slot: Int, _ column: Int) throws -> Value? {
        page.presence >> UInt64(slot) & 1 != 0 ? try value(slot, column) : nil
    }

    func value(_ slot: Int, _ column: Int) throws -> Value {
        do {
            return try page.value(slot, column)
        } catch {
            throw StoreError.damagedPage(snapshot.store, entity, number, error)
        }
    }
}
