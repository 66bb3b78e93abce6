import LMDB
import PageCodec
import StoreInterface
import StoreModel

/// The single write transaction of a store. Used on one thread, only inside ``LMDBStore/write(_:_:)``.
final class LMDBTransaction: StoreTransaction {
    let store: LMDBStore
    let transaction: WriteTransaction
    private(set) var generation: Generation
    /// The first error after which the transaction must not be committed.
    private(set) var failure: (any Error)?
    /// The end of the pages that each unfinished index contains, per sub-database.
    private let unbuilt: [Database: PageNumber]
    /// The prewritten large values.
    let ahead: PrewrittenValues?
    var large = LargeValueWrites()

    init(_ store: LMDBStore, _ transaction: WriteTransaction, ahead: PrewrittenValues?) throws {
        self.store = store
        self.transaction = transaction
        self.ahead = ahead
        let known = store.newestSeen
        try store.checkContent(in: transaction)
        guard let found = try transaction.metaGeneration(store.tables.meta), found.isPlausible else {
            throw StoreError.damaged(store, "the meta table has no generation that can be right")
        }
        try store.checkGeneration(found, since: known)
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
            if layer.mayGrow { try checkSpace(for: layer) }
            var deleted: [DeletedObjects] = []
            for entity in store.schema.entityIndices {
                guard let rows = layer.entity(entity) else { continue }
                var writer = EntityWriter(self, entity: entity, numbers: numbers)
                try writer.apply(rows)
                if !writer.deleted.isEmpty { deleted.append(DeletedObjects(entity: entity, keys: writer.deleted)) }
            }
            try applyLinks(layer, deleted)
            try record(changes, under: numbers.generation(of: layer.version))
        }
    }

    /// Returns the first page whose objects an index does not contain yet. Writes must not add objects from that page on.
    func builtPages(of index: Tables.Index) -> PageNumber { unbuilt.isEmpty ? .max : unbuilt[index.database] ?? .max }

    func recordingFailure<R>(_ body: () throws -> R) throws -> R {
        do {
            return try body()
        } catch {
            if failure == nil { failure = error }
            return try store.mappingErrors { throw error }
        }
    }

    /// Records the newest save in the file.
    func advance(to number: Generation) throws {
        generation = number
        try MetaTable.put(number.rawValue, key: MetaTable.Key.generation, meta: store.tables.meta, in: transaction)
    }
}

/// The existing objects of one entity that a layer deleted, ascending.
struct DeletedObjects {
    var entity: EntityIndex
    var keys: [ObjectKey]
}
