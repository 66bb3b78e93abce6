import LMDB
import PageCodec
import StoreInterface

extension LMDBStore {
    /// The change sets after a generation, in one snapshot. O(change sets).
    public func history(after generation: Generation?, limit: Int) throws -> [ChangeSet]? {
        let snapshot = try newestSnapshot()
        if let generation, generation >= snapshot.generation { return [] }
        return try snapshot.history(after: generation, limit: limit)
    }

    fileprivate func changes(_ bytes: UnsafeRawBufferPointer, of save: Generation) throws -> ChangeSet {
        do {
            return schemas.count == 1
                ? try ChangeSetCodec.decode(bytes) : schemas.translated(try ChangeSetCodec.decode(bytes), of: save)
        } catch {
            throw StoreError.damaged(self, "the history of save \(save): \(error)")
        }
    }
}

extension LMDBSnapshot {
    /// The rows of the history as they lie in the file, from a save on.
    func historyRows(from first: Generation = 0, limit: Int = .max) throws -> [FoundPage] {
        try store.mappingErrors {
            try transaction.withCursor(store.tables.history) { cursor in
                var found: [FoundPage] = []
                var entry = try cursor.seek(first)
                while let save = entry, found.count < limit {
                    found.append(FoundPage(number: save.number, bytes: save.value))
                    entry = try cursor.move(.next)
                }
                return found
            }
        }
    }

    func history(after generation: Generation?, limit: Int = .max) throws -> [ChangeSet]? {
        let found = try historyRows(from: generation.map { $0 + 1 } ?? 0, limit: limit)
        if let generation, found.first?.number != generation + 1, limit > 0 { return nil }
        return try found.map { try store.changes($0.bytes, of: $0.number) }
    }
}

extension LMDBTransaction {
    func record(_ changes: ChangeSet, under number: Generation) throws {
        var changes = changes
        changes.generation = number
        let history = store.tables.history
        try ChangeSetCodec.encode(changes).withUnsafeBytes { try transaction.put(history, number, $0) }
        if number > generation { try advance(to: number) }
        let limit = UInt64(max(store.options.historyLimit, 1))
        guard generation > limit else { return }
        // A few at a time, so that a lowered limit does not make one save long.
        try transaction.withCursor(history) { cursor in
            for _ in 0..<16 {
                guard let oldest = try cursor.move(.first), oldest.number <= generation - limit else { return }
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
    /// By the row's number where that tells, without looking into it. A row that cannot be read has no age: it goes with the others,
    /// since it would otherwise keep all that come after it.
    fileprivate func takes(row: Cursor.Entry) -> Bool {
        switch self {
        case .through(let generation): row.number <= generation
        case .before: (try? ChangeSetCodec.decode(row.value)).map(takes) ?? true
        }
    }
}
