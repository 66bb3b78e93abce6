import StoreInterface
import StoreModel

/// The pages that a context has read, by entity and number. A cached page is found with two array look-ups.
///
/// The cache is emptied when it is full and when the context moves to another state, so that it keeps no snapshot alive.
struct PageCache {
    /// The pages by entity; empty until the first page is read.
    private var tables: ContiguousArray<NumberTable<any StorePage>> = []
    private var count = 0

    @inline(__always)
    mutating func page(_ entity: EntityIndex, _ number: PageNumber, in base: any StoreSnapshot) throws -> (any StorePage)? {
        if entity.rawValue < tables.count, let page = tables[entity][number] { return page }
        return try read(entity, number: number, from: base)
    }

    /// Returns whether a page is cached, so that reading it needs no access to the store.
    func holds(_ entity: EntityIndex, _ number: PageNumber) -> Bool {
        entity.rawValue < tables.count && tables[entity][number] != nil
    }

    private mutating func read(_ entity: EntityIndex, number: PageNumber, from base: any StoreSnapshot) throws -> (any StorePage)?
    {
        guard let page = try base.page(entity, number) else { return nil }
        if count >= base.pagesWorthKeeping { removeAll() }
        while tables.count <= entity.rawValue { tables.append(NumberTable()) }
        tables[entity][number] = page
        count += 1
        return page
    }

    mutating func removeAll() {
        guard count > 0 else { return }
        tables.removeAll(keepingCapacity: true)
        count = 0
    }
}
