import LMDB
import PageCodec
import StoreInterface
import StoreModel

/// Leases of keys: the rows `next page E` and `free keys E` of `meta`.
extension LMDBTransaction {
    func allocateKeys(_ entity: EntityIndex, pages: Int) throws -> Range<ObjectKey> {
        try recordingFailure {
            let limit = PageAddress.unleased.lowerBound
            let next = try nextPage(entity)
            let end = PageNumber(rawValue: next.rawValue &+ UInt64(max(pages, 1)))
            guard next < limit, end > next, end <= limit else {
                throw StoreError.damaged(
                    store, "the keys of \(store.schema.entities[entity].name) are used up, which only damage can cause")
            }
            try putNextPage(end, entity)
            return PageAddress.key(page: next, slot: 0)..<PageAddress.key(page: end, slot: 0)
        }
    }

    func allocateFreeKeys(_ entity: EntityIndex) throws -> [Range<ObjectKey>] {
        try recordingFailure {
            var free = try freeKeys(entity)
            if free.ranges.isEmpty { free = FreeKeys([try allocateKeys(entity, pages: 1)]) }
            let taken = free.take()
            try put(free, entity)
            return taken
        }
    }

    func giveBackKeys(_ keys: [Range<ObjectKey>], _ entity: EntityIndex) throws {
        try recordingFailure {
            var free = try freeKeys(entity)
            var next = try nextPage(entity)
            free.giveBack(keys, next: &next)
            try putNextPage(next, entity)
            try put(free, entity)
        }
    }

    /// Returns the first page that was never leased.
    private func nextPage(_ entity: EntityIndex) throws -> PageNumber {
        let meta = store.tables.meta
        let name = MetaTable.Key.nextPage(store.tables.entityNumbers[entity])
        // Page 0 would contain key 0, which is not a valid key.
        let next = max(
            try transaction.metaNumber(name, meta) ?? 1, try transaction.metaNumber(MetaTable.Key.firstPage, meta) ?? 1, 1)
        let last = try transaction.withCursor(store.tables.pages[entity]) { cursor in
            let behind = try cursor.seek(PageAddress.unleased.lowerBound.rawValue)
            return try cursor.move(behind == nil ? .last : .previous)?.pageNumber
        }
        return max(PageNumber(rawValue: next), last?.next ?? 1)
    }

    private func putNextPage(_ page: PageNumber, _ entity: EntityIndex) throws {
        let name = MetaTable.Key.nextPage(store.tables.entityNumbers[entity])
        try MetaTable.put(page.rawValue, key: name, meta: store.tables.meta, in: transaction)
    }

    private func freeKeys(_ entity: EntityIndex) throws -> FreeKeys {
        let name = MetaTable.Key.freeKeys(store.tables.entityNumbers[entity])
        return try transaction.metaBytes(name, store.tables.meta).flatMap { FreeKeysCodec.decode($0) } ?? FreeKeys()
    }

    private func put(_ free: FreeKeys, _ entity: EntityIndex) throws {
        let name = MetaTable.Key.freeKeys(store.tables.entityNumbers[entity])
        try FreeKeysCodec.encode(free).withUnsafeBytes {
            try MetaTable.put($0, key: name, meta: store.tables.meta, in: transaction)
        }
    }
}
