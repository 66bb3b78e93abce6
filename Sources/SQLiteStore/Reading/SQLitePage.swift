internal import Platform
import StoreInterface
import StoreModel

/// The objects of one page, with a cache of rows. The first object that is read is selected by its id. When a second object
/// is read, one range query reads all objects of the page.
final class SQLitePage: StorePage {
    private let snapshot: SQLiteSnapshot
    private let entity: EntityIndex
    private let number: PageNumber
    private let columnCount: Int
    private let cache = Mutex(Cache())

    private struct Cache {
        /// The slots that contain objects; nil until they are first needed.
        var presence: UInt64?
        /// The slots whose ``values`` and ``versions`` have been read.
        var loaded: UInt64 = 0
        var single: [Value] = []
        var singleSlot = -1
        var singleVersion: Generation = 0
        /// The values by slot and column, after a second object was read.
        var values: [Value] = []
        var versions: [Generation] = []
    }

    init(snapshot: SQLiteSnapshot, entity: EntityIndex, number: PageNumber) {
        self.snapshot = snapshot
        self.entity = entity
        self.number = number
        columnCount = snapshot.layout.types[entity].count
    }

    var presence: UInt64 {
        cache.withLock { cache in
            if let known = cache.presence { return known }
            guard let mask = try? readPresence() else { return .max }
            cache.presence = mask
            return mask
        }
    }

    private func readPresence() throws -> UInt64 {
        try snapshot.read(snapshot.layout.selectPresence[entity]) { statement in
            bindRange(statement)
            return UInt64(bitPattern: try statement.integers().first ?? 0)
        }
    }

    func contains(_ slot: Int) throws -> Bool {
        try cache.withLock { cache in
            if let known = cache.presence { return known >> UInt64(slot) & 1 != 0 }
            return try load(slot, &cache)
        }
    }

    /// Looks up each slot by id if there are few slots. For more slots, reads all ids of the page once.
    func present(among slots: UInt64) throws -> UInt64 {
        try cache.withLock { cache in
            if let known = cache.presence { return known & slots }
            if slots.nonzeroBitCount >= Self.manySlots {
                let mask = try readPresence()
                cache.presence = mask
                return mask & slots
            }
            return try snapshot.read(snapshot.layout.selectExistence[entity]) { statement in
                var found: UInt64 = 0
                for slot in SlotIterator(slots) {
                    statement.bind(PageAddress.key(page: number, slot: slot), 1)
                    defer { statement.reset() }
                    if try statement.step() { found |= 1 << UInt64(slot) }
                }
                return found
            }
        }
    }

    /// The approximate number of slots from which reading all ids of the page is cheaper than look-ups.
    private static let manySlots = 6

    func version(_ slot: Int) throws -> Generation {
        try cache.withLock { cache in
            guard try load(slot, &cache) else { throw missing(slot) }
            return slot == cache.singleSlot ? cache.singleVersion : cache.versions[slot]
        }
    }

    func value(_ slot: Int, _ column: ColumnIndex) throws -> Value {
        try cache.withLock { cache in
            guard try load(slot, &cache) else { throw missing(slot) }
            if slot == cache.singleSlot { return cache.single[column] }
            return cache.values[slot * columnCount + column.rawValue]
        }
    }

    /// Reads the object unless it is cached. Returns whether it exists.
    private func load(_ slot: Int, _ cache: inout Cache) throws -> Bool {
        if slot == cache.singleSlot || cache.loaded >> UInt64(slot) & 1 != 0 { return true }
        if cache.loaded != 0 { return false }
        if cache.singleSlot < 0 { return try loadOne(slot, &cache) }
        do { try loadAll(&cache) } catch {
            // Another object of the page may be damaged.
            return try loadOne(slot, &cache)
        }
        return cache.loaded >> UInt64(slot) & 1 != 0
    }

    private func loadOne(_ slot: Int, _ cache: inout Cache) throws -> Bool {
        let key = PageAddress.key(page: number, slot: slot)
        let sql = snapshot.layout.selectRow[entity]
        let row = try snapshot.read(sql) { statement -> (values: [Value], version: Generation)? in
            statement.bind(key, 1)
            defer { statement.reset() }
            guard try statement.step() else { return nil }
            let values = try (0..<columnCount).map {
                try snapshot.decode(statement, at: $0 + 2, entity: entity, column: ColumnIndex(rawValue: $0), key: key)
            }
            return (values, Generation(stored: statement.integer(1)))
        }
        guard let row else { return false }
        // Cached after `read` has returned. If `read` throws after its closure, the values may be of another state.
        (cache.single, cache.singleVersion, cache.singleSlot) = (row.values, row.version, slot)
        return true
    }

    private func loadAll(_ cache: inout Cache) throws {
        var values = [Value](repeating: .null, count: PageAddress.slots * columnCount)
        var versions = [Generation](repeating: 0, count: PageAddress.slots)
        var loaded: UInt64 = 0
        try snapshot.read(snapshot.layout.selectPage[entity]) { statement in
            bindRange(statement)
            defer { statement.reset() }
            while try statement.step() {
                let key = ObjectKey(stored: statement.integer(0))
                let slot = key.slot
                versions[slot] = Generation(stored: statement.integer(1))
                for column in 0..<columnCount {
                    values[slot * columnCount + column] = try snapshot.decode(
                        statement, at: column + 2, entity: entity, column: ColumnIndex(rawValue: column), key: key)
                }
                loaded |= 1 << UInt64(slot)
            }
        }
        // Only when all were read: an object without values counts as absent.
        (cache.values, cache.versions, cache.loaded) = (values, versions, loaded)
    }

    private func bindRange(_ statement: SQLiteStatement) {
        statement.bind(PageAddress.key(page: number, slot: 0), 1)
        statement.bind(PageAddress.key(page: number, slot: PageAddress.slots - 1), 2)
    }

    /// Returns the error for a missing object. On a shared connection, it may have been deleted since.
    private func missing(_ slot: Int) -> StoreError {
        StoreError(
            .internalInconsistency,
            "\(snapshot.schema.entities[entity].name) \(PageAddress.key(page: number, slot: slot)) no longer exists; fetch again")
    }
}
