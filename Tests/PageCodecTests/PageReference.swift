import PageCodec
import StoreInterface
import StoreModel
import TestSupport

/// The expected content of a page. Tests compare the codec with it.
struct PageReference: ObjectReader {
    var schema: StoreSchema
    var objects: [Int: (values: [Value], version: Generation)] = [:]

    init(_ entity: EntitySchema) { schema = StoreSchema(entities: [entity]) }

    func value(_ entity: EntityIndex, key: ObjectKey, column: ColumnIndex) throws -> Value? {
        objects[key.slot]?.values[column]
    }

    func exists(_ entity: EntityIndex, _ key: ObjectKey) throws -> Bool { objects[key.slot] != nil }

    func related(_ relation: Relation, to key: ObjectKey) throws -> [ObjectKey] { [] }

    /// Makes random changes of the page and of the reference. Returns them as a layer.
    mutating func change(_ random: inout SeededGenerator, generation: Generation) -> LayerPage? {
        let columns = schema.entities[0].columns
        let layer = Layer(schema: schema)
        let highest = random.chance(60) ? 64 : random.below(64) + 1
        for slot in 0..<highest where random.chance(random.chance(20) ? 90 : 15) {
            let kind: RowKind = random.chance(15) ? .delete : (random.chance(50) ? .update : .insert)
            let row = Row.make(kind: kind, layer: layer.id, columnCount: columns.count)
            row.version = .committed(generation.advanced(by: random.below(3)))
            let share = random.chance(20) ? 100 : 30
            for (number, column) in columns.enumerated(as: ColumnIndex.self)
            where kind == .insert || kind == .update && random.chance(share) {
                row[number] = random.value(column)
            }
            layer.put(row, entity: 0, key: PageAddress.key(page: 5, slot: slot))
            apply(row, slot)
        }
        return layer.entity(0)?.page(5)
    }

    private mutating func apply(_ row: Row, _ slot: Int) {
        let entity = schema.entities[0]
        let count = entity.columns.count
        switch row.kind {
        case .delete: objects[slot] = nil
        case .insert: objects[slot] = (entity.columnIndices.map { row[$0] }, row.version.generation ?? 0)
        case .update:
            guard objects[slot] != nil || row.set.count == count else { return }
            var values = objects[slot]?.values ?? Array(repeating: .null, count: count)
            row.set.forEach { values[$0] = row[$0] }
            objects[slot] = (values, row.version.generation ?? 0)
        }
    }

    /// Returns the first difference between a page and the reference, or nil if there is none.
    func difference(_ page: ObjectPage) throws(PageError) -> String? {
        for slot in 0..<PageAddress.slots {
            let isPresent = page.presence >> UInt64(slot) & 1 != 0
            guard isPresent == (objects[slot] != nil) else { return "slot \(slot): presence is \(isPresent)" }
            guard let object = objects[slot] else { continue }
            let version = try page.version(slot)
            guard version == object.version else { return "slot \(slot): version \(version), not \(object.version)" }
            for column in object.values.indices(as: ColumnIndex.self) {
                let value = try page.value(slot, column)
                guard value.isSame(as: object.values[column]) else {
                    return "slot \(slot), column \(column): \(value), not \(object.values[column])"
                }
            }
        }
        return nil
    }
}

extension Value {
    /// Whether the values have the same bits. NaN equals NaN, minus zero differs from zero, and strings are compared by bytes.
    func isSame(as other: Value) -> Bool {
        switch (self, other) {
        case (.double(let a), .double(let b)): a.bitPattern == b.bitPattern || a.isNaN && b.isNaN
        case (.string(let a), .string(let b)): Array(a.utf8) == Array(b.utf8)
        default: self == other
        }
    }
}
