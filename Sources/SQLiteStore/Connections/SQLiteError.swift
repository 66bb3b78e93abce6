internal import CSQLite
internal import Platform
import StoreInterface
import StoreModel

/// An error of SQLite: the `cause` of a `StoreError` of an ``SQLiteStore``.
///
/// ```swift
/// do {
///     return try SQLiteStore(url: url, schema: schema)
/// } catch let error as StoreError {
///     if let cause = error.cause as? SQLiteError { log("SQLite's code is \(cause.code)") }
///     throw error
/// }
/// ```
public struct SQLiteError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The extended result code of SQLite, such as 778 for `SQLITE_IOERR_WRITE`. Its lowest byte is the primary code.
    public let code: Int32
    /// SQLite's message, in English.
    public let message: String

    /// Creates the error of a call that has just failed.
    ///
    /// - Parameter database: The connection; nil if SQLite could not allocate one.
    init(code: Int32, database: OpaquePointer?) {
        self.code = code
        // The connection's message is of its last call, which may be later than the one that failed. A call before the connection has
        // extended codes returns the primary one.
        let last = database.map { sqlite3_extended_errcode($0) }
        let isLast = last == code || last.map { $0 & 0xff } == code
        message = String(cString: isLast ? sqlite3_errmsg(database) : sqlite3_errstr(code))
    }

    /// The message and the code: `disk I/O error (SQLite 778)`.
    public var description: String { "\(message) (SQLite \(code))" }
}

extension StoreError {
    /// Returns the error of the last call if it failed because there was no room; nil if it failed for another reason.
    ///
    /// SQLite itself reports only one of three causes as a full disk. It keeps the system's error number for some calls, but not for a
    /// commit. After a failed commit, the thread's `errno` is still that of the write. No other call may therefore come between.
    static func full(_ code: Int32, database: OpaquePointer, path: String) -> StoreError? {
        let wasFull =
            code & 0xff == SQLITE_IOERR
            && (SystemError.last.isDiskFull || SystemError(number: sqlite3_system_errno(database)).isDiskFull)
        guard wasFull || code & 0xff == SQLITE_FULL else { return nil }
        let cause = SQLiteError(code: code, database: database)
        return StoreError(
            .full, "\(path): \(cause.message). Make room on the disk, or raise the limit of the file's size", cause: cause)
    }
}
