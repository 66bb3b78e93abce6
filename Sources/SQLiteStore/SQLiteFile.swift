import Foundation
import StoreInterface

/// What a file must be to be ours, and how it becomes so.
enum SQLiteFile {
    private static let format = "1"

    /// Makes the file when there is none. The tables are on disk before it gets its name.
    static func makeIfMissing(_ layout: SQLiteLayout, _ path: String) throws {
        try NewFile.make(path) { newPath in
            // SQLite would take a log that an earlier file has left for the new file's.
            for suffix in ["-wal", "-shm", "-journal"] { try? FileManager.default.removeItem(atPath: path + suffix) }
            _ = try prepare(try SQLiteConnection(path: newPath, role: .creator), layout, newPath)
        }
        try checkNames(path)
    }

    /// Refuses links under the names of the file and of those beside it.
    static func checkNames(_ path: String) throws {
        try StoreFile.checkSingleName(path)
        try StoreFile.checkBeside(path, ["-wal", "-shm", "-journal", "-signal"])
    }

    /// Makes the tables in an empty file, or holds the file to the schema.
    static func prepare(_ connection: SQLiteConnection, _ layout: SQLiteLayout, _ path: String) throws -> StoreIdentity {
        try connection.withLock {
            try connection.run("BEGIN IMMEDIATE")
            do {
                let count = try connection.integer("SELECT COUNT(*) FROM sqlite_master") ?? 0
                let identity = try count == 0 ? create(connection, layout) : validate(connection, layout, path)
                try connection.run("COMMIT")
                return identity
            } catch {
                // Fails only when SQLite has rolled back by itself.
                try? connection.run("ROLLBACK")
                throw error
            }
        }
    }

    private static func create(_ connection: SQLiteConnection, _ layout: SQLiteLayout) throws -> StoreIdentity {
        let uuid = UUID()
        try connection.runScript(layout.creation)
        let schema = try text(layout.schema)
        let statement = try connection.statement("INSERT INTO strata_meta VALUES (?, ?)")
        for (name, value) in [("format", format), ("uuid", uuid.uuidString), ("schema", schema)] {
            statement.bind([.string(name), .string(value)])
            try statement.run()
        }
        return StoreIdentity(uuid)
    }

    private static func validate(
        _ connection: SQLiteConnection, _ layout: SQLiteLayout, _ path: String
    ) throws -> StoreIdentity {
        guard try connection.integer("SELECT COUNT(*) FROM sqlite_master WHERE name = 'strata_meta'") == 1 else {
            throw StoreError(.notAStore, "\(path) is an SQLite database of another program; choose another file")
        }
        func meta(_ name: String) throws -> String {
            guard let text = try connection.texts("SELECT value FROM strata_meta WHERE name = ?", [.string(name)]).first
            else { throw StoreError(.damaged, "\(path): strata_meta has no \(name); restore the file") }
            return text
        }
        guard try meta("format") == format else {
            throw StoreError(.formatTooNew, "\(path) was written by a newer version; update this program")
        }
        guard let uuid = UUID(uuidString: try meta("uuid")) else {
            throw StoreError(.damaged, "\(path): the uuid in strata_meta cannot be read; restore the file")
        }
        guard let stored = try? JSONDecoder().decode(StoreSchema.self, from: Data(try meta("schema").utf8)) else {
            throw StoreError(.damaged, "\(path): the schema in strata_meta cannot be read; restore the file")
        }
        if stored != layout.schema.withoutHints {
            try SQLiteMigration(connection, from: stored, to: layout, path: path, name: "strata://\(uuid.uuidString)").run()
        }
        return StoreIdentity(uuid)
    }

    static func text(_ schema: StoreSchema) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        return String(decoding: try encoder.encode(schema), as: UTF8.self)
    }
}
