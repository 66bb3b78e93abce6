import Foundation
import StoreFiles
import StoreInterface
import StoreModel

/// Reads the tables of any SQLite database, for imports. One thread uses it.
package struct DatabaseReader {
    private let connection: SQLiteConnection
    /// The file if it is read without locks; nil for another one.
    private let frozen: FrozenFile?

    /// Opens a database read-only, without changing it or its folder.
    ///
    /// A database in WAL mode that no process has open has no log. SQLite would leave an empty one, so such a file is read without locks.
    /// - Throws: `StoreError` for a file that is missing, cannot be read, or is not a database.
    package init(path: String) throws {
        let resolved = try StoreFile.resolved(URL(fileURLWithPath: path, isDirectory: false)).path
        let role = try SQLiteFile.readOnlyRole(resolved)
        let isUnused = Self.isUnusedInLogMode(resolved)
        frozen = isUnused ? FrozenFile(resolved) : nil
        connection = try SQLiteConnection(path: resolved, role: isUnused ? .frozen : role, name: path)
    }

    /// Returns whether a database is in WAL mode, and there is no log or journal beside it.
    private static func isUnusedInLogMode(_ path: String) -> Bool {
        guard ["-wal", "-shm", "-journal"].allSatisfy({ !FileManager.default.fileExists(atPath: path + $0) }),
            let handle = FileHandle(forReadingAtPath: path)
        else { return false }
        defer { try? handle.close() }
        // The versions that are needed for writing and for reading the file.
        return (try? handle.read(upToCount: 20))?.suffix(2).elementsEqual([2, 2]) == true
    }

    /// Throws if another process may have written a file that is read without locks.
    private func checkUnchanged() throws {
        guard let frozen, frozen.isChanged else { return }
        throw StoreError(
            .inUseElsewhere, "\(frozen.path) was written by another process while it was read. Close it there, and try again")
    }

    /// Runs `body` in one read transaction, so that all rows are of one state.
    package func reading<R>(_ body: () throws -> R) throws -> R {
        try connection.withLock {
            try connection.run("BEGIN")
            defer { try? connection.run("COMMIT") }
            let result = try body()
            try checkUnchanged()
            return result
        }
    }

    /// Calls `body` with each row that a query selects. The row is valid inside `body` only.
    package func forEachRow(_ sql: String, _ body: (DatabaseRow) throws -> Void) throws {
        try connection.withLock {
            let statement = try connection.statement(sql)
            defer { statement.reset() }
            while try statement.step() { try body(DatabaseRow(statement: statement)) }
        }
    }
}

/// One row of a query. Columns count from 0.
package struct DatabaseRow {
    fileprivate let statement: SQLiteStatement

    /// Returns a value with the storage class that it has in the file: null, int, double, string or data. A text that is not UTF-8 is
    /// returned as data.
    package func value(_ column: Int) -> Value { statement.storedValue(column) }
    /// Returns whether a value is a text, of whatever bytes.
    package func isText(_ column: Int) -> Bool { statement.isText(column) }
    /// Returns a value as text; an empty text for null.
    package func text(_ column: Int) -> String { statement.text(column) }
    /// Returns a value as an integer; 0 for null.
    package func integer(_ column: Int) -> Int64 { statement.integer(column) }
}
