import StoreInterface
import StoreModel

/// Objects with few distinct values, so that conditions match some of them, and with values that are difficult to store.
enum Population {
    static let names =
        [
            "", "a", "A", "ab", "Ab", "abc", "b", "É", "é", "e\u{301}", "ß", "SS", "𝄞x", "x\0y", "İ", "\u{d7ff}z", "\u{10ffff}",
        ] + largeNames
    /// Around the size from which a store may keep values out of line, and with equal beginnings.
    static let largeNames = [
        String(repeating: "l", count: 512), String(repeating: "l", count: 513), String(repeating: "l", count: 512) + "m",
        String(repeating: "é", count: 300), "A" + String(repeating: "q", count: 1500),
    ]
    static let numbers: [Int64] = [.min, -2, -1, 0, 1, 2, 1 << 53 + 1, .max]
    static let ratios: [Double] = [-.infinity, -1.5, -0.0, 0, 1, 1.5, 2, .infinity, .nan]
    static let unsigned: [UInt64] = [0, 1, 2, 1 << 63 - 1, 1 << 63, .max]

    static func fill(
        _ layer: Layer, items: Range<ObjectKey>, owners: Range<ObjectKey>, _ random: inout SeededRandom
    ) {
        for key in owners { layer.insertOwner(key, names[Int(key.rawValue) % names.count] + "\(key.rawValue % 3)") }
        for key in items {
            layer.insert(Sample.item, key: key, values: item(items: items, owners: owners, &random))
            for _ in 0..<Int.random(in: 0...3, using: &random) {
                layer.setLink(Sample.tags, from: key, to: ObjectKey.random(in: owners, using: &random), linked: true)
            }
        }
    }

    static func item(
        items: Range<ObjectKey>, owners: Range<ObjectKey>, _ random: inout SeededRandom
    ) -> [Value] {
        Sample.schema.entities[Sample.item].columns.enumerated(as: ColumnIndex.self).map { column, definition in
            if random.chance(20), definition.isOptional { return .null }
            return value(column, items: items, owners: owners, &random)
        }
    }

    static func value(
        _ column: ColumnIndex, items: Range<ObjectKey>, owners: Range<ObjectKey>, _ random: inout SeededRandom
    ) -> Value {
        switch column {
        case Sample.name, Sample.note: .string(random.pick(names))
        case Sample.number: .int(random.pick(numbers))
        case Sample.ratio: .double(random.pick(ratios))
        case Sample.unsigned: .uint(random.pick(unsigned))
        case Sample.flag: .bool(random.chance(50))
        case Sample.parent: .reference(ObjectKey.random(in: items, using: &random))
        case Sample.owned: .reference(ObjectKey.random(in: owners, using: &random))
        default: .int(Int64.random(in: -2...2, using: &random))
        }
    }
}
