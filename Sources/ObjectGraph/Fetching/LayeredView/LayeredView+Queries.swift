import StoreInterface
import StoreModel

extension LayeredView {
    /// Returns the keys that a query selects. The layers' changes are applied before sorting, offset and limit.
    ///
    /// If no layer changes an object that the query reads, the base runs the query. Otherwise the base finds the unchanged objects,
    /// and the changed objects are evaluated here: O(changed) value reads, plus O(changed · log result) to place them. If the predicate
    /// gives a unique attribute a value, only the objects that have or had this value are evaluated. A predicate that follows
    /// relationships into changed entities is evaluated on every object.
    package func keys(_ query: StoreQuery) throws -> [ObjectKey] {
        guard query.limit ?? 1 > 0 else { return [] }
        if let unsorted = query.unsortedForStores {
            return window(try sorted(try keys(unsorted), by: query), of: query)
        }
        switch scope(of: query) {
        case .base: return try base.keys(query)
        case .touched:
            if let found = try selectedByUniqueValue(query) { return window(try sorted(found, by: query), of: query) }
            return window(try mergedKeys(query), of: query)
        case .everything:
            let found = try candidates(of: query).filter { try query.predicate.matches(query.entity, key: $0, in: self) }
            return window(try sorted(found, by: query), of: query)
        }
    }

    /// Returns the number of keys that ``keys(_:)`` would return, without building them if the base can count. Adds O(changed) reads.
    package func count(_ query: StoreQuery) throws -> Int {
        let total: Int
        var query = query
        query.sort = []
        switch scope(of: query) {
        case .base: return try base.count(query)
        case .touched: total = try selectedByUniqueValue(query)?.count ?? mergedCount(query)
        case .everything:
            total = try candidates(of: query).count {
                try query.predicate.matches(query.entity, key: $0, in: self)
            }
        }
        let rest = max(0, total - max(0, query.offset))
        return min(rest, max(0, query.limit ?? rest))
    }

    /// Returns a description of what ``keys(_:)`` does: the base's plan, and the objects that the layers add.
    package func explain(_ query: StoreQuery) throws -> String {
        let computed = query.predicate.evaluatedParts.map(\.description)
        let unsorted = query.unsortedForStores
        var text = try plan(of: unsorted ?? query)
        if !computed.isEmpty { text += "; computed in memory: " + computed.joined(separator: ", ") }
        if unsorted != nil { text += "; sorted in memory" }
        return text
    }

    private func plan(of query: StoreQuery) throws -> String {
        switch scope(of: query) {
        case .base: return try base.explain(query)
        case .touched:
            if let found = try selectedByUniqueValue(query) {
                return try base.explain(query) + "; and by a unique value, also unsaved or recently saved: \(found.count)"
            }
            let touched = touchedPages(of: query).values.reduce(0) { $0 + $1.nonzeroBitCount }
            return try base.explain(query) + "; and \(touched) unsaved or recently saved objects"
        case .everything: return "every object, because the condition follows relationships to unsaved or recently saved objects"
        }
    }

    /// The part of a query's result that the layers may change.
    enum Scope { case base, touched, everything }

    func scope(of query: StoreQuery) -> Scope {
        if layers.isEmpty { return .base }
        if query.predicate.traversesRelationships {
            let involved = QueryInvolvement(of: query.predicate, on: query.entity, schema: schema)
            if involved.entities.contains(where: { touches(entity: $0) }) || involved.links.contains(where: { touches(link: $0) })
            {
                return .everything
            }
        }
        return touches(entity: query.entity) ? .touched : .base
    }

    // MARK: The base's result with the changed objects replaced

    private func mergedKeys(_ query: StoreQuery) throws -> [ObjectKey] {
        let touched = touchedPages(of: query)
        var touchedCount = 0
        for mask in touched.values { touchedCount += mask.nonzeroBitCount }
        var below = query
        below.offset = 0
        below.limit = query.limit.flatMap { Self.sum(max(0, query.offset), $0, touchedCount) }
        let untouched = try base.keys(below).filter { key in
            guard let mask = touched[key.page] else { return true }
            return mask >> UInt64(key.slot) & 1 == 0
        }
        var pending: [ObjectKey] = []
        for (number, mask) in touched {
            for slot in SlotIterator(mask) {
                let key = PageAddress.key(page: number, slot: slot)
                if try selects(query, key) { pending.append(key) }
            }
        }
        return try merge(untouched, try sorted(pending.sorted(), by: query), by: query)
    }

    private func mergedCount(_ query: StoreQuery) throws -> Int {
        var below = query
        below.offset = 0
        below.limit = nil
        below.sort = []
        guard base.isFixed else { return try mergedKeys(below).count }
        var total = try base.count(below)
        for (number, mask) in touchedPages(of: query) {
            let presence = try base.page(query.entity, number)?.presence ?? 0
            for slot in SlotIterator(mask) {
                let key = PageAddress.key(page: number, slot: slot)
                if presence >> UInt64(slot) & 1 != 0, try query.predicate.matches(query.entity, key: key, in: base) { total -= 1 }
                if try selects(query, key) { total += 1 }
            }
        }
        return total
    }

    func selects(_ query: StoreQuery, _ key: ObjectKey) throws -> Bool {
        guard try exists(query.entity, key) else { return false }
        return try query.predicate.matches(query.entity, key: key, in: self)
    }

    /// Returns the slots, by page, that have a row in a layer.
    func touchedPages(_ entity: EntityIndex) -> [PageNumber: UInt64] {
        var touched: [PageNumber: UInt64] = [:]
        for layer in layers {
            guard let changes = layer.entity(entity) else { continue }
            for (number, page) in changes.pages { touched[number, default: 0] |= page.touched }
        }
        return touched
    }

    /// Returns every object of the entity in this view, ascending. O(objects).
    func allKeys(_ entity: EntityIndex) throws -> [ObjectKey] {
        var keys: [ObjectKey] = []
        let touched = touchedPages(entity)
        guard base.isFixed else {
            // Each request of a page is a request of another context.
            keys = try base.keys(StoreQuery(entity: entity)).filter {
                touched[$0.page, default: 0] >> UInt64($0.slot) & 1 == 0
            }
            return try (keys + touchedKeys(entity).filter { try exists(entity, $0) }).sorted()
        }
        let numbers = Set(touched.keys).union(try base.pageNumbers(entity)).sorted()
        for number in numbers {
            let mask = touched[number] ?? 0
            let presence = try base.page(entity, number)?.presence ?? 0
            for slot in SlotIterator(presence | mask) {
                let key = PageAddress.key(page: number, slot: slot)
                if try mask >> UInt64(slot) & 1 == 0 || exists(entity, key) { keys.append(key) }
            }
        }
        return keys
    }

    // MARK: Order

    /// Sorts ascending keys by the query's order. Ties stay in the order of keys.
    private func sorted(_ keys: [ObjectKey], by query: StoreQuery) throws -> [ObjectKey] {
        guard !query.sort.isEmpty, keys.count > 1 else { return keys }
        let order = SortOrder(query.sort)
        var candidates: [SortCandidate] = []
        candidates.reserveCapacity(keys.count)
        for key in keys { candidates.append(try order.candidate(query.entity, key, in: self)) }
        candidates.sort { order.precedes($0, $1) }
        return candidates.map(\.entry.key)
    }

    /// Inserts `pending` into `untouched` by binary search. Both are in the query's order.
    private func merge(
        _ untouched: [ObjectKey], _ pending: [ObjectKey], by query: StoreQuery
    ) throws -> [ObjectKey] {
        guard !pending.isEmpty else { return untouched }
        guard !untouched.isEmpty else { return pending }
        let order = SortOrder(query.sort)
        var merged: [ObjectKey] = []
        merged.reserveCapacity(untouched.count + pending.count)
        var start = 0
        for key in pending {
            let candidate = try order.candidate(query.entity, key, in: self)
            var low = start
            var high = untouched.count
            while low < high {
                let middle = (low + high) / 2
                let other = try order.candidate(query.entity, untouched[middle], in: self)
                if order.precedes(other, candidate) { low = middle + 1 } else { high = middle }
            }
            merged.append(contentsOf: untouched[start..<low])
            merged.append(key)
            start = low
        }
        merged.append(contentsOf: untouched[start...])
        return merged
    }

    private func window(_ keys: [ObjectKey], of query: StoreQuery) -> [ObjectKey] {
        let offset = max(0, query.offset)
        guard offset < keys.count else { return [] }
        let end = query.limit.map { min(keys.count, Self.sum(offset, $0) ?? keys.count) } ?? keys.count
        if offset == 0, end == keys.count { return keys }
        return Array(keys[offset..<end])
    }

    /// Returns the sum; nil if it overflows, which means no limit.
    private static func sum(_ parts: Int...) -> Int? {
        var total = 0
        for part in parts {
            let (sum, overflow) = total.addingReportingOverflow(part)
            if overflow { return nil }
            total = sum
        }
        return total
    }
}

extension StoreQuery {
    /// The query of the same objects in no order, with all of them, if stores cannot sort in its order; otherwise nil.
    fileprivate var unsortedForStores: StoreQuery? {
        guard !sort.allSatisfy(\.isOrderOfStores) else { return nil }
        return StoreQuery(entity: entity, predicate: predicate)
    }

    /// A condition that follows the relationships of the sort; nil if it follows none.
    var followedBySort: StorePredicate? {
        let paths = sort.filter { !$0.path.isEmpty }.map { sort in
            sort.path.reversed().reduce(StorePredicate.constant(true)) { .toOne($1, $0) }
        }
        return paths.isEmpty ? nil : .or(paths)
    }
}
