import HashTreeCollections
import StoreInterface
import StoreModel

/// One object in memory.
struct MemoryRecord {
    var version: Generation
    var values: [Value]
}

/// The pairs of a link, from both ends.
struct MemoryLink {
    var forward: TreeDictionary<ObjectKey, TreeSet<ObjectKey>> = [:]
    var backward: TreeDictionary<ObjectKey, TreeSet<ObjectKey>> = [:]

    mutating func set(_ source: ObjectKey, _ destination: ObjectKey, linked: Bool) {
        Self.set(&forward, outer: source, inner: destination, linked: linked)
        Self.set(&backward, outer: destination, inner: source, linked: linked)
    }

    private static func set(
        _ map: inout TreeDictionary<ObjectKey, TreeSet<ObjectKey>>, outer: ObjectKey, inner: ObjectKey, linked: Bool
    ) {
        var rest = map[outer] ?? []
        if linked { rest.insert(inner) } else { rest.remove(inner) }
        map[outer] = rest.isEmpty ? nil : rest
    }

    mutating func removeSource(_ key: ObjectKey) {
        for other in forward[key] ?? [] { set(key, other, linked: false) }
    }

    mutating func removeDestination(_ key: ObjectKey) {
        for other in backward[key] ?? [] { set(other, key, linked: false) }
    }
}

/// An index of objects by their values in several columns.
struct MemoryCompoundIndex {
    let columns: [ColumnIndex]
    private(set) var keys: TreeDictionary<[Value], TreeSet<ObjectKey>> = [:]

    init(columns: [ColumnIndex]) { self.columns = columns }

    mutating func move(_ key: ObjectKey, from old: [Value]?, to new: [Value]?) {
        let before = old.map { old in columns.map { old[$0] } }
        let after = new.map { new in columns.map { new[$0] } }
        if before == after { return }
        // NaN is never looked up. In a key it would never be found again, and never be removed.
        if let before, MemoryState.isFindable(before), var left = keys[before] {
            left.remove(key)
            keys[before] = left.isEmpty ? nil : left
        }
        if let after, MemoryState.isFindable(after) { keys[after, default: []].insert(key) }
    }
}

/// The complete content of the store at one moment. Copying it is O(entities + links).
struct MemoryState {
    var generation: Generation = 0
    /// The objects, per entity.
    var records: [TreeDictionary<ObjectKey, MemoryRecord>]
    /// The occupied slots of each page, per entity.
    var presence: [TreeDictionary<PageNumber, UInt64>]
    /// The keys by value, per entity and column, for reference columns and indexed columns.
    var indexes: [[ColumnIndex: TreeDictionary<Value, TreeSet<ObjectKey>>]]
    /// The indexes over several columns, per entity, in the schema's order.
    var compoundIndexes: [[MemoryCompoundIndex]]
    var links: [MemoryLink]
    /// The first key that was never leased, per entity.
    var nextKeys: [ObjectKey]
    /// The keys below `nextKeys` that were returned, per entity.
    var freeKeys: [FreeKeys]
    /// The newest change sets, oldest first.
    var history: [ChangeSet] = []

    static let historyLimit = 10_000

    init(schema: StoreSchema) {
        records = schema.entities.map { _ in [:] }
        presence = schema.entities.map { _ in [:] }
        indexes = schema.entities.map { entity in
            var indexes: [ColumnIndex: TreeDictionary<Value, TreeSet<ObjectKey>>] = [:]
            for (column, definition) in entity.columns.enumerated(as: ColumnIndex.self)
            where definition.type == .reference || definition.index != .none { indexes[column] = [:] }
            return indexes
        }
        compoundIndexes = schema.entities.map { $0.indexes.map { MemoryCompoundIndex(columns: $0.columns) } }
        links = schema.links.map { _ in MemoryLink() }
        nextKeys = schema.entities.map { _ in ObjectKey(page: 1, slot: 0) }
        freeKeys = schema.entities.map { _ in FreeKeys() }
    }

    mutating func put(_ record: MemoryRecord, entity: EntityIndex, key: ObjectKey) {
        reindex(entity, key, old: records[entity][key]?.values, new: record.values)
        records[entity][key] = record
        presence[entity][key.page, default: 0] |= 1 << UInt64(key.slot)
    }

    mutating func remove(_ entity: EntityIndex, _ key: ObjectKey) {
        guard let old = records[entity].removeValue(forKey: key) else { return }
        reindex(entity, key, old: old.values, new: nil)
        let page = key.page
        let left = (presence[entity][page] ?? 0) & ~(1 << UInt64(key.slot))
        presence[entity][page] = left == 0 ? nil : left
    }

    private mutating func reindex(_ entity: EntityIndex, _ key: ObjectKey, old: [Value]?, new: [Value]?) {
        for position in compoundIndexes[entity].indices { compoundIndexes[entity][position].move(key, from: old, to: new) }
        for column in indexes[entity].keys {
            let before = old?[column]
            let after = new?[column]
            guard before != after else { continue }
            if let before { change(entity, column: column, value: before) { $0.remove(key) } }
            if let after { change(entity, column: column, value: after) { $0.insert(key) } }
        }
    }

    private mutating func change(
        _ entity: EntityIndex, column: ColumnIndex, value: Value, _ body: (inout TreeSet<ObjectKey>) -> Void
    ) {
        // NaN is never looked up. As a key it would never be found again, and never be removed.
        guard value == value else { return }
        var keys = indexes[entity][column]?[value] ?? []
        body(&keys)
        indexes[entity][column]?[value] = keys.isEmpty ? nil : keys
    }
}
