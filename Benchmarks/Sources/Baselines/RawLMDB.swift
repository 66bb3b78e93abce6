internal import CLMDBBaseline

/// LMDB in C calls, with one row per object under an integer key. It is the floor for our pages. Each C function is called in
/// one place.
///
/// One thread uses it, with one transaction at a time. Several instances may share one environment.
public final class RawLMDB {
    /// When a commit syncs.
    public enum Sync { case everyCommit, never }

    public struct Failure: Error, CustomStringConvertible {
        public var description: String
    }

    public struct Table: Sendable { fileprivate var number: MDB_dbi }

    /// An open file. LMDB requires that a process opens each file once.
    ///
    /// `@unchecked Sendable` is right because LMDB's environments are made for threads, and the pointer never changes.
    public final class Environment: @unchecked Sendable {
        fileprivate let handle: OpaquePointer?

        fileprivate init(_ handle: OpaquePointer?) { self.handle = handle }

        deinit { mdb_env_close(handle) }
    }

    public let environment: Environment
    private var transaction: OpaquePointer?

    public static var version: String {
        "\(MDB_VERSION_MAJOR).\(MDB_VERSION_MINOR).\(MDB_VERSION_PATCH)"
    }

    public init(path: String, tables: Int, mapBytes: Int = 16 << 30, sync: Sync) throws {
        var handle: OpaquePointer?
        try Self.check(mdb_env_create(&handle))
        environment = Environment(handle)
        try Self.check(mdb_env_set_mapsize(handle, mapBytes))
        try Self.check(mdb_env_set_maxdbs(handle, UInt32(tables)))
        let flags = UInt32(MDB_NOSUBDIR | MDB_NOTLS) | (sync == .never ? UInt32(MDB_NOSYNC) : 0)
        try Self.check(mdb_env_open(handle, path, flags, 0o644))
    }

    /// Creates an instance for another thread.
    public init(sharing environment: Environment) { self.environment = environment }

    deinit {
        if let transaction { mdb_txn_abort(transaction) }
    }

    public enum Purpose { case reading, writing }

    public func begin(_ purpose: Purpose) throws {
        try Self.check(mdb_txn_begin(environment.handle, nil, purpose == .reading ? UInt32(MDB_RDONLY) : 0, &transaction))
    }

    public func commit() throws {
        let ending = transaction
        transaction = nil
        try Self.check(mdb_txn_commit(ending))
    }

    /// Creates a table of rows under integer keys. Requires a write transaction.
    public func makeTable(_ name: String) throws -> Table { try table(name, MDB_CREATE | MDB_INTEGERKEY) }

    /// Creates a table of sorted integers under integer keys, for indexes. Requires a write transaction.
    public func makeIndex(_ name: String) throws -> Table {
        try table(name, MDB_CREATE | MDB_INTEGERKEY | MDB_DUPSORT | MDB_DUPFIXED | MDB_INTEGERDUP)
    }

    /// Creates a table of rows under texts, in the order of their bytes. Requires a write transaction.
    public func makeTextTable(_ name: String) throws -> Table { try table(name, MDB_CREATE) }

    private func table(_ name: String, _ flags: Int32) throws -> Table {
        var number = MDB_dbi()
        try Self.check(mdb_dbi_open(transaction, name, UInt32(flags), &number))
        return Table(number: number)
    }

    /// The keys for which a row is put.
    public enum KeyOrder {
        /// Any key.
        case any
        /// A key above all keys of the table. LMDB then does not search for its place, and fills pages without splitting them.
        case ascending
    }

    /// Puts a row. Throws if `order` is ascending and the key is not above all others.
    public func put(_ table: Table, key: UInt64, order: KeyOrder = .any, _ row: UnsafeRawBufferPointer) throws {
        var number = key
        try withUnsafeMutableBytes(of: &number) { bytes in
            var key = MDB_val(mv_size: bytes.count, mv_data: bytes.baseAddress)
            var value = MDB_val(mv_size: row.count, mv_data: UnsafeMutableRawPointer(mutating: row.baseAddress))
            let flags = order == .ascending ? UInt32(MDB_APPEND) : 0
            try Self.check(mdb_put(transaction, table.number, &key, &value, flags))
        }
    }

    public func putIndex(_ table: Table, value: UInt64, key: UInt64) throws {
        try withUnsafeBytes(of: key) { try put(table, key: value, $0) }
    }

    /// Removes one entry of an index.
    public func removeIndex(_ table: Table, value: UInt64, key: UInt64) throws {
        var number = value
        var partner = key
        try withUnsafeMutableBytes(of: &number) { bytes in
            try withUnsafeMutableBytes(of: &partner) { other in
                var key = MDB_val(mv_size: bytes.count, mv_data: bytes.baseAddress)
                var value = MDB_val(mv_size: other.count, mv_data: other.baseAddress)
                let status = mdb_del(transaction, table.number, &key, &value)
                if status != MDB_NOTFOUND { try Self.check(status) }
            }
        }
    }

    /// Calls `body` with the row of a key, which is valid inside `body` only. Returns nil if there is none.
    public func get<R>(_ table: Table, key: UInt64, _ body: (UnsafeRawBufferPointer) throws -> R) throws -> R? {
        var number = key
        return try withUnsafeMutableBytes(of: &number) { bytes in
            var key = MDB_val(mv_size: bytes.count, mv_data: bytes.baseAddress)
            var value = MDB_val()
            let status = mdb_get(transaction, table.number, &key, &value)
            if status == MDB_NOTFOUND { return nil }
            try Self.check(status)
            return try body(UnsafeRawBufferPointer(start: value.mv_data, count: value.mv_size))
        }
    }

    /// Removes a row if it exists.
    public func remove(_ table: Table, key: UInt64) throws {
        var number = key
        try withUnsafeMutableBytes(of: &number) { bytes in
            var key = MDB_val(mv_size: bytes.count, mv_data: bytes.baseAddress)
            let status = mdb_del(transaction, table.number, &key, nil)
            if status != MDB_NOTFOUND { try Self.check(status) }
        }
    }

    public func put(_ table: Table, key: String, _ row: UnsafeRawBufferPointer) throws {
        try Self.withBytes(of: key) { key in
            var value = MDB_val(mv_size: row.count, mv_data: UnsafeMutableRawPointer(mutating: row.baseAddress))
            try Self.check(mdb_put(transaction, table.number, &key, &value, 0))
        }
    }

    /// Calls `body` with the row of a key, which is valid inside `body` only. Returns nil if there is none.
    public func get<R>(_ table: Table, key: String, _ body: (UnsafeRawBufferPointer) throws -> R) throws -> R? {
        try Self.withBytes(of: key) { key in
            var value = MDB_val()
            let status = mdb_get(transaction, table.number, &key, &value)
            if status == MDB_NOTFOUND { return nil }
            try Self.check(status)
            return try body(UnsafeRawBufferPointer(start: value.mv_data, count: value.mv_size))
        }
    }

    /// Removes a row if it exists.
    public func remove(_ table: Table, key: String) throws {
        try Self.withBytes(of: key) { key in
            let status = mdb_del(transaction, table.number, &key, nil)
            if status != MDB_NOTFOUND { try Self.check(status) }
        }
    }

    fileprivate static func withBytes<R>(of text: String, _ body: (inout MDB_val) throws -> R) rethrows -> R {
        var text = text
        return try text.withUTF8 { bytes in
            // LMDB does not change keys.
            var value = MDB_val(mv_size: bytes.count, mv_data: UnsafeMutableRawPointer(mutating: bytes.baseAddress))
            return try body(&value)
        }
    }

    /// Calls `body` with every row in the order of keys. A row is valid inside `body` only.
    public func forEach(_ table: Table, _ body: (UnsafeRawBufferPointer) throws -> Void) throws {
        var cursor: OpaquePointer?
        try Self.check(mdb_cursor_open(transaction, table.number, &cursor))
        defer { mdb_cursor_close(cursor) }
        var (key, value) = (MDB_val(), MDB_val())
        var status = mdb_cursor_get(cursor, &key, &value, MDB_FIRST)
        while status == MDB_SUCCESS {
            try body(UnsafeRawBufferPointer(start: value.mv_data, count: value.mv_size))
            status = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)
        }
        if status != MDB_NOTFOUND { try Self.check(status) }
    }

    /// Calls `body` with every key and row.
    public func forEach(_ table: Table, _ body: (UInt64, UnsafeRawBufferPointer) throws -> Void) throws {
        let cursor = try cursor(table)
        var found = try cursor.first()
        while found {
            try body(cursor.key, cursor.row)
            found = try cursor.next()
        }
    }

    public func cursor(_ table: Table) throws -> Cursor { try Cursor(transaction, table) }

    /// A position in a table, within a transaction. Release it before its transaction ends.
    public final class Cursor {
        private var handle: OpaquePointer?
        // Unchecked, so that a floor does not pay for Swift's checks of exclusive access. No access calls other code.
        @exclusivity(unchecked) private var found = MDB_val()
        @exclusivity(unchecked) private var value = MDB_val()

        fileprivate init(_ transaction: OpaquePointer?, _ table: Table) throws {
            try RawLMDB.check(mdb_cursor_open(transaction, table.number, &handle))
        }

        deinit { mdb_cursor_close(handle) }

        // The methods that move the cursor return whether there is an entry.

        public func first() throws -> Bool { try move(MDB_FIRST) }
        public func next() throws -> Bool { try move(MDB_NEXT) }
        /// Moves to the next entry of an index under the same value.
        public func nextOfKey() throws -> Bool { try move(MDB_NEXT_DUP) }
        /// Moves to the row of a key, or to the first entry of a value in an index.
        public func seek(_ key: UInt64) throws -> Bool { try seek(key, MDB_SET_KEY) }
        /// Moves to the first key that is not below `key`.
        public func seek(from key: UInt64) throws -> Bool { try seek(key, MDB_SET_RANGE) }

        /// Moves to the first text that is not below `key`.
        public func seek(from key: String) throws -> Bool {
            try RawLMDB.withBytes(of: key) { bytes in
                found = bytes
                return try move(MDB_SET_RANGE)
            }
        }

        private func seek(_ key: UInt64, _ operation: MDB_cursor_op) throws -> Bool {
            var number = key
            return try withUnsafeMutableBytes(of: &number) { bytes in
                found = MDB_val(mv_size: bytes.count, mv_data: bytes.baseAddress)
                return try move(operation)
            }
        }

        @inline(__always)
        private func move(_ operation: MDB_cursor_op) throws -> Bool {
            let status = mdb_cursor_get(handle, &found, &value, operation)
            if status == MDB_NOTFOUND { return false }
            try RawLMDB.check(status)
            return true
        }

        /// The bytes of the current key, valid until the cursor moves.
        public var keyBytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: found.mv_data, count: found.mv_size) }
        /// The key of a row, or the value of an index entry.
        public var key: UInt64 { found.mv_data.loadUnaligned(as: UInt64.self) }
        /// The bytes of the current row, valid until the cursor moves.
        public var row: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: value.mv_data, count: value.mv_size) }
        /// The key in the current index entry.
        public var partner: UInt64 { value.mv_data.loadUnaligned(as: UInt64.self) }
    }

    fileprivate static func check(_ status: Int32) throws {
        guard status == MDB_SUCCESS else { throw Failure(description: String(cString: mdb_strerror(status))) }
    }
}
