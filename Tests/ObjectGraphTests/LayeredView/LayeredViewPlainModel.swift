import Foundation
import Platform
import StoreInterface
import StoreModel

/// Objects in dictionaries. The tests compare views with them, and use them as a base that is simpler than any store.
struct PlainState: ObjectReader {
    struct Object: Sendable {
        var values: [Value]
        var version: Generation
    }
    struct Pair: Hashable, Sendable {
        var source: ObjectKey
        var destination: ObjectKey
    }

    let schema: StoreSchema
    var objects: [[ObjectKey: Object]]
    var links: [Set<Pair>]

    init(schema: StoreSchema) {
        self.schema = schema
        objects = Array(repeating: [:], count: schema.entities.count)
        links = Array(repeating: [], count: schema.links.count)
    }

    func value(_ entity: EntityIndex, key: ObjectKey, column: ColumnIndex) -> Value? { objects[entity][key]?.values[column] }

    func version(_ entity: EntityIndex, _ key: ObjectKey) -> Generation? { objects[entity][key]?.version }

    func exists(_ entity: EntityIndex, _ key: ObjectKey) -> Bool { objects[entity][key] != nil }

    func related(_ relation: Relation, to key: ObjectKey) -> [ObjectKey] {
        switch relation {
        case .referrers(let entity, let column):
            return objects[entity].filter { $0.value.values[column] == .reference(key) }.keys.sorted()
        case .link(let link, .forward, let destination):
            return links[link].filter { $0.source == key }.map(\.destination)
                .filter { objects[destination][$0] != nil }.sorted()
        case .link(let link, .backward, let destination):
            return links[link].filter { $0.destination == key }.map(\.source)
                .filter { objects[destination][$0] != nil }.sorted()
        }
    }

    func keys(_ query: StoreQuery) throws -> [ObjectKey] {
        let found = try objects[query.entity].keys.sorted().filter {
            try query.predicate.matches(query.entity, key: $0, in: self)
        }
        let sorted = found.sorted { a, b in
            for sort in query.sort {
                let left = value(query.entity, key: a, column: sort.column) ?? .null
                let right = value(query.entity, key: b, column: sort.column) ?? .null
                let order = sort.order(left, right)
                if order != 0 { return order < 0 }
            }
            return a < b
        }
        let rest = sorted.dropFirst(query.offset)
        return Array(query.limit.map { rest.prefix($0) } ?? rest)
    }
}

/// An immutable ``PlainState`` as a snapshot.
final class PlainSnapshot: StoreSnapshot {
    let state: PlainState
    let generation: Generation
    private let lists = Mutex(0)

    init(_ state: PlainState, generation: Generation) {
        self.state = state
        self.generation = generation
    }

    var schema: StoreSchema { state.schema }
    /// How many lists of related objects were read.
    var listsRead: Int { lists.withLock { $0 } }
    func value(_ entity: EntityIndex, key: ObjectKey, column: ColumnIndex) -> Value? {
        state.value(entity, key: key, column: column)
    }
    func version(_ entity: EntityIndex, _ key: ObjectKey) -> Generation? { state.version(entity, key) }
    func related(_ relation: Relation, to key: ObjectKey) -> [ObjectKey] {
        lists.withLock { $0 += 1 }
        return state.related(relation, to: key)
    }
    func keys(_ query: StoreQuery) throws -> [ObjectKey] { try state.keys(query) }
    func count(_ query: StoreQuery) throws -> Int { try state.keys(query).count }
    func explain(_ query: StoreQuery) -> String { "a scan of dictionaries" }

    func lookup(_ entity: EntityIndex, column: ColumnIndex, value: Value) -> [ObjectKey] {
        state.objects[entity].filter { $0.value.values[column] == value }.keys.sorted()
    }

    func pageNumbers(_ entity: EntityIndex) -> [PageNumber] {
        Set(state.objects[entity].keys.map { $0.page }).sorted()
    }

    func page(_ entity: EntityIndex, _ number: PageNumber) -> (any StorePage)? {
        let page = PlainPage(state, entity: entity, number: number)
        return page.presence == 0 ? nil : page
    }
}

final class PlainPage: StorePage {
    let state: PlainState
    let entity: EntityIndex
    let number: PageNumber
    let presence: UInt64

    init(_ state: PlainState, entity: EntityIndex, number: PageNumber) {
        self.state = state
        self.entity = entity
        self.number = number
        presence = (0..<PageAddress.slots).reduce(0) { mask, slot in
            let exists = state.objects[entity][PageAddress.key(page: number, slot: slot)] != nil
            return exists ? mask | 1 << UInt64(slot) : mask
        }
    }

    struct Absent: Error {}

    func version(_ slot: Int) throws -> Generation {
        guard let object = state.objects[entity][PageAddress.key(page: number, slot: slot)] else { throw Absent() }
        return object.version
    }

    func value(_ slot: Int, _ column: ColumnIndex) throws -> Value {
        guard let object = state.objects[entity][PageAddress.key(page: number, slot: slot)] else { throw Absent() }
        return object.values[column]
    }
}
