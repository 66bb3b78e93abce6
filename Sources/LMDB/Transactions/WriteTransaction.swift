internal import CLMDB
internal import Platform

/// The single write transaction of a file, on the thread that began it. It is not `Sendable`. ``Environment/write(_:)`` ends
/// it.
package final class WriteTransaction {
    // Right because `Environment.write` ends the transaction after its body, and no caller keeps it longer.
    let pointer: OpaquePointer
    private let environment: Environment

    /// Whether the transaction may have written anything.
    package private(set) var isChanged = false

    fileprivate init(_ pointer: OpaquePointer, _ environment: Environment) {
        self.pointer = pointer
        self.environment = environment
    }

    /// The number that this commit will have.
    package var transactionNumber: UInt64 { UInt64(mdb_txn_id(pointer)) }

    /// Returns the value of a key, which is valid until the next write in this transaction.
    package func get(_ database: Database, _ key: UInt64) throws(LMDBError) -> UnsafeRawBufferPointer? {
        try lookUp(pointer, database: database, key: key)
    }

    /// Returns the value of a key of bytes, which is valid until the next write in this transaction.
    package func get(_ database: Database, _ key: UnsafeRawBufferPointer) throws(LMDBError) -> UnsafeRawBufferPointer? {
        try lookUp(pointer, database: database, key: key)
    }

    /// Writes a value under a number key, and replaces the key's value. Copies the bytes.
    /// - Throws: ``LMDBError`` `.mapFull`, after which the transaction can only be aborted.
    package func put(_ database: Database, key: UInt64, value: UnsafeRawBufferPointer) throws(LMDBError) {
        isChanged = true
        var value = MDB_val(value)
        try withNumber(key) { (key) throws(LMDBError) in
            try check(.put, of: .transaction(pointer)) { mdb_put(pointer, database.handle, &key, &value, 0) }
        }
    }

    /// Writes a value under a key of bytes, and replaces the key's value. Copies the bytes.
    /// - Throws: ``LMDBError`` `.mapFull`, after which the transaction can only be aborted.
    package func put(_ database: Database, key: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) throws(LMDBError) {
        isChanged = true
        var key = MDB_val(key)
        var value = MDB_val(value)
        try check(.put, of: .transaction(pointer)) { mdb_put(pointer, database.handle, &key, &value, 0) }
    }

    /// Deletes a key with all its values.
    /// - Returns: Whether the key existed.
    @discardableResult
    package func delete(_ database: Database, _ key: UInt64) throws(LMDBError) -> Bool {
        isChanged = true
        return try withNumber(key) { (key) throws(LMDBError) in
            try found(.delete, of: .transaction(pointer)) { mdb_del(pointer, database.handle, &key, nil) }
        }
    }

    /// Deletes a key of bytes with all its values.
    /// - Returns: Whether the key existed.
    @discardableResult
    package func delete(_ database: Database, _ key: UnsafeRawBufferPointer) throws(LMDBError) -> Bool {
        isChanged = true
        var key = MDB_val(key)
        return try found(.delete, of: .transaction(pointer)) { mdb_del(pointer, database.handle, &key, nil) }
    }

    /// Deletes one value of a key.
    /// - Returns: Whether the value existed.
    @discardableResult
    package func delete(_ database: Database, _ key: UInt64, value: UInt64) throws(LMDBError) -> Bool {
        isChanged = true
        return try withNumber(key) { (key) throws(LMDBError) in
            try withNumber(value) { (value) throws(LMDBError) in
                try found(.delete, of: .transaction(pointer)) { mdb_del(pointer, database.handle, &key, &value) }
            }
        }
    }

    /// Deletes one value of a key of bytes.
    /// - Returns: Whether the value existed.
    @discardableResult
    package func delete(_ database: Database, _ key: UnsafeRawBufferPointer, value: UInt64) throws(LMDBError) -> Bool {
        isChanged = true
        var key = MDB_val(key)
        return try withNumber(value) { (value) throws(LMDBError) in
            try found(.delete, of: .transaction(pointer)) { mdb_del(pointer, database.handle, &key, &value) }
        }
    }

    /// Deletes all entries of a sub-database.
    package func empty(_ database: Database) throws(LMDBError) {
        isChanged = true
        try check(.drop, of: .transaction(pointer)) { mdb_drop(pointer, database.handle, 0) }
    }

    /// Opens a sub-database, and creates it if it does not exist.
    package func open(_ name: String, _ kind: Database.Kind) throws(LMDBError) -> Database {
        guard let opened = try openDatabase(pointer, named: name, kind, flags: UInt32(MDB_CREATE)) else {
            throw LMDBError(returnCode: MDB_NOTFOUND, call: .openDatabase)
        }
        environment.note(opened, named: name, kind: kind)
        return opened
    }

    /// Returns the page and entry counts of a sub-database, with the changes of this transaction.
    package func statistics(_ database: Database) throws(LMDBError) -> DatabaseStatistics {
        try databaseStatistics(pointer, database)
    }

    /// Runs `body` with a cursor, which is valid only inside `body`. Counts as a change.
    package func withCursor<R>(_ database: Database, _ body: (Cursor) throws -> R) throws -> R {
        isChanged = true
        let cursor = try Cursor(pointer, database, mapPageSize: nil)
        defer { cursor.close() }
        return try body(cursor)
    }
}

extension Environment {
    /// Runs the single write transaction on the calling thread and commits it. The commit is on disk when the call returns.
    ///
    /// Waits while another thread or process writes. If `body` throws, the transaction is aborted and changes nothing. Do not
    /// nest calls: a thread that calls it inside `body` waits for itself.
    package func write<R>(_ body: (WriteTransaction) throws -> R) throws -> R {
        var begun: OpaquePointer?
        try check(.begin, of: .environment(pointer)) { mdb_txn_begin(pointer, nil, 0, &begun) }
        guard let begun else { throw LMDBError(returnCode: MDB_BAD_TXN, call: .begin) }
        let result: R
        do {
            result = try body(WriteTransaction(begun, self))
        } catch {
            mdb_txn_abort(begun)
            throw error
        }
        try commit(begun)
        return result
    }

    /// Commits a transaction. The transaction has ended when this method returns or throws.
    private func commit(_ transaction: OpaquePointer) throws(LMDBError) {
        #if DEBUG
            // An injected failure must also end the transaction. Otherwise the next transaction would wait for it forever.
            if let fault = LMDBFaults.fault(.commit, .environment(pointer)) {
                mdb_txn_abort(transaction)
                throw LMDBError(returnCode: fault, call: .commit)
            }
        #endif
        let code = mdb_txn_commit(transaction)
        guard code == MDB_SUCCESS else { throw LMDBError(returnCode: try cause(of: code), call: .commit) }
    }

    /// Returns the real cause of a failed write. LMDB reports a partial write for lack of space as EIO, so the system is
    /// asked whether the disk is full.
    private func cause(of code: Int32) throws(LMDBError) -> Int32 {
        guard code == SystemError.failedTransfer.number else { return code }
        let used = try (information().lastPage + 1) * pageSize
        do throws(LMDBError) {
            // The maximum space that a small transaction needs.
            try reserve(from: used, to: used + 1 << 20)
            return code
        } catch {
            return error.code == .diskFull ? error.returnCode : code
        }
    }

    /// Opens sub-databases in a read transaction of their own, so that the handles stay valid after `body` returns.
    package func openDatabases<R>(_ body: (HandleTransaction) throws -> R) throws -> R {
        let begun = try takingSlot { () throws(LMDBError) in try beginCounted().pointer }
        defer { readers.withLock { $0.live -= 1 } }
        let result: R
        do {
            result = try body(HandleTransaction(begun, self))
        } catch {
            mdb_txn_abort(begun)
            throw error
        }
        // A commit keeps the handles; an abort would close them.
        try commit(begun)
        return result
    }
}

/// A read transaction in which sub-databases are opened. It is not `Sendable`, and is valid only in
/// ``Environment/openDatabases(_:)``.
package struct HandleTransaction {
    // Right because the transaction outlives the body that uses it.
    let pointer: OpaquePointer
    private let environment: Environment

    fileprivate init(_ pointer: OpaquePointer, _ environment: Environment) {
        self.pointer = pointer
        self.environment = environment
    }

    /// Opens a sub-database. Returns nil if it does not exist.
    package func open(_ name: String, _ kind: Database.Kind) throws(LMDBError) -> Database? {
        guard let opened = try openDatabase(pointer, named: name, kind) else { return nil }
        environment.note(opened, named: name, kind: kind)
        return opened
    }

    /// Opens a sub-database of any kind. Returns nil if it does not exist, or has a kind that Strata never creates.
    func openAny(_ name: String) throws(LMDBError) -> (database: Database, kind: Database.Kind)? {
        guard let opened = try openDatabase(pointer, named: name, flags: 0),
            let kind = Database.Kind(flags: try databaseFlags(pointer, opened))
        else { return nil }
        environment.note(opened, named: name, kind: kind)
        return (opened, kind)
    }

    /// Returns the value of a number key, or nil if the key does not exist. The bytes are valid inside the body.
    package func get(_ database: Database, _ key: UInt64) throws(LMDBError) -> UnsafeRawBufferPointer? {
        try lookUp(pointer, database: database, key: key)
    }

    /// Returns the value of a key of bytes, or nil if the key does not exist. The bytes are valid inside the body.
    package func get(_ database: Database, _ key: UnsafeRawBufferPointer) throws(LMDBError) -> UnsafeRawBufferPointer? {
        try lookUp(pointer, database: database, key: key)
    }

    /// Returns the page and entry counts of a sub-database.
    package func statistics(_ database: Database) throws(LMDBError) -> DatabaseStatistics {
        try databaseStatistics(pointer, database)
    }
}
