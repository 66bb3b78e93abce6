import StoreInterface

/// One object's place in a sorted result: its sort values, then its key.
///
/// Most requests sort by one column, so the first value lies in line. Case-insensitive strings are kept lowercased: they
/// are compared often and read once.
struct SortEntry: Sendable {
    var first: Value
    var rest: [Value]
    var key: ObjectKey
}

/// Compares objects by a request's sort; the key breaks every tie, ascending, so that the order is total.
struct SortOrder: Sendable {
    let first: StoreSort?
    let rest: [StoreSort]

    init(_ sort: [StoreSort]) {
        first = sort.first
        rest = Array(sort.dropFirst())
    }

    /// Reads the sort values of an object that exists.
    func entry(_ entity: Int, _ key: ObjectKey, in reader: some ObjectReader) throws -> SortEntry {
        guard let first else { return SortEntry(first: .null, rest: [], key: key) }
        let value = try Self.read(first, entity, key, in: reader)
        if rest.isEmpty { return SortEntry(first: value, rest: [], key: key) }
        return SortEntry(first: value, rest: try rest.map { try Self.read($0, entity, key, in: reader) }, key: key)
    }

    private static func read(_ sort: StoreSort, _ entity: Int, _ key: ObjectKey, in reader: some ObjectReader) throws -> Value {
        let value = try reader.value(entity, key, sort.column) ?? .null
        guard sort.caseSensitivity == .insensitive, case .string(let text) = value else { return value }
        return .string(text.lowercased())
    }

    /// Negative, zero (the same object in the same place) or positive.
    func order(_ a: SortEntry, _ b: SortEntry) -> Int {
        if let first {
            let result = Self.order(first, a.first, b.first)
            if result != 0 { return result }
            for (index, sort) in rest.enumerated() {
                let result = Self.order(sort, a.rest[index], b.rest[index])
                if result != 0 { return result }
            }
        }
        return a.key < b.key ? -1 : (a.key == b.key ? 0 : 1)
    }

    /// Compares values of two entries, which are lowercased already where that matters.
    @inline(__always)
    private static func order(_ sort: StoreSort, _ a: Value, _ b: Value) -> Int {
        let result = a.order(b)
        return sort.direction == .ascending ? result : -result
    }
}
