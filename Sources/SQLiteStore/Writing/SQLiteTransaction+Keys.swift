import StoreInterface
import StoreModel

/// The rows of `strata_meta` with the free keys per entity: `first-end` of each range, in decimal numbers. A row's name is
/// the prefix, followed by the entity's position.
enum SQLiteFreeKeys {
    static let prefix = "free keys "
    /// The first key that is never leased.
    static let end = PageAddress.key(page: PageAddress.unleased.lowerBound, slot: 0)

    /// Returns the ranges that the text of a row lists, ascending; nil for a text that no store writes.
    static func ranges(_ text: String) -> [Range<ObjectKey>]? {
        var ranges: [Range<ObjectKey>] = []
        for part in text.split(separator: ",") {
            let bounds = part.split(separator: "-").compactMap { ObjectKey($0) }
            // The end comes first: the page of the highest key has no following page.
            guard bounds.count == 2, bounds[1] <= end, bounds[0] < bounds[1], bounds[1] <= bounds[0].pageEnd,
                bounds[0] >= ranges.last?.upperBound ?? ObjectKey(page: 1, slot: 0)
            else { return nil }
            ranges.append(bounds[0]..<bounds[1])
        }
        return ranges
    }
}

/// Leases of keys, which the table `strata_keys` and rows of `strata_meta` record.
extension SQLiteTransaction {
    func allocateKeys(_ entity: EntityIndex, pages: Int) throws -> Range<ObjectKey> {
        let first = try nextKey(entity)
        let count = max(pages, 1) * PageAddress.slots
        guard first < SQLiteFreeKeys.end.advanced(by: -count) else {
            throw StoreError(
                .damaged, "\(path): the counter in strata_keys is \(first), after which no keys are left; restore the file")
        }
        try putNextKey(first.advanced(by: count), entity)
        return first..<first.advanced(by: count)
    }

    func allocateFreeKeys(_ entity: EntityIndex) throws -> [Range<ObjectKey>] {
        var free = try freeKeys(entity)
        if free.ranges.isEmpty { free = FreeKeys([try allocateKeys(entity, pages: 1)]) }
        let taken = free.take()
        try put(free, entity)
        return taken
    }

    func giveBackKeys(_ keys: [Range<ObjectKey>], _ entity: EntityIndex) throws {
        var free = try freeKeys(entity)
        var next = PageAddress.page(of: try nextKey(entity))
        free.giveBack(keys, next: &next)
        try putNextKey(PageAddress.key(page: next, slot: 0), entity)
        try put(free, entity)
    }

    private func putNextKey(_ key: ObjectKey, _ entity: EntityIndex) throws {
        try run("INSERT OR REPLACE INTO strata_keys (entity, next) VALUES (?, ?)", Int64(entity.rawValue), key.stored)
        try checkChanged(1, "leased keys of \(layout.schema.entities[entity].name)", in: "strata_keys")
    }

    /// Returns the first key that was never leased, which is the first key of a page. It is greater than the keys of all
    /// objects, even if another program has changed the counter.
    private func nextKey(_ entity: EntityIndex) throws -> ObjectKey {
        let newest =
            try connection.integer(
                "SELECT MAX(id) FROM \(layout.tables[entity]) WHERE id < ?", [.int(SQLiteFreeKeys.end.stored)]) ?? 0
        let stored = try connection.integer("SELECT next FROM strata_keys WHERE entity = ?", [.int(Int64(entity.rawValue))]) ?? 0
        let first = Int64(try connection.meta(SQLiteLineage.firstKey) ?? "") ?? 0
        let next = min(max(stored, newest + 1, first, Int64(PageAddress.slots)), SQLiteFreeKeys.end.stored)
        return ObjectKey(stored: (next + 63) & ~63)
    }

    /// Returns the free keys of an entity. Leaves out ranges that have objects because another program has changed the file.
    private func freeKeys(_ entity: EntityIndex) throws -> FreeKeys {
        guard let text = try connection.meta(SQLiteFreeKeys.prefix + "\(entity)"), let ranges = SQLiteFreeKeys.ranges(text) else {
            return FreeKeys()
        }
        let unused = try ranges.filter { range in
            try connection.integer(
                "SELECT COUNT(*) FROM \(layout.tables[entity]) WHERE id >= ? AND id < ?",
                [.int(range.lowerBound.stored), .int(range.upperBound.stored)]) == 0
        }
        return FreeKeys(unused)
    }

    private func put(_ free: FreeKeys, _ entity: EntityIndex) throws {
        let text = free.ranges.map { "\($0.lowerBound)-\($0.upperBound)" }.joined(separator: ",")
        try connection.setMeta(SQLiteFreeKeys.prefix + "\(entity)", text)
        try checkChanged(1, "returned keys of \(layout.schema.entities[entity].name)", in: "strata_meta")
    }
}
