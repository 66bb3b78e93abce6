import LMDB
import PageCodec
import StoreInterface

extension LMDBStore {
    /// The change sets after a generation, in one snapshot. O(change sets).
    public func changes(after generation: Generation) throws -> [ChangeSet]? {
        let snapshot = try newestSnapshot()
        guard generation < snapshot.generation else { return [] }
        return try snapshot.history(after: generation)
    }
}

extension LMDBSnapshot {
    /// The oldest save that the history still has.
    func oldestSave() throws -> Generation? {
        try store.translating {
            try transaction.withCursor(store.tables.history) { try $0.move(.first)?.number }
        }
    }

    func history(after generation: Generation) throws -> [ChangeSet]? {
        let table = store.tables.history
        let found = try store.translating {
            try transaction.withCursor(table) { cursor in
                var found: [FoundPage] = []
                var entry = try cursor.seek(generation + 1)
                while let save = entry {
                    found.append(FoundPage(number: save.number, bytes: save.value))
                    entry = try cursor.move(.next)
                }
                return found
            }
        }
        guard found.first?.number == generation + 1 else { return nil }
        return try found.map { entry in
            do {
                return try ChangeSetCodec.decode(entry.bytes)
            } catch {
                throw StoreError.damaged(store, "the history of save \(entry.number): \(error)")
            }
        }
    }
}
