import StoreInterface
import StoreModel

/// The objects that a query can select at all. If its condition lists keys, as in a batch of a stream, only those objects are read.
extension LayeredView {
    /// Returns the slots, by page, that have a row in a layer and that the query can select. O(pages changed), or O(keys listed).
    func touchedPages(of query: StoreQuery) -> [PageNumber: UInt64] {
        guard let keys = query.predicate.requiredKeys else { return touchedPages(query.entity) }
        return Self.pages(of: keys).reduce(into: [:]) { pages, page in
            var touched: UInt64 = 0
            for layer in layers { touched |= layer.entity(query.entity)?.page(page.key)?.touched ?? 0 }
            if touched & page.value != 0 { pages[page.key] = touched & page.value }
        }
    }

    /// Returns every object in this view that the query can select, ascending. O(objects of the entity, or keys listed).
    func candidates(of query: StoreQuery) throws -> [ObjectKey] {
        guard let keys = query.predicate.requiredKeys else { return try allKeys(query.entity) }
        return try keys.sorted().filter { try exists(query.entity, $0) }
    }

    private static func pages(of keys: Set<ObjectKey>) -> [PageNumber: UInt64] {
        keys.reduce(into: [:]) { $0[$1.page, default: 0] |= 1 << UInt64($1.slot) }
    }
}

extension StorePredicate {
    /// The keys to which the condition restricts its objects; nil if it lists none.
    var requiredKeys: Set<ObjectKey>? {
        switch form {
        case .keys(let keys): keys
        case .and(let parts): parts.lazy.compactMap(\.requiredKeys).min { $0.count < $1.count }
        default: nil
        }
    }
}
