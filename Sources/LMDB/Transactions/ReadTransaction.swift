internal import CLMDB
internal import Platform

/// One immutable state of the file. The transaction ends when its last reference is released. Its reader slot is then kept
/// for reuse.
///
/// Any number of threads may use it. A lock serializes the calls and is acquired only for the lookup. Results point into the
/// map. They stay valid and unchanged as long as the transaction is referenced.
///
/// `@unchecked Sendable` is right because of that lock.
package final class ReadTransaction: @unchecked Sendable {
    /// The environment that the transaction reads.
    package let environment: Environment
    // Right because it is used only under `lock`, and returns to the environment's pool in `deinit`.
    private let reader: Environment.Reader
    // Threads that share a snapshot acquire it briefly for each page that they look up.
    private let lock = PthreadMutex(())
    private let isEnded = Atomic(false)

    /// Begins a transaction. Takes about 1 µs, and less if a reader slot is kept for reuse. Never waits for a writer.
    package init(_ environment: Environment) throws(LMDBError) {
        self.environment = environment
        reader = try environment.beginReader()
    }

    deinit { end() }

    /// Ends the transaction before its last reference is released, so that the environment can be closed. No reads may
    /// follow.
    package func end() {
        guard isEnded.exchange(true, ordering: .acquiringAndReleasing) == false else { return }
        environment.endReader(reader)
    }

    /// The number of the commit that created this state.
    package var transactionNumber: UInt64 { UInt64(mdb_txn_id(reader.pointer)) }

    /// Returns the value of a key. O(depth of the tree), 0.1 to 0.3 µs.
    package func get(_ database: Database, _ key: UInt64) throws(LMDBError) -> UnsafeRawBufferPointer? {
        try withPointer { (pointer) throws(LMDBError) in try lookUp(pointer, database: database, key: key) }
    }

    /// Returns the value of a key of bytes, or nil if the key does not exist. O(depth of the tree).
    package func get(_ database: Database, _ key: UnsafeRawBufferPointer) throws(LMDBError) -> UnsafeRawBufferPointer? {
        try withPointer { (pointer) throws(LMDBError) in try lookUp(pointer, database: database, key: key) }
    }

    /// Runs `body` with a cursor. Other threads wait for it, so it should be short.
    @inlinable
    package func withCursor<R>(_ database: Database, _ body: (Cursor) throws -> R) throws -> R {
        var result: R?
        try useCursor(database) { cursor in result = try body(cursor) }
        // Right because a call that does not throw has run `body`.
        return result.unsafelyUnwrapped
    }

    /// Runs `body` with a cursor. Not generic, because a generic function is not specialized for other modules, and then takes as long as
    /// the search of a key.
    @usableFromInline
    package func useCursor(_ database: Database, _ body: (Cursor) throws -> Void) throws {
        try lock.withLock { _ in
            let cursor = try Cursor(reader.pointer, database, mapPageSize: environment.pageSize)
            defer { cursor.close() }
            try body(cursor)
        }
    }

    /// Returns the page and entry counts of a sub-database. Costs about as much as a look-up.
    package func statistics(_ database: Database) throws(LMDBError) -> DatabaseStatistics {
        try withPointer { (pointer) throws(LMDBError) in try databaseStatistics(pointer, database) }
    }

    @inline(__always)
    func withPointer<R, E: Error>(_ body: (OpaquePointer) throws(E) -> R) throws(E) -> R {
        let outcome: Result<R, E> = lock.withLock { _ in
            do throws(E) { return .success(try body(reader.pointer)) } catch { return .failure(error) }
        }
        return try outcome.get()
    }
}

extension Environment {
    func beginReader() throws(LMDBError) -> Reader {
        let outcome: Result<Reader, LMDBError> = readers.withLock { readers in
            do throws(LMDBError) {
                try readers.checkUsable()
                let begun = try renewOrBegin(&readers)
                readers.live += 1
                return .success(begun)
            } catch {
                return .failure(error)
            }
        }
        return try outcome.get()
    }

    private func renewOrBegin(_ readers: inout Readers) throws(LMDBError) -> Reader {
        if let idle = readers.idle.popLast() { return try renew(idle) }
        do throws(LMDBError) {
            return try beginOrClearDead()
        } catch {
            guard error.code == .readersFull, let spare = readers.spare else { throw error }
            readers.spare = nil
            return try renew(spare)
        }
    }

    private func renew(_ reader: Reader) throws(LMDBError) -> Reader {
        do throws(LMDBError) {
            try check(.renew, of: .transaction(reader.pointer)) { mdb_txn_renew(reader.pointer) }
            return reader
        } catch {
            mdb_txn_abort(reader.pointer)
            throw error
        }
    }

    func endReader(_ reader: Reader) {
        // In a forked child, the slot belongs to the parent.
        guard !isOfForkedParent else { return }
        readers.withLock { readers in
            readers.live -= 1
            if readers.idle.count < Self.maximumIdleReaders {
                mdb_txn_reset(reader.pointer)
                readers.idle.append(reader)
            } else {
                mdb_txn_abort(reader.pointer)
            }
        }
    }
}

func lookUp(_ transaction: OpaquePointer, database: Database, key: UInt64) throws(LMDBError) -> UnsafeRawBufferPointer? {
    if database == .absent { return nil }
    var value = MDB_val()
    let isThere = try withNumber(key) { (key) throws(LMDBError) in
        try found(.get, of: .transaction(transaction)) { mdb_get(transaction, database.handle, &key, &value) }
    }
    return isThere ? value.bytes : nil
}

func lookUp(
    _ transaction: OpaquePointer, database: Database, key: UnsafeRawBufferPointer
) throws(LMDBError) -> UnsafeRawBufferPointer? {
    var key = MDB_val(key)
    var value = MDB_val()
    return try found(.get, of: .transaction(transaction)) { mdb_get(transaction, database.handle, &key, &value) }
        ? value.bytes : nil
}

func openDatabase(_ transaction: OpaquePointer, named name: String, flags: UInt32) throws(LMDBError) -> Database? {
    var handle: UInt32 = 0
    guard try found(.openDatabase, of: .transaction(transaction), { mdb_dbi_open(transaction, name, flags, &handle) }) else {
        return nil
    }
    return Database(handle: handle)
}

/// Opens a sub-database, and checks its kind. LMDB takes the kind from the file, and would look for keys in another order.
func openDatabase(
    _ transaction: OpaquePointer, named name: String, _ kind: Database.Kind, flags: UInt32 = 0
) throws(LMDBError) -> Database? {
    guard let opened = try openDatabase(transaction, named: name, flags: kind.flags | flags) else { return nil }
    let found = try databaseFlags(transaction, opened)
    guard found == kind.flags else { throw LMDBError(returnCode: MDB_INCOMPATIBLE, call: .openDatabase) }
    return opened
}

/// Returns the flags of a sub-database in the file.
func databaseFlags(_ transaction: OpaquePointer, _ database: Database) throws(LMDBError) -> UInt32 {
    var flags: UInt32 = 0
    try check(.databaseFlags, of: .transaction(transaction)) { mdb_dbi_flags(transaction, database.handle, &flags) }
    return flags
}

func databaseStatistics(_ transaction: OpaquePointer, _ database: Database) throws(LMDBError) -> DatabaseStatistics {
    var stat = MDB_stat()
    if database != .absent {
        try check(.statistics, of: .transaction(transaction)) { mdb_stat(transaction, database.handle, &stat) }
    }
    return DatabaseStatistics(stat)
}
