import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport

/// A random state that is built twice: as a plain model, and as layers over a base.
struct RandomViews {
    static let artist: EntityIndex = 0
    static let track: EntityIndex = 1
    static let tracksOfArtist = Relation.referrers(entity: track, column: 3)
    static let labelsOfTrack = Relation.link(0, .forward, destination: artist)
    static let tracksOfLabel = Relation.link(0, .backward, destination: track)
    static let schema = StoreSchema(
        entities: [
            EntitySchema(
                name: "Artist",
                columns: [.init(name: "name", type: .string, isOptional: true), .init(name: "rank", type: .int64)]),
            EntitySchema(
                name: "Track",
                columns: [
                    // Objects may have equal values, because these layers are never saved.
                    .init(name: "title", type: .string, isOptional: true, index: .unique),
                    .init(name: "plays", type: .int64),
                    .init(name: "rating", type: .double, isOptional: true),
                    .init(name: "artist", type: .reference, isOptional: true, index: .indexed, destination: 0),
                ],
                indexes: [IndexSchema(columns: [1, 2], kind: .unique)]),
        ],
        links: [LinkSchema(name: "labels", source: 1, destination: 0)])

    var numbers: SeededGenerator
    var model = PlainState(schema: schema)
    var base: PlainSnapshot
    /// The layers, oldest first.
    var layers: [Layer] = []
    private var nextKey: [ObjectKey] = [1, 1]
    private var deleted: [[ObjectKey]] = [[], []]
    private var generation: Generation = 1

    init(seed: UInt64) {
        numbers = SeededGenerator(seed: seed)
        base = PlainSnapshot(model, generation: 0)
        let scratch = Layer(schema: Self.schema)
        for _ in 0..<Int.random(in: 0...300, using: &numbers) { change(scratch) }
        for entity in Self.schema.entityIndices {
            for key in model.objects[entity].keys { model.objects[entity][key]?.version = 1 }
        }
        base = PlainSnapshot(model, generation: 1)
        deleted = [[], []]
    }

    var view: LayeredView { LayeredView(base: base, layers: layers.reversed()) }

    /// Adds a layer of random changes. Some layers are accepted by the writer and have a generation.
    mutating func addLayer(changes: Int) -> Layer {
        let layer = Layer(schema: Self.schema)
        for _ in 0..<changes { change(layer) }
        if numbers.chance(1, in: 2) { stamp(layer) }
        layer.seal()
        layers.append(layer)
        return layer
    }

    /// Adds a layer of random changes, and calls `body` after each of them, as an owner that reads its changes.
    mutating func addOpenLayer(changes: Int, _ body: (inout RandomViews) throws -> Void) rethrows {
        let layer = Layer(schema: Self.schema)
        layers.append(layer)
        for _ in 0..<changes {
            change(layer)
            try body(&self)
        }
    }

    private mutating func stamp(_ layer: Layer) {
        generation = generation.next
        layer.stamp(generation)
        for entity in Self.schema.entityIndices {
            for key in model.objects[entity].keys where layer.row(entity, key) != nil {
                model.objects[entity][key]?.version = generation
            }
        }
    }

    private mutating func change(_ layer: Layer) {
        let entity = numbers.chance(1, in: 3) ? Self.artist : Self.track
        switch Int.random(in: 0..<10, using: &numbers) {
        case 0..<4: insert(layer, entity)
        case 4..<7: update(layer, entity)
        case 7: delete(layer, entity)
        default: relink(layer)
        }
    }

    private mutating func insert(_ layer: Layer, _ entity: EntityIndex) {
        var key = nextKey[entity]
        if numbers.chance(1, in: 5), let revived = deleted[entity].popLast() {
            key = revived
        } else {
            nextKey[entity] = key.advanced(by: numbers.chance(1, in: 8) ? 70 : 1)
        }
        let values = Self.schema.entities[entity].columnIndices.map { randomValue(entity, $0) }
        let replacesDelete = layer.row(entity, key) != nil
        let row = Row.make(kind: replacesDelete ? .update : .insert, layer: layer.id, columnCount: values.count)
        for (column, value) in values.enumerated(as: ColumnIndex.self) { row[column] = value }
        // An update of every column over the base's object keeps the base's version until the writer accepts it.
        guard !replacesDelete else {
            deleted[entity].insert(key, at: 0)
            return
        }
        layer.put(row, entity: entity, key: key)
        model.objects[entity][key] = .init(values: values, version: 0)
    }

    private mutating func update(_ layer: Layer, _ entity: EntityIndex) {
        guard let key = randomKey(entity) else { return }
        let columns = Self.schema.entities[entity].columns.count
        let column = randomColumn(entity)
        let value = randomValue(entity, column)
        model.objects[entity][key]?.values[column] = value
        if let row = layer.row(entity, key) {
            row[column] = value
            layer.didSet(column, of: row, entity: entity, key: key)
        } else {
            let row = Row.make(kind: .update, layer: layer.id, columnCount: columns)
            row[column] = value
            layer.put(row, entity: entity, key: key)
        }
    }

    private mutating func delete(_ layer: Layer, _ entity: EntityIndex) {
        guard let key = randomKey(entity) else { return }
        model.objects[entity][key] = nil
        let gone = model.links[0].filter { (entity == Self.track ? $0.source : $0.destination) == key }
        model.links[0].subtract(gone)
        if numbers.chance(1, in: 2) {
            for pair in gone { layer.setLink(0, from: pair.source, to: pair.destination, linked: false) }
            deleted[entity].insert(key, at: 0)
        }
        if layer.row(entity, key)?.kind == .insert, layers.allSatisfy({ $0 === layer || $0.row(entity, key) == nil }) {
            layer.remove(entity: entity, key: key)
            deleted[entity].removeAll { $0 == key }
        } else {
            layer.put(
                Row.make(kind: .delete, layer: layer.id, columnCount: Self.schema.entities[entity].columns.count),
                entity: entity, key: key)
        }
    }

    private mutating func relink(_ layer: Layer) {
        guard let track = randomKey(Self.track), let artist = randomKey(Self.artist) else { return }
        let pair = PlainState.Pair(source: track, destination: artist)
        let linked = !model.links[0].contains(pair)
        if linked { model.links[0].insert(pair) } else { model.links[0].remove(pair) }
        layer.setLink(0, from: track, to: artist, linked: linked)
    }

    mutating func randomKey(_ entity: EntityIndex) -> ObjectKey? {
        model.objects[entity].keys.sorted().randomElement(using: &numbers)
    }

    private mutating func randomColumn(_ entity: EntityIndex) -> ColumnIndex {
        ColumnIndex(rawValue: Int.random(in: 0..<Self.schema.entities[entity].columns.count, using: &numbers))
    }

    mutating func randomValue(_ entity: EntityIndex, _ column: ColumnIndex) -> Value {
        let schema = Self.schema.entities[entity].columns[column]
        if schema.isOptional, numbers.chance(1, in: 4) { return .null }
        switch schema.type {
        case .string: return .string(["", "a", "A", "ab", "Abba", "bé", "b", "zz"].randomElement(using: &numbers) ?? "")
        case .double: return .double([-1, 0, 0.5, 2, .nan].randomElement(using: &numbers) ?? 0)
        case .reference:
            guard let key = randomKey(Self.artist) else { return .null }
            return .reference(key)
        default: return .int(Int64.random(in: -2...6, using: &numbers))
        }
    }

    // MARK: Queries

    mutating func randomQuery() -> StoreQuery {
        let entity = numbers.chance(1, in: 3) ? Self.artist : Self.track
        var sort: [StoreSort] = []
        for _ in 0..<Int.random(in: 0...2, using: &numbers) {
            sort.append(
                StoreSort(
                    column: randomColumn(entity),
                    direction: numbers.chance(1, in: 2) ? .ascending : .descending,
                    caseSensitivity: numbers.chance(1, in: 2) ? .sensitive : .insensitive))
        }
        return StoreQuery(
            entity: entity, predicate: randomPredicate(entity, depth: 3), sort: sort,
            offset: numbers.chance(1, in: 3) ? Int.random(in: 0...20, using: &numbers) : 0,
            limit: numbers.chance(1, in: 3) ? Int.random(in: 0...20, using: &numbers) : nil)
    }

    /// Returns a query that gives every column of a unique constraint one or two values.
    mutating func randomLookup() -> StoreQuery {
        var parts = numbers.chance(1, in: 2) ? [randomEquality(0)] : [randomEquality(1), randomEquality(2)]
        if numbers.chance(1, in: 2) { parts.append(randomPredicate(Self.track, depth: 1)) }
        parts.shuffle(using: &numbers)
        return StoreQuery(
            entity: Self.track, predicate: .and(parts),
            sort: numbers.chance(1, in: 2) ? [StoreSort(column: randomColumn(Self.track), direction: .descending)] : [],
            offset: numbers.chance(1, in: 3) ? Int.random(in: 0...3, using: &numbers) : 0,
            limit: numbers.chance(1, in: 2) ? Int.random(in: 0...4, using: &numbers) : nil)
    }

    private mutating func randomEquality(_ column: ColumnIndex) -> StorePredicate {
        let value = randomValue(Self.track, column)
        if numbers.chance(1, in: 3) { return .isIn(column, [value, randomValue(Self.track, column)]) }
        // An integer and a double may compare equal.
        if case .int(let number) = value, numbers.chance(1, in: 3) {
            return .compare(column, .equal, to: .double(Double(number)))
        }
        return .compare(column, .equal, to: value)
    }

    mutating func randomPredicate(_ entity: EntityIndex, depth: Int) -> StorePredicate {
        let column = randomColumn(entity)
        switch depth == 0 ? Int.random(in: 0..<4, using: &numbers) : Int.random(in: 0..<9, using: &numbers) {
        case 0: return .constant(numbers.chance(4, in: 5))
        case 1: return .compare(column, randomComparison(), to: randomValue(entity, column))
        case 2: return .isIn(column, [randomValue(entity, column), randomValue(entity, column)])
        case 3: return .string(0, .hasPrefix, pattern: "a", sensitivity: numbers.chance(1, in: 2) ? .sensitive : .insensitive)
        case 4: return .and([randomPredicate(entity, depth: depth - 1), randomPredicate(entity, depth: depth - 1)])
        case 5: return .or([randomPredicate(entity, depth: depth - 1), randomPredicate(entity, depth: depth - 1)])
        case 6: return .not(randomPredicate(entity, depth: depth - 1))
        default: return randomTraversal(entity, depth: depth)
        }
    }

    private mutating func randomTraversal(_ entity: EntityIndex, depth: Int) -> StorePredicate {
        let relation: Relation
        if entity == Self.track {
            if numbers.chance(1, in: 2) { return .toOne(3, randomPredicate(Self.artist, depth: depth - 1)) }
            relation = Self.labelsOfTrack
        } else {
            relation = numbers.chance(1, in: 2) ? Self.tracksOfArtist : Self.tracksOfLabel
        }
        let part = randomPredicate(relation.entity, depth: depth - 1)
        if numbers.chance(1, in: 3) {
            return .toManyCount(relation, where: part, randomComparison(), to: Int.random(in: 0...3, using: &numbers))
        }
        return .toMany(relation, [.any, .all, .none].randomElement(using: &numbers) ?? .any, where: part)
    }

    private mutating func randomComparison() -> StorePredicate.Comparison {
        [.equal, .notEqual, .less, .lessOrEqual, .greater, .greaterOrEqual].randomElement(using: &numbers) ?? .equal
    }
}
