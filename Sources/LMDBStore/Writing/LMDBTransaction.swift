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
    /// Large values that were written before.
    let ahead: PrewrittenValues?
    var large = LargeValueWrites()

    init(_ store: LMDBStore, _ transaction: WriteTransaction, ahead: PrewrittenValues?) throws {
        self.store = store
        self.transaction = transaction
        self.ahead = ahead
        // More saves than any file has had: the next numbers must not overflow.
        guard let found = try transaction.metaNumber(MetaTable.Key.generation, store.tables.meta), found < 1 << 62 else {
            throw StoreError.damaged(store, "the meta table has no generation that can be right")
        }
        generation = found
        guard try transaction.metaNumber(MetaTable.Key.schemaNumber, store.tables.meta) == UInt64(store.schemaNumber) else {
            throw StoreError.migratedElsewhere(store)
        }
        unbuilt = try store.unfinished.progress(of: store, in: transaction)
    }

    deinit {
        if let packer = large.packer { LargeChunkPacker.give(packer) }
    }

    func apply(_ layer: Layer, changes: ChangeSet, numbers: CommitNumbers) throws {
        try recordingFailure {
            if layer.mayGrow { try checkRoom(for: layer) }
            var deleted: [DeletedObjects] = []
            for entity in store.schema.entities.indices {
                guard let rows = layer.entity(entity) else { continue }
                var writer = EntityWriter(self, entity, numbers)
                try writer.apply(rows)
                if !writer.deleted.isEmpty { deleted.append(DeletedObjects(entity: entity, keys: writer.deleted)) }
            }
            try applyLinks(layer, deleted)
            try record(changes, under: numbers.generation(of: layer.version))
        }
    }

    /// The first page whose objects an index does not have yet, and must not have.
    func builtPages(of index: Tables.Index) -> UInt64 { unbuilt.isEmpty ? .max : unbuilt[index.database] ?? .max }

    func recordingFailure<R>(_ body: () throws -> R) throws -> R {
        do {
            return try body()
        } catch {
            if failure == nil { failure = error }
            return try store.mappingErrors { throw error }
        }
    }

    /// The newest save in the file is now this one.
    func advance(to number: Generation) throws {
        generation = number
        try MetaTable.put(number, MetaTable.Key.generation, store.tables.meta, in: transaction)
    }
}

/// What a layer deleted of one entity and was there before. Ascending.
struct DeletedObjects {
    var entity: Int
    var keys: [ObjectKey]
}
