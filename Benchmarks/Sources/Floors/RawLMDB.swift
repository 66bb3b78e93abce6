internal import CLMDBFloor

/// LMDB in C calls, one row an object under an integer key: the floor under our pages. Each C function stands here once.
///
/// One environment, used by one thread; one transaction at a time.
public final class RawLMDB {
    /// What a commit waits for.
    public enum Sync { case everyCommit, never }

    public struct Failure: Error, CustomStringConvertible {
        public var description: String
    }

    public struct Table { fileprivate var number: MDB_dbi }

    private var environment: OpaquePointer?
    private var transaction: OpaquePointer?

    public static var version: String {
        "\(MDB_VERSION_MAJOR).\(MDB_VERSION_MINOR).\(MDB_VERSION_PATCH)"
    }

    public init(path: String, tables: Int, mapBytes: Int = 16 << 30, sync: Sync) throws {
        try Self.check(mdb_env_create(&environment))
        try Self.check(mdb_env_set_mapsize(environment, mapBytes))
        try Self.check(mdb_env_set_maxdbs(environment, UInt32(tables)))
        let flags = UInt32(MDB_NOSUBDIR | MDB_NOTLS) | (sync == .never ? UInt32(MDB_NOSYNC) : 0)
        try Self.check(mdb_env_open(environment, path, flags, 0o644))
    }

    deinit {
        if let transaction { mdb_txn_abort(transaction) }
        mdb_env_close(environment)
    }

    public enum Purpose { case reading, writing }

    public func begin(_ purpose: Purpose) throws {
        try Self.check(mdb_txn_begin(environment, nil, purpose == .reading ? UInt32(MDB_RDONLY) : 0, &transaction))
    }

    public func commit() throws {
        let ending = transaction
        transaction = nil
        try Self.check(mdb_txn_commit(ending))
    }

    /// In a write transaction: a table of rows under integer keys.
    public func makeTable(_ name: String) throws -> Table { try table(name, MDB_CREATE | MDB_INTEGERKEY) }

    /// In a write transaction: a table of sorted integers under integer keys, for indexes.
    public func makeIndex(_ name: String) throws -> Table {
        try table(name, MDB_CREATE | MDB_INTEGERKEY | MDB_DUPSORT | MDB_DUPFIXED | MDB_INTEGERDUP)
    }

    private func table(_ name: String, _ flags: Int32) throws -> Table {
        var number = MDB_dbi()
        try Self.check(mdb_dbi_open(transaction, name, UInt32(flags), &number))
        return Table(number: number)
    }

    public func put(_ table: Table, key: UInt64, _ row: UnsafeRawBufferPointer) throws {
        var number = key
        try withUnsafeMutableBytes(of: &number) { bytes in
            var key = MDB_val(mv_size: bytes.count, mv_data: bytes.baseAddress)
            var value = MDB_val(mv_size: row.count, mv_data: UnsafeMutableRawPointer(mutating: row.baseAddress))
            try Self.check(mdb_put(transaction, table.number, &key, &value, 0))
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

    /// The row of a key, valid inside `body` only; nil when there is none.
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

    /// Every row in the order of keys; a row is valid inside `body` only.
    public func forEach(_ table: Table, _ body: (UnsafeRawBufferPointer) throws -> Void) throws {
        var cursor: OpaquePointer?
        try Self.check(mdb_cursor_open(transaction, table.number, &cursor))
        defer { mdb_cursor_close(cursor) }
        var key = MDB_val()
        var value = MDB_val()
        var status = mdb_cursor_get(cursor, &key, &value, MDB_FIRST)
        while status == MDB_SUCCESS {
            try body(UnsafeRawBufferPointer(start: value.mv_data, count: value.mv_size))
            status = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)
        }
        if status != MDB_NOTFOUND { try Self.check(status) }
    }

    private static func check(_ status: Int32) throws {
        guard status == MDB_SUCCESS else { throw Failure(description: String(cString: mdb_strerror(status))) }
    }
}
