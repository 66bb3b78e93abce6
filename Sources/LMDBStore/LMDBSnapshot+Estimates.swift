import LMDB
import PageCodec
import StoreInterface

/// What is known of tables and indexes without reading them: LMDB's own counts, and a few keys.
extension LMDBSnapshot {
    func pageCount(_ entity: Int) throws -> Int {
        try store.translating { try transaction.statistics(store.tables.pages[entity]).entries }
    }

    func entryCount(_ index: Tables.Index) throws -> Int {
        try store.translating { try transaction.statistics(index.database).entries }
    }

    /// About how many objects a part of an index has. A small part is counted: so many keys at most are looked at.
    func estimate(_ access: IndexAccess) throws -> Int {
        let (most, sampled) = (128, 64)
        return try store.translating {
            let entries = try transaction.statistics(access.index.database).entries
            if access.manner.isWhole { return entries }
            return try transaction.withCursor(access.index.database) { cursor in
                var total = 0
                if access.index.isReference {
                    for key in access.destinations.prefix(sampled) where try cursor.find(key) != nil {
                        total += try cursor.valueCount()
                    }
                    return Self.scaled(total, from: sampled, to: access.destinations.count)
                }
                for stretch in access.stretches.prefix(sampled) {
                    if let counted = try Self.count(stretch, cursor, most: most) {
                        total += counted
                    } else {
                        total += max(most, Int(try Self.share(stretch, cursor) * Double(entries)))
                    }
                }
                return Self.scaled(total, from: sampled, to: access.stretches.count)
            }
        }
    }

    private static func scaled(_ total: Int, from sampled: Int, to all: Int) -> Int {
        all > sampled ? Int(Double(total) / Double(sampled) * Double(all)) : total
    }

    /// nil when there are more keys.
    private static func count(_ stretch: IndexStretch, _ cursor: Cursor, most: Int) throws -> Int? {
        var entry = try stretch.first(cursor)
        var total = 0
        for _ in 0..<most {
            guard let found = entry, !stretch.isPast(found.key) else { return total }
            total += try cursor.valueCount()
            entry = try cursor.move(.nextKey)
        }
        return entry == nil ? total : nil
    }

    /// Which share of the keys a stretch has, as if they were spread evenly between the first and the last one.
    private static func share(_ stretch: IndexStretch, _ cursor: Cursor) throws -> Double {
        guard let first = try cursor.move(.first).map({ Array($0.key) }), let last = try cursor.move(.last).map({ Array($0.key) })
        else { return 0 }
        let common = zip(first, last).prefix { $0 == $1 }.count
        func place(_ key: [UInt8], padding: UInt8) -> Double {
            // Bounds may lie outside of the keys.
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
        let lower = min(max(place(stretch.lower, padding: 0), start), end)
        let padding: UInt8 = stretch.upperReach == .leading ? 0xFF : 0
        let openUpper = stretch.upperReach == .leading && first.starts(with: stretch.upper)
        let upper = openUpper ? end : min(max(place(stretch.upper, padding: padding), start), end)
        return min(1, max(0, (upper - lower) / (end - start)))
    }
}

extension IndexAccess.Manner {
    var isWhole: Bool { if case .whole = self { true } else { false } }
}
