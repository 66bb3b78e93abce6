import Foundation
import StoreContract
import StoreInterface
import StoreModel

/// A schema that changes step by step, and the expected content of its store: the reference of the migration tests.
struct EvolvingModel {
    var schema: StoreSchema
    /// The values by entity name, key and column name.
    private(set) var objects: [String: [ObjectKey: [String: Value]]] = [:]
    /// The pairs by link name.
    private(set) var links: [String: Set<[ObjectKey]>] = [:]
    private var counter = 0

    init(_ random: inout SeededRandom) {
        schema = StoreSchema(entities: [
            EntitySchema(name: "A", columns: [ColumnSchema(name: "first", type: .int16, index: .indexed)]),
            EntitySchema(
                name: "B",
                columns: [
                    ColumnSchema(name: "name", type: .string, isOptional: true),
                    ColumnSchema(name: "a", type: .reference, isOptional: true, index: .indexed, destination: 0),
                ]),
        ])
        // The reference drops the values as well.
        schema.migration.allowedLoss = .everything
        for _ in 0..<4 { step(&random) }
    }

    private mutating func fresh(_ prefix: String) -> String {
        counter += 1
        return "\(prefix)\(counter)"
    }

    // MARK: Changing the schema

    /// Makes one lightweight change, and increases the version.
    mutating func step(_ random: inout SeededRandom) {
        for entity in schema.entityIndices {
            schema.entities[entity].renamedFrom = nil
            for column in schema.entities[entity].columnIndices {
                schema.entities[entity].columns[column].renamedFrom = nil
                schema.entities[entity].columns[column].defaultValue = .null
            }
        }
        for link in schema.linkIndices {
            schema.links[link].formerNames = []
            schema.links[link].reversedNames = []
        }
        schema.version.major += 1
        switch Int.random(in: 0..<12, using: &random) {
        case 0, 1, 2: addColumn(&random)
        case 3: removeColumn(&random)
        case 4: renameColumn(&random)
        case 5, 6: changeColumn(&random)
        case 7: toggleIndex(&random)
        case 8: schema.entities.append(EntitySchema(name: fresh("E"), columns: []))
        case 9: random.chance(60) ? renameEntity(&random) : removeEntity(&random)
        case 10: changeLinks(&random)
        default: shuffle(&random)
        }
    }

    /// Returns a random entity.
    private func randomEntity(_ random: inout SeededRandom) -> EntityIndex {
        EntityIndex(rawValue: Int.random(in: schema.entities.indices, using: &random))
    }

    private static let types = ColumnType.allCases.filter { $0 != .reference }

    private mutating func addColumn(_ random: inout SeededRandom) {
        let entity = randomEntity(&random)
        let isReference = random.chance(15)
        var column = ColumnSchema(name: fresh("c"), type: isReference ? .reference : random.pick(Self.types))
        column.isOptional = isReference || random.chance(50)
        if isReference { column.destination = randomEntity(&random) }
        column.index = random.chance(30) ? .indexed : .none
        if random.chance(50), !isReference { column.defaultValue = Self.value(column, &random) }
        let place = ColumnIndex(rawValue: Int.random(in: 0...schema.entities[entity].columns.count, using: &random))
        insert(column, entity, at: place)
        for key in objects[schema.entities[entity].name, default: [:]].keys {
            objects[schema.entities[entity].name]?[key]?[column.name] = column.rounded(column.initialValue)
        }
    }

    private mutating func insert(_ column: ColumnSchema, _ entity: EntityIndex, at place: ColumnIndex) {
        schema.entities[entity].columns.insert(column, at: place.rawValue)
        for index in schema.entities[entity].indexes.indices {
            schema.entities[entity].indexes[index].columns = schema.entities[entity].indexes[index].columns.map {
                $0 >= place ? $0.next : $0
            }
        }
    }

    private mutating func removeColumn(_ random: inout SeededRandom) {
        let entity = randomEntity(&random)
        guard let place = schema.entities[entity].columnIndices.randomElement(using: &random) else { return }
        schema.entities[entity].indexes.removeAll()
        let name = schema.entities[entity].columns.remove(at: place.rawValue).name
        for key in objects[schema.entities[entity].name, default: [:]].keys {
            objects[schema.entities[entity].name]?[key]?[name] = nil
        }
    }

    private mutating func renameColumn(_ random: inout SeededRandom) {
        let entity = randomEntity(&random)
        guard let place = schema.entities[entity].columnIndices.randomElement(using: &random) else { return }
        let old = schema.entities[entity].columns[place].name
        let new = fresh("r")
        schema.entities[entity].columns[place].name = new
        schema.entities[entity].columns[place].renamedFrom = old
        let entityName = schema.entities[entity].name
        for (key, values) in objects[entityName, default: [:]] {
            var values = values
            values[new] = values.removeValue(forKey: old)
            objects[entityName]?[key] = values
        }
    }

    /// Makes a column wider, optional, or required with a default.
    private mutating func changeColumn(_ random: inout SeededRandom) {
        let entity = randomEntity(&random)
        guard let place = schema.entities[entity].columnIndices.randomElement(using: &random) else { return }
        var column = schema.entities[entity].columns[place]
        guard column.type != .reference else { return }
        if random.chance(50), let wider = Self.types.filter({ column.type.widens(to: $0) }).randomElement(using: &random) {
            column.type = wider
        }
        if column.isOptional, random.chance(50) {
            column.isOptional = false
            column.defaultValue = Self.value(column, &random)
        } else if random.chance(50) {
            column.isOptional = true
        }
        schema.entities[entity].columns[place] = column
        let name = schema.entities[entity].name
        for (key, values) in objects[name, default: [:]] {
            let old = values[column.name] ?? .null
            objects[name]?[key]?[column.name] =
                old.isNull && !column.isOptional ? column.rounded(column.defaultValue) : column.type.widened(old)
        }
    }

    private mutating func toggleIndex(_ random: inout SeededRandom) {
        let entity = randomEntity(&random)
        let places = Array(schema.entities[entity].columnIndices)
        guard let place = places.randomElement(using: &random) else { return }
        if random.chance(30), places.count > 1 {
            let columns = Array(places.shuffled(using: &random).prefix(2))
            let known = schema.entities[entity].indexes.firstIndex { $0.columns == columns }
            if let known {
                schema.entities[entity].indexes.remove(at: known)
            } else {
                schema.entities[entity].indexes.append(IndexSchema(columns: columns))
            }
        } else if schema.entities[entity].columns[place].type != .reference {
            let kind = schema.entities[entity].columns[place].index
            schema.entities[entity].columns[place].index = kind == .none ? .indexed : .none
        }
    }

    private mutating func renameEntity(_ random: inout SeededRandom) {
        let entity = randomEntity(&random)
        let old = schema.entities[entity].name
        let new = fresh("N")
        schema.entities[entity].name = new
        schema.entities[entity].renamedFrom = old
        let moved = objects.removeValue(forKey: old)
        objects[new] = moved
    }

    /// Removes the last entity, if no relationship leads to it.
    private mutating func removeEntity(_ random: inout SeededRandom) {
        let last = EntityIndex(rawValue: schema.entities.count - 1)
        let isUsed =
            schema.links.contains { $0.source == last || $0.destination == last }
            || schema.entities.contains { $0.columns.contains { $0.destination == last } }
        guard last > 0, !isUsed else { return }
        objects[schema.entities.removeLast().name] = nil
    }

    private mutating func changeLinks(_ random: inout SeededRandom) {
        guard random.chance(60) || schema.links.isEmpty else {
            let place = LinkIndex(rawValue: Int.random(in: schema.links.indices, using: &random))
            if random.chance(40) {
                links[schema.links.remove(at: place.rawValue).name] = nil
            } else {
                let old = schema.links[place].name
                let new = fresh("l")
                let reversed = random.chance(50)
                schema.links[place].name = new
                var pairs = links.removeValue(forKey: old) ?? []
                if reversed {
                    schema.links[place].reversedNames = [old]
                    let source = schema.links[place].source
                    schema.links[place].source = schema.links[place].destination
                    schema.links[place].destination = source
                    pairs = Set(pairs.map { Array($0.reversed()) })
                } else {
                    schema.links[place].formerNames = [old]
                }
                links[new] = pairs
            }
            return
        }
        schema.links.append(
            LinkSchema(
                name: fresh("l"), source: randomEntity(&random),
                destination: randomEntity(&random)))
    }

    /// Reorders everything. Numbers in the file must not depend on positions.
    private mutating func shuffle(_ random: inout SeededRandom) {
        let order = Array(schema.entityIndices).shuffled(using: &random)
        func moved(_ old: EntityIndex) -> EntityIndex { order.firstIndex(of: old).map(EntityIndex.init(rawValue:)) ?? old }
        schema.entities = order.map { schema.entities[$0] }
        for entity in schema.entityIndices {
            for column in schema.entities[entity].columnIndices {
                schema.entities[entity].columns[column].destination =
                    schema.entities[entity].columns[column].destination.map(moved)
            }
            schema.entities[entity].indexes = []
            schema.entities[entity].columns.shuffle(using: &random)
        }
        for link in schema.linkIndices {
            schema.links[link].source = moved(schema.links[link].source)
            schema.links[link].destination = moved(schema.links[link].destination)
        }
        schema.links.shuffle(using: &random)
    }

    // MARK: Changing the data

    static func value(_ column: ColumnSchema, _ random: inout SeededRandom) -> Value {
        let number = Int.random(in: 0...9, using: &random)
        return switch column.type {
        case .bool: .bool(number > 4)
        case .int8, .int16, .int32, .int64: .int(Int64(number - 4))
        case .uint8, .uint16, .uint32: .int(Int64(number))
        case .uint64: .uint(UInt64(number))
        case .float, .double, .date: .double(Double(number) / 4)
        case .string: .string("text \(number)")
        case .data: .data(Data([UInt8(number)]))
        case .uuid: .uuid(UUID(uuid: (UInt8(number), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)))
        case .reference: .null
        }
    }

    /// Inserts, updates, deletes and links at random, in the store and in the reference.
    mutating func write(to store: any ObjectStore, _ random: inout SeededRandom) throws {
        try store.write(.deferred) { transaction in
            let layer = Layer(schema: schema)
            for (number, entity) in schema.entities.enumerated(as: EntityIndex.self) {
                for key in (objects[entity.name] ?? [:]).keys.sorted() where random.chance(5) && !isReferred(number, key) {
                    layer.delete(number, key)
                    objects[entity.name]?[key] = nil
                    forgetLinks(number, key)
                }
            }
            for (number, entity) in schema.entities.enumerated(as: EntityIndex.self) where random.chance(70) {
                for key in (objects[entity.name] ?? [:]).keys.sorted() where random.chance(10) && !entity.columns.isEmpty {
                    let column = ColumnIndex(rawValue: Int.random(in: entity.columns.indices, using: &random))
                    let value = self.value(of: entity.columns[column], &random)
                    layer.update(number, key: key, of: entity.columns.count, values: [column: value])
                    objects[entity.name]?[key]?[entity.columns[column].name] = value
                }
                let keys = try transaction.allocateKeys(number, pages: 1)
                for key in keys.prefix(Int.random(in: 0...20, using: &random)) {
                    let values = entity.columns.map { self.value(of: $0, &random) }
                    layer.insert(number, key: key, values: values)
                    objects[entity.name, default: [:]][key] =
                        Dictionary(uniqueKeysWithValues: zip(entity.columns.map(\.name), values))
                }
            }
            for (number, link) in schema.links.enumerated(as: LinkIndex.self) {
                let sources = (objects[schema.entities[link.source].name] ?? [:]).keys.sorted()
                let destinations = (objects[schema.entities[link.destination].name] ?? [:]).keys.sorted()
                guard !sources.isEmpty, !destinations.isEmpty else { continue }
                for _ in 0..<5 {
                    let pair = [random.pick(sources), random.pick(destinations)]
                    layer.setLink(number, from: pair[0], to: pair[1], linked: true)
                    links[link.name, default: []].insert(pair)
                }
            }
            guard !layer.isEmpty else { return }
            layer.stamp(transaction.generation.next)
            layer.seal()
            try transaction.apply(layer, changes: layer.changeSet())
        }
    }

    private func value(of column: ColumnSchema, _ random: inout SeededRandom) -> Value {
        if column.isOptional, random.chance(25) { return .null }
        guard let destination = column.destination else { return column.rounded(Self.value(column, &random)) }
        let keys = (objects[schema.entities[destination].name] ?? [:]).keys.sorted()
        return keys.isEmpty ? .null : .reference(random.pick(keys))
    }

    private func isReferred(_ entity: EntityIndex, _ key: ObjectKey) -> Bool {
        schema.entities.contains { other in
            other.columns.contains { column in
                column.destination == entity
                    && (objects[other.name] ?? [:]).values.contains { $0[column.name] == .reference(key) }
            }
        }
    }

    private mutating func forgetLinks(_ entity: EntityIndex, _ key: ObjectKey) {
        for link in schema.links {
            links[link.name] = links[link.name]?.filter {
                !(link.source == entity && $0[0] == key || link.destination == entity && $0[1] == key)
            }
        }
    }
}

extension ColumnSchema {
    /// Returns the value with the precision of a float, which has fewer digits than a double.
    func rounded(_ value: Value) -> Value {
        if type == .float, case .double(let number) = value { return .double(Double(Float(number))) }
        return value
    }
}
