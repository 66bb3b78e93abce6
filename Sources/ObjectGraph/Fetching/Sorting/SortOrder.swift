import StoreInterface
import StoreModel

/// An object's sort prefix and key, which determine its position in a sorted result unless prefixes tie.
struct SortEntry: Sendable {
    var prefix: SortPrefix
    var key: ObjectKey
}

/// An object with its sort values.
struct SortCandidate: Sendable {
    var entry: SortEntry
    /// The sort values; empty if the prefix is exact. Strings that are not compared by code point are replaced by strings that are.
    var values: [Value]
}

/// Compares objects by a request's sort. Ties are resolved by ascending key, so the order is total.
struct SortOrder: Sendable {
    let sort: [StoreSort]

    init(_ sort: [StoreSort]) { self.sort = sort }

    /// Reads the sort values of an object, which must exist.
    func candidate(_ entity: EntityIndex, _ key: ObjectKey, in reader: some ObjectReader) throws -> SortCandidate {
        if sort.count == 1 {
            let value = try Self.read(sort[0], entity: entity, key: key, in: reader)
            let prefix = SortPrefix(value, sort[0])
            return SortCandidate(entry: SortEntry(prefix: prefix, key: key), values: prefix.isExact ? [] : [value])
        }
        let values = try values(entity, key, in: reader)
        let prefix = SortPrefix(values, sort)
        return SortCandidate(entry: SortEntry(prefix: prefix, key: key), values: prefix.isExact ? [] : values)
    }

    func values(_ entity: EntityIndex, _ key: ObjectKey, in reader: some ObjectReader) throws -> [Value] {
        try sort.map { try Self.read($0, entity: entity, key: key, in: reader) }
    }

    private static func read(_ sort: StoreSort, entity: EntityIndex, key: ObjectKey, in reader: some ObjectReader) throws -> Value
    {
        let value =
            try sort.path.isEmpty
            ? reader.value(entity, key: key, column: sort.column) ?? .null : follow(sort, entity: entity, key: key, in: reader)
        if let order = sort.textOrder, case .string(let text) = value { return .string(order.key(text)) }
        guard sort.caseSensitivity == .insensitive, case .string(let text) = value else { return value }
        return .string(text.lowercased())
    }

    /// Reads the value at the end of a path; null if a reference on the way is nil, or its destination is missing.
    private static func follow(_ sort: StoreSort, entity: EntityIndex, key: ObjectKey, in reader: some ObjectReader) throws
        -> Value
    {
        var (entity, key) = (entity, key)
        for step in sort.path {
            guard let next = try reader.value(entity, key: key, column: step)?.referenceKey,
                let destination = reader.schema.entities[entity].columns[step].destination
            else { return .null }
            (entity, key) = (destination, next)
        }
        return try reader.value(entity, key: key, column: sort.column) ?? .null
    }

    func precedes(_ a: SortCandidate, _ b: SortCandidate) -> Bool {
        if a.entry.prefix != b.entry.prefix { return a.entry.prefix < b.entry.prefix }
        return precedes(a.values, key: a.entry.key, b.values, key: b.entry.key)
    }

    /// Compares objects with equal prefixes by their values, then by their keys.
    func precedes(_ a: [Value], key keyOfA: ObjectKey, _ b: [Value], key keyOfB: ObjectKey) -> Bool {
        for (sort, values) in zip(sort, zip(a, b)) {
            let result = sort.orderOfConverted(values.0, values.1)
            if result != 0 { return result < 0 }
        }
        return keyOfA < keyOfB
    }
}
