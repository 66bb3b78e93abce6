import Foundation
import GRDB
internal import GRDBSQLite
import StoreInterface

/// Copies a database with SQLite's backup API, checks the copy, and marks it as one.
enum SQLiteCopy {
    /// How many pages are copied between two looks at the cancellation.
    private static let pagesAtOnce: Int32 = 1024

    /// - Returns: the newest save that the copy has.
    /// - Throws: `StoreError` `.full`, `.inputOutput`, `.damaged`; `CancellationError`.
    static func make(
        from path: String, role: SQLiteConnection.Role = .reader, to partial: PartialFile, _ cancellation: Cancellation
    ) throws -> Generation {
        let source = try SQLiteConnection(path: path, role: role)
        // Not in the write-ahead mode, so that all of the copy is in one file.
        let copy = try DatabaseQueue(path: partial.path)
        do {
            // One state, whatever is saved meanwhile: without a transaction the copy would begin again after each save.
            try source.run("BEGIN")
            defer { try? source.run("COMMIT") }
            _ = try source.integer("SELECT COUNT(*) FROM sqlite_master")
            return try copy.inDatabase { database in
                guard let handle = database.sqliteConnection else {
                    throw StoreError(.cannotOpen, "\(partial.target): the connection closed at once. Try again")
                }
                try source.backup(to: handle, pagesAtOnce: pagesAtOnce) { try cancellation.check() }
                database.clearSchemaCache()
                return try finish(database, partial)
            }
        } catch let error as DatabaseError {
            let reason = "\(partial.target): \(error.message ?? error.resultCode.description)"
            let isFull =
                error.resultCode == .SQLITE_FULL
                || (error.resultCode == .SQLITE_IOERR
                    && copy.inDatabase { $0.sqliteConnection.map(SQLiteStatement.hadNoRoom) ?? false })
            throw isFull
                ? StoreError(.full, "\(reason). Make room on the disk, or raise the limit of the file's size")
                : StoreError(.inputOutput, "\(reason). Check the disk")
        }
    }

    private static func finish(_ copy: Database, _ partial: PartialFile) throws -> Generation {
        let findings = try String.fetchAll(copy, sql: "PRAGMA quick_check")
        guard findings == ["ok"] else {
            throw StoreError(
                .damaged, "\(partial.target) was not made, because the copy is damaged: \(findings). Verify the store")
        }
        guard try copy.tableExists("strata_meta"),
            let generation = try Int64.fetchOne(copy, sql: "SELECT generation FROM strata_state")
        else {
            throw StoreError(
                .notAStore, "\(partial.target) was not made, because the database is one of another program. Choose another file")
        }
        try copy.execute(sql: "PRAGMA journal_mode = DELETE")
        try copy.execute(
            sql: "INSERT OR REPLACE INTO strata_meta VALUES (?, ?)", arguments: [SQLiteLineage.copyMark, UUID().uuidString])
        return Generation(bitPattern: generation)
    }
}
