internal import CLMDB

/// A position in a sub-database. It is valid inside the `withCursor` that created it. Its results are valid until the
/// transaction ends; in a write transaction, until the next write.
package struct Cursor {
    /// A key with one of its values, as bytes in the file's map.
    ///
    /// The bytes are valid until the transaction ends; in a write transaction, until the next write.
    package struct Entry {
        // Right because both point into the map, or into the write transaction's own pages, and the caller keeps the
        // transaction alive.
        /// The bytes of the key.
        package let key: UnsafeRawBufferPointer
        // Right for the same reason as the key.
        /// The bytes of the value.
        package let value: UnsafeRawBufferPointer

        /// The key as a number, for a sub-database with number keys.
        @inlinable package var number: UInt64 { Self.number(key) }
        /// The value as a number, for a sub-database with number values.
        @inlinable package var valueNumber: UInt64 { Self.number(value) }

        @usableFromInline static func number(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
            bytes.count == 8 ? bytes.loadUnaligned(as: UInt64.self) : 0
        }
    }

    /// The direction of a move.
    package enum Step: Sendable {
        case first, last, next, previous
        /// The next key, past the remaining values of the current key.
        case nextKey
        /// The last value of the previous key.
        case previousKey
        /// The next value of the same key.
        case nextValue

        var operation: MDB_cursor_op {
            switch self {
            case .first: MDB_FIRST
            case .last: MDB_LAST
            case .next: MDB_NEXT
            case .previous: MDB_PREV
            case .nextKey: MDB_NEXT_NODUP
            case .previousKey: MDB_PREV_NODUP
            case .nextValue: MDB_NEXT_DUP
            }
        }
    }

    // Right because `withCursor` closes it after the body that uses the cursor.
    let pointer: OpaquePointer
    /// The page size in a read transaction, where every page is in the map. nil in a write transaction, whose own pages are
    /// outside the map.
    private let mapPageSize: Int?

    init(_ transaction: OpaquePointer, _ database: Database, mapPageSize: Int?) throws(LMDBError) {
        var opened: OpaquePointer?
        try check(.openCursor, of: .transaction(transaction)) { mdb_cursor_open(transaction, database.handle, &opened) }
        guard let opened else { throw LMDBError(returnCode: MDB_BAD_TXN, call: .openCursor) }
        pointer = opened
        self.mapPageSize = mapPageSize
    }

    func close() { mdb_cursor_close(pointer) }

    // MARK: Moving

    /// Moves the cursor and returns its entry, or nil at the end. About 10 to 20 ns for the next entry.
    package func move(_ step: Step) throws(LMDBError) -> Entry? {
        var key = MDB_val()
        var value = MDB_val()
        return try get(&key, value: &value, operation: step.operation) ? Entry(key: key.bytes, value: value.bytes) : nil
    }

    /// Moves to a key and its first value.
    package func find(_ key: UInt64) throws(LMDBError) -> Entry? {
        try withNumber(key) { (key) throws(LMDBError) in try seek(&key, MDB_SET_KEY) }
    }

    /// Moves to a key of bytes and its first value. Returns nil if the key does not exist.
    package func find(_ key: UnsafeRawBufferPointer) throws(LMDBError) -> Entry? {
        var key = MDB_val(key)
        return try seek(&key, MDB_SET_KEY)
    }

    /// Moves to the first key that is not before `key`.
    package func seek(_ key: UInt64) throws(LMDBError) -> Entry? {
        try withNumber(key) { (key) throws(LMDBError) in try seek(&key, MDB_SET_RANGE) }
    }

    /// Moves to the first key of bytes that is not before `key`. Returns nil if there is none.
    package func seek(_ key: UnsafeRawBufferPointer) throws(LMDBError) -> Entry? {
        var key = MDB_val(key)
        return try seek(&key, MDB_SET_RANGE)
    }

    /// Returns whether a key has a value, and if so, moves to it.
    package func has(_ key: UnsafeRawBufferPointer, value: UInt64) throws(LMDBError) -> Bool {
        var key = MDB_val(key)
        return try withNumber(value) { (value) throws(LMDBError) in try get(&key, value: &value, operation: MDB_GET_BOTH) }
    }

    /// Returns whether a number key has a value, and if so, moves to it.
    package func has(_ key: UInt64, value: UInt64) throws(LMDBError) -> Bool {
        try withNumber(key) { (key) throws(LMDBError) in
            try withNumber(value) { (value) throws(LMDBError) in try get(&key, value: &value, operation: MDB_GET_BOTH) }
        }
    }

    private func seek(_ key: inout MDB_val, _ operation: MDB_cursor_op) throws(LMDBError) -> Entry? {
        var value = MDB_val()
        return try get(&key, value: &value, operation: operation) ? Entry(key: key.bytes, value: value.bytes) : nil
    }

    @inline(__always)
    private func get(_ key: inout MDB_val, value: inout MDB_val, operation: MDB_cursor_op) throws(LMDBError) -> Bool {
        try found(.cursorGet, of: .cursor(pointer)) { mdb_cursor_get(pointer, &key, &value, operation) }
    }

    // MARK: Number values of one key

    /// Returns the number of values of the current key.
    /// - Throws: ``LMDBError`` `.damaged` also for a number that no key has. LMDB reads it from the file, and opening does not check it.
    package func valueCount() throws(LMDBError) -> Int {
        var count = 0
        try check(.cursorCount, of: .cursor(pointer)) { mdb_cursor_count(pointer, &count) }
        guard count >= 1, count <= DatabaseStatistics.mostEntries else {
            throw LMDBError(returnCode: MDB_CORRUPTED, call: .cursorCount)
        }
        return count
    }

    /// Calls `body` with the number values of the current key, from its first value, `first`, on: many at a time, in 8 bytes each.
    package func forEachBlock(of first: Entry, _ body: (UnsafeRawBufferPointer) -> Void) throws(LMDBError) {
        // The count is needed because of a quirk of LMDB 0.9. For a single value after a skipped key with several values, it
        // would return the values of that key again.
        guard try valueCount() > 1 else { return body(first.value) }
        var key = MDB_val()
        var value = MDB_val(first.value)
        guard try get(&key, value: &value, operation: MDB_GET_MULTIPLE) else { return }
        while true {
            body(value.bytes)
            guard try get(&key, value: &value, operation: MDB_NEXT_MULTIPLE) else { return }
        }
    }

    /// Calls `body` with the number values of the current key, from its first value on, and of the following keys: many at a time, in
    /// 8 bytes each. Stops when `isAfter` returns true for a key; all following keys must be past as well.
    ///
    /// Takes some nanoseconds per key with one value, more in a write transaction.
    /// - Returns: Whether `body` got all values. False if there are more than `limit` values, of which it may have got some.
    package func forEachBlock(
        from first: Entry, limit: Int, until isAfter: (UnsafeRawBufferPointer) -> Bool, _ body: (UnsafeRawBufferPointer) -> Void
    ) throws(LMDBError) -> Bool {
        var entry = first
        var left = limit
        while true {
            if let page = mapPageSize.flatMap({ LeafPage(around: entry.key, pageSize: $0) }),
                let start = page.position(of: entry.key)
            {
                let past = page.first(from: start, where: isAfter)
                let position = page.forEachBlock(start..<start + max(min(past - start, left), 0), body)
                left -= position - start
                if position == past, past < page.count { return true }
                // LMDB continues at the last key taken, or at a key with several values.
                let rest = position == page.count ? position - 1 : position
                guard let key = page.key(rest), let found = try find(key) else { return true }
                if rest < position {
                    guard let next = try move(.nextKey), !isAfter(next.key) else { return true }
                    entry = next
                    continue
                }
                entry = found
            }
            let count = try valueCount()
            guard count <= left else { return false }
            left -= count
            try forEachBlock(of: entry, body)
            guard let next = try move(.nextKey), !isAfter(next.key) else { return true }
            entry = next
        }
    }

    // MARK: Writing, in write transactions

    /// The order in which keys are put.
    package enum Order: Sendable {
        /// Any order.
        case any
        /// The key is greater than all existing keys. About twice as fast, and fills the pages.
        case ascending

        var flags: UInt32 { self == .any ? 0 : UInt32(MDB_APPEND) }
    }

    /// Reserves room for a value and returns it. The caller fills it before the next call.
    package func reserve(_ key: UInt64, byteCount: Int, order: Order) throws(LMDBError) -> UnsafeMutableRawBufferPointer {
        var value = MDB_val(mv_size: byteCount, mv_data: nil)
        try withNumber(key) { (key) throws(LMDBError) in
            try check(.cursorPut, of: .cursor(pointer)) {
                mdb_cursor_put(pointer, &key, &value, UInt32(MDB_RESERVE) | order.flags)
            }
        }
        return UnsafeMutableRawBufferPointer(start: value.mv_data, count: value.mv_size)
    }

    /// Adds a value to a key. An existing value is kept.
    /// - Returns: Whether the value is new.
    @discardableResult
    package func add(_ key: UnsafeRawBufferPointer, value: UInt64) throws(LMDBError) -> Bool {
        var key = MDB_val(key)
        return try withNumber(value) { (value) throws(LMDBError) in try add(&key, &value) }
    }

    /// Adds a value to a number key. An existing value is kept.
    /// - Returns: Whether the value is new.
    @discardableResult
    package func add(_ key: UInt64, value: UInt64) throws(LMDBError) -> Bool {
        try withNumber(key) { (key) throws(LMDBError) in
            try withNumber(value) { (value) throws(LMDBError) in try add(&key, &value) }
        }
    }

    private func add(_ key: inout MDB_val, _ value: inout MDB_val) throws(LMDBError) -> Bool {
        try found(.cursorPut, of: .cursor(pointer)) { mdb_cursor_put(pointer, &key, &value, UInt32(MDB_NODUPDATA)) }
    }

    /// Deletes the current key with all of its values.
    package func deleteKey() throws(LMDBError) {
        try delete(UInt32(MDB_NODUPDATA))
    }

    /// Deletes the current entry.
    package func delete() throws(LMDBError) { try delete(0) }

    private func delete(_ flags: UInt32) throws(LMDBError) {
        try check(.cursorDelete, of: .cursor(pointer)) { mdb_cursor_del(pointer, flags) }
    }
}
