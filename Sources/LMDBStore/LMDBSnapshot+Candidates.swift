import LMDB
import PageCodec
import StoreInterface

extension LMDBSnapshot {
    /// Some objects of one page that satisfy a condition. The page is valid in the body that it is given to.
    struct Match {
        var number: UInt64
        var page: ObjectPage
        var mask: UInt64
    }

    /// Calls `body` with the objects that satisfy a condition, page by page, ascending; pages without any are left out.
    func eachMatch(_ entity: Int, _ predicate: StorePredicate, _ body: (Match) throws -> Step) throws {
        let layout = store.layouts[entity]
        let condition = CompiledPredicate(predicate, layout: layout)
        func visit(_ number: UInt64, _ bytes: UnsafeRawBufferPointer, _ candidates: UInt64) throws -> Step {
            try store.withPage(bytes, entity, number, for: .scanning, in: transaction) { page in
                guard page.presence & candidates != 0 else { return .next }
                var mask = try condition.mask(of: page, number: number) & candidates
                if !condition.isExact { mask = try exact(mask, number, entity, predicate) }
                return mask == 0 ? .next : try body(Match(number: number, page: page, mask: mask))
            }
        }
        guard let candidates = try candidates(entity, predicate) else {
            return try eachPage(entity) { number, bytes in try visit(number, bytes, ~0) }
        }
        for group in candidates {
            if let bytes = try pageBytes(entity, group.number), try visit(group.number, bytes, group.mask) == .stop { return }
        }
    }

    /// Of a superset, the objects that satisfy the whole condition, asked one by one.
    private func exact(_ mask: UInt64, _ number: UInt64, _ entity: Int, _ predicate: StorePredicate) throws -> UInt64 {
        var result: UInt64 = 0
        for slot in SlotIterator(mask) {
            let key = PageAddress.key(page: number, slot: slot)
            if try predicate.matches(entity, key: key, in: self) { result |= 1 << UInt64(slot) }
        }
        return result
    }

    /// The wanted objects of one page.
    struct PageGroup {
        var number: UInt64
        var mask: UInt64
    }

    /// The objects that an index or the condition names, by page, ascending; nil when a scan is better.
    private func candidates(_ entity: Int, _ predicate: StorePredicate) throws -> [PageGroup]? {
        let plan = QueryPlan(predicate, entity: entity, snapshot: self)
        if case .scan = plan { return nil }
        if case .keys(let keys) = plan { return Self.groups(Array(keys)) }
        var keys: [ObjectKey] = []
        // A scan costs about as much as looking at eight candidates a page.
        let limit = max(512, try pageCount(entity) * 8)
        guard try gather(plan, into: &keys, limit: limit) else { return nil }
        return Self.groups(keys)
    }

    func pageCount(_ entity: Int) throws -> Int {
        try store.translating { try transaction.statistics(store.tables.pages[entity]).entries }
    }

    private static func groups(_ keys: [ObjectKey]) -> [PageGroup] {
        var groups: [PageGroup] = []
        for key in keys.sorted() {
            let number = PageAddress.page(of: key)
            let bit: UInt64 = 1 << UInt64(PageAddress.slot(of: key))
            if groups.last?.number == number {
                groups[groups.count - 1].mask |= bit
            } else {
                groups.append(PageGroup(number: number, mask: bit))
            }
        }
        return groups
    }

    /// - Returns: false when there are more than the limit.
    private func gather(_ plan: QueryPlan, into keys: inout [ObjectKey], limit: Int) throws -> Bool {
        switch plan {
        case .references(let index, let destinations):
            for destination in destinations {
                keys += try values(of: destination, in: index.database)
                if keys.count > limit { return false }
            }
        case .index(let index, let stretches, _):
            for stretch in stretches {
                try store.translating {
                    try transaction.withCursor(index.database) { try Self.gather(stretch, $0, into: &keys, limit: limit) }
                }
                if keys.count > limit { return false }
            }
        case .scan, .keys: break
        }
        return true
    }

    private static func gather(
        _ stretch: QueryPlan.Stretch, _ cursor: Cursor, into keys: inout [ObjectKey], limit: Int
    ) throws {
        var entry = try stretch.lower.withUnsafeBytes { try cursor.seek($0) }
        while let found = entry, keys.count <= limit {
            if let upper = stretch.upper, IndexBytes.order(found.key, upper) > 0 {
                guard stretch.isPrefix, found.key.starts(with: upper) else { return }
            }
            try cursor.appendValues(after: found, to: &keys)
            entry = try cursor.move(.nextKey)
        }
    }
}
