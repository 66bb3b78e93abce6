import LMDB
import PageCodec
import StoreInterface
import StoreModel

extension LMDBStore {
    /// Returns the change sets after a generation, from one snapshot. O(change sets).
    public func history(after generation: Generation?, limit: Int) throws -> [ChangeSet]? {
        let snapshot = try newestSnapshot()
        if let generation, generation >= snapshot.generation { return [] }
        return try snapshot.history(after: generation, limit: limit)
    }

    fileprivate func changes(_ bytes: UnsafeRawBufferPointer, of save: Generation) throws -> ChangeSet {
        do {
            return try decoded(bytes, of: save)
        } catch {
            throw StoreError.damaged(self, "the history of save \(save): \(error)", cause: error)
        }
    }

    /// Decodes the changes of a save, whose positions lead to entities, columns and links of the schema.
    func decoded(_ bytes: UnsafeRawBufferPointer, of save: Generation) throws(PageError) -> ChangeSet {
        let decoded = try ChangeSetCodec.decode(bytes)
        let changes = schemas.count == 1 ? decoded : schemas.translated(decoded, of: save)
        guard changes.fits(schema) else {
            throw PageError(
                field: "change set", reason: "has a number that no entity, column, link, page or save of this store has")
        }
        return changes
    }
}

extension LMDBSnapshot {
    /// A row of the history, not decoded yet.
    struct HistoryRow {
        var save: Generation
        var bytes: UnsafeRawBufferPointer
    }

    /// Returns the rows of the history as stored in the file, from a save on.
    func historyRows(from first: Generation = 0, limit: Int = .max) throws -> [HistoryRow] {
        try store.mappingErrors {
            try transaction.withCursor(store.tables.history) { cursor in
                var found: [HistoryRow] = []
                var entry = try cursor.seek(first.rawValue)
                while let row = entry, found.count < limit {
                    found.append(HistoryRow(save: Generation(rawValue: row.number), bytes: row.value))
                    entry = try cursor.move(.next)
                }
                return found
            }
        }
    }

    func history(after generation: Generation?, limit: Int = .max) throws -> [ChangeSet]? {
        let found = try historyRows(from: generation?.next ?? 0, limit: limit)
        if let generation, found.first?.save != generation.next, limit > 0 { return nil }
        return try found.map { try store.changes($0.bytes, of: $0.save) }
    }
}

extension LMDBTransaction {
    func record(_ changes: ChangeSet, under number: Generation) throws {
        var changes = changes
        changes.generation = number
        let history = store.tables.history
        try ChangeSetCodec.encode(changes).withUnsafeBytes { try transaction.put(history, key: number.rawValue, value: $0) }
        if number > generation { try advance(to: number) }
        let limit = generation.earlier(by: max(store.options.historyLimit, 1))
        guard limit > 0 else { return }
        // Deletes a few rows at a time, so that a lowered limit does not delay one save for long.
        try transaction.withCursor(history) { cursor in
            for _ in 0..<16 {
                guard let oldest = try cursor.move(.first), oldest.number <= limit.rawValue else { return }
                try cursor.delete()
            }
        }
    }

    func deleteHistory(_ cut: HistoryCut, limit: Int) throws -> Int {
        try recordingFailure {
            try transaction.withCursor(store.tables.history) { cursor in
                for count in 0..<max(limit, 0) {
                    guard let oldest = try cursor.move(.first), cut.takes(row: oldest) else { return count }
                    try cursor.delete()
                }
                return max(limit, 0)
            }
        }
    }
}

extension HistoryCut {
    /// Returns whether a row is deleted. Uses only the row's number if that suffices. A row that cannot be read has no age.
    /// It is deleted too, because it would otherwise keep all later rows.
    fileprivate func takes(row: Cursor.Entry) -> Bool {
        switch self {
        case .through(let generation): row.number <= generation.rawValue
        case .before: (try? ChangeSetCodec.decode(row.value)).map(takes) ?? true
        }
    }
}
