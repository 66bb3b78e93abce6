import StoreInterface

/// One state of the store. The state is a value, so nothing can change it.
final class DictionarySnapshot: StoreSnapshot {
    let schema: StoreSchema
    let state: DictionaryState

    init(_ schema: StoreSchema, _ state: DictionaryState) {
        self.schema = schema
        self.state = state
    }

    var generation: Generation { state.generation }

    func version(_ entity: EntityIndex, _ key: ObjectKey) throws -> Generation? { state.objects[entity][key]?.version }

    func value(_ entity: EntityIndex, key: ObjectKey, column: ColumnIndex) throws -> Value? {
        state.objects[entity][key]?.values[column]
    }

    func related(_ relation: Relation, to key: ObjectKey) throws -> [ObjectKey] {
        switch relation {
        case .referrers(let entity, let column):
            keys(entity) { $0.values[column] == .reference(key) }
        case .link(let link, .forward, _):
            state.links[link].filter { $0.source == key }.map(\.destination).sorted()
        case .link(let link, .backward, _):
            state.links[link].filter { $0.destination == key }.map(\.source).sorted()
        }
    }

    private func keys(_ entity: EntityIndex, where isIncluded: (DictionaryState.Object) -> Bool) -> [ObjectKey] {
        state.objects[entity].filter { isIncluded($0.value) }.keys.sorted()
    }

    // MARK: Pages

    func page(_ entity: EntityIndex, _ number: PageNumber) throws -> (any StorePage)? {
        DictionaryPage(entity: entity, number: number, snapshot: self)
    }

    func pageNumbers(_ entity: EntityIndex) throws -> [PageNumber] { Set(state.objects[entity].keys.map(\.page)).sorted() }

    // MARK: Queries

    func keys(_ query: StoreQuery) throws -> [ObjectKey] {
        try query.predicate.checkDepth()
        let objects = state.objects[query.entity]
        var keys = try objects.keys.sorted().filter { try query.predicate.matches(query.entity, key: $0, in: self) }
        if !query.sort.isEmpty {
            keys.sort { a, b in
                for part in query.sort {
                    let (first, second) = (objects[a]?.values[part.column] ?? .null, objects[b]?.values[part.column] ?? .null)
                    let order = part.order(first, second)
                    if order != 0 { return order < 0 }
                }
                return a < b
            }
        }
        return Array(keys.dropFirst(query.offset).prefix(query.limit ?? .max))
    }

    func count(_ query: StoreQuery) throws -> Int { try keys(query).count }

    func lookup(_ entity: EntityIndex, column: ColumnIndex, value: Value) throws -> [ObjectKey] {
        keys(entity) { $0.values[column] == value }
    }

    func explain(_ query: StoreQuery) throws -> String {
        try query.predicate.checkDepth()
        return "scan of \(state.objects[query.entity].count) objects in a dictionary"
    }
}

/// The objects of one page, looked up one by one.
private final class DictionaryPage: StorePage {
    private let entity: EntityIndex
    private let number: PageNumber
    private let snapshot: DictionarySnapshot

    init(entity: EntityIndex, number: PageNumber, snapshot: DictionarySnapshot) {
        self.entity = entity
        self.number = number
        self.snapshot = snapshot
    }

    private func object(_ slot: Int) -> DictionaryState.Object? {
        snapshot.state.objects[entity][PageAddress.key(page: number, slot: slot)]
    }

    var presence: UInt64 {
        (0..<PageAddress.slots).reduce(0) { mask, slot in object(slot) == nil ? mask : mask | 1 << UInt64(slot) }
    }

    func contains(_ slot: Int) throws -> Bool { object(slot) != nil }

    func version(_ slot: Int) throws -> Generation { object(slot)?.version ?? 0 }

    func value(_ slot: Int, _ column: ColumnIndex) throws -> Value { object(slot)?.values[column] ?? .null }
}
