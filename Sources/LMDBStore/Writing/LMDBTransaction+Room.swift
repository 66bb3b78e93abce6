import LMDB
import PageCodec
import StoreInterface

/// Whether there is room for a layer, looked at before anything is written.
extension LMDBTransaction {
    /// Deleting needs free pages too, since LMDB copies what it changes; so what adds must leave some.
    func checkRoom(for layer: Layer) throws { try checkRoom(pages: try mostPages(layer)) }

    /// - Parameter most: pages that will be written at most.
    /// - Throws: `LMDBError` of a full map or disk.
    func checkRoom(pages most: Int) throws {
        let information = try store.environment.information()
        try checkDisk(information, most)
        let pages = information.mapSize / store.pageSize
        let untouched = pages - Int(clamping: information.lastPage) - 1
        // The common case, without looking further: an eighth is free and the layer takes a small part of it.
        if untouched > pages / 8, most < pages / 16 { return }
        let headroom = min(1024, pages / 8)
        guard untouched + (try freePages()) >= headroom + most else { throw LMDBError.noRoom }
    }

    /// The same on the disk: room is set aside before it is needed, so that a full disk refuses what adds, and leaves some for
    /// deleting. LMDB lists the pages that a transaction frees, 8 bytes each: deleting the largest value lists 2 MiB of them.
    private func checkDisk(_ information: Environment.Information, _ most: Int) throws {
        let used = (Int(clamping: information.lastPage) + 1) * store.pageSize
        let least = max(min(1 << 20, max(1 << 17, used / 8)), min(used / 256, 1 << 22))
        let headroom = max(least, 2 * (try deletionPages()) * store.pageSize)
        let needed = used + most * store.pageSize + headroom
        guard needed > store.setAside.load(ordering: .relaxed) else { return }
        let end = needed + headroom
        do {
            try store.environment.setAside(from: used, to: end)
            store.setAside.store(end, ordering: .relaxed)
        } catch  where error.code == .diskFull {
            guard try freePages() >= most + headroom / store.pageSize else { throw error }
        }
    }

    /// An upper bound of what a layer takes: its pages anew, and of each index the leaves that its entries can meet. Large
    /// values ask for themselves: see `writeLarge` and `PrewrittenValues`.
    private func mostPages(_ layer: Layer) throws -> Int {
        var most = 16
        for (number, indexes) in store.tables.indexes.enumerated() {
            guard let changes = layer.entity(number) else { continue }
            let rows = changes.pages.values.reduce(0) { $0 + $1.touched.nonzeroBitCount }
            most += 4 * changes.pages.count
            for index in indexes { most += try mostPages(index, rows: rows) }
        }
        return most
    }

    /// What new entries of so many objects take in an index at most, or those that go.
    func mostPages(_ index: Tables.Index, rows: Int) throws -> Int {
        let statistics = try transaction.statistics(index.database)
        // Many objects under one key are a tree of their own, whose leaves are not counted: numbers of 8 bytes, half a page of them.
        // A damaged file may claim any count.
        let leaves = max(0, statistics.leafPages &+ statistics.entries / (store.pageSize / 16))
        return min(2 * rows, leaves) + rows / 32 + 4
    }

    /// What deleting the objects of one page takes at most.
    private func deletionPages() throws -> Int {
        try store.tables.indexes.reduce(0) { most, indexes in
            max(most, try indexes.reduce(16) { $0 + (try mostPages($1, rows: PageAddress.slots)) })
        }
    }

    /// Of the newest commit. Each value of LMDB's free list begins with the number of pages in it. A write transaction may not
    /// read that list.
    private func freePages() throws -> Int {
        try ReadTransaction(store.environment).withCursor(.free) { cursor in
            var count = 0
            while let entry = try cursor.move(.next) { count += entry.freedPages }
            return count
        }
    }
}

extension Cursor.Entry {
    /// Of LMDB's free list: how many pages the value lists, which begins with their count. No more than it has room for.
    var freedPages: Int {
        guard value.count >= 8 else { return 0 }
        return min(max(0, value.loadUnaligned(as: Int.self)), value.count / 8 - 1)
    }
}

extension Layer {
    /// Whether writing the layer may need more room than it frees.
    var mayGrow: Bool {
        for number in 0..<entityCount {
            guard let pages = entity(number)?.pages else { continue }
            if pages.values.contains(where: { $0.inserted | $0.updated != 0 }) { return true }
        }
        return links.contains { $0.forward.values.contains { $0.values.contains(true) } }
    }
}
