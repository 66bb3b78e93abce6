import LMDB
import PageCodec
import StoreInterface
import StoreModel

/// Sorting by walking an index in its order: no sort is needed, and a limit ends the walk.
extension LMDBSnapshot {
    /// An index with the order of the query, and the part of it to walk.
    struct OrderedWalk {
        var access: IndexAccess
        var direction: StoreSort.Direction
        /// Whether all objects of the walk satisfy the condition, so that no page must be read.
        var isExact: Bool
        /// The number of objects to read before a sort would be cheaper.
        var budget: Int
    }

    /// Returns a walk, or nil if no index has the order, or if reading and sorting fewer candidates is cheaper.
    func orderedWalk(_ query: StoreQuery) throws -> OrderedWalk? {
        let columns = schema.entities[query.entity].columns
        guard let direction = query.sort.first?.direction,
            query.sort.allSatisfy({ sort in
                // Indexes have null first.
                sort.direction == direction && (sort.nulls == .lowest || !columns[sort.column].isOptional)
                    && (sort.caseSensitivity == .sensitive || columns[sort.column].type != .string)
            })
        else { return nil }
        let wanted = query.sort.map(\.column)
        let maker = QueryPlanner(query.predicate, entity: query.entity, snapshot: self)
        for index in store.tables.indexes[query.entity] where isReady(index) && !index.isReference {
            guard let found = maker.access(index), Array(index.columns.dropFirst(found.equalities)) == wanted else { continue }
            let isExact = found.isExact && found.parts.count == maker.parts.count
            if isExact { return OrderedWalk(access: found.access, direction: direction, isExact: true, budget: .max) }
            guard let limit = query.limit else { continue }
            let pages = try pageCount(query.entity)
            let most = limit.addingReportingOverflow(max(query.offset, 0))
            guard !most.overflow, most.partialValue <= max(16, pages / 2) else { continue }
            // Reading and sorting few candidates is faster than walking an index for them.
            if let other = try maker.best(), other.estimate <= max(256, 4 * most.partialValue) { continue }
            return OrderedWalk(access: found.access, direction: direction, isExact: false, budget: max(512, pages))
        }
        return nil
    }

    /// Returns the query's keys in an index's order. Returns nil if no index has this order, or if walking it proved more
    /// expensive than sorting.
    func keysInIndexOrder(_ query: StoreQuery) throws -> [ObjectKey]? {
        guard let walk = try orderedWalk(query) else { return nil }
        let offset = max(query.offset, 0)
        let wanted = query.limit.map { $0 < Int.max - offset ? $0 + offset : Int.max } ?? Int.max
        var keys: [ObjectKey] = []
        var left = walk.budget
        let condition = CompiledPredicate(query.predicate)
        let ranges = walk.direction == .ascending ? walk.access.ranges : walk.access.ranges.reversed()
        for range in ranges {
            var resume: [UInt8]?
            while keys.count < wanted {
                let room = walk.isExact ? min(wanted - keys.count, 1 << 16) : min(256, left)
                guard let batch = try nextBatch(walk, range, after: resume, about: room) else { return nil }
                ExaminedObjects.add(batch.keys.count)
                if walk.isExact {
                    keys += batch.keys
                } else {
                    for key in batch.keys where try satisfies(query, key: key, condition: condition) { keys.append(key) }
                    left -= batch.keys.count
                    if left <= 0, keys.count < wanted { return nil }
                }
                guard let last = batch.resume else { break }
                resume = last
            }
        }
        return Array(keys.prefix(wanted).dropFirst(offset))
    }

    private func satisfies(_ query: StoreQuery, key: ObjectKey, condition: CompiledPredicate) throws -> Bool {
        guard condition.isExact else { return try query.predicate.matches(query.entity, key: key, in: self) }
        let number = key.page
        let mask = try withPage(query.entity, number: number) { page in try condition.mask(of: page, number: number) } ?? 0
        return mask >> UInt64(key.slot) & 1 != 0
    }

    /// Some objects in an index's order.
    private struct Batch {
        var keys: [ObjectKey] = []
        /// The index key at which the next batch continues; nil at the end.
        var resume: [UInt8]?
    }

    /// Returns the next batch. Objects with the same index key are in the order of their own keys, whatever the direction.
    /// - Returns: The batch, or nil if an index key may have been cut and therefore does not determine the order.
    private func nextBatch(
        _ walk: OrderedWalk, _ range: IndexRange, after resume: [UInt8]?, about count: Int
    ) throws -> Batch? {
        try store.mappingErrors {
            try transaction.withCursor(walk.access.index.database) { cursor in
                var batch = Batch()
                var entry: Cursor.Entry?
                switch (walk.direction, resume) {
                case (.ascending, nil): entry = try range.first(cursor)
                case (.descending, nil): entry = try range.last(cursor)
                case (_, let resume?): entry = try IndexRange.seek(resume, cursor)
                }
                while let found = entry, walk.direction == .ascending ? !range.isAfter(found.key) : !range.isBefore(found.key) {
                    if found.key.count >= KeyCodec.maximumCount { return nil }
                    if batch.keys.count >= count {
                        batch.resume = Array(found.key)
                        return batch
                    }
                    if try cursor.valueCount() == 1 {
                        batch.keys.append(found.objectValue)
                    } else if let first = try cursor.find(found.key) {
                        try cursor.appendValues(after: first, to: &batch.keys)
                    }
                    entry = try cursor.move(walk.direction == .ascending ? .nextKey : .previousKey)
                }
                return batch
            }
        }
    }
}
