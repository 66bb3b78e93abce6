internal import CLMDB
internal import Platform

/// The one write transaction of a file, on the thread that began it. Not `Sendable`; ended by ``Environment/write(_:)``.
public final class WriteTransaction {
    // Right because `Environment.write` ends the transaction after its body, and nobody keeps it longer.
    let pointer: OpaquePointer

    /// Whether something may have been written.
    public private(set) var isChanged = false

    fileprivate init(_ pointer: OpaquePointer) { self.pointer = pointer }

    /// The number that this commit will have.
    public var transactionNumber: UInt64 { UInt64(mdb_txn_id(pointer)) }

    /// The value of a key, valid until the next write in this transaction.
    public func get(_ database: Database, _ key: UInt64) throws(LMDBError) -> UnsafeRawBufferPointer? {
        try lookUp(pointer, database, key)
    }

    public func get(_ database: Database, _ key: UnsafeRawBufferPointer) throws(LMDBError) -> UnsafeRawBufferPointer? {
        try lookUp(pointer, database, key)
    }

    public func put(_ database: Database, _ key: UInt64, _ value: UnsafeRawBufferPointer) throws(LMDBError) {
        isChanged = true
        var value = MDB_val(value)
        try withNumber(key) { (key) throws(LMDBError) in
            try check(.put) { mdb_put(pointer, database.handle, &key, &value, 0) }
        }
    }

    public func put(_ database: Database, _ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws(LMDBError) {
        isChanged = true
        var key = MDB_val(key)
        var value = MDB_val(value)
        try check(.put) { mdb_put(pointer, database.handle, &key, &value, 0) }
    }

    /// Deletes a key with all its values.
    /// - Returns: whether it was there.
    @discardableResult
    public func delete(_ database: Database, _ key: UInt64) throws(LMDBError) -> Bool {
        isChanged = true
        return try withNumber(key) { (key) throws(LMDBError) in
            try found(.delete) { mdb_del(pointer, database.handle, &key, nil) }
        }
    }

    @discardableResult
    public func delete(_ database: Database, _ key: UnsafeRawBufferPointer) throws(LMDBError) -> Bool {
        isChanged = true
        var key = MDB_val(key)
        return try found(.delete) { mdb_del(pointer, database.handle, &key, nil) }
    }

    /// Deletes one value of a key.
    /// - Returns: whether it was there.
    @discardableResult
    public func delete(_ database: Database, _ key: UInt64, value: UInt64) throws(LMDBError) -> Bool {
        isChanged = true
        return try withNumber(key) { (key) throws(LMDBError) in
            try withNumber(value) { (value) throws(LMDBError) in
                try found(.delete) { mdb_del(pointer, database.handle, &key, &value) }
            }
        }
    }

    @discardableResult
    public func delete(_ database: Database, _ key: UnsafeRawBufferPointer, value: UInt64) throws(LMDBError) -> Bool {
        isChanged = true
        var key = MDB_val(key)
        return try withNumber(value) { (value) throws(LMDBError) in
            try found(.delete) { mdb_del(pointer, database.handle, &key, &value) }
        }
    }

    /// Deletes all entries of a sub-database.
    public func empty(_ database: Database) throws(LMDBError) {
        isChanged = true
        try check(.drop) { mdb_drop(pointer, database.handle, 0) }
    }

    /// Opens a sub-database, making it when there is none of that name.
    public func open(_ name: String, _ kind: Database.Kind) throws(LMDBError) -> Database {
        guard let opened = try openDatabase(pointer, name, kind.flags | UInt32(MDB_CREATE)) else {
            throw LMDBError(returnCode: MDB_NOTFOUND, call: .openDatabase)
        }
        return opened
    }

    public func statistics(_ database: Database) throws(LMDBError) -> DatabaseStatistics {
        try databaseStatistics(pointer, database)
    }

    /// Runs `body` with a cursor, which is valid inside only. Counts as a change.
    public func withCursor<R>(_ database: Database, _ body: (Cursor) throws -> R) throws -> R {
        isChanged = true
        let cursor = try Cursor(pointer, database, mapPageSize: nil)
        defer { cursor.close() }
        return try body(cursor)
    }
}

extension Environment {
    /// Runs the one write transaction on the calling thread and commits it: on disk when the call returns.
    ///
    /// Waits while another thread or process writes. A thrown error aborts and leaves nothing. Not to be nested: a thread
    /// that calls it inside `body` waits for itself.
    public func write<R>(_ body: (WriteTransaction) throws -> R) throws -> R {
        var begun: OpaquePointer?
        try check(.begin) { mdb_txn_begin(pointer, nil, 0, &begun) }
        guard let begun else { throw LMDBError(returnCode: MDB_BAD_TXN, call: .begin) }
        let result: R
        do {
            result = try body(WriteTransaction(begun))
        } catch {
            mdb_txn_abort(begun)
            throw error
        }
        try commit(begun)
        return result
    }

    /// The transaction has ended when this returns or throws.
    private func commit(_ transaction: OpaquePointer) throws(LMDBError) {
        #if DEBUG
            // A call that is made to fail must end the transaction all the same: the next would wait for it for ever.
            if let fault = LMDBFaults.injector?(.commit) {
                mdb_txn_abort(transaction)
                throw LMDBError(returnCode: fault, call: .commit)
            }
        #endif
        let code = mdb_txn_commit(transaction)
        guard code == MDB_SUCCESS else { throw LMDBError(returnCode: try cause(of: code), call: .commit) }
    }

    /// LMDB tells a write of which only a part found room as EIO: whether the disk is full is asked of the system.
    private func cause(of code: Int32) throws(LMDBError) -> Int32 {
        guard code == EIO else { return code }
        let used = try (information().lastPage + 1) * pageSize
        do throws(LMDBError) {
            // At most what a small transaction takes.
            try setAside(from: used, to: used + 1 << 20)
            return code
        } catch {
            return error.code == .diskFull ? error.returnCode : code
        }
    }

    /// Opens sub-databases in a read transaction of their own, so that the handles stay valid when `body` returns.
    public func openDatabases<R>(_ body: (HandleTransaction) throws -> R) throws -> R {
        let begun = try takingSlot { () throws(LMDBError) in try beginCounted().pointer }
        defer { readers.withLock { $0.live -= 1 } }
        let result: R
        do {
            result = try body(HandleTransaction(begun))
        } catch {
            mdb_txn_abort(begun)
            throw error
        }
        // Committing keeps the handles; an abort would forget them.
        try commit(begun)
        return result
    }
}

/// A read transaction in which sub-databases are opened. Not `Sendable`; valid in ``Environment/openDatabases(_:)`` only.
public struct HandleTransaction {
    // Right because the transaction outlives the body to which this is passed.
    let pointer: OpaquePointer

    fileprivate init(_ pointer: OpaquePointer) { self.pointer = pointer }

    /// nil when there is none of that name.
    public func open(_ name: String, _ kind: Database.Kind) throws(LMDBError) -> Database? {
        try openDatabase(pointer, name, kind.flags)
    }

    public func get(_ database: Database, _ key: UInt64) throws(LMDBError) -> UnsafeRawBufferPointer? {
        try lookUp(pointer, database, key)
    }

    public func get(_ database: Database, _ key: UnsafeRawBufferPointer) throws(LMDBError) -> UnsafeRawBufferPointer? {
        try lookUp(pointer, database, key)
    }

    public func statistics(_ database: Database) throws(LMDBError) -> DatabaseStatistics {
        try databaseStatistics(pointer, database)
    }
}
