import Foundation
internal import Platform
import StoreFiles
import StoreInterface
import StoreModel

extension MigratableSQLiteFile {
    /// Copies the backup to a temporary file beside the target, marks the copy, and renames it to the target.
    ///
    /// SQLite's backup API also copies changes that are only in the backup's log. The target's log is written back and
    /// removed before the rename, because SQLite would apply it to the new file.
    func restore(from backup: URL, cancellation: Cancellation) throws {
        let target = try StoreFile.resolved(url)
        guard FileManager.default.fileExists(atPath: backup.path) else {
            throw StoreError(.cannotOpen, "cannot restore \(target.path): there is no backup at \(backup.path). Check the path")
        }
        let source = try StoreFile.resolved(backup)
        guard StoreFile.identity(source.path) != StoreFile.identity(target.path) else {
            throw StoreError(.cannotOpen, "cannot restore \(target.path): it is the backup itself. Give another path")
        }
        let partial = try PartialFile(forRestoring: target, from: source.path)
        defer { partial.discard() }
        var frozen: FrozenFile?
        do {
            // Backups are in log mode. Where no log can be created, such a file is read without one.
            let role: SQLiteConnection.Role =
                try FilePermission.mayWriteFolder(of: source.path) ? .reader : SQLiteFile.readOnlyRole(source.path)
            if role == .frozen { frozen = FrozenFile(source.path) }
            _ = try SQLiteCopy.make(from: SQLiteConnection(path: source.path, role: role), to: partial, cancellation)
        } catch let error as StoreError {
            // Pages of several states may look damaged.
            try Self.checkUnchanged(frozen)
            throw StoreError(error.code, "cannot restore from \(source.path): \(error). Restore from another backup")
        }
        try Self.checkUnchanged(frozen)
        try cancellation.check()
        try SQLiteCopy.name(partial)
    }

    /// Throws if another process has written a backup that is read without locks.
    private static func checkUnchanged(_ backup: FrozenFile?) throws {
        guard let backup, backup.isChanged else { return }
        throw StoreError(
            .inUseElsewhere,
            "cannot restore from \(backup.path): it was changed while it was copied. Close it there, and try again")
    }
}
