import Foundation
import StoreInterface
import StoreModel

/// The history, a table of change sets in JSON with one row per save.
extension SQLiteStore {
    /// Decodes the rows of the history after a save. O(limit) rows.
    public func history(after generation: Generation?, limit: Int) throws -> [ChangeSet]? {
        let reader = try reader(.onePerSnapshot)
        if let generation, generation >= reader.generation { return [] }
        let texts = try pool.whileUnchanged {
            try reader.connection.withLock {
                try reader.connection.texts(
                    "SELECT changes FROM strata_history WHERE generation > ? ORDER BY generation LIMIT ?",
                    [.uint((generation ?? 0).rawValue), .int(Int64(max(0, limit)))])
            }
        }
        let changes = try texts.map { try HistoryText.changes($0, path, fitting: schema) }
        guard let generation else { return changes }
        guard let first = changes.first else { return limit <= 0 ? [] : nil }
        return first.generation <= generation.next ? changes : nil
    }
}

extension SQLiteTransaction {
    func record(_ changes: ChangeSet, _ generation: Generation) throws {
        var changes = changes
        changes.generation = generation
        self.generation = generation
        try run("UPDATE strata_state SET generation = ?", generation.stored)
        try checkChanged(1, "the number of save \(generation)", in: "strata_state")
        let statement = try connection.statement("INSERT OR REPLACE INTO strata_history (generation, changes) VALUES (?, ?)")
        statement.bind(generation.stored, 1)
        statement.bind(.string(try HistoryText.text(changes)), 2)
        try statement.run()
        try checkChanged(1, "the changes of save \(generation)", in: "strata_history")
        let limit = generation.earlier(by: Self.historyLimit)
        if limit > 0 { try run("DELETE FROM strata_history WHERE generation <= ?", limit.stored) }
    }

    func deleteHistory(_ cut: HistoryCut, limit: Int) throws -> Int {
        let statement = try connection.statement(
            "SELECT generation, changes FROM strata_history ORDER BY generation LIMIT ?")
        statement.bind([.int(Int64(max(0, limit)))])
        defer { statement.reset() }
        var last: Generation?
        var count = 0
        while try statement.step() {
            let generation = Generation(stored: statement.integer(0))
            guard takes(cut, generation: generation, text: statement.text(1)) else { break }
            last = generation
            count += 1
        }
        statement.reset()
        guard let last else { return 0 }
        try run("DELETE FROM strata_history WHERE generation <= ?", last.stored)
        // Otherwise a caller that deletes everything would try again and again.
        try checkChanged(count, "the deletion of saves through \(last)", in: "strata_history")
        return count
    }

    /// Returns whether a cut deletes a save. A row that cannot be read has no date. It counts as old, because it would
    /// otherwise keep all later rows from being deleted.
    private func takes(_ cut: HistoryCut, generation: Generation, text: @autoclosure () -> String) -> Bool {
        switch cut {
        case .through(let newest): generation <= newest
        case .before: (try? HistoryText.changes(text(), path)).map(cut.takes) ?? true
        }
    }
}

/// Converts change sets to JSON text and back.
enum HistoryText {
    static func text(_ changes: ChangeSet) throws -> String {
        String(decoding: try JSONEncoder().encode(changes), as: UTF8.self)
    }

    static func changes(_ text: String, _ path: String) throws -> ChangeSet {
        do { return try JSONDecoder().decode(ChangeSet.self, from: Data(text.utf8)) } catch {
            throw StoreError(.damaged, "\(path): a row of strata_history cannot be decoded (\(error)); restore the file")
        }
    }

    /// Decodes a change set, whose positions lead to entities, columns and links of the schema.
    static func changes(_ text: String, _ path: String, fitting schema: StoreSchema) throws -> ChangeSet {
        let decoded = try changes(text, path)
        guard decoded.fits(schema) else {
            throw StoreError(
                .damaged,
                "\(path): a row of strata_history has a number that no entity, column, link, page or save of this store has; "
                    + "restore the file")
        }
        return decoded
    }
}
