internal import CLMDB
internal import Platform

/// One slot of the table of readers in the lock file, with a read transaction in it.
public struct ReaderSlot: Sendable, Hashable {
    public var processID: Int32
    /// The number of the commit that it reads.
    public var transactionNumber: UInt64
}

extension Environment {
    /// The read transactions of all processes. Slots kept for reuse are left out. O(slots).
    public func activeReaders() throws(LMDBError) -> [ReaderSlot] {
        var lines = ""
        let code = try staying { () throws(LMDBError) in try listReaders(into: &lines) }
        // The count of lines, or an error.
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

    /// A line is a process id, a thread and a transaction number, or "-" for none. The first line names the columns.
    private static func slot(_ line: Substring) -> ReaderSlot? {
        let parts = line.split(separator: " ", omittingEmptySubsequences: true)
        guard parts.count == 3, let process = Int32(parts[0]), let transaction = UInt64(parts[2]) else { return nil }
        return ReaderSlot(processID: process, transactionNumber: transaction)
    }
}

// MARK: When every slot is taken

extension Environment.Readers {
    /// Gives the slots back that are kept for reuse.
    mutating func dropUnused() {
        for unused in idle + [spare].compactMap(\.self) { mdb_txn_abort(unused.pointer) }
        idle = []
        spare = nil
    }
}

extension Environment {
    /// Keeps a slot for a read transaction that begins when all others are taken. Who is about to commit asks for it, so as
    /// to read what it has written. About 20 ns when there is one.
    /// - Throws: ``LMDBError`` `.readersFull`.
    public func reserveReader() throws(LMDBError) {
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

    /// A new read transaction, in a slot of a dead process if need be.
    func beginOrClearDead() throws(LMDBError) -> Reader {
        do throws(LMDBError) {
            return try begin()
        } catch {
            guard error.code == .readersFull, try clearDeadReadersNow() > 0 else { throw error }
            return try begin()
        }
    }

    /// A new one that counts as live from its beginning on: the map stays where it is.
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
        try check(.begin) { mdb_txn_begin(pointer, nil, UInt32(MDB_RDONLY), &begun) }
        guard let begun else { throw LMDBError(returnCode: MDB_BAD_TXN, call: .begin) }
        return Reader(pointer: begun)
    }

    /// Runs a call that takes a slot by itself, once more when all were taken: without the slots kept here for reuse, and those of
    /// dead processes.
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
