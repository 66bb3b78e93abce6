import LMDB
import PageCodec
import StoreInterface
import StoreModel

extension LMDBSnapshot {
    /// Reads an index alone. If the column has none, or if a key may have been cut, the objects are read.
    func orderedData(_ query: OrderedDataQuery) throws -> OrderedData {
        try indexedData(query) ?? readOrderedData(query)
    }

    private func indexedData(_ query: OrderedDataQuery) throws -> OrderedData? {
        let limit = query.limit ?? .max
        // Each index key begins with a byte for values that are not null.
        let longest = KeyCodec.maximumCount - 2
        guard let index = index(query.entity, query.column), !index.isReference,
            schema.entities[query.entity].columns[query.column].type == .data,
            query.lower.count <= longest, query.upper.count <= longest
        else { return nil }
        guard limit > 0, query.lower.lexicographicallyPrecedes(query.upper) else { return OrderedData() }
        var range = IndexRange(lower: [1] + query.lower, upper: [1] + query.upper, reach: .whole)
        range.includesUpper = false
        let isAscending = query.direction == .ascending
        return try store.mappingErrors {
            try transaction.withCursor(index.database) { cursor in
                var result = OrderedData()
                var entry = isAscending ? try range.first(cursor) : try range.last(cursor)
                while let found = entry, isAscending ? !range.isAfter(found.key) : !range.isBefore(found.key) {
                    if found.key.count >= KeyCodec.maximumCount { return nil }
                    try cursor.appendObjects(at: found, to: &result, limit: limit)
                    if result.keys.count >= limit { break }
                    entry = try cursor.move(isAscending ? .nextKey : .previousKey)
                }
                ExaminedObjects.add(result.keys.count)
                return result
            }
        }
    }
}

extension Cursor {
    /// Appends the objects of the current key with the bytes of the key, ascending.
    fileprivate func appendObjects(at found: Entry, to result: inout OrderedData, limit: Int) throws {
        let data = UnsafeRawBufferPointer(rebasing: found.key.dropFirst())
        if try valueCount() == 1 { return result.append(found.objectValue, data: data) }
        guard let first = try find(found.key) else { return }
        var keys: [ObjectKey] = []
        try appendValues(after: first, to: &keys)
        for key in keys.prefix(limit - result.keys.count) { result.append(key, data: data) }
    }
}
