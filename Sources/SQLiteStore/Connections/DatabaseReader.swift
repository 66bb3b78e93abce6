import Foundation
import StoreFiles
import StoreInterface
import StoreModel

/// Reads the tables of any SQLite database, for imports. One thread uses it.
package struct DatabaseReader {
    private let connection: SQLiteConnection

    /// Opens a database read-only, without changing it.
    /// - Throws: `StoreError` for a file that is missing, cannot be read, or is not a database.
    package init(path: String) throws {
        let resolved = try StoreFile.resolved(URL(fileURLWithPath: path, isDirectory: false)).path
        connection = try SQLiteConnection(path: resolved, role: SQLiteFile.readOnlyRole(resolved), name: path)
    }

    /// Runs `body` in one read transaction, so that all rows are of one state.
    package func reading<R>(_ body: () throws -> R) throws -> R {
        try connection.withLock {
            try connection.run("BEGIN")
            defer { try? connection.run("COMMIT") }
            return try body()
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
