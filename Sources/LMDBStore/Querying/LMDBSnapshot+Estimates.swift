import LMDB
import PageCodec
import StoreInterface
import StoreModel

/// Estimates for tables and indexes without scanning them: LMDB's own counts, and a few keys.
extension LMDBSnapshot {
    func pageCount(_ entity: EntityIndex) throws -> Int {
        try store.mappingErrors { try transaction.statistics(store.tables.pages[entity]).entries }
    }

    func entryCount(_ index: Tables.Index) throws -> Int {
        try store.mappingErrors { try transaction.statistics(index.database).entries }
    }

    /// Returns an estimate of the number of objects in a part of an index. A small part is read at once into
    /// ``IndexAccess/found``.
    func estimate(_ access: inout IndexAccess) throws -> Int {
        let database = access.index.database
        if access.accessKind.isWhole { return try entryCount(access.index) }
        let sample = try store.mappingErrors {
            let entries = try transaction.statistics(database).entries
            return try transaction.withCursor(database) { cursor in
                if access.index.isReference {
                    return try IndexSample(access.destinations.sorted()) { destination, keys, limit in
                        guard let first = try cursor.find(destination) else { return nil }
                        let count = try cursor.valueCount()
                        guard keys.count + count <= limit else { return count }
                        try cursor.appendValues(after: first, to: &keys)
                        return nil
                    }
                }
                return try IndexSample(access.ranges) { range, keys, limit in
                    guard let first = try range.first(cursor) else { return nil }
                    if try cursor.appendValues(from: first, to: &keys, limit: limit, until: range.isAfter) { return nil }
                    return Int(try Self.share(range, cursor) * Double(entries))
                }
            }
        }
        access.found = sample.all
        return sample.estimate
    }

    /// Returns the share of the keys in a range, as if keys were spread evenly between the first and the last key.
    private static func share(_ range: IndexRange, _ cursor: Cursor) throws -> Double {
        guard let first = try cursor.move(.first).map({ Array($0.key) }), let last = try cursor.move(.last).map({ Array($0.key) })
        else { return 0 }
        let common = zip(first, last).prefix { $0 == $1 }.count
        func place(_ key: [UInt8], padding: UInt8) -> Double {
            // A bound may be outside the keys.
            if IndexBytes.order(key, first) < 0 { return 0 }
            if IndexBytes.order(key, last) > 0 { return .infinity }
            var number = 0.0
            for position in common..<common + 7 {
                number = number * 256 + Double(position < key.count ? key[position] : padding)
            }
            return number
        }
        let (start, end) = (place(first, padding: 0), place(last, padding: 0))
        guard end > start else { return 1 }
        let lower = min(max(place(range.lower, padding: 0), start), end)
        let padding: UInt8 = range.upperReach == .leading ? 0xFF : 0
        let openUpper = range.upperReach == .leading && first.starts(with: range.upper)
        let upper = openUpper ? end : min(max(place(range.upper, padding: padding), start), end)
        return min(1, max(0, (upper - lower) / (end - start)))
    }
}

/// The result of reading a few keys of each part of an index.
private struct IndexSample {
    /// All objects, if there are few.
    var all: [ObjectKey]?
    var estimate: Int

    /// Samples the parts.
    /// - Parameter read: Appends the objects of a part. If the total would exceed its last argument, it returns an estimate
    ///   of the part's objects instead.
    init<Part>(_ parts: [Part], _ read: (Part, inout [ObjectKey], Int) throws -> Int?) throws {
        let (most, asked) = (256, 64)
        var keys: [ObjectKey] = []
        keys.reserveCapacity(most / 2)
        var others = 0
        for part in parts.prefix(asked) {
            let known = keys.count
            guard let about = try read(part, &keys, known + most) else { continue }
            keys.removeSubrange(known...)
            others += max(most, about)
        }
        if others == 0, parts.count <= asked { all = keys }
        let total = keys.count + others
        estimate = parts.count > asked ? Int(Double(total) / Double(asked) * Double(parts.count)) : total
    }
}

extension IndexAccess.AccessKind {
    var isWhole: Bool { if case .whole = self { true } else { false } }
}
