import Foundation
internal import Platform
import StoreInterface

/// The SQLite file of a staged migration (S164).
struct MigratableSQLiteFile: MigratableFile {
    let url: URL

    init(_ url: URL) { self.url = url }

    func storedSchema() throws -> StoreSchema? {
        let url = try StoreFile.resolved(url)
        guard StoreFile.isFilled(url.path) else { return nil }
        try SQLiteFile.checkNames(url.path)
        let connection = try SQLiteConnection(path: url.path, role: .reader)
        return try connection.withLock {
            guard try connection.integer("SELECT COUNT(*) FROM sqlite_master WHERE name = 'strata_meta'") == 1,
                let text = try connection.texts("SELECT value FROM strata_meta WHERE name = 'schema'").first
            else { return nil }
            return try? JSONDecoder().decode(StoreSchema.self, from: Data(text.utf8))
        }
    }

    func makeCopy() throws -> any MigrationCopy {
        let url = try StoreFile.resolved(url)
        let copy = try PartialFile(for: url, existing: .replace, like: url.path)
        do {
            return SQLiteMigrationCopy(copy: copy, generation: try fill(copy))
        } catch {
            copy.discard()
            throw error
        }
    }

    /// - Returns: the newest save that the copy has.
    private func fill(_ copy: PartialFile) throws -> Int64? {
        let connection = try SQLiteConnection(path: copy.target, role: .writer)
        return try connection.withLock {
            let version = try connection.integer("PRAGMA data_version")
            let generation = try connection.integer("SELECT generation FROM strata_state")
            // Into the empty file that is there, so that it keeps its mode.
            let statement = try connection.statement("VACUUM INTO ?")
            statement.bind([.string(copy.path)])
            try statement.run()
            guard try connection.integer("PRAGMA data_version") == version else {
                throw StoreError(.inUseElsewhere, "\(copy.target) was changed while it was copied. Open it again")
            }
            return generation
        }
    }
}

struct SQLiteMigrationCopy: MigrationCopy {
    fileprivate let copy: PartialFile
    fileprivate let generation: Int64?

    var store: StoreDescription { .sqlite(URL(fileURLWithPath: copy.path, isDirectory: false)) }

    func replaceOriginal() throws {
        // Closed again: the log is in the one file of the copy, and on disk.
        try SQLiteConnection(path: copy.path, role: .writer).withoutLog { _ in }
        let original = try SQLiteConnection(path: copy.target, role: .writer)
        try original.withoutLog { connection in
            guard try !connection.hasMoved, try connection.integer("SELECT generation FROM strata_state") == generation else {
                throw StoreError(.inUseElsewhere, "\(copy.target) was changed while it was migrated. Open it again")
            }
            try copy.finish()
        }
        copy.discard()
    }

    func discard() { copy.discard() }
}

extension SQLiteConnection {
    /// How often, and for how many microseconds, is waited for connections that are about to close.
    private static let patience = (tries: 20, wait: useconds_t(50_000))

    /// Runs `body` with the log written back into the file and removed, while nobody else reads or writes the file.
    ///
    /// Who opens the file meanwhile waits; when another has its name by then, SQLite refuses to put a log beside that one.
    /// - Throws: `StoreError` `.inUseElsewhere` while anybody else has it open.
    func withoutLog(_ body: (SQLiteConnection) throws -> Void) throws {
        try withLock {
            for left in (0..<Self.patience.tries).reversed() {
                // Refused without waiting while another connection is there, even one that does nothing.
                if (try? texts("PRAGMA journal_mode = DELETE")) == ["delete"] { break }
                guard left > 0 else { throw openElsewhere }
                usleep(Self.patience.wait)
            }
            try run("BEGIN EXCLUSIVE")
            // Nothing was written. Fails only when SQLite has rolled back by itself.
            defer { try? run("ROLLBACK") }
            // Somebody may have come in between, and has a log again.
            guard try texts("PRAGMA journal_mode") == ["delete"] else { throw openElsewhere }
            try body(self)
        }
    }

    private var openElsewhere: StoreError {
        StoreError(
            .inUseElsewhere, "\(path) is open elsewhere, and another file is to take its place. Close it there")
    }
}
