import LMDB
import PageCodec
import StoreInterface

/// A large value that is in the file, whole or in part, before the save that has it: a row of `meta` says so, from the transaction of
/// the value's first chunk until the save removes the row in its own.
struct UnclaimedValue: Sendable, Hashable {
    /// In the file's numbers.
    var entity: Int
    var number: UInt64

    init(entity: Int, number: UInt64) {
        self.entity = entity
        self.number = number
    }

    /// - Parameter name: what follows ``MetaTable/Key/unclaimed``.
    init?(name: String) {
        let parts = name.split(separator: " ", omittingEmptySubsequences: false)
        guard parts.count == 2, let entity = Int(parts[0]), let number = UInt64(parts[1]) else { return nil }
        self.init(entity: entity, number: number)
    }

    /// The row's name.
    var key: String { "\(MetaTable.Key.unclaimed)\(entity) \(number)" }

    /// Who wrote a value ahead: a random number for each write.
    typealias Mark = UInt64

    static func all(at cursor: Cursor) throws -> [UnclaimedValue] {
        try MetaTable.entries(MetaTable.Key.unclaimed, at: cursor).compactMap { UnclaimedValue(name: $0.name) }
    }
}

extension LMDBStore {
    /// Deletes the values that nobody is going to claim: who is about to holds the file's lock until then, living, so that having it
    /// alone tells that there is none. What cannot be done now is left to a later write. Under the lock of writing.
    func collectUnclaimed() {
        guard let lock = FileLock(self, .exclusive) else { return }
        defer { lock.unlock() }
        do {
            let values = try ReadTransaction(environment).withCursor(tables.meta) { try UnclaimedValue.all(at: $0) }
            try delete(values, of: nil)
            mayHaveUnclaimed.store(false, ordering: .relaxed)
        } catch {
            // A full disk, say. The values harm nobody but by their room, and this write has its own chance.
            mayHaveUnclaimed.store(true, ordering: .relaxed)
        }
    }

    /// Deletes values and their rows in transactions of bounded size, those of others left out.
    /// - Parameter mark: nil: whoever wrote them.
    func delete(_ values: [UnclaimedValue], of mark: UnclaimedValue.Mark?) throws {
        var rest = values[...]
        while !rest.isEmpty {
            rest = try writeAlone(ahead: nil) { opened in try opened.deleteSome(of: rest, mark) }
        }
    }
}

extension LMDBTransaction {
    /// Chunks that one transaction deletes: LMDB lists the pages that it frees, here 64 KiB of numbers.
    private static let deletedAtOnce = 512

    /// - Returns: the values that are left for the next transaction.
    fileprivate func deleteSome(
        of values: ArraySlice<UnclaimedValue>, _ mark: UnclaimedValue.Mark?
    ) throws -> ArraySlice<UnclaimedValue> {
        try recordingFailure {
            var rest = values
            var left = Self.deletedAtOnce
            while let value = rest.first, left > 0 {
                if try isUnclaimed(value, of: mark) {
                    guard try deleteChunks(of: value, &left) else { break }
                    try MetaTable.remove(value.key, store.tables.meta, in: transaction)
                    left -= 1
                }
                rest.removeFirst()
            }
            return rest
        }
    }

    /// Whether the value has a row, of that mark if one is given.
    func isUnclaimed(_ value: UnclaimedValue, of mark: UnclaimedValue.Mark?) throws -> Bool {
        guard let found = try transaction.metaNumber(value.key, store.tables.meta) else { return false }
        return mark == nil || mark == found
    }

    /// - Returns: whether all are gone. The row goes with the last one, because without chunks the number may be taken again.
    private func deleteChunks(of value: UnclaimedValue, _ left: inout Int) throws -> Bool {
        // What an entity had that a later schema does not have goes with its table.
        guard let entity = store.tables.entityNumbers.firstIndex(of: value.entity) else { return true }
        return try transaction.withCursor(store.tables.large[entity]) { cursor in
            let first = LargeChunk.key(value.number, 0)
            while let found = try cursor.seek(first), LargeChunk.number(ofKey: found.number) == value.number {
                guard left > 0 else { return false }
                try cursor.delete()
                left -= 1
            }
            return true
        }
    }
}
