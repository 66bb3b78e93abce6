import LMDB
import PageCodec
import StoreInterface
import StoreModel

extension LMDBSnapshot {
    /// Objects of one page that satisfy a condition. The page is valid only in the body that it is passed to.
    struct Match {
        var number: PageNumber
        var page: ObjectPage
        var mask: UInt64
    }

    /// Calls `body` with the objects that satisfy a condition, page by page, ascending. Skips pages without such objects.
    func forEachMatch(_ entity: EntityIndex, where predicate: StorePredicate, _ body: (Match) throws -> Step) throws {
        try forEachMatch(entity, where: predicate, among: candidates(entity, predicate), body)
    }

    /// Calls `body` with the objects that satisfy a condition, page by page, ascending.
    /// - Parameter candidates: The objects to check; nil for all objects.
    func forEachMatch(
        _ entity: EntityIndex, where predicate: StorePredicate, among candidates: Candidates?, _ body: (Match) throws -> Step
    ) throws {
        let condition = CompiledPredicate(predicate)
        let isKnown = candidates?.isExact ?? false
        var examined = 0
        defer { ExaminedObjects.add(examined) }
        func visit(_ number: PageNumber, bytes: UnsafeRawBufferPointer, wanted: UInt64) throws -> Step {
            try store.withPage(bytes, entity: entity, number: number, for: .scanning, in: reader) { page in
                var mask = page.presence & wanted
                guard mask != 0 else { return .next }
                examined += mask.nonzeroBitCount
                if !isKnown {
                    mask = try condition.mask(of: page, number: number) & wanted
                    if !condition.isExact { mask = try exact(mask, number: number, entity: entity, predicate: predicate) }
                }
                return mask == 0 ? .next : try body(Match(number: number, page: page, mask: mask))
            }
        }
        guard let candidates else {
            return try forEachPage(entity) { number, bytes in try visit(number, bytes: bytes, wanted: ~0) }
        }
        for group in Self.groups(candidates.keys) {
            if let bytes = try pageBytes(entity, group.number), try visit(group.number, bytes: bytes, wanted: group.mask) == .stop
            {
                return
            }
        }
    }

    /// Returns the objects of a superset that satisfy the whole condition. Checks one object at a time.
    private func exact(_ mask: UInt64, number: PageNumber, entity: EntityIndex, predicate: StorePredicate) throws -> UInt64 {
        var result: UInt64 = 0
        for slot in SlotIterator(mask) {
            let key = PageAddress.key(page: number, slot: slot)
            if try predicate.matches(entity, key: key, in: self) { result |= 1 << UInt64(slot) }
        }
        return result
    }

    /// The selected objects of one page.
    struct PageGroup {
        var number: PageNumber
        var mask: UInt64
    }

    /// A superset of the objects that satisfy a condition.
    struct Candidates {
        /// The keys, in no order. They may contain duplicates unless they are exact.
        var keys: [ObjectKey]
        /// Whether all candidates exist and satisfy the condition.
        var isExact: Bool
        var plan: QueryPlan
    }

    /// Returns the objects from indexes or from the condition itself, or nil if a scan is cheaper.
    func candidates(_ entity: EntityIndex, _ predicate: StorePredicate) throws -> Candidates? {
        guard let source = try QueryPlanner(predicate, entity: entity, snapshot: self).best() else { return nil }
        if case .index(let access) = source.plan, let found = access.found {
            return Candidates(keys: found, isExact: source.isExact, plan: source.plan)
        }
        let limit = try candidateLimit(entity, predicate, isExact: source.isExact)
        guard source.estimate <= limit,
            let keys = try gather(source.plan, limit: limit.addingReportingOverflow(limit).partialValue)
        else { return nil }
        return Candidates(keys: keys, isExact: source.isExact, plan: source.plan)
    }

    /// Returns the number of candidates with which a scan costs as much. An index entry and its sorting cost a quarter of
    /// scanning a page. Reading a page outside a scan's order costs as much again. Conditions on other objects are expensive,
    /// so that any index is cheaper.
    private func candidateLimit(_ entity: EntityIndex, _ predicate: StorePredicate, isExact: Bool) throws -> Int {
        if predicate.traversesRelationships { return Int.max / 4 }
        return max(512, try pageCount(entity) * (isExact ? 4 : 2))
    }

    static func groups(_ keys: [ObjectKey]) -> [PageGroup] {
        var groups: [PageGroup] = []
        var keys = keys
        keys.sortKeys()
        for key in keys {
            let number = key.page
            let bit: UInt64 = 1 << UInt64(key.slot)
            if groups.last?.number == number {
                groups[groups.count - 1].mask |= bit
            } else {
                groups.append(PageGroup(number: number, mask: bit))
            }
        }
        return groups
    }

    // MARK: Reading indexes

    /// Returns the keys of a plan.
    /// - Returns: The keys, or nil if there are more than the limit, which an estimate may not have predicted.
    private func gather(_ plan: QueryPlan, limit: Int) throws -> [ObjectKey]? {
        switch plan {
        case .scan: return nil
        case .keys(let keys): return Array(keys)
        case .index(let access): return try gather(access, limit: limit)
        case .referrers(let index, let entity, let condition):
            var destinations: [ObjectKey] = []
            try forEachMatch(entity, where: condition) { match in
                for slot in SlotIterator(match.mask) { destinations.append(PageAddress.key(page: match.number, slot: slot)) }
                return .next
            }
            return try gatherReferrers(index, destinations, limit: limit)
        case .related(let relation, let condition): return try gatherRelated(relation, condition)
        case .all(let plans):
            var common: [ObjectKey]?
            for plan in plans {
                guard let keys = try gather(plan, limit: .max) else { return nil }
                common = common.map { Self.intersection($0, keys) } ?? keys
            }
            return common
        case .any(let plans):
            var union: Set<ObjectKey> = []
            for plan in plans {
                guard let keys = try gather(plan, limit: limit) else { return nil }
                union.formUnion(keys)
                if union.count > limit { return nil }
            }
            return Array(union)
        }
    }

    private static func intersection(_ a: [ObjectKey], _ b: [ObjectKey]) -> [ObjectKey] {
        let (few, many) = a.count < b.count ? (a, b) : (b, a)
        let wanted = Set(few)
        return many.filter(wanted.contains)
    }

    private func gather(_ access: IndexAccess, limit: Int) throws -> [ObjectKey]? {
        if let found = access.found { return found }
        if access.index.isReference { return try gatherReferrers(access.index, access.destinations.sorted(), limit: limit) }
        var keys: [ObjectKey] = []
        return try store.mappingErrors {
            try transaction.withCursor(access.index.database) { cursor in
                for range in access.ranges {
                    guard let first = try range.first(cursor) else { continue }
                    guard try cursor.appendValues(from: first, to: &keys, limit: limit, until: range.isAfter) else { return nil }
                }
                return keys
            }
        }
    }

    private func gatherReferrers(_ index: Tables.Index, _ destinations: [ObjectKey], limit: Int) throws -> [ObjectKey]? {
        var keys: [ObjectKey] = []
        return try store.mappingErrors {
            try transaction.withCursor(index.database) { cursor in
                for destination in destinations {
                    guard let first = try cursor.find(destination) else { continue }
                    try cursor.appendValues(after: first, to: &keys)
                    if keys.count > limit { return nil }
                }
                return keys
            }
        }
    }

    /// Returns the objects that are related to objects satisfying a condition, without duplicates.
    private func gatherRelated(_ relation: Relation, _ condition: StorePredicate) throws -> [ObjectKey] {
        var found: Set<ObjectKey> = []
        try forEachMatch(relation.entity, where: condition) { match in
            for slot in SlotIterator(match.mask) {
                switch relation {
                case .referrers(_, let column):
                    if let key = try match.page.value(slot, column).referenceKey { found.insert(key) }
                case .link(let link, let direction, _):
                    let other = store.tables.links[link].database(direction == .forward ? .backward : .forward)
                    found.formUnion(try values(of: PageAddress.key(page: match.number, slot: slot), in: other))
                }
            }
            return .next
        }
        guard case .referrers(let entity, let column) = relation else { return Array(found) }
        return try present(found, of: schema.entities[entity].columns[column].destination ?? entity)
    }

    /// Returns the objects that exist. A reference may lead to a deleted object; a link's pairs are deleted with their
    /// objects.
    private func present(_ keys: Set<ObjectKey>, of entity: EntityIndex) throws -> [ObjectKey] {
        var present: [ObjectKey] = []
        for group in Self.groups(Array(keys)) {
            let mask = try withPage(entity, number: group.number) { $0.presence & group.mask } ?? 0
            for slot in SlotIterator(mask) { present.append(PageAddress.key(page: group.number, slot: slot)) }
        }
        return present
    }
}
