internal import CSQLite
import StoreInterface
import StoreModel

extension SQLiteConnection {
    /// Reads a page of the database file itself, past the log and the cache. Returns nil if the connection is closed or the file ends
    /// before. The caller holds the lock.
    func bytesOfFile(_ page: FilePage) -> [UInt8]? {
        guard let handle = openHandle else { return nil }
        var file: UnsafeMutablePointer<sqlite3_file>?
        guard sqlite3_file_control(handle, "main", SQLITE_FCNTL_FILE_POINTER, &file) == SQLITE_OK, let file,
            let read = file.pointee.pMethods?.pointee.xRead
        else { return nil }
        var bytes = [UInt8](repeating: 0, count: page.size)
        let code = bytes.withUnsafeMutableBytes { read(file, $0.baseAddress, Int32(page.size), page.offset) }
        return code == SQLITE_OK ? bytes : nil
    }

    /// Begins a write transaction, unless another connection has one. Does not wait. The caller holds the lock.
    /// - Returns: Whether the transaction has begun.
    func beginWriteAtOnce() throws -> Bool {
        guard let handle = openHandle else { throw StoreError.closed(path) }
        sqlite3_busy_timeout(handle, 0)
        defer { sqlite3_busy_timeout(handle, Self.busyTimeout) }
        do { try run("BEGIN IMMEDIATE") } catch let error as StoreError where error.code == .inUseElsewhere { return false }
        return true
    }

    /// Runs a long statement, which SQLite interrupts after the cancellation. The caller holds the lock.
    /// - Throws: `CancellationError` after the cancellation.
    func cancelled<R>(by cancellation: Cancellation, _ body: () throws -> R) throws -> R {
        guard let handle = openHandle else { throw StoreError.closed(path) }
        // The flag outlives the handler, which is removed before this function returns.
        let flag = Unmanaged.passUnretained(cancellation).toOpaque()
        sqlite3_progress_handler(
            handle, Self.stepsBetweenChecks,
            { flag in flag.map { Unmanaged<Cancellation>.fromOpaque($0).takeUnretainedValue().isSet } ?? false ? 1 : 0 }, flag)
        defer { sqlite3_progress_handler(handle, 0, nil, nil) }
        do {
            return try body()
        } catch {
            try cancellation.check()
            throw error
        }
    }

    /// The number of steps of SQLite's machine, and of pages of its check, between two looks at a flag.
    private static let stepsBetweenChecks: Int32 = 1000
}
