import LMDB
import PageCodec
import StoreInterface

/// Whether there is room for a layer, looked at before anything is written.
extension LMDBTransaction {
    /// Deleting needs free pages too, since LMDB copies what it changes; so what adds must leave some.
    func checkRoom(for layer: Layer) throws {
        let information = try store.environment.information()
        let most = try mostPages(layer)
        try checkDisk(information, most)
        let pages = information.mapSize / store.pageSize
        let untouched = pages - Int(clamping: information.lastPage) - 1
        // The common case, without looking further: an eighth is free and the layer takes a small part of it.
        if untouched > pages / 8, most < pages / 16 { return }
        let headroom = min(1024, pages / 8)
        guard untouched + (try freePages()) >= headroom + most else { throw LMDBError.noRoom }
    }

    /// The same on the disk: room is set aside before it is needed, so that a full disk refuses what adds, and leaves some for
    /// deleting.
    private func checkDisk(_ information: Environment.Information, _ most: Int) throws {
        let used = (Int(clamping: information.lastPage) + 1) * store.pageSize
        let headroom = min(1 << 20, max(1 << 17, used / 8))
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

    /// An upper bound of what a layer takes: its pages anew, and of each index the leaves that its entries can meet.
    private func mostPages(_ layer: Layer) throws -> Int {
        var most = 16
        for (number, indexes) in store.tables.indexes.enumerated() {
            guard let changes = layer.entity(number) else { continue }
            let rows = changes.pages.values.reduce(0) { $0 + $1.touched.nonzeroBitCount }
            most += 4 * changes.pages.count
            for index in indexes {
                let leaves = try transaction.statistics(index.database).leafPages
                most += min(rows, leaves) + rows / 32 + 4
            }
        }
        return most
    }

    /// Of the newest commit. Each value of LMDB's free list begins with the number of pages in it. A write transaction may not
    /// read that list.
    private func freePages() throws -> Int {
        try ReadTransaction(store.environment).withCursor(.free) { cursor in
            var count = 0
            while let entry = try cursor.move(.next) {
                if entry.value.count >= 8 { count += entry.value.loadUnaligned(as: Int.self) }
            }
            return count
        }
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
