import Foundation
internal import Platform
import StoreFiles
import StoreInterface
import StoreModel

/// Copies a database with SQLite's backup API, checks the copy, and marks it as a copy.
enum SQLiteCopy {
    /// The number of pages that are copied between two checks for cancellation.
    private static let pagesAtOnce: Int32 = 1024

    /// Writes the copy to the temporary path of a partial file.
    /// - Returns: The newest save in the copy.
    /// - Throws: `StoreError` `.full`, `.inputOutput`, `.damaged`; `CancellationError`.
    static func make(
        from source: SQLiteConnection, to partial: PartialFile, _ cancellation: Cancellation
    ) throws -> Generation {
        // The copy has no write-ahead log, so that all of it is in one file.
        let copy = try SQLiteConnection(path: partial.path, role: .copy, name: partial.target)
        // The caller renames the file next.
        defer { copy.close() }
        // The transaction keeps one state. Without it, each save would restart the copy.
        try source.run("BEGIN")
        defer { try? source.run("COMMIT") }
        _ = try source.integer("SELECT COUNT(*) FROM sqlite_master")
        try source.backup(to: copy, pagesAtOnce: pagesAtOnce) { copied, total in
            try cancellation.check()
            cancellation.report(copied, of: total)
        }
        let generation = try finish(copy, partial, unlessCancelled: cancellation)
        cancellation.report(1, of: 1)
        return generation
    }

    /// Renames the copy to its target. Replaces a file of that name only while no connection has it open, and removes that file's log, which
    /// SQLite would apply to the new file. If there is no such file, no process creates one meanwhile.
    /// - Throws: `StoreError` `.inUseElsewhere` while another connection has the file open, `.readOnly` if this user may not write it.
    static func name(_ partial: PartialFile) throws {
        do {
            if !FileManager.default.fileExists(atPath: partial.target),
                try NewFile.whileMissing(partial.target, { try removeLogAndName(partial) }) != nil
            {
                return
            }
            guard FileSystem.allows(partial.target, .write) else { throw unknownUse(partial.target) }
            try SQLiteConnection(path: partial.target, role: .writer).withoutLog { _ in try replaceTarget(partial) }
        } catch let error as StoreError where [.notAStore, .damaged].contains(error.code) {
            // SQLite cannot open the file to replace, so no connection has it open. It may be a store on LMDB, which has a lock file.
            guard !FileSystem.allows(partial.target + "-lock") else {
                throw StoreError(
                    .inUseElsewhere,
                    "cannot replace \(partial.target): it is a store on LMDB, which may be open. Close it, and remove it with "
                        + "\(partial.target)-lock")
            }
            try replaceTarget(partial)
        }
    }

    private static func replaceTarget(_ partial: PartialFile) throws {
        try NewFile.whileReplacing(partial.target) { try removeLogAndName(partial) }
    }

    private static func unknownUse(_ path: String) -> StoreError {
        StoreError(
            .readOnly,
            "cannot replace \(path): this user may not write to the file, so it is not known whether another process has it open. "
                + "Grant that permission, or remove the file")
    }

    private static func removeLogAndName(_ partial: PartialFile) throws {
        var isRemoved = false
        for suffix in ["-wal", "-shm", "-journal"] {
            do throws(SystemError) {
                try FileSystem.remove(partial.target + suffix)
                isRemoved = true
            } catch {
                if error != .notFound { throw StoreError(error, "\(partial.target)\(suffix) cannot be removed") }
            }
        }
        // A power cut must not keep a log beside the new file.
        if isRemoved { try PartialFile.syncFolder(of: URL(fileURLWithPath: partial.target, isDirectory: false)) }
        try partial.finish()
    }

    private static func finish(
        _ copy: SQLiteConnection, _ partial: PartialFile, unlessCancelled cancellation: Cancellation
    ) throws -> Generation {
        let findings = try copy.cancelled(by: cancellation) { try copy.texts("PRAGMA quick_check") }
        guard findings == ["ok"] else {
            throw StoreError(
                .damaged, "\(partial.target) was not made, because the copy is damaged: \(findings). Verify the store")
        }
        guard try copy.integer("SELECT COUNT(*) FROM sqlite_master WHERE name = 'strata_meta'") == 1,
            let generation = try copy.integer("SELECT generation FROM strata_state")
        else {
            throw StoreError(
                .notAStore, "\(partial.target) was not made, because the database is one of another program. Choose another file")
        }
        try copy.runScript("PRAGMA journal_mode = DELETE")
        try copy.setMeta(SQLiteLineage.copyMark, UUID.random().uuidString)
        // As in an open store. Otherwise a reader of the copy would keep the first writer from switching to the log. Closing the only
        // connection of the copy removes the empty log.
        try copy.runScript("PRAGMA journal_mode = WAL")
        return Generation(stored: generation)
    }
}

extension PartialFile {
    /// Gives a complete SQLite database its name, as `finish()` does for other files.
    ///
    /// Readers of a database that is replaced leave an empty log beside it. The log is removed, because SQLite would use it for the new
    /// file too. Waits for up to a second for connections that are about to close.
    /// - Throws: `StoreError` `.inUseElsewhere` while a connection of this or another process has the file to replace open, `.readOnly` if
    ///   this user may not write it. Else as `finish()`.
    public func finishDatabase() throws { try SQLiteCopy.name(self) }
}
