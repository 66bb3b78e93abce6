import Foundation
import StoreFiles
import StoreInterface
import StoreModel

/// Creates the files of stores, and checks that a file belongs to a store.
enum SQLiteFile {
    private static let format = "1"

    /// Checks, before a file is opened for writing, that it belongs to a store or is empty. Changes nothing about the file, except
    /// that the journal of a process that ended in a transaction is rolled back, as by every program that reads the file.
    /// - Throws: `StoreError` `.notAStore` for a database of another program.
    static func checkOwner(_ path: String) throws {
        guard FileManager.default.fileExists(atPath: path) else { return }
        let connection: SQLiteConnection
        do {
            connection = try SQLiteConnection(path: path, role: .observer)
        } catch let error as StoreError where error.code == .readOnly {
            connection = try SQLiteConnection(path: path, role: .reader)
        }
        try connection.withLock { try checkOwner(connection, path) }
    }

    private static func checkOwner(_ connection: SQLiteConnection, _ path: String) throws {
        let isOurs =
            if try connection.integer("SELECT COUNT(*) FROM sqlite_master") == 0 {
                try connection.integer("PRAGMA application_id") == 0 && connection.integer("PRAGMA user_version") == 0
            } else {
                try connection.integer("SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = 'strata_meta'") == 1
            }
        guard isOurs else {
            throw StoreError(.notAStore, "\(path) is an SQLite database of another program; choose another file")
        }
    }

    /// Checks that the file has the store's own tables, and the tables and columns of a schema. SQLite before 3.29 treats an unknown quoted
    /// name as text, so a missing column would cause no error. A view in place of a table cannot be written, and reading it may never end.
    /// - Throws: `StoreError` `.damaged`, which names the table and the column.
    static func checkTables(_ connection: SQLiteConnection, layout: SQLiteLayout, path: String) throws {
        let entities = zip(layout.tables, layout.columns).map {
            (name: SQLiteLayout.unquoted($0), columns: ["id", "version"] + $1.map(SQLiteLayout.unquoted))
        }
        let links = layout.links.map { (name: SQLiteLayout.unquoted($0), columns: ["source", "destination"]) }
        let hasViews = try connection.integer("SELECT 1 FROM sqlite_master WHERE type = 'view' LIMIT 1") != nil
        for (name, columns) in SQLiteLayout.ownTables + entities + links {
            if hasViews,
                try connection.integer(
                    "SELECT 1 FROM sqlite_master WHERE type = 'view' AND lower(name) = lower(?)", [.string(name)]) != nil
            {
                throw StoreError(
                    .damaged, "\(path): the table \(name) is a view now, which another program has created; restore the file")
            }
            let found = try Set(
                connection.texts("SELECT name FROM pragma_table_info(?)", [.string(name)]).map { $0.lowercased() })
            guard let missing = columns.first(where: { !found.contains($0.lowercased()) }) else { continue }
            throw StoreError(
                .damaged,
                found.isEmpty
                    ? "\(path): the table \(name) is gone, which another program has dropped; restore the file"
                    : "\(path): the table \(name) has no column \(missing) any more, which another program has dropped; restore the file"
            )
        }
    }

    /// Creates the file if there is none. Its tables are on disk before it gets its name.
    static func makeIfMissing(_ layout: SQLiteLayout, _ path: String) throws {
        try NewFile.make(path) { newPath in
            // SQLite would apply the leftover log of an earlier file to the new file.
            for suffix in ["-wal", "-shm", "-journal"] { try? FileManager.default.removeItem(atPath: path + suffix) }
            _ = try prepare(try SQLiteConnection(path: newPath, role: .creator), layout: layout, path: newPath)
        }
        try checkNames(path)
    }

    /// Refuses a file with several hard links, and links, folders and devices under the names of the files beside it.
    static func checkNames(_ path: String) throws {
        try StoreFile.checkSingleName(path)
        try StoreFile.checkBeside(path, ["-wal", "-shm", "-journal", "-signal"])
    }

    /// The rows of `strata_meta` by which an open store notices that another process has migrated the file.
    struct ModelRows {
        /// The schema, as text.
        let schema: String
        /// The number of changes of inverses that open stores could contradict; nil for none.
        let pairings: String?

        init(schema: String, in connection: SQLiteConnection) throws {
            self.schema = schema
            pairings = try connection.meta("pairings")
        }

        /// Returns whether the file still has these rows.
        func areThere(in connection: SQLiteConnection) throws -> Bool {
            try connection.meta("schema") == schema && connection.meta("pairings") == pairings
        }
    }

    /// Creates the tables in an empty file, or checks the file and migrates it to the schema.
    static func prepare(
        _ connection: SQLiteConnection, layout: SQLiteLayout, path: String
    ) throws -> (lineage: StoreLineage, rows: ModelRows) {
        try connection.withLock {
            try connection.run("BEGIN IMMEDIATE")
            do {
                let count = try connection.integer("SELECT COUNT(*) FROM sqlite_master") ?? 0
                let lineage = try count == 0 ? create(connection, layout) : validate(connection, layout: layout, path: path)
                let rows = try ModelRows(schema: text(layout.schema.withoutHints), in: connection)
                try connection.run("COMMIT")
                return (lineage, rows)
            } catch {
                // Fails only if SQLite has already rolled back.
                try? connection.run("ROLLBACK")
                throw error
            }
        }
    }

    private static func create(_ connection: SQLiteConnection, _ layout: SQLiteLayout) throws -> StoreLineage {
        let uuid = UUID.random()
        try connection.runScript(layout.creation)
        let schema = try text(layout.schema)
        for (name, value) in [("format", format), ("uuid", uuid.uuidString), ("schema", schema)] {
            try put(name, value: value, in: connection)
        }
        try write(ExchangedNames(of: layout.schema), connection)
        try write(InversePairs(of: layout.schema), connection)
        try write(NarrowedDestinations(of: layout.schema), connection)
        return StoreLineage(store: uuid)
    }

    private static func validate(
        _ connection: SQLiteConnection, layout: SQLiteLayout, path: String
    ) throws -> StoreLineage {
        let (uuid, stored) = try contents(connection, path)
        try checkTables(connection, layout: SQLiteLayout(stored), path: path)
        try SQLiteMigration.run(connection, from: stored, to: layout, path: path, name: "strata://\(uuid.uuidString)")
        return try SQLiteLineage.adopt(uuid, in: connection, path: path)
    }

    /// Returns the identity and the schema that the file has recorded.
    static func contents(_ connection: SQLiteConnection, _ path: String) throws -> (uuid: UUID, schema: StoreSchema) {
        try checkOwner(connection, path)
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
        guard let stored = try? JSONDecoder().decode(StoreSchema.self, from: Data(try meta("schema").utf8)), stored.isSound else {
            throw StoreError(.damaged, "\(path): the schema in strata_meta cannot be read; restore the file")
        }
        return (uuid, stored)
    }

    // MARK: The schema

    /// Returns the schema to open a file with, which keeps the file's keyed values and the spelling of its names. A file that cannot be
    /// read keeps the schema: opening it reports why.
    static func keepingKeyedValues(
        _ schema: StoreSchema, path: String, role: SQLiteConnection.Role, readOnly: Bool
    ) -> StoreSchema {
        guard readOnly || schema.keyedValues == nil || schema.hasOtherSpellings, StoreFile.isFilled(path),
            let connection = try? SQLiteConnection(path: path, role: readOnly ? role : .observer),
            let file = try? connection.withLock({ try contents(connection, path).schema })
        else { return schema }
        return schema.keepingKeyedValues(of: file, mayAdd: !readOnly).spelled(as: file)
    }

    /// Writes the schema that applies from now on, and keeps the previous schema under a number.
    static func write(_ schema: StoreSchema, after old: StoreSchema, _ connection: SQLiteConnection) throws {
        let count = try connection.integer("SELECT COUNT(*) FROM strata_meta WHERE name LIKE 'schema %'") ?? 0
        try put("schema \(count + 1)", value: try text(old), in: connection)
        try put("schema", value: try text(schema), in: connection)
    }

    /// Returns the file's schema with the earlier ones, and the exchanges of names, the inverses and the narrowed destinations that the
    /// file has recorded.
    static func recorded(_ schema: StoreSchema, in connection: SQLiteConnection) throws -> RecordedSchemas {
        let earlier = try connection.texts("SELECT value FROM strata_meta WHERE name LIKE 'schema %'")
        let exchanges = try connection.meta("exchanges")
        let inverses = try connection.meta("inverses")
        let destinations = try connection.meta("destinations")
        return RecordedSchemas(
            schema, earlier: earlier.compactMap { try? JSONDecoder().decode(StoreSchema.self, from: Data($0.utf8)) },
            exchanged: ExchangedNames(lines: Set(exchanges?.split(separator: "\n").map(String.init) ?? [])),
            inverses: inverses.flatMap { try? JSONDecoder().decode(InversePairs.self, from: Data($0.utf8)) },
            destinations: destinations.flatMap { try? JSONDecoder().decode(NarrowedDestinations.self, from: Data($0.utf8)) })
    }

    static func write(_ exchanges: ExchangedNames, _ connection: SQLiteConnection) throws {
        if exchanges.isEmpty {
            try connection.run("DELETE FROM strata_meta WHERE name = 'exchanges'")
        } else {
            try put("exchanges", value: exchanges.lines.sorted().joined(separator: "\n"), in: connection)
        }
    }

    static func write(_ inverses: InversePairs?, _ connection: SQLiteConnection) throws {
        if let inverses {
            try put("inverses", value: String(decoding: try JSONEncoder().encode(inverses), as: UTF8.self), in: connection)
        } else {
            try connection.run("DELETE FROM strata_meta WHERE name = 'inverses'")
        }
    }

    static func write(_ destinations: NarrowedDestinations?, _ connection: SQLiteConnection) throws {
        if let destinations {
            try put(
                "destinations", value: String(decoding: try JSONEncoder().encode(destinations), as: UTF8.self), in: connection)
        } else {
            try connection.run("DELETE FROM strata_meta WHERE name = 'destinations'")
        }
    }

    /// Makes other stores of the file open it again: with the former inverses they would contradict the new ones.
    static func countPairing(_ connection: SQLiteConnection) throws {
        let count = Int(try connection.meta("pairings") ?? "") ?? 0
        try put("pairings", value: String(count &+ 1), in: connection)
    }

    private static func put(_ name: String, value: String, in connection: SQLiteConnection) throws {
        let statement = try connection.statement("INSERT OR REPLACE INTO strata_meta (name, value) VALUES (?, ?)")
        statement.bind([.string(name), .string(value)])
        try statement.run()
    }

    static func text(_ schema: StoreSchema) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        return String(decoding: try encoder.encode(schema), as: UTF8.self)
    }
}
