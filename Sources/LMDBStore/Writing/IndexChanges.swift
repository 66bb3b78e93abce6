import LMDB
import PageCodec
import StoreInterface
import StoreModel

/// The entries that one layer removes from one index and adds to it. They are gathered first and then written in the order of
/// the keys, so that the writes walk the tree once.
struct IndexChanges {
    /// A pair of a destination's key and the referring object's key.
    private struct Pair: Comparable {
        var key: ObjectKey
        var object: ObjectKey

        static func < (a: Pair, b: Pair) -> Bool { a.key != b.key ? a.key < b.key : a.object < b.object }
    }

    /// A pair whose key is in ``bytes``.
    private struct BytePair {
        /// The first eight bytes of the key, as a number of the same order. Most comparisons need no more.
        var prefix: UInt64
        var start: Int
        var count: Int
        var object: ObjectKey

        init(_ bytes: [UInt8], from start: Int, _ object: ObjectKey) {
            self.start = start
            self.object = object
            count = bytes.count - start
            let size = MemoryLayout<UInt64>.size
            prefix = 0
            for index in 0..<size { prefix = prefix << 8 | (index < count ? UInt64(bytes[start + index]) : 0) }
        }

        @inline(__always)
        func key(in bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
            UnsafeRawBufferPointer(rebasing: bytes[start..<start + count])
        }
    }

    let index: Tables.Index
    private let schema: [ColumnSchema]
    private var removedPairs: [Pair] = []
    private var addedPairs: [Pair] = []
    private var removedBytePairs: [BytePair] = []
    private var addedBytePairs: [BytePair] = []
    private var bytes: [UInt8] = []

    init(_ index: Tables.Index, _ entity: EntitySchema) {
        self.index = index
        schema = index.columns.map { entity.columns[$0] }
    }

    /// Removes an object from an index over several columns. The values are in the order of the columns.
    mutating func remove(_ values: [Value], _ object: ObjectKey) throws(PageError) {
        removedBytePairs.append(try place(values, object))
    }

    mutating func add(_ values: [Value], _ object: ObjectKey) throws(PageError) {
        addedBytePairs.append(try place(values, object))
    }

    mutating func remove(_ value: Value, _ object: ObjectKey) throws(PageError) {
        if index.isReference {
            if let key = value.referenceKey { removedPairs.append(Pair(key: key, object: object)) }
        } else {
            removedBytePairs.append(try place(value, object))
        }
    }

    mutating func add(_ value: Value, _ object: ObjectKey) throws(PageError) {
        if index.isReference {
            if let key = value.referenceKey { addedPairs.append(Pair(key: key, object: object)) }
        } else {
            addedBytePairs.append(try place(value, object))
        }
    }

    private mutating func place(_ value: Value, _ object: ObjectKey) throws(PageError) -> BytePair {
        let start = bytes.count
        _ = try KeyCodec.append(value, column: schema[0], to: &bytes)
        return BytePair(bytes, from: start, object)
    }

    private mutating func place(_ values: [Value], _ object: ObjectKey) throws(PageError) -> BytePair {
        let start = bytes.count
        _ = try KeyCodec.append(values, columns: schema, to: &bytes)
        return BytePair(bytes, from: start, object)
    }

    /// Writes the changes. Removals come first: if a value changes but its cut key does not, the key is then added again.
    mutating func write(in transaction: WriteTransaction) throws {
        if index.isReference {
            removedPairs.sort()
            for pair in removedPairs { try transaction.delete(index.database, pair.key.rawValue, value: pair.object.rawValue) }
            guard !addedPairs.isEmpty else { return }
            addedPairs.sort()
            try transaction.withCursor(index.database) { cursor in
                for pair in addedPairs { try cursor.add(pair.key, value: pair.object) }
            }
        } else {
            try bytes.withUnsafeBytes { bytes in
                Self.sort(&removedBytePairs, bytes)
                for place in removedBytePairs {
                    try transaction.delete(index.database, place.key(in: bytes), value: place.object.rawValue)
                }
                guard !addedBytePairs.isEmpty else { return }
                Self.sort(&addedBytePairs, bytes)
                try transaction.withCursor(index.database) { cursor in
                    for place in addedBytePairs { try cursor.add(place.key(in: bytes), value: place.object) }
                }
            }
        }
    }

    private static func sort(_ places: inout [BytePair], _ bytes: UnsafeRawBufferPointer) {
        places.sort { a, b in
            if a.prefix != b.prefix { return a.prefix < b.prefix }
            let order = IndexBytes.order(a.key(in: bytes), b.key(in: bytes))
            return order != 0 ? order < 0 : a.object < b.object
        }
    }
}
