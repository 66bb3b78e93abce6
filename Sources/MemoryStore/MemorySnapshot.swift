import StoreInterface
import StoreModel

/// One state of a memory store. Queries read every object: this is the reference, not a fast engine.
///
/// `@unchecked Sendable` is right because the state is a value that does not change after the snapshot is made.
final class MemorySnapshot: StoreSnapshot, @unchecked Sendable {
    let schema: StoreSchema
    private let state: MemoryState

    init(schema: StoreSchema, state: MemoryState) {
        self.schema = schema
        self.state = state
    }

    var generation: Generation { state.generation }

    func value(_ entity: EntityIndex, key: ObjectKey, column: ColumnIndex) throws -> Value? {
        state.records[entity][key]?.values[column]
    }

    func version(_ entity: EntityIndex, _ key: ObjectKey) throws -> Generation? { state.records[entity][key]?.version }

    func related(_ relation: Relation, to key: ObjectKey) throws -> [ObjectKey] {
        switch relation {
        case .referrers(let entity, let column):
            state.indexes[entity][column]?[.reference(key)]?.sorted() ?? []
        case .link(let link, .forward, _):
            state.links[link].forward[key]?.sorted() ?? []
        case .link(let link, .backward, _):
            state.links[link].backward[key]?.sorted() ?? []
        }
    }

    func page(_ entity: EntityIndex, _ number: PageNumber) throws -> (any StorePage)? {
        guard let presence = state.presence[entity][number] else { return nil }
        return MemoryPage(entity: entity, number: number, presence: presence, snapshot: self)
    }

    func pageNumbers(_ entity: EntityIndex) throws -> [PageNumber] { state.presence[entity].keys.sorted() }

    func keys(_ query: StoreQuery) throws -> [ObjectKey] {
        var keys = try matching(query)
        if !query.sort.isEmpty {
            let sortable = try keys.map { key in
                (key, try query.sort.map { try value(query.entity, key: key, column: $0.column) ?? .null })
            }
            keys = sortable.sorted { Self.precedes($0, $1, by: query.sort) }.map(\.0)
        }
        return Array(keys.dropFirst(query.offset).prefix(query.limit ?? .max))
    }

    private static func precedes(
        _ a: (ObjectKey, [Value]), _ b: (ObjectKey, [Value]), by sort: [StoreSort]
    ) -> Bool {
        for (position, order) in sort.enumerated() {
            let result = order.order(a.1[position], b.1[position])
            if result != 0 { return result < 0 }
        }
        return a.0 < b.0
    }

    private func matching(_ query: StoreQuery) throws -> [ObjectKey] {
        try query.predicate.checkDepth()
        let all = state.records[query.entity].keys.sorted()
        ExaminedObjects.add(all.count)
        if query.predicate == .constant(true) { return all }
        return try all.filter { try query.predicate.matches(query.entity, key: $0, in: self) }
    }

    func count(_ query: StoreQuery) throws -> Int {
        if query.predicate == .constant(true) { ExaminedObjects.add(0) }
        let all = query.predicate == .constant(true) ? state.records[query.entity].count : try matching(query).count
        return min(max(0, all - query.offset), query.limit ?? .max)
    }

    func lookup(_ entity: EntityIndex, column: ColumnIndex, value: Value) throws -> [ObjectKey] {
        if let index = state.indexes[entity][column] { return index[value]?.sorted() ?? [] }
        return state.records[entity].filter { $0.value.values[column] == value }.keys.sorted()
    }

    func lookup(_ entity: EntityIndex, columns: [ColumnIndex], values: [Value]) throws -> [ObjectKey] {
        if let index = state.compoundIndexes[entity].first(where: { $0.columns == columns }) {
            return index.keys[values]?.sorted() ?? []
        }
        return state.records[entity].filter { record in zip(columns, values).allSatisfy { record.value.values[$0] == $1 } }
            .keys.sorted()
    }

    func explain(_ query: StoreQuery) throws -> String {
        try query.predicate.checkDepth()
        return "scan of \(state.records[query.entity].count) objects in memory"
    }

    fileprivate func record(_ entity: EntityIndex, _ key: ObjectKey) throws -> MemoryRecord {
        guard let record = state.records[entity][key] else {
            throw StoreError(.internalInconsistency, "\(schema.entities[entity].name) \(key) is not in its page")
        }
        return record
    }
}

/// The objects of one page in one snapshot.
private final class MemoryPage: StorePage {
    private let entity: EntityIndex
    private let number: PageNumber
    let presence: UInt64
    private let snapshot: MemorySnapshot

    init(entity: EntityIndex, number: PageNumber, presence: UInt64, snapshot: MemorySnapshot) {
        self.entity = entity
        self.number = number
        self.presence = presence
        self.snapshot = snapshot
    }

    func version(_ slot: Int) throws -> Generation { try record(slot).version }

    func value(_ slot: Int, _ column: ColumnIndex) throws -> Value { try record(slot).values[column] }

    private func record(_ slot: Int) throws -> MemoryRecord {
        try snapshot.record(entity, PageAddress.key(page: number, slot: slot))
    }
}
