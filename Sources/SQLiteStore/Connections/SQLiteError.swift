internal import CSQLite

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
