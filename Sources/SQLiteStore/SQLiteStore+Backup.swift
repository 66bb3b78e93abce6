import Foundation
import GRDB
internal import GRDBSQLite
import StoreInterface

extension SQLiteStore: BackupableStore {
    /// SQLite's backup API, in one step, from a connection of its own.
    ///
    /// - Throws: `StoreError`: `.cannotOpen` when the file is there or is this store's, `.inputOutput`, `.damaged`.
    public func backup(to url: URL, existing: ExistingFile) throws -> Generation {
        guard try StoreFile.resolved(url).path != path else {
            throw StoreError(.cannotOpen, "\(path) is a store that is open. Give another name")
        }
        for suffix in ["-wal", "-journal"] where FileManager.default.fileExists(atPath: url.path + suffix) {
            // SQLite would take it for the new file's.
            throw StoreError(
                .cannotOpen, "\(url.path)\(suffix) is there: the file is open, or was not closed. Close it, or give another name")
        }
        let partial = try PartialFile(for: url, existing: existing, like: path)
        defer { partial.discard() }
        let generation = try copy(to: partial)
        try partial.finish()
        return generation
    }

    /// By way of a file in the temporary folder: SQLite writes its pages in no order.
    public func backup(to descriptor: Int32) throws {
        let url = FileManager.default.temporaryDirectory.appendingPathComponent("strata-\(UUID().uuidString)")
        let partial = try PartialFile(for: url, existing: .refuse, like: path)
        defer { partial.discard() }
        _ = try copy(to: partial)
        let source = try FileHandle(forReadingFrom: URL(fileURLWithPath: partial.path))
        let target = FileHandle(fileDescriptor: descriptor, closeOnDealloc: false)
        do {
            try withoutBrokenPipeSignal {
                while let part = try source.read(upToCount: 1 << 18), !part.isEmpty { try target.write(contentsOf: part) }
            }
        } catch {
            throw StoreError(.inputOutput, "a copy of \(path) could not be written: \(error). Check who reads it")
        }
    }

    private func copy(to partial: PartialFile) throws -> Generation {
        let source = try SQLiteConnection(path: path, role: .reader)
        // Not in the write-ahead mode, so that all of the copy is in one file.
        let copy = try DatabaseQueue(path: partial.path)
        do {
            try source.backup(to: copy)
            return try copy.inDatabase { database in
                let findings = try String.fetchAll(database, sql: "PRAGMA quick_check")
                guard findings == ["ok"],
                    let generation = try Int64.fetchOne(database, sql: "SELECT generation FROM strata_state")
                else {
                    throw StoreError(
                        .damaged, "\(partial.target) was not made, because the copy is damaged: \(findings). Verify the store")
                }
                try database.execute(sql: "PRAGMA journal_mode = DELETE")
                return Generation(bitPattern: generation)
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
}
