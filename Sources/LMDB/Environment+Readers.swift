internal import CLMDB

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

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
        let code = withUnsafeMutablePointer(to: &lines) { lines in
            mdb_reader_list(
                pointer,
                { text, context in
                    guard let text, let context else { return 0 }
                    context.assumingMemoryBound(to: String.self).pointee += String(cString: text)
                    return 0
                }, lines)
        }
        // The count of lines, or an error.
        guard code >= 0 else { throw LMDBError(returnCode: code, call: .readerList) }
        return lines.split(separator: "\n").compactMap(Self.slot)
    }

    /// A line is a process id, a thread and a transaction number, or "-" for none. The first line names the columns.
    private static func slot(_ line: Substring) -> ReaderSlot? {
        let parts = line.split(separator: " ", omittingEmptySubsequences: true)
        guard parts.count == 3, let process = Int32(parts[0]), let transaction = UInt64(parts[2]) else { return nil }
        return ReaderSlot(processID: process, transactionNumber: transaction)
    }
}
