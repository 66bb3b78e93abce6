import Foundation
internal import Platform
import StoreFiles
import StoreInterface
import StoreModel

/// The SQLite file of a staged migration (S164).
struct MigratableSQLiteFile: MigratableFile {
    let url: URL

    init(_ url: URL) { self.url = url }

    /// Whether reading may leave files beside the database, such as a new log.
    enum Care { case observing, changing }

    func storedSchema() throws -> StoreSchema? { try recordedSchemas(.changing)?.current }

    func recordedSchemas(_ care: Care) throws -> RecordedSchemas? {
        let url = try StoreFile.resolved(url)
        guard StoreFile.isFilled(url.path) else { return nil }
        try SQLiteFile.checkNames(url.path)
        let role = try care == .observing ? SQLiteFile.readOnlyRole(url.path) : .reader
        let connection = try SQLiteConnection(path: url.path, role: role)
        return try connection.withLock {
            guard try connection.integer("SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = 'strata_meta'") == 1,
                let text = try connection.texts("SELECT value FROM strata_meta WHERE name = 'schema'").first
            else { return nil }
            let schema = try? JSONDecoder().decode(StoreSchema.self, from: Data(text.utf8))
            guard let schema, schema.isSound else { return nil }
            return try SQLiteFile.recorded(schema.withoutKeyedValues, in: connection)
        }
    }

    func makeCopy() throws -> any MigrationCopy {
        let url = try StoreFile.resolved(url)
        let copy = try PartialFile(forNewVersionOf: url, like: url.path)
        do {
            return SQLiteMigrationCopy(copy: copy, state: try fill(copy))
        } catch {
            copy.discard()
            throw error
        }
    }

    /// Fills the copy with the newest state of the file, which it has read in one transaction.
    ///
    /// - Returns: The state in the copy. It does not contain the saves that the file receives meanwhile: see ``SQLiteMigrationCopy/replaceOriginal()``.
    private func fill(_ copy: PartialFile) throws -> SQLiteMigrationCopy.State {
        let connection = try SQLiteConnection(path: copy.target, role: .writer)
        try connection.withLock {
            // Writes to the existing empty file, so that it keeps its mode.
            let statement = try connection.statement("VACUUM INTO ?")
            statement.bind([.string(copy.path)])
            try statement.run()
        }
        let copied = try SQLiteConnection(path: copy.path, role: .observer)
        return try copied.withLock { try SQLiteMigrationCopy.State(copied) }
    }
}

struct SQLiteMigrationCopy: MigrationCopy {
    fileprivate let copy: PartialFile
    fileprivate let state: State

    /// The store in a file, its newest save, and what changes without a save: the schema, leased keys, and the beginning of the history.
    fileprivate struct State {
        let uuid: String?
        let generation: Int64?
        private let meta: [String]
        private let keys: [String: Int64]
        /// The returned keys, by entity.
        private let free: [String: [Range<ObjectKey>]]
        private let oldestSave: Int64?

        init(_ connection: SQLiteConnection) throws {
            uuid = try connection.texts("SELECT value FROM strata_meta WHERE name = 'uuid'").first
            generation = try connection.integer("SELECT generation FROM strata_state")
            // A store that is being closed returns keys, which changes nothing that a copy needs.
            let rows = try connection.texts("SELECT name || char(10) || value FROM strata_meta ORDER BY name")
            meta = rows.filter { !$0.hasPrefix(SQLiteFreeKeys.prefix) }
            var free: [String: [Range<ObjectKey>]] = [:]
            for row in rows where row.hasPrefix(SQLiteFreeKeys.prefix) {
                let parts = row.dropFirst(SQLiteFreeKeys.prefix.count).split(separator: "\n")
                if parts.count == 2 { free[String(parts[0])] = SQLiteFreeKeys.ranges(String(parts[1])) }
            }
            self.free = free
            var keys: [String: Int64] = [:]
            for row in try connection.texts("SELECT entity || ' ' || next FROM strata_keys") {
                let parts = row.split(separator: " ")
                if parts.count == 2 { keys[String(parts[0])] = Int64(parts[1]) }
            }
            self.keys = keys
            oldestSave = try connection.integer("SELECT MIN(generation) FROM strata_history")
        }

        /// Returns whether the file is as it was when it was copied, and neither new nor returned keys were leased. An object that is not
        /// saved may have such a key.
        func isUnchanged(since copied: State) -> Bool {
            (uuid, generation, oldestSave) == (copied.uuid, copied.generation, copied.oldestSave) && meta == copied.meta
                && keys.allSatisfy { $0.value <= copied.keys[$0.key] ?? 0 }
                && copied.free.allSatisfy { entity, ranges in ranges.allSatisfy { isFree($0, entity) } }
        }

        private func isFree(_ range: Range<ObjectKey>, _ entity: String) -> Bool {
            if let next = keys[entity], next <= range.lowerBound.stored { return true }
            return free[entity]?.contains { $0.lowerBound <= range.lowerBound && range.upperBound <= $0.upperBound } ?? false
        }
    }

    var store: StoreDescription { .sqlite(URL(fileURLWithPath: copy.path, isDirectory: false)) }

    func replaceOriginal() throws {
        // A program may have removed the copy, and a stage would then have filled a new store.
        guard let copied = try? copiedState(), copied.uuid == state.uuid,
            copied.generation ?? 0 >= state.generation ?? 0
        else {
            throw StoreError(
                .inUseElsewhere, "\(copy.target) was not migrated: its copy \(copy.path) was removed meanwhile. Open it again")
        }
        // Writes the copy's log back into its single file, on disk. As in an open store, the file is in log mode: otherwise a reader would
        // keep the first writer from switching to the log. Closing the only connection removes the empty log.
        let written = try SQLiteConnection(path: copy.path, role: .writer)
        try written.withoutLog { _ in }
        try written.useLog()
        written.close()
        let original = try SQLiteConnection(path: copy.target, role: .writer)
        try original.withoutLog { connection in
            guard try !connection.hasMoved, try State(connection).isUnchanged(since: state) else {
                throw StoreError(.inUseElsewhere, "\(copy.target) was changed while it was migrated. Open it again")
            }
            try NewFile.whileReplacing(copy.target) { try copy.finish() }
        }
        copy.discard()
    }

    private func copiedState() throws -> State {
        let connection = try SQLiteConnection(path: copy.path, role: .observer)
        return try connection.withLock { try State(connection) }
    }

    func discard() { copy.discard() }
}

extension SQLiteConnection {
    /// The number of attempts, and the microseconds between them, while other connections may be about to close.
    private static let patience = (tries: 20, wait: UInt32(50_000))

    /// Writes the log back into the file, removes it, and runs `body` with exclusive access to the file.
    ///
    /// A connection that opens the file meanwhile waits. If another file has its name by then, SQLite refuses to create a
    /// log beside that file. If `body` throws, and the file has kept its name, the file has a log again.
    /// - Throws: `StoreError` `.inUseElsewhere` while another connection has the file open. The error of SQLite if the log cannot be
    ///   written back.
    func withoutLog(_ body: (SQLiteConnection) throws -> Void) throws {
        try withLock {
            let hadLog = try texts("PRAGMA journal_mode") == ["wal"]
            do {
                try leaveLog()
                try exclusively(body)
            } catch {
                // A suspended store goes on with the file.
                if hadLog, (try? hasMoved) == false { _ = try? texts("PRAGMA journal_mode = WAL") }
                throw error
            }
        }
    }

    /// Writes the log back and removes it. Waits for connections that are about to close.
    private func leaveLog() throws {
        for left in (0..<Self.patience.tries).reversed() {
            // SQLite refuses without waiting while there is another connection, even an idle one.
            guard let refusal = leaveLogMode() else { return }
            guard left > 0 else { throw refusal }
            CurrentThread.sleep(microseconds: Self.patience.wait)
        }
    }

    private func exclusively(_ body: (SQLiteConnection) throws -> Void) throws {
        try run("BEGIN EXCLUSIVE")
        // There is nothing to commit. Fails only if SQLite has already rolled back.
        defer { try? run("ROLLBACK") }
        // Another connection may have opened the file in between, and created a log again.
        guard try texts("PRAGMA journal_mode") == ["delete"] else { throw openElsewhere }
        // SQLite does not wait until the removal of its log and journal is on disk. After a power cut it would apply them to a file
        // that has the name of this one by then.
        try PartialFile.syncFolder(of: URL(fileURLWithPath: path, isDirectory: false))
        try body(self)
    }

    /// Writes the log back and removes it. Returns why that failed: another connection, or the error of SQLite.
    private func leaveLogMode() -> StoreError? {
        do {
            return try texts("PRAGMA journal_mode = DELETE") == ["delete"] ? nil : openElsewhere
        } catch let error as StoreError where error.code != .inUseElsewhere {
            return error
        } catch {
            return openElsewhere
        }
    }

    private var openElsewhere: StoreError {
        StoreError(
            .inUseElsewhere, "cannot replace \(path): another store or process has it open. Close it there")
    }
}
