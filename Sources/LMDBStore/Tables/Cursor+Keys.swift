import LMDB
import StoreModel

/// Keys of objects as LMDB's numbers.
extension Cursor {
    /// Appends the values of the current key, from its first value, `first`, on. About 1 ns per value.
    func appendValues(after first: Entry, to keys: inout [ObjectKey]) throws(LMDBError) {
        try forEachBlock(of: first) { keys.append(block: $0) }
    }

    /// Appends the values of the current key, from its first value on, and of the following keys. Stops when `isAfter` returns
    /// true for a key; all following keys must be past as well.
    /// - Returns: Whether all values were appended. False if there are more than `limit` keys, of which some may have been
    ///   appended.
    func appendValues(
        from first: Entry, to keys: inout [ObjectKey], limit: Int, until isAfter: (UnsafeRawBufferPointer) -> Bool
    ) throws(LMDBError) -> Bool {
        try forEachBlock(from: first, limit: limit - keys.count, until: isAfter) { keys.append(block: $0) }
    }

    @inline(__always)
    func find(_ key: ObjectKey) throws(LMDBError) -> Entry? { try find(key.rawValue) }

    @inline(__always)
    func has(_ key: ObjectKey, value: ObjectKey) throws(LMDBError) -> Bool { try has(key.rawValue, value: value.rawValue) }

    @inline(__always)
    func has(_ key: UnsafeRawBufferPointer, value: ObjectKey) throws(LMDBError) -> Bool { try has(key, value: value.rawValue) }

    @inline(__always) @discardableResult
    func add(_ key: ObjectKey, value: ObjectKey) throws(LMDBError) -> Bool { try add(key.rawValue, value: value.rawValue) }

    @inline(__always) @discardableResult
    func add(_ key: UnsafeRawBufferPointer, value: ObjectKey) throws(LMDBError) -> Bool { try add(key, value: value.rawValue) }
}

extension Cursor.Entry {
    /// The key of an entry of a table of references or links: the key of an object.
    var objectKey: ObjectKey { ObjectKey(rawValue: number) }

    /// The key of an entry of a table of pages.
    var pageNumber: PageNumber { PageNumber(rawValue: number) }

    /// The value of an entry of an index, or of a table of links: the key of an object.
    var objectValue: ObjectKey { ObjectKey(rawValue: valueNumber) }
}

extension [ObjectKey] {
    @inline(__always)
    fileprivate mutating func append(block bytes: UnsafeRawBufferPointer) {
        for i in 0..<(bytes.count / 8) {
            append(ObjectKey(rawValue: bytes.loadUnaligned(fromByteOffset: i * 8, as: UInt64.self)))
        }
    }
}
