internal import CSQLite
import StoreInterface
import StoreModel

extension SQLiteConnection {
    /// Ends a transaction that failed. The caller holds the lock.
    ///
    /// SQLite keeps the transaction, and with it the lock of the writer, if it cannot roll back, as after some errors of the disk. Then this
    /// closes the connection, which releases the lock, and opens the file again.
    /// - Returns: Whether the connection was opened again.
    func rollBack() -> Bool {
        // Also fails if SQLite has already rolled back.
        try? run("ROLLBACK")
        guard isInTransaction else { return false }
        reopen()
        return true
    }
}
