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
    /// The oldest save that the history still has.
    func oldestSave() throws -> Generation? {
        try store.translating {
            try transaction.withCursor(store.tables.history) { try $0.move(.first)?.number }
        }
    }

    func history(after generation: Generation?, limit: Int = .max) throws -> [ChangeSet]? {
        let table = store.tables.history
        let found = try store.translating {
            try transaction.withCursor(table) { cursor in
                var found: [FoundPage] = []
                var entry = try cursor.seek(generation.map { $0 + 1 } ?? 0)
                while let save = entry, found.count < limit {
                    found.append(FoundPage(number: save.number, bytes: save.value))
                    entry = try cursor.move(.next)
                }
                return found
            }
        }
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
        try noting {
            try transaction.withCursor(store.tables.history) { cursor in
                for count in 0..<max(limit, 0) {
                    guard let oldest = try cursor.move(.first),
                        cut.takes(try store.changes(oldest.value, of: oldest.number))
                    else { return count }
                    try cursor.delete()
                }
                return max(limit, 0)
            }
        }
    }
}
