import LMDB
import PageCodec
import StoreInterface
import StoreModel

/// A cache of the existing objects, read page by page after the pages of a layer are written. 16 bytes per page.
struct PresenceCache {
    private struct PageID: Hashable {
        var entity: EntityIndex
        var number: PageNumber
    }

    private let store: LMDBStore
    private let transaction: WriteTransaction
    private var masks: [PageID: UInt64] = [:]

    init(_ transaction: LMDBTransaction) {
        store = transaction.store
        self.transaction = transaction.transaction
    }

    mutating func contains(_ entity: EntityIndex, _ key: ObjectKey) throws -> Bool {
        try mask(PageID(entity: entity, number: key.page)) >> UInt64(key.slot) & 1 != 0
    }

    private mutating func mask(_ page: PageID) throws -> UInt64 {
        if let known = masks[page] { return known }
        let table = store.entities[page.entity]
        var mask: UInt64 = 0
        if let bytes = try transaction.get(table.pages, page.number.rawValue) {
            do {
                mask =
                    PackedPage.isPacked(bytes)
                    ? try PackedPage.presence(bytes) : try ObjectPage(bytes, layout: table.layout, check: .header).presence
            } catch {
                throw StoreError.damagedPage(store, entity: page.entity, number: page.number, error: error)
            }
        }
        masks[page] = mask
        return mask
    }
}
