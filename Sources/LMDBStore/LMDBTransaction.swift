import LMDB
import PageCodec
import StoreInterface

/// The one write transaction, as stores know it. Used on one thread, inside ``LMDBStore/write(_:_:)`` only.
final class LMDBTransaction: StoreTransaction {
    let store: LMDBStore
    let transaction: WriteTransaction
    private(set) var generation: Generation
    /// The first error after which the transaction must not be committed.
    private(set) var failure: (any Error)?
    /// By sub-database: up to which page an index is built that is not ready yet.
    private let unbuilt: [Database: UInt64]

    init(_ store: LMDBStore, _ transaction: WriteTransaction) throws {
        self.store = store
        self.transaction = transaction
        guard let found = try transaction.metaNumber(MetaTable.Key.generation, store.tables.meta) else {
            throw StoreError.damaged(store, "the meta table has no generation")
        }
        generation = found
        guard try transaction.metaNumber(MetaTable.Key.schemaNumber, store.tables.meta) == UInt64(store.schemaNumber) else {
            throw StoreError(
                .schemaTooNew,
                "\(store.url.path) was migrated by another process since it was opened here. Open it again with that model")
        }
        unbuilt = try store.unfinished.progress(of: store, in: transaction)
    }

    func apply(_ layer: Layer, changes: ChangeSet) throws {
        try noting {
            if layer.mayGrow { try checkRoom(for: layer) }
            var deleted: [DeletedObjects] = []
            for entity in store.schema.entities.indices {
                guard let rows = layer.entity(entity) else { continue }
                var writer = EntityWriter(self, entity)
                try writer.apply(rows)
                if !writer.deleted.isEmpty { deleted.append(DeletedObjects(entity: entity, keys: writer.deleted)) }
            }
            try applyLinks(layer, deleted)
            try record(changes, under: layer.generation)
        }
    }

    /// The first page whose objects an index does not have yet, and must not have.
    func builtPages(of index: Tables.Index) -> UInt64 { unbuilt.isEmpty ? .max : unbuilt[index.database] ?? .max }

    func noting<R>(_ body: () throws -> R) throws -> R {
        do {
            return try body()
        } catch {
            if failure == nil { failure = error }
            return try store.translating { throw error }
        }
    }

    /// Deleting needs free pages too, since LMDB copies what it changes; so what adds must leave some.
    private func checkRoom(for layer: Layer) throws {
        let information = try store.environment.information()
        let pages = information.mapSize / store.pageSize
        let untouched = pages - Int(clamping: information.lastPage) - 1
        // The common case, without looking further: an eighth is free and the layer takes a small part of it.
        let most = try mostPages(layer)
        if untouched > pages / 8, most < pages / 16 { return }
        let headroom = min(1024, pages / 8)
        guard untouched + (try freePages()) >= headroom + most else { throw LMDBError.noRoom }
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

    /// The newest save in the file is now this one.
    func advance(to number: Generation) throws {
        generation = number
        try MetaTable.put(number, MetaTable.Key.generation, store.tables.meta, in: transaction)
    }

    func leaseKeys(_ entity: Int, pages: Int) throws -> Range<ObjectKey> {
        try noting {
            let name = MetaTable.Key.nextPage(store.tables.entityNumbers[entity])
            let meta = store.tables.meta
            // Page 0 would hold key 0, which is none.
            var next = max(try transaction.metaNumber(name, meta) ?? 1, 1)
            let last = try transaction.withCursor(store.tables.pages[entity]) { try $0.move(.last)?.number }
            if let last { next = max(next, last + 1) }
            let end = next + UInt64(max(pages, 1))
            try MetaTable.put(end, name, meta, in: transaction)
            return PageAddress.key(page: next, slot: 0)..<PageAddress.key(page: end, slot: 0)
        }
    }
}

extension Layer {
    /// Whether writing the layer may need more room than it frees.
    fileprivate var mayGrow: Bool {
        for number in 0..<entityCount {
            guard let pages = entity(number)?.pages else { continue }
            if pages.values.contains(where: { $0.inserted | $0.updated != 0 }) { return true }
        }
        return links.contains { $0.forward.values.contains { $0.values.contains(true) } }
    }
}

/// What a layer deleted of one entity and was there before. Ascending.
struct DeletedObjects {
    var entity: Int
    var keys: [ObjectKey]
}
