import Foundation
internal import Platform
import StoreFiles
import StoreInterface
import StoreModel

/// Opens files read-only (S166).
extension SQLiteFile {
    /// Returns the role of read-only connections to a file.
    /// - Throws: `StoreError` `.cannotOpen` if there is no file or this user may not read it. `.readOnly` if a log or journal
    ///   has to be written back first and this user may not write to the folder.
    static func readOnlyRole(_ path: String) throws -> SQLiteConnection.Role {
        if let failure = FilePermission.failure(path, companions: [], isReadOnly: true) { throw failure }
        guard FileManager.default.fileExists(atPath: path) else { throw StoreError.noFileToRead(path) }
        guard StoreFile.isFilled(path) else { throw StoreError.emptyFileToRead(path) }
        try checkNames(path)
        if FilePermission.mayWriteFolder(of: path) { return .observer }
        let log = path + "-wal"
        // A log with an index can be read without being written back.
        if FileSystem.allows(log, .read), FileSystem.allows(path + "-shm", .read) { return .observer }
        guard let left = [log, path + "-journal"].first(where: StoreFile.hasUnwrittenChanges) else { return .frozen }
        throw StoreError(
            .readOnly,
            "cannot open \(path) read-only: this user may not write to the folder, and \(left) has to be written back into the file "
                + "first. Open it once as a user who may write, or grant that permission")
    }

    /// Reads the lineage and the schema from the file, and compares its schema with the schema of the program.
    /// - Throws: `StoreError` `.readOnly` if the file would have to be migrated to the schema.
    static func identify(
        _ connection: SQLiteConnection, layout: SQLiteLayout, path: String
    ) throws -> (lineage: StoreLineage, rows: ModelRows) {
        try connection.withLock {
            guard try connection.integer("SELECT COUNT(*) FROM sqlite_master") != 0 else {
                throw StoreError.emptyFileToRead(path)
            }
            let (uuid, stored) = try contents(connection, path)
            let way = try SchemaPath(from: recorded(stored, in: connection), to: layout.schema, path: path)
            guard way.steps.isEmpty, way.losses.allSatisfy(\.subject.isOfDestinations) else {
                throw StoreError.needsMigration(path)
            }
            try checkTables(connection, layout: layout, path: path)
            try SQLiteLossCount(connection: connection, layout: SQLiteLayout(stored)).check(way.losses, path: path)
            let rows = try ModelRows(schema: connection.meta("schema") ?? "", in: connection)
            return (try SQLiteLineage.readOnly(uuid, in: connection, path: path), rows)
        }
    }

    static func hasLog(_ path: String) -> Bool { StoreFile.isFilled(path + "-wal") }

    /// The modification time and the size of a file.
    struct Times: Equatable {
        private let written: FileStatus.Time
        private let byteCount: Int

        /// Reads the modification time and the size of a file. Returns nil if there is no file.
        init?(_ path: String) {
            guard let status = try? FileStatus(path) else { return nil }
            (written, byteCount) = (status.writeTime, status.byteCount)
        }
    }
}

/// A file that is read without locks, as it was before it was opened.
struct FrozenFile: Sendable {
    let path: String
    private let times: SQLiteFile.Times?

    /// Remembers when the file was last written. Called before the file is opened.
    init(_ path: String) {
        self.path = path
        times = SQLiteFile.Times(path)
    }

    /// Whether another process has written the file itself, so that what is read may be of several states. Costs a `stat` call.
    var isWritten: Bool { SQLiteFile.Times(path) != times }

    /// Whether another process has written the file, or changes that are still in a log, which are not read. Costs up to two `stat` calls.
    var isChanged: Bool { isWritten || SQLiteFile.hasLog(path) }
}

extension StoreError {
    /// Returns the error for a file that was written while it is read without locks.
    static func changedWhileFrozen(_ path: String) -> StoreError {
        StoreError(
            .inUseElsewhere,
            "cannot read \(path) any more: another process has written it since it was opened read-only in a folder to which this "
                + "user may not write. Close it and open it again")
    }
}
