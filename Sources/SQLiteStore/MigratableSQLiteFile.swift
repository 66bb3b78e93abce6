import Foundation
import StoreInterface

/// The SQLite file of a staged migration (S164).
struct MigratableSQLiteFile: MigratableFile {
    private let url: URL

    init(_ url: URL) { self.url = url }

    func storedSchema() throws -> StoreSchema? {
        guard FileManager.default.fileExists(atPath: url.path) else { return nil }
        let connection = try SQLiteConnection(path: url.path, role: .reader)
        return try connection.withLock {
            guard try connection.integer("SELECT COUNT(*) FROM sqlite_master WHERE name = 'strata_meta'") == 1,
                let text = try connection.texts("SELECT value FROM strata_meta WHERE name = 'schema'").first
            else { return nil }
            return try? JSONDecoder().decode(StoreSchema.self, from: Data(text.utf8))
        }
    }

    func makeCopy() throws -> any MigrationCopy {
        let copy = URL(fileURLWithPath: url.path + ".migrating")
        Self.remove(copy)
        let connection = try SQLiteConnection(path: url.path, role: .writer)
        let version = try connection.withLock {
            let version = try connection.integer("PRAGMA data_version")
            let generation = try connection.integer("SELECT generation FROM strata_state")
            let statement = try connection.statement("VACUUM INTO ?")
            statement.bind([.string(copy.path)])
            try statement.run()
            guard try connection.integer("PRAGMA data_version") == version else {
                throw StoreError(.inUseElsewhere, "\(url.path) was changed while it was copied. Open it again")
            }
            return generation
        }
        return SQLiteMigrationCopy(original: url, copy: copy, generation: version)
    }

    static func remove(_ file: URL) {
        for path in [file.path, file.path + "-wal", file.path + "-shm", file.path + "-signal"] {
            // It is not there, mostly.
            try? FileManager.default.removeItem(atPath: path)
        }
    }
}

struct SQLiteMigrationCopy: MigrationCopy {
    fileprivate let original: URL
    fileprivate let copy: URL
    fileprivate let generation: Int64?

    var store: StoreDescription { .sqlite(copy) }

    func replaceOriginal() throws {
        // Written back into the one file of the copy.
        try settle(copy.path)
        try settle(original.path) { connection in
            guard try connection.integer("SELECT generation FROM strata_state") == generation else {
                throw StoreError(.inUseElsewhere, "\(original.path) was changed while it was migrated. Open it again")
            }
        }
        for path in [original.path + "-wal", original.path + "-shm"] { try? FileManager.default.removeItem(atPath: path) }
        guard rename(copy.path, original.path) == 0 else {
            throw StoreError(
                .inputOutput, "\(original.path) cannot be replaced: \(String(cString: strerror(errno))). Check its folder")
        }
        MigratableSQLiteFile.remove(copy)
    }

    /// Moves the log into the file, with nobody else reading or writing it.
    private func settle(_ path: String, _ body: (SQLiteConnection) throws -> Void = { _ in }) throws {
        let connection = try SQLiteConnection(path: path, role: .writer)
        try connection.withLock {
            try body(connection)
            guard try connection.integer("PRAGMA wal_checkpoint(TRUNCATE)") == 0 else {
                throw StoreError(
                    .inUseElsewhere, "\(path) is open elsewhere, and a migration puts another file in its place. Close it there")
            }
        }
    }

    func discard() { MigratableSQLiteFile.remove(copy) }
}
