import StoreInterface
import StoreModel

/// The data that a store must hold after the saves of a check, in dictionaries: the reference that stores are compared with.
struct PlainModel: ObjectReader {
    struct Object {
        var version: Generation
        var values: [Value]
    }

    /// One end of a relationship: a reference column or one direction of a link, and the key at the far end.
    private struct Target: Hashable {
        var relation: Relation
        var key: ObjectKey
    }

    let schema: StoreSchema
    private(set) var generation: Generation = 0
    /// By entity.
    private(set) var objects: [[ObjectKey: Object]]
    private(set) var history: [ChangeSet] = []
    private var relations: [Target: Set<ObjectKey>] = [:]

    init(schema: StoreSchema) {
        self.schema = schema
        objects = schema.entities.map { _ in [:] }
    }

    // MARK: Reading

    func value(_ entity: EntityIndex, key: ObjectKey, column: ColumnIndex) -> Value? { objects[entity][key]?.values[column] }

    func exists(_ entity: EntityIndex, _ key: ObjectKey) -> Bool { objects[entity][key] != nil }

    func related(_ relation: Relation, to key: ObjectKey) -> [ObjectKey] {
        relations[Target(relation: relation, key: key)]?.sorted() ?? []
    }

    func keys(_ entity: EntityIndex) -> [ObjectKey] { objects[entity].keys.sorted() }

    func pageNumbers(_ entity: EntityIndex) -> [PageNumber] { Set(objects[entity].keys.map { $0.page }).sorted() }

    func keys(_ query: StoreQuery) throws -> [ObjectKey] {
        var keys = try keys(query.entity).filter { try query.predicate.matches(query.entity, key: $0, in: self) }
        if !query.sort.isEmpty {
            let rows = keys.map { ($0, objects[query.entity][$0]?.values ?? []) }
            keys = rows.sorted { StoreSort.precedes($0, $1, by: query.sort) }.map(\.0)
        }
        return Array(keys.dropFirst(query.offset).prefix(query.limit ?? .max))
    }

    // MARK: Saving

    /// Applies the changes of a save in the order that stores must use: rows, then pairs.
    mutating func save(_ layer: Layer, as generation: Generation) {
        layer.stamp(generation)
        self.generation = generation
        history.append(layer.changeSet())
        for entity in schema.entityIndices {
            guard let rows = layer.entity(entity) else { continue }
            for number in rows.sortedPageNumbers {
                guard let page = rows.page(number) else { continue }
                for slot in SlotIterator(page.touched) {
                    if let row = page[slot] { apply(row, entity: entity, key: PageAddress.key(page: number, slot: slot)) }
                }
            }
        }
        for (link, pairs) in layer.links.enumerated(as: LinkIndex.self) {
            for (source, destinations) in pairs.forward {
                for (destination, isLinked) in destinations { setLink(link, from: source, to: destination, linked: isLinked) }
            }
        }
    }

    private mutating func apply(_ row: Row, entity: EntityIndex, key: ObjectKey) {
        let columns = schema.entities[entity].columns
        let old = objects[entity][key]
        if row.kind == .delete {
            objects[entity][key] = nil
            setReferences(entity, key, from: old?.values, to: nil)
            for number in schema.linkIndices { removePairs(number, entity: entity, key: key) }
            return
        }
        guard row.kind == .insert || old != nil || row.set.count == columns.count else { return }
        var values = old?.values ?? columns.map { _ in Value.null }
        for (column, definition) in columns.enumerated(as: ColumnIndex.self) where row.isSet(column) {
            values[column] = definition.type.stored(row[column])
        }
        objects[entity][key] = Object(version: generation, values: values)
        setReferences(entity, key, from: old?.values, to: values)
    }

    private mutating func setReferences(_ entity: EntityIndex, _ key: ObjectKey, from old: [Value]?, to new: [Value]?) {
        for (column, definition) in schema.entities[entity].columns.enumerated(as: ColumnIndex.self)
        where definition.type == .reference {
            let relation = Relation.referrers(entity: entity, column: column)
            if let target = old?[column].referenceKey { relations[Target(relation: relation, key: target)]?.remove(key) }
            if let target = new?[column].referenceKey {
                relations[Target(relation: relation, key: target), default: []].insert(key)
            }
        }
    }

    private func relation(_ link: LinkIndex, _ direction: LinkDirection) -> Relation {
        let ends = schema.links[link]
        return .link(link, direction, destination: direction == .forward ? ends.destination : ends.source)
    }

    private mutating func removePairs(_ link: LinkIndex, entity: EntityIndex, key: ObjectKey) {
        if schema.links[link].source == entity {
            for other in related(relation(link, .forward), to: key) { setLink(link, from: key, to: other, linked: false) }
        }
        if schema.links[link].destination == entity {
            for other in related(relation(link, .backward), to: key) { setLink(link, from: other, to: key, linked: false) }
        }
    }

    private mutating func setLink(_ link: LinkIndex, from source: ObjectKey, to destination: ObjectKey, linked isLinked: Bool) {
        let ends = schema.links[link]
        let (forward, backward) = (
            Target(relation: relation(link, .forward), key: source),
            Target(relation: relation(link, .backward), key: destination)
        )
        if !isLinked {
            relations[forward]?.remove(destination)
            relations[backward]?.remove(source)
        } else if exists(ends.source, source), exists(ends.destination, destination) {
            relations[forward, default: []].insert(destination)
            relations[backward, default: []].insert(source)
        }
    }
}

extension StoreSort {
    /// Whether an object comes before another: by the columns of a sort, then by key.
    static func precedes(_ a: (ObjectKey, [Value]), _ b: (ObjectKey, [Value]), by sort: [StoreSort]) -> Bool {
        for part in sort {
            let order = part.order(a.1[part.column], b.1[part.column])
            if order != 0 { return order < 0 }
        }
        return a.0 < b.0
    }
}
