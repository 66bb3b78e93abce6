internal import CLMDB
internal import Platform

/// A slot of the reader table in the lock file that has a read transaction.
package struct ReaderSlot: Sendable, Hashable {
    /// The id of the process that reads.
    package var processID: Int32
    /// The number of the commit that the transaction reads.
    package var transactionNumber: UInt64
}

extension Environment {
    /// Returns the read transactions of all processes, without the slots kept for reuse. O(slots).
    package func activeReaders() throws(LMDBError) -> [ReaderSlot] {
        var lines = ""
        let code = try staying { () throws(LMDBError) in try listReaders(into: &lines) }
        // The result is the number of lines, or an error.
        guard code >= 0 else { throw LMDBError(returnCode: code, call: .readerList) }
        return lines.split(separator: "\n").compactMap(Self.slot)
    }

    private func listReaders(into lines: inout String) throws(LMDBError) -> Int32 {
        withUnsafeMutablePointer(to: &lines) { lines in
            mdb_reader_list(
                pointer,
                { text, context in
                    guard let text, let context else { return 0 }
                    context.assumingMemoryBound(to: String.self).pointee += String(cString: text)
                    return 0
                }, lines)
        }
    }

    /// Parses a line of a process id, a thread and a transaction number, where "-" means no transaction. The first line
    /// contains the column names.
    private static func slot(_ line: Substring) -> ReaderSlot? {
        let parts = line.split(separator: " ", omittingEmptySubsequences: true)
        guard parts.count == 3, let process = Int32(parts[0]), let transaction = UInt64(parts[2]) else { return nil }
        return ReaderSlot(processID: process, transactionNumber: transaction)
    }
}

// MARK: When all slots are in use

extension Environment.Readers {
    /// Releases the slots that are kept for reuse.
    mutating func dropUnused() {
        for unused in idle + [spare].compactMap(\.self) { mdb_txn_abort(unused.pointer) }
        idle = []
        spare = nil
    }
}

extension Environment {
    /// Reserves a slot for a read transaction that begins when all other slots are in use. A writer calls it before a commit,
    /// so that it can read its own commit. Takes about 20 ns if the slot is already reserved.
    /// - Throws: ``LMDBError`` `.readersFull`.
    package func reserveReader() throws(LMDBError) {
        let outcome: Result<Void, LMDBError> = readers.withLock { readers in
            guard readers.spare == nil else { return .success(()) }
            do throws(LMDBError) {
                if let idle = readers.idle.popLast() {
                    readers.spare = idle
                } else {
                    let begun = try beginOrClearDead()
                    mdb_txn_reset(begun.pointer)
                    readers.spare = begun
                }
                return .success(())
            } catch {
                return .failure(error)
            }
        }
        try outcome.get()
    }

    /// Begins a new read transaction. If all slots are in use, clears the slots of dead processes and tries again.
    func beginOrClearDead() throws(LMDBError) -> Reader {
        do throws(LMDBError) {
            return try begin()
        } catch {
            guard error.code == .readersFull, try clearDeadReadersNow() > 0 else { throw error }
            return try begin()
        }
    }

    /// Begins a new read transaction that counts as live from its beginning, so that the map is not moved.
    func beginCounted() throws(LMDBError) -> Reader {
        let outcome: Result<Reader, LMDBError> = readers.withLock { readers in
            do throws(LMDBError) {
                try readers.checkUsable()
                let begun = try beginOrClearDead()
                readers.live += 1
                return .success(begun)
            } catch {
                return .failure(error)
            }
        }
        return try outcome.get()
    }

    private func begin() throws(LMDBError) -> Reader {
        var begun: OpaquePointer?
        try check(.begin, of: .environment(pointer)) { mdb_txn_begin(pointer, nil, UInt32(MDB_RDONLY), &begun) }
        guard let begun else { throw LMDBError(returnCode: MDB_BAD_TXN, call: .begin) }
        return Reader(pointer: begun)
    }

    /// Runs a call that takes a slot by itself. If all slots are in use, frees the slots kept for reuse and those of dead
    /// processes, and tries once more.
    func takingSlot<R>(_ body: () throws(LMDBError) -> R) throws(LMDBError) -> R {
        do throws(LMDBError) {
            return try body()
        } catch {
            guard error.code == .readersFull else { throw error }
            dropIdleReaders()
            try clearDeadReaders()
            return try body()
        }
    }
}
