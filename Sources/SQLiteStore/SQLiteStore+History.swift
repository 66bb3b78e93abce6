import Foundation
import StoreInterface

/// The history is a table of change sets as JSON, one row a save.
extension SQLiteStore {
    public func history(after generation: Generation?, limit: Int) throws -> [ChangeSet]? {
        let reader = try reader(.snapshot)
        if let generation, generation >= reader.generation { return [] }
        let texts = try reader.connection.withLock {
            try reader.connection.texts(
                "SELECT changes FROM strata_history WHERE generation > ? ORDER BY generation LIMIT ?",
                [.uint(generation ?? 0), .int(Int64(limit))])
        }
        let changes = try texts.map { try HistoryText.changes($0, path) }
        guard let generation else { return changes }
        guard let first = changes.first else { return limit == 0 ? [] : nil }
        return first.generation <= generation + 1 ? changes : nil
    }
}

extension SQLiteTransaction {
    func record(_ changes: ChangeSet, _ generation: Generation) throws {
        var changes = changes
        changes.generation = generation
        self.generation = generation
        try run("UPDATE strata_state SET generation = ?", generation)
        let statement = try connection.statement("INSERT OR REPLACE INTO strata_history VALUES (?, ?)")
        statement.bind(generation, 1)
        statement.bind(.string(try HistoryText.text(changes)), 2)
        try statement.run()
        if generation > Self.historyLimit {
            try run("DELETE FROM strata_history WHERE generation <= ?", generation - Self.historyLimit)
        }
    }

    func deleteHistory(_ cut: HistoryCut, limit: Int) throws -> Int {
        let oldest = try connection.texts(
            "SELECT changes FROM strata_history ORDER BY generation LIMIT ?", [.int(Int64(limit))])
        var last: ChangeSet?
        var count = 0
        for text in oldest {
            let changes = try HistoryText.changes(text, path)
            guard cut.takes(changes) else { break }
            last = changes
            count += 1
        }
        if let last { try run("DELETE FROM strata_history WHERE generation <= ?", last.generation) }
        return count
    }
}

/// A change set as JSON.
private enum HistoryText {
    static func text(_ changes: ChangeSet) throws -> String {
        String(decoding: try JSONEncoder().encode(changes), as: UTF8.self)
    }

    static func changes(_ text: String, _ path: String) throws -> ChangeSet {
        do { return try JSONDecoder().decode(ChangeSet.self, from: Data(text.utf8)) } catch {
            throw StoreError(.damaged, "\(path): a row of strata_history is no change set (\(error)); restore the file")
        }
    }
}
