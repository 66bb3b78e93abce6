import StoreInterface
import Synchronization

/// The objects of one page, as a row cache: which there are is read at once, the first object touched by its id, and all the
/// others by one range when a second one is touched.
final class SQLitePage: StorePage {
    private let snapshot: SQLiteSnapshot
    private let entity: Int
    private let number: UInt64
    private let cache = Mutex(Cache())

    private struct Cache {
        var presence: UInt64 = 0
        /// Slots of which ``values`` and ``versions`` are read.
        var loaded: UInt64 = 0
        var single: [Value] = []
        var singleSlot = -1
        var singleVersion: Generation = 0
        /// By slot and column, once a second object was touched.
        var values: [Value] = []
        var versions: [Generation] = []
    }

    init(snapshot: SQLiteSnapshot, entity: Int, number: UInt64) {
        self.snapshot = snapshot
        self.entity = entity
        self.number = number
    }

    var presence: UInt64 { cache.withLock { $0.presence } }

    func loadPresence() throws -> UInt64 {
        let keys = try snapshot.read(snapshot.layout.selectPresence[entity]) {
            bindRange($0)
            return try $0.keys()
        }
        let mask = keys.reduce(0 as UInt64) { $0 | 1 << UInt64(PageAddress.slot(of: $1)) }
        cache.withLock { $0.presence = mask }
        return mask
    }

    func version(_ slot: Int) throws -> Generation {
        try cache.withLock { cache in
            try load(slot, &cache)
            return slot == cache.singleSlot ? cache.singleVersion : cache.versions[slot]
        }
    }

    func value(_ slot: Int, _ column: Int) throws -> Value {
        try cache.withLock { cache in
            try load(slot, &cache)
            if slot == cache.singleSlot { return cache.single[column] }
            return cache.values[slot * snapshot.schema.entities[entity].columns.count + column]
        }
    }

    private func load(_ slot: Int, _ cache: inout Cache) throws {
        if slot == cache.singleSlot || cache.loaded >> UInt64(slot) & 1 != 0 { return }
        if cache.singleSlot < 0 {
            try loadOne(slot, &cache)
        } else if cache.loaded == 0 {
            try loadAll(&cache)
            if cache.loaded >> UInt64(slot) & 1 == 0 { throw missing(slot) }
        } else {
            throw missing(slot)
        }
    }

    private func loadOne(_ slot: Int, _ cache: inout Cache) throws {
        let key = PageAddress.key(page: number, slot: slot)
        try snapshot.read(snapshot.layout.selectRow[entity]) { statement in
            statement.bind(key, 1)
            defer { statement.reset() }
            guard try statement.step() else { throw missing(slot) }
            let count = snapshot.schema.entities[entity].columns.count
            cache.single = try (0..<count).map { try snapshot.decode(statement, $0 + 2, entity, $0, key) }
            cache.singleVersion = Generation(bitPattern: statement.integer(1))
            cache.singleSlot = slot
        }
    }

    private func loadAll(_ cache: inout Cache) throws {
        let count = snapshot.schema.entities[entity].columns.count
        cache.values = Array(repeating: .null, count: PageAddress.slots * count)
        cache.versions = Array(repeating: 0, count: PageAddress.slots)
        try snapshot.read(snapshot.layout.selectPage[entity]) { statement in
            bindRange(statement)
            defer { statement.reset() }
            while try statement.step() {
                let key = ObjectKey(bitPattern: statement.integer(0))
                let slot = PageAddress.slot(of: key)
                cache.versions[slot] = Generation(bitPattern: statement.integer(1))
                for column in 0..<count {
                    cache.values[slot * count + column] = try snapshot.decode(statement, column + 2, entity, column, key)
                }
                cache.loaded |= 1 << UInt64(slot)
            }
        }
    }

    private func bindRange(_ statement: SQLiteStatement) {
        statement.bind(PageAddress.key(page: number, slot: 0), 1)
        statement.bind(PageAddress.key(page: number, slot: PageAddress.slots - 1), 2)
    }

    /// With the routing `ancestors` the object may have been deleted since.
    private func missing(_ slot: Int) -> StoreError {
        StoreError(
            .internalInconsistency,
            "\(snapshot.schema.entities[entity].name) \(PageAddress.key(page: number, slot: slot)) is gone; fetch again")
    }
}
