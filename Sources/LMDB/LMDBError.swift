internal import CLMDB
internal import Platform

/// An error of LMDB, or of the system below it: the call, its code, the usual cause and the remedy.
package struct LMDBError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kind of an error.
    package enum Code: Sendable, Hashable {
        /// `MDB_KEYEXIST`: the key, or the pair, already exists.
        case keyExists
        /// `MDB_NOTFOUND`
        case notFound
        /// `MDB_PAGE_NOTFOUND`, `MDB_CORRUPTED`: the file is damaged, or two environments wrote it at once.
        case damaged
        /// `MDB_PANIC`: a meta page could not be written, or the thread of a writer died. The environment refuses every later
        /// transaction.
        case unusableEnvironment
        /// `MDB_INVALID`: not an LMDB file.
        case notLMDB
        /// `MDB_VERSION_MISMATCH`: a file of another release line of the library.
        case versionMismatch
        /// `MDB_MAP_FULL`: the map has no room for what the transaction writes.
        case mapFull
        /// `MDB_MAP_RESIZED`: another process has made the file larger than this process's map.
        case mapResized
        /// `MDB_DBS_FULL`: more sub-databases than the environment was opened for.
        case databasesFull
        /// `MDB_READERS_FULL`: every reader slot is in use.
        case readersFull
        /// `MDB_TXN_FULL`: one transaction has written too many pages.
        case transactionFull
        /// `MDB_BAD_TXN`: the transaction has failed before, or has ended.
        case badTransaction
        /// `MDB_BAD_VALSIZE`: a key that is empty or longer than 511 bytes, or a number of another width.
        case badValueSize
        /// `MDB_INCOMPATIBLE`, `MDB_BAD_DBI`: a sub-database was opened with other flags.
        case incompatible
        /// `MDB_BAD_RSLOT`: a thread used the reader slot of another thread.
        case badReaderSlot
        /// `ENOSPC`, `EDQUOT`, `EFBIG`
        case diskFull
        /// `EACCES`, `EROFS`, `EPERM`
        case permission
        /// Any other error number of the system.
        case system(Int32)
    }

    /// The kind of the error.
    package var code: Code
    /// The number that the call returned.
    package var returnCode: Int32
    /// The call that failed.
    package var call: LMDBCall

    /// Creates the error of a call from its result, which is a code of LMDB or an error number of the system.
    package init(returnCode: Int32, call: LMDBCall) {
        code = Self.code(returnCode)
        self.returnCode = returnCode
        self.call = call
    }

    /// The error of a full map, for callers that detect it before LMDB does.
    package static let full = LMDBError(returnCode: MDB_MAP_FULL, call: .put)

    /// The call, the reason with its number, and the remedy, as one line.
    package var description: String { "\(call.rawValue): \(reason) (\(returnCode)). \(remedy)" }

    /// The description by the library.
    package var reason: String { mdb_strerror(returnCode).map { String(cString: $0) } ?? "unknown error" }

    /// The usual cause of the error, and the remedy.
    package var remedy: String {
        switch code {
        case .keyExists: "The key already exists: put without the flag that forbids it, or delete the key first."
        case .notFound: "There is no such key."
        case .damaged: "The file is damaged, or was open twice in one process: restore it from a copy."
        case .unusableEnvironment: "An earlier write has failed, and the file takes no further ones: close it, and open it again."
        case .notLMDB: "This is not an LMDB file: check the path."
        case .versionMismatch where call == .version:
            "The layout of pages is known for LMDB \(LMDBLibrary.knownLine) only: link a library of that release line."
        case .versionMismatch: "The file is of another LMDB release line than \(LMDBLibrary.line): export there, import here."
        case .mapFull: "The map is full: enlarge it, or delete something."
        case .mapResized: "Another process enlarged the file: adopt its size while no transaction is open."
        case .databasesFull: "Open the environment for more sub-databases."
        case .readersFull: "All reader slots are in use: drop snapshots, clear dead readers, or open with more slots."
        case .transactionFull: "Write less in one transaction."
        case .badTransaction: "The transaction has failed or ended: begin another."
        case .badValueSize: "Keys have 1 to 511 bytes; integer keys have 8."
        case .incompatible: "Open the sub-database with the flags that it was made with."
        case .badReaderSlot: "Use a read transaction from one thread at a time."
        case .diskFull: "Make room on the disk, or raise the limit of the file's size."
        case .permission: "Check the permissions of the file and its folder."
        case .system: "Check the path, the disk, whether it is full, and the limits of the process."
        }
    }

    private static func code(_ number: Int32) -> Code {
        switch number {
        case MDB_KEYEXIST: .keyExists
        case MDB_NOTFOUND: .notFound
        case MDB_PAGE_NOTFOUND, MDB_CORRUPTED: .damaged
        case MDB_PANIC: .unusableEnvironment
        case MDB_INVALID: .notLMDB
        case MDB_VERSION_MISMATCH: .versionMismatch
        case MDB_MAP_FULL: .mapFull
        case MDB_MAP_RESIZED: .mapResized
        case MDB_DBS_FULL: .databasesFull
        case MDB_READERS_FULL: .readersFull
        case MDB_TXN_FULL, MDB_CURSOR_FULL, MDB_PAGE_FULL, MDB_TLS_FULL: .transactionFull
        case MDB_BAD_TXN: .badTransaction
        case MDB_BAD_VALSIZE: .badValueSize
        case MDB_INCOMPATIBLE, MDB_BAD_DBI: .incompatible
        case MDB_BAD_RSLOT: .badReaderSlot
        case _ where SystemError(number: number).isDiskFull: .diskFull
        case _ where SystemError(number: number).isPermission: .permission
        default: .system(number)
        }
    }
}
