internal import CLMDB

/// A place in a sub-database. Valid inside the `withCursor` that made it; what it returns is valid until the transaction
/// ends, in a write transaction until the next write.
public struct Cursor {
    public struct Entry {
        // Right because both point into the map, or the write transaction's own pages, and the caller keeps the transaction.
        public let key: UnsafeRawBufferPointer
        // As the key.
        public let value: UnsafeRawBufferPointer

        /// The key of a sub-database with number keys.
        @inlinable public var number: UInt64 { Self.number(key) }
        /// The value of a sub-database with number values.
        @inlinable public var valueNumber: UInt64 { Self.number(value) }

        @usableFromInline static func number(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
            bytes.count == 8 ? bytes.loadUnaligned(as: UInt64.self) : 0
        }
    }

    /// Where to go.
    public enum Step: Sendable {
        case first, last, next, previous
        /// The next key, past the remaining values of this one.
        case nextKey
        /// The last value of the key before this one.
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

    // Right because `withCursor` closes it after the body to which the cursor is passed.
    let pointer: OpaquePointer
    /// In a read transaction, where every page lies in the map; nil in a write transaction, whose own pages lie elsewhere.
    private let mapPageSize: Int?

    init(_ transaction: OpaquePointer, _ database: Database, mapPageSize: Int?) throws(LMDBError) {
        var opened: OpaquePointer?
        try check(.openCursor) { mdb_cursor_open(transaction, database.handle, &opened) }
        guard let opened else { throw LMDBError(returnCode: MDB_BAD_TXN, call: .openCursor) }
        pointer = opened
        self.mapPageSize = mapPageSize
    }

    func close() { mdb_cursor_close(pointer) }

    // MARK: Moving

    /// nil at the end. About 10 to 20 ns for the next entry.
    public func move(_ step: Step) throws(LMDBError) -> Entry? {
        var key = MDB_val()
        var value = MDB_val()
        return try get(&key, &value, step.operation) ? Entry(key: key.bytes, value: value.bytes) : nil
    }

    /// Goes to a key and its first value.
    public func find(_ key: UInt64) throws(LMDBError) -> Entry? {
        try withNumber(key) { (key) throws(LMDBError) in try seek(&key, MDB_SET_KEY) }
    }

    public func find(_ key: UnsafeRawBufferPointer) throws(LMDBError) -> Entry? {
        var key = MDB_val(key)
        return try seek(&key, MDB_SET_KEY)
    }

    /// Goes to the first key that is not before `key`.
    public func seek(_ key: UInt64) throws(LMDBError) -> Entry? {
        try withNumber(key) { (key) throws(LMDBError) in try seek(&key, MDB_SET_RANGE) }
    }

    public func seek(_ key: UnsafeRawBufferPointer) throws(LMDBError) -> Entry? {
        var key = MDB_val(key)
        return try seek(&key, MDB_SET_RANGE)
    }

    /// Whether a key has a value; goes there if so.
    public func has(_ key: UnsafeRawBufferPointer, value: UInt64) throws(LMDBError) -> Bool {
        var key = MDB_val(key)
        return try withNumber(value) { (value) throws(LMDBError) in try get(&key, &value, MDB_GET_BOTH) }
    }

    public func has(_ key: UInt64, value: UInt64) throws(LMDBError) -> Bool {
        try withNumber(key) { (key) throws(LMDBError) in
            try withNumber(value) { (value) throws(LMDBError) in try get(&key, &value, MDB_GET_BOTH) }
        }
    }

    private func seek(_ key: inout MDB_val, _ operation: MDB_cursor_op) throws(LMDBError) -> Entry? {
        var value = MDB_val()
        return try get(&key, &value, operation) ? Entry(key: key.bytes, value: value.bytes) : nil
    }

    @inline(__always)
    private func get(_ key: inout MDB_val, _ value: inout MDB_val, _ operation: MDB_cursor_op) throws(LMDBError) -> Bool {
        try found(.cursorGet) { mdb_cursor_get(pointer, &key, &value, operation) }
    }

    // MARK: The values of one key, where they are numbers

    /// How many values the key has at which the cursor stands.
    public func valueCount() throws(LMDBError) -> Int {
        var count = 0
        try check(.cursorCount) { mdb_cursor_count(pointer, &count) }
        return count
    }

    /// Appends the values of the key at which the cursor stands, from `first`, its first value, on. About 1 ns a value.
    public func appendValues(after first: Entry, to numbers: inout [UInt64]) throws(LMDBError) {
        // Asked first: of a single value after a key with several that was passed over, LMDB 0.9 gives those once more.
        guard try valueCount() > 1 else { return numbers.append(first.value.loadUnaligned(as: UInt64.self)) }
        var key = MDB_val()
        var value = MDB_val(first.value)
        guard try get(&key, &value, MDB_GET_MULTIPLE) else { return }
        while true {
            let bytes = value.bytes
            for i in 0..<(bytes.count / 8) { numbers.append(bytes.loadUnaligned(fromByteOffset: i * 8, as: UInt64.self)) }
            guard try get(&key, &value, MDB_NEXT_MULTIPLE) else { return }
        }
    }

    /// Appends the values of the key at which the cursor stands, at its first value, and of those behind it, until `isPast` says that
    /// a key lies beyond them, as all behind it do. Some nanoseconds a key with one value, more in a write transaction.
    /// - Returns: whether these were all; false when there are more than `limit`, of which some may have been appended.
    public func appendValues(
        from first: Entry, to numbers: inout [UInt64], limit: Int, until isPast: (UnsafeRawBufferPointer) -> Bool
    ) throws(LMDBError) -> Bool {
        var entry = first
        while true {
            if let page = mapPageSize.flatMap({ LeafPage(around: entry.key, pageSize: $0) }),
                let start = page.position(of: entry.key)
            {
                let past = page.first(from: start, where: isPast)
                var position = start
                while position < past, numbers.count < limit, let number = page.onlyNumber(position) {
                    numbers.append(number)
                    position += 1
                }
                if position == past, past < page.count { return true }
                // LMDB goes on at the last key taken, or at one with several values.
                let rest = position == page.count ? position - 1 : position
                guard let key = page.key(rest), let found = try find(key) else { return true }
                if rest < position {
                    guard let next = try move(.nextKey), !isPast(next.key) else { return true }
                    entry = next
                    continue
                }
                entry = found
            }
            guard try numbers.count + valueCount() <= limit else { return false }
            try appendValues(after: entry, to: &numbers)
            guard let next = try move(.nextKey), !isPast(next.key) else { return true }
            entry = next
        }
    }

    // MARK: Writing, in a write transaction

    /// How a put treats the order of keys.
    public enum Order: Sendable {
        case any
        /// The key is greater than all others: about twice as fast, and pages are filled.
        case ascending

        var flags: UInt32 { self == .any ? 0 : UInt32(MDB_APPEND) }
    }

    /// Reserves room for a value and returns it, to be filled before the next call.
    public func reserve(_ key: UInt64, byteCount: Int, order: Order) throws(LMDBError) -> UnsafeMutableRawBufferPointer {
        var value = MDB_val(mv_size: byteCount, mv_data: nil)
        try withNumber(key) { (key) throws(LMDBError) in
            try check(.cursorPut) { mdb_cursor_put(pointer, &key, &value, UInt32(MDB_RESERVE) | order.flags) }
        }
        return UnsafeMutableRawBufferPointer(start: value.mv_data, count: value.mv_size)
    }

    /// Adds one value to a key; one that is there already stays.
    /// - Returns: whether it is new.
    @discardableResult
    public func add(_ key: UnsafeRawBufferPointer, value: UInt64) throws(LMDBError) -> Bool {
        var key = MDB_val(key)
        return try withNumber(value) { (value) throws(LMDBError) in try add(&key, &value) }
    }

    @discardableResult
    public func add(_ key: UInt64, value: UInt64) throws(LMDBError) -> Bool {
        try withNumber(key) { (key) throws(LMDBError) in
            try withNumber(value) { (value) throws(LMDBError) in try add(&key, &value) }
        }
    }

    private func add(_ key: inout MDB_val, _ value: inout MDB_val) throws(LMDBError) -> Bool {
        try found(.cursorPut) { mdb_cursor_put(pointer, &key, &value, UInt32(MDB_NODUPDATA)) }
    }

    /// Deletes the key at which the cursor stands, with all of its values.
    public func deleteKey() throws(LMDBError) {
        try delete(UInt32(MDB_NODUPDATA))
    }

    /// Deletes the entry at which the cursor stands.
    public func delete() throws(LMDBError) { try delete(0) }

    private func delete(_ flags: UInt32) throws(LMDBError) {
        try check(.cursorDelete) { mdb_cursor_del(pointer, flags) }
    }
}
