import PageCodec
import StoreInterface

extension LMDBSnapshot {
    func keys(_ query: StoreQuery) throws -> [ObjectKey] {
        if query.limit.map({ $0 <= 0 }) == true { return [] }
        return query.sort.isEmpty ? try keysInOrder(query) : try sortedKeys(query)
    }

    private func keysInOrder(_ query: StoreQuery) throws -> [ObjectKey] {
        var keys: [ObjectKey] = []
        var toSkip = max(query.offset, 0)
        try eachMatch(query.entity, query.predicate) { match in
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

    /// Counts bits; no key is made.
    func count(_ query: StoreQuery) throws -> Int {
        if query.limit.map({ $0 <= 0 }) == true { return 0 }
        let offset = max(query.offset, 0)
        let enough =
            query.limit.map { $0.addingReportingOverflow(offset) }.map { $0.overflow ? Int.max : $0.partialValue } ?? Int.max
        if let whole = try countFromIndex(query) { return max(0, min(whole, enough) - offset) }
        var total = 0
        try eachMatch(query.entity, query.predicate) { match in
            total += match.mask.nonzeroBitCount
            return total >= enough ? .stop : .next
        }
        return max(0, min(total, enough) - offset)
    }

    /// How many objects a query has whose whole condition is one key of an index; nil for others.
    private func countFromIndex(_ query: StoreQuery) throws -> Int? {
        guard case .compare(let column, .equal, let value) = query.predicate,
            let index = self.index(query.entity, column)
        else { return nil }
        if index.isReference {
            guard let destination = value.referenceKey else { return nil }
            return try store.translating {
                try transaction.withCursor(index.database) { try $0.find(destination) == nil ? 0 : try $0.valueCount() }
            }
        }
        let schema = store.schema.entities[query.entity].columns[column]
        // A float is narrower than the number that it is compared with, and NaN has a key but equals nothing.
        if schema.type == .float { return nil }
        if case .double(let number) = value, number.isNaN { return nil }
        guard let key = try? KeyCodec.encode(value, column: schema), !key.isCut else { return nil }
        return try store.translating {
            try transaction.withCursor(index.database) { cursor in
                try key.bytes.withUnsafeBytes { try cursor.find($0) } == nil ? 0 : try cursor.valueCount()
            }
        }
    }

    private func sortedKeys(_ query: StoreQuery) throws -> [ObjectKey] {
        let offset = max(query.offset, 0)
        let wanted = query.limit.map { $0 < Int.max - offset ? $0 + offset : Int.max }
        let columns = schema.entities[query.entity].columns
        if var selection = RankedSelection(query.sort, columns: columns, wanted: wanted) {
            let column = query.sort[0].column
            try eachMatch(query.entity, query.predicate) { match in
                for slot in SlotIterator(match.mask) {
                    selection.add(PageAddress.key(page: match.number, slot: slot), try match.page.value(slot, column))
                }
                return .next
            }
            return Array(selection.finish().dropFirst(offset))
        }
        var selection = SortedSelection(query.sort, wanted: wanted)
        try eachMatch(query.entity, query.predicate) { match in
            for slot in SlotIterator(match.mask) {
                try selection.add(PageAddress.key(page: match.number, slot: slot)) { column throws(PageError) in
                    try match.page.value(slot, column)
                }
            }
            return .next
        }
        return Array(selection.finish().dropFirst(offset))
    }

    func explain(_ query: StoreQuery) throws -> String {
        let plan = QueryPlan(query.predicate, entity: query.entity, snapshot: self)
        return plan.explanation(entity: query.entity, store: store, pages: try pageCount(query.entity))
    }
}
