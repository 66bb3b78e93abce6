import LMDB
import PageCodec
import StoreInterface

/// Sorting by walking an index in its order, so that nothing is sorted and a limit ends the walk.
extension LMDBSnapshot {
    /// An index whose order is the query's, and what of it is walked.
    struct OrderedWalk {
        var access: IndexAccess
        var direction: StoreSort.Direction
        /// The objects of the walk satisfy the condition: no page is looked at.
        var isExact: Bool
        /// How many objects may be looked at before a sort is cheaper.
        var budget: Int
    }

    /// nil when no index has the order, or when reading fewer candidates and sorting them is cheaper.
    func orderedWalk(_ query: StoreQuery) throws -> OrderedWalk? {
        let columns = schema.entities[query.entity].columns
        guard let direction = query.sort.first?.direction,
            query.sort.allSatisfy({ sort in
                sort.direction == direction
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
            // Few candidates are read and sorted faster than an index is walked for them.
            if let other = try maker.best(), other.estimate <= max(256, 4 * most.partialValue) { continue }
            return OrderedWalk(access: found.access, direction: direction, isExact: false, budget: max(512, pages))
        }
        return nil
    }

    /// The query's keys by an index's order; nil when that is no way, or turned out to be none.
    func keysInIndexOrder(_ query: StoreQuery) throws -> [ObjectKey]? {
        guard let walk = try orderedWalk(query) else { return nil }
        let offset = max(query.offset, 0)
        let wanted = query.limit.map { $0 < Int.max - offset ? $0 + offset : Int.max } ?? Int.max
        var keys: [ObjectKey] = []
        var left = walk.budget
        let condition = CompiledPredicate(query.predicate)
        let stretches = walk.direction == .ascending ? walk.access.stretches : walk.access.stretches.reversed()
        for stretch in stretches {
            var resume: [UInt8]?
            while keys.count < wanted {
                let room = walk.isExact ? min(wanted - keys.count, 1 << 16) : min(256, left)
                guard let batch = try nextBatch(walk, stretch, after: resume, about: room) else { return nil }
                if walk.isExact {
                    keys += batch.keys
                } else {
                    for key in batch.keys where try satisfies(query, key, condition) { keys.append(key) }
                    left -= batch.keys.count
                    if left <= 0, keys.count < wanted { return nil }
                }
                guard let last = batch.resume else { break }
                resume = last
            }
        }
        return Array(keys.prefix(wanted).dropFirst(offset))
    }

    private func satisfies(_ query: StoreQuery, _ key: ObjectKey, _ condition: CompiledPredicate) throws -> Bool {
        guard condition.isExact else { return try query.predicate.matches(query.entity, key: key, in: self) }
        let number = PageAddress.page(of: key)
        let mask = try withPage(query.entity, number) { page in try condition.mask(of: page, number: number) } ?? 0
        return mask >> UInt64(PageAddress.slot(of: key)) & 1 != 0
    }

    /// Some objects in an index's order.
    private struct Batch {
        var keys: [ObjectKey] = []
        /// The index key at which the next batch goes on; nil at the end.
        var resume: [UInt8]?
    }

    /// Objects with the same index key come in the order of their own keys, whatever the direction.
    /// - Returns: nil when an index key may have been cut, so that it does not tell the order.
    private func nextBatch(
        _ walk: OrderedWalk, _ stretch: IndexRange, after resume: [UInt8]?, about count: Int
    ) throws -> Batch? {
        try store.mappingErrors {
            try transaction.withCursor(walk.access.index.database) { cursor in
                var batch = Batch()
                var entry: Cursor.Entry?
                switch (walk.direction, resume) {
                case (.ascending, nil): entry = try stretch.first(cursor)
                case (.descending, nil): entry = try stretch.last(cursor)
                case (_, let resume?): entry = try IndexRange.seek(resume, cursor)
                }
                while let found = entry, walk.direction == .ascending ? !stretch.isPast(found.key) : !stretch.isBefore(found.key)
                {
                    if found.key.count >= KeyCodec.maximumCount { return nil }
                    if batch.keys.count >= count {
                        batch.resume = Array(found.key)
                        return batch
                    }
                    if try cursor.valueCount() == 1 {
                        batch.keys.append(found.valueNumber)
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
