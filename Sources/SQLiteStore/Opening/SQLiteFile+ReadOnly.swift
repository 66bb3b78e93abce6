import Foundation
internal import Platform
import StoreInterface

/// Files that are opened for reading only (S166).
extension SQLiteFile {
    /// How the connections to a file are opened.
    /// - Throws: `StoreError` `.cannotOpen` if there is no file, or one that this user may not read; `.readOnly` if a log or journal
    ///   would have to be written back first, where this user may not write.
    static func readOnlyRole(_ path: String) throws -> SQLiteConnection.Role {
        if let failure = FilePermission.failure(path, companions: [], isReadOnly: true) { throw failure }
        guard FileManager.default.fileExists(atPath: path) else { throw StoreError.noFileToRead(path) }
        guard StoreFile.isFilled(path) else { throw StoreError.emptyFileToRead(path) }
        try checkNames(path)
        if FilePermission.mayWriteFolder(of: path) { return .observer }
        let log = path + "-wal"
        // With its index the log can be read where it is.
        if access(log, R_OK) == 0, access(path + "-shm", R_OK) == 0 { return .observer }
        guard let left = [log, path + "-journal"].first(where: StoreFile.isFilled) else { return .frozen }
        throw StoreError(
            .readOnly,
            "cannot open \(path) read-only: this user may not write to the folder, and \(left) has to be written back into the file "
                + "first. Open it once as a user who may write, or grant that permission")
    }

    /// Reads the file's own description and compares it with the schema.
    /// - Throws: `StoreError` `.readOnly` if the file would have to be migrated to the schema.
    static func identify(
        _ connection: SQLiteConnection, _ layout: SQLiteLayout, _ path: String
    ) throws -> (lineage: StoreLineage, schemaText: String) {
        try connection.withLock {
            guard try connection.integer("SELECT COUNT(*) FROM sqlite_master") != 0 else {
                throw StoreError.emptyFileToRead(path)
            }
            let (uuid, stored) = try contents(connection, path)
            let way = try SchemaPath(from: stored, exchanged: exchanges(connection), to: layout.schema, path: path)
            guard way.steps.isEmpty else { throw StoreError.needsMigration(path) }
            try checkTables(connection, layout, path)
            let text = try connection.texts("SELECT value FROM strata_meta WHERE name = 'schema'").first
            return (try SQLiteLineage.read(uuid, connection, path), text ?? "")
        }
    }

    static func hasLog(_ path: String) -> Bool { StoreFile.isFilled(path + "-wal") }

    /// When a file was last changed, and how long it was.
    struct Times: Equatable {
        private let seconds: Int
        private let nanoseconds: Int
        private let byteCount: Int

        /// nil if there is no file.
        init?(_ path: String) {
            var status = stat()
            guard stat(path, &status) == 0 else { return nil }
            #if canImport(Darwin)
                let time = status.st_mtimespec
            #else
                let time = status.st_mtim
            #endif
            seconds = Int(time.tv_sec)
            nanoseconds = Int(time.tv_nsec)
            byteCount = Int(status.st_size)
        }
    }
}

extension StoreError {
    /// A file that was to stay as it was while it is read.
    static func changedWhileFrozen(_ path: String) -> StoreError {
        StoreError(
            .inUseElsewhere,
            "cannot read \(path) any more: another process has written it since it was opened read-only, in a folder in which this user may "
                + "not write. Close it and open it again")
    }
}
