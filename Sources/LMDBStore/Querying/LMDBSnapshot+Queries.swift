import PageCodec
import StoreInterface
import StoreModel

extension LMDBSnapshot {
    func keys(_ query: StoreQuery) throws -> [ObjectKey] {
        try query.predicate.checkDepth()
        if query.limit.map({ $0 <= 0 }) == true { return [] }
        return query.sort.isEmpty ? try keysInOrder(query) : try sortedKeys(query)
    }

    private func keysInOrder(_ query: StoreQuery) throws -> [ObjectKey] {
        // If indexes alone determine the result, no page is read.
        let found = try candidates(query.entity, query.predicate)
        if var found, found.isExact {
            ExaminedObjects.add(found.keys.count)
            found.keys.sortKeys()
            if query.offset <= 0, query.limit == nil { return found.keys }
            return Array(found.keys.dropFirst(max(query.offset, 0)).prefix(query.limit ?? .max))
        }
        var keys: [ObjectKey] = []
        var toSkip = max(query.offset, 0)
        try forEachMatch(query.entity, where: query.predicate, among: found) { match in
            let count = match.mask.nonzeroBitCount
            if toSkip >= count {
                toSkip -= count
                return .next
            }
            for slot in SlotIterator(match.mask) {
                if toSkip > 0 {
                    toSkip -= 1
                    continue
                }
                keys.append(PageAddress.key(page: match.number, slot: slot))
                if keys.count == query.limit { return .stop }
            }
            return .next
        }
        return keys
    }

    /// Counts bits without creating keys.
    func count(_ query: StoreQuery) throws -> Int {
        try query.predicate.checkDepth()
        if query.limit.map({ $0 <= 0 }) == true { return 0 }
        let offset = max(query.offset, 0)
        let enough =
            query.limit.map { $0.addingReportingOverflow(offset) }.map { $0.overflow ? Int.max : $0.partialValue } ?? Int.max
        if let whole = try countFromIndex(query) {
            ExaminedObjects.add(whole)
            return max(0, min(whole, enough) - offset)
        }
        var total = 0
        try forEachMatch(query.entity, where: query.predicate) { match in
            total += match.mask.nonzeroBitCount
            return total >= enough ? .stop : .next
        }
        return max(0, min(total, enough) - offset)
    }

    /// Returns the number of results of a query whose whole condition is a set of ranges of one index. Returns nil for other
    /// queries.
    private func countFromIndex(_ query: StoreQuery) throws -> Int? {
        let maker = QueryPlanner(query.predicate, entity: query.entity, snapshot: self)
        guard let source = try maker.best(), source.isExact, case .index(let access) = source.plan else { return nil }
        if let found = access.found { return found.count }
        let pages = try pageCount(query.entity)
        return try store.mappingErrors {
            try transaction.withCursor(access.index.database) { cursor in
                var total = 0
                for destination in access.destinations where try cursor.find(destination) != nil {
                    total += try cursor.valueCount()
                }
                // If every key has few objects, a scan counts faster than walking the keys.
                var keysLeft = max(512, 8 * pages)
                for range in access.ranges {
                    var entry = try range.first(cursor)
                    while let found = entry, !range.isAfter(found.key) {
                        total += try cursor.valueCount()
                        keysLeft -= 1
                        if keysLeft == 0 { return nil }
                        entry = try cursor.move(.nextKey)
                    }
                }
                return total
            }
        }
    }

    private func sortedKeys(_ query: StoreQuery) throws -> [ObjectKey] {
        let offset = max(query.offset, 0)
        let wanted = query.limit.map { $0 < Int.max - offset ? $0 + offset : Int.max }
        if let keys = try keysInIndexOrder(query) { return keys }
        let columns = schema.entities[query.entity].columns
        if var selection = RankedSelection(query.sort, columns: columns, wanted: wanted) {
            let column = query.sort[0].column
            try forEachMatch(query.entity, where: query.predicate) { match in
                for slot in SlotIterator(match.mask) {
                    selection.add(PageAddress.key(page: match.number, slot: slot), try match.page.value(slot, column))
                }
                return .next
            }
            return Array(selection.finish().dropFirst(offset))
        }
        var selection = SortedSelection(query.sort, wanted: wanted)
        try forEachMatch(query.entity, where: query.predicate) { match in
            for slot in SlotIterator(match.mask) {
                try selection.add(PageAddress.key(page: match.number, slot: slot)) { column throws(PageError) in
                    try match.page.value(slot, column)
                }
            }
            return .next
        }
        return Array(selection.finish().dropFirst(offset))
    }
}
