import LMDB
import PageCodec
import StoreInterface
import StoreModel

/// Checks of the room for a layer, before anything is written.
extension LMDBTransaction {
    /// Checks the room for a layer. Deletions need free pages too, because LMDB copies changed pages. A layer that adds data
    /// must therefore leave some free.
    func checkSpace(for layer: Layer) throws { try checkSpace(pages: try mostPages(layer)) }

    /// Checks the room for pages.
    /// - Parameter most: The maximum number of pages that will be written.
    /// - Throws: `LMDBError` of a full map or disk.
    func checkSpace(pages most: Int) throws {
        let information = try store.environment.information()
        try checkDisk(information, most)
        let pages = information.mapSize / store.pageSize
        let untouched = pages - Int(clamping: information.lastPage) - 1
        // The common case, without reading further: an eighth is free and the layer takes a small part of it.
        if untouched > pages / 8, most < pages / 16 { return }
        let headroom = min(1024, pages / 8)
        guard untouched + (try freePages()) >= headroom + most else { throw LMDBError.full }
    }

    /// Checks the room on the disk. Space is reserved before it is needed, so that a full disk refuses additions and leaves
    /// some space for deletions. LMDB lists the pages that a transaction frees, 8 bytes each: deleting the largest value
    /// lists 2 MiB of them.
    private func checkDisk(_ information: Environment.Information, _ most: Int) throws {
        let used = (Int(clamping: information.lastPage) + 1) * store.pageSize
        let least = max(min(1 << 20, max(1 << 17, used / 8)), min(used / 256, 1 << 22))
        let headroom = max(least, 2 * (try deletionPages()) * store.pageSize)
        let needed = used + most * store.pageSize + headroom
        let reserved = store.counters.reservedEnd.load(ordering: .relaxed)
        guard needed > reserved else { return }
        let end = needed + headroom
        do {
            try store.environment.reserve(from: max(used, reserved), to: end)
            store.counters.reservedEnd.store(end, ordering: .relaxed)
        } catch  where error.code == .diskFull {
            guard try freePages() >= most + headroom / store.pageSize else { throw error }
        }
    }

    /// Returns an upper bound of the pages that a layer takes: its rewritten pages, and the leaves of each index that its
    /// entries can be in. Large values check their own room: see `writeLarge` and `PrewrittenValues`.
    private func mostPages(_ layer: Layer) throws -> Int {
        var most = 16
        for (entity, indexes) in store.tables.indexes.enumerated(as: EntityIndex.self) {
            guard let changes = layer.entity(entity) else { continue }
            let rows = changes.pages.values.reduce(0) { $0 + $1.touched.nonzeroBitCount }
            most += 4 * changes.pages.count
            for index in indexes { most += try mostPages(index, rows: rows) }
        }
        return most
    }

    /// Returns the maximum number of pages that adding or removing the entries of so many objects takes in an index.
    func mostPages(_ index: Tables.Index, rows: Int) throws -> Int {
        let statistics = try transaction.statistics(index.database)
        // Many objects under one key are a tree of their own, with half a page of 8-byte numbers per leaf, whose leaves are
        // not counted. A damaged file may contain any count.
        let leaves = max(0, statistics.leafPages &+ statistics.entries / (store.pageSize / 16))
        return min(2 * rows, leaves) + rows / 32 + 4
    }

    /// Returns the maximum number of pages that deleting the objects of one page takes.
    private func deletionPages() throws -> Int {
        try store.tables.indexes.reduce(0) { most, indexes in
            max(most, try indexes.reduce(16) { $0 + (try mostPages($1, rows: PageAddress.slots)) })
        }
    }

    /// Returns the number of free pages of the newest commit. Each value of LMDB's free list begins with the number of its
    /// pages. A write transaction may not read that list.
    private func freePages() throws -> Int {
        try ReadTransaction(store.environment).withCursor(.free) { cursor in
            var count = 0
            while let entry = try cursor.move(.next) { count += entry.freedPages }
            return count
        }
    }
}

extension Cursor.Entry {
    /// The number of pages in a value of LMDB's free list. The value begins with this number, which is limited to its size.
    var freedPages: Int {
        guard value.count >= 8 else { return 0 }
        return min(max(0, value.loadUnaligned(as: Int.self)), value.count / 8 - 1)
    }
}

extension Layer {
    /// Whether writing the layer may need more room than it frees.
    var mayGrow: Bool {
        for index in entityIndices {
            guard let pages = entity(index)?.pages else { continue }
            if pages.values.contains(where: { $0.inserted | $0.updated != 0 }) { return true }
        }
        return links.contains { $0.forward.values.contains { $0.values.contains(true) } }
    }
}
