import LMDB
import PageCodec
import StoreInterface

/// The one write transaction, as stores know it. Used on one thread, inside ``LMDBStore/write(_:_:)`` only.
final class LMDBTransaction: StoreTransaction {
    let store: LMDBStore
    let transaction: WriteTransaction
    private(set) var generation: Generation

    init(_ store: LMDBStore, _ transaction: WriteTransaction) throws {
        self.store = store
        self.transaction = transaction
        guard let found = try transaction.metaNumber(MetaTable.Key.generation, store.tables.meta) else {
            throw StoreError.damaged(store, "the meta table has no generation")
        }
        generation = found
    }

    func apply(_ layer: Layer, changes: ChangeSet) throws {
        try store.translating {
            if layer.mayGrow { try checkRoom() }
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

    /// Deleting needs free pages too, since LMDB copies what it changes; so what adds must leave some.
    private func checkRoom() throws {
        let information = try store.environment.information()
        let pages = information.mapSize / store.pageSize
        let headroom = min(1024, pages / 16)
        guard Int(clamping: information.lastPage) + headroom < pages else { throw StoreError.full(store) }
    }

    private func record(_ changes: ChangeSet, under number: Generation) throws {
        var changes = changes
        changes.generation = number
        let history = store.tables.history
        try ChangeSetCodec.encode(changes).withUnsafeBytes { try transaction.put(history, number, $0) }
        if number > generation {
            generation = number
            try MetaTable.put(number, MetaTable.Key.generation, store.tables.meta, in: transaction)
        }
        let limit = UInt64(max(store.options.historyLimit, 1))
        guard generation > limit else { return }
        // A few at a time, so that a lowered limit does not make one save long.
        try transaction.withCursor(history) { cursor in
            for _ in 0..<16 {
                guard let oldest = try cursor.move(.first), oldest.number <= generation - limit else { return }
                try cursor.delete()
            }
        }
    }

    func leaseKeys(_ entity: Int, pages: Int) throws -> Range<ObjectKey> {
        try store.translating {
            let name = MetaTable.Key.nextPage(entity)
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
