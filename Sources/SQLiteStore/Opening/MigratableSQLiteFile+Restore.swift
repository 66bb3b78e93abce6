import Foundation
internal import Platform
import StoreInterface

extension MigratableSQLiteFile {
    /// Copies the backup to a temporary file beside the target, marks the copy, and renames it to the target.
    ///
    /// SQLite's backup API also copies changes that are only in the backup's log. The target's log is written back and
    /// removed before the rename, because SQLite would apply it to the new file.
    func restore(from backup: URL, cancellation: Cancellation) throws {
        let source = backup.resolvingSymlinksInPath()
        let target = url.resolvingSymlinksInPath()
        guard FileManager.default.fileExists(atPath: source.path) else {
            throw StoreError(.cannotOpen, "cannot restore \(target.path): there is no backup at \(source.path). Check the path")
        }
        guard source != target else {
            throw StoreError(.cannotOpen, "cannot restore \(target.path): it is the backup itself. Give another path")
        }
        let partial = try PartialFile(for: target, existing: .replace)
        defer { partial.discard() }
        try keepMode(partial, source.path)
        do {
            _ = try SQLiteCopy.make(from: source.path, to: partial, cancellation)
        } catch let error as StoreError {
            throw StoreError(error.code, "cannot restore from \(source.path): \(error). Restore from another backup")
        }
        try cancellation.check()
        try replace(target.path, partial)
    }

    /// Copies the mode and owner of the file to replace, or of the backup if there is no such file.
    private func keepMode(_ partial: PartialFile, _ source: String) throws {
        guard let access = FileAccess(of: partial.target) ?? FileAccess(of: source) else { return }
        do throws(SystemError) { try access.apply(toFile: partial.path) } catch {
            throw StoreError(error, "\(partial.target) cannot be given its mode")
        }
    }

    private func replace(_ target: String, _ partial: PartialFile) throws {
        do {
            guard FileManager.default.fileExists(atPath: target) else { return try finish(target, partial) }
            try SQLiteConnection(path: target, role: .writer).withoutLog { _ in try finish(target, partial) }
        } catch let error as StoreError where [.notAStore, .damaged].contains(error.code) {
            // SQLite cannot open the file to replace, so no connection has it open.
            try finish(target, partial)
        }
    }

    private func finish(_ target: String, _ partial: PartialFile) throws {
        for suffix in ["-wal", "-shm", "-journal"] {
            do throws(SystemError) { try FileSystem.remove(target + suffix) } catch {
                if error != .notFound { throw StoreError(error, "\(target)\(suffix) cannot be removed") }
            }
        }
        try partial.finish()
    }
}
