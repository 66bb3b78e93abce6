import LMDB
import PageCodec
import StoreInterface
import StoreModel

/// A large value that is in the file, completely or in part, before its save. It has a row of `meta`, from the transaction of
/// its first chunk until the save removes the row.
struct UnreferencedValue: Sendable, Hashable {
    /// The entity's number in the file.
    var entityNumber: Int
    var number: UInt64

    init(entityNumber: Int, number: UInt64) {
        self.entityNumber = entityNumber
        self.number = number
    }

    /// Parses the name of a row.
    /// - Parameter name: The part of the name after ``MetaTable/Key/unreferenced``.
    init?(name: String) {
        let parts = name.split(separator: " ", omittingEmptySubsequences: false)
        guard parts.count == 2, let entityNumber = Int(parts[0]), let number = UInt64(parts[1]) else { return nil }
        self.init(entityNumber: entityNumber, number: number)
    }

    /// The name of the row.
    var key: String { "\(MetaTable.Key.unreferenced)\(entityNumber) \(number)" }

    /// The write that wrote a value ahead: a random number per write.
    typealias Mark = UInt64

    static func all(at cursor: Cursor) throws -> [UnreferencedValue] {
        try MetaTable.entries(MetaTable.Key.unreferenced, at: cursor).compactMap { UnreferencedValue(name: $0.name) }
    }
}

extension LMDBStore {
    /// Deletes values that no write will claim. A write that will claim values keeps the file's lock until then, so an
    /// exclusive lock shows that there is no such write. If deleting fails, a later write tries again. Used under the writing
    /// lock.
    func collectUnreferenced() {
        guard let lock = FileLock(self, .exclusive) else { return }
        defer { lock.unlock() }
        do {
            let values = try ReadTransaction(environment).withCursor(tables.meta) { try UnreferencedValue.all(at: $0) }
            try delete(values, of: nil)
            counters.mayHaveUnreferenced.store(false, ordering: .relaxed)
        } catch {
            // For example, the disk is full. The values only take room, and the current write may still succeed.
            counters.mayHaveUnreferenced.store(true, ordering: .relaxed)
        }
    }

    /// Deletes values and their rows in transactions of bounded size, except values with another mark.
    /// - Parameter mark: The mark of the values to delete; nil for any mark.
    func delete(_ values: [UnreferencedValue], of mark: UnreferencedValue.Mark?) throws {
        var rest = values[...]
        while !rest.isEmpty {
            rest = try writeAlone(ahead: nil) { opened in try opened.deleteSome(of: rest, mark) }
        }
    }
}

extension LMDBTransaction {
    /// The number of chunks that one transaction deletes. LMDB lists the pages that it frees, here 64 KiB of numbers.
    private static let deletedAtOnce = 512

    /// Deletes some values.
    /// - Returns: The values that are left for the next transaction.
    fileprivate func deleteSome(
        of values: ArraySlice<UnreferencedValue>, _ mark: UnreferencedValue.Mark?
    ) throws -> ArraySlice<UnreferencedValue> {
        try recordingFailure {
            var rest = values
            var left = Self.deletedAtOnce
            while let value = rest.first, left > 0 {
                if try isUnreferenced(value, of: mark) {
                    guard try deleteChunks(of: value, &left) else { break }
                    try MetaTable.remove(value.key, store.tables.meta, in: transaction)
                    left -= 1
                }
                rest.removeFirst()
            }
            return rest
        }
    }

    /// Returns whether the value has a row, with this mark unless `mark` is nil.
    func isUnreferenced(_ value: UnreferencedValue, of mark: UnreferencedValue.Mark?) throws -> Bool {
        guard let found = try transaction.metaNumber(value.key, store.tables.meta) else { return false }
        return mark == nil || mark == found
    }

    /// Deletes the chunks of a value. The row is deleted with the last chunk, because the number may be reused when the value
    /// has no chunks.
    /// - Returns: Whether all chunks are deleted.
    private func deleteChunks(of value: UnreferencedValue, _ left: inout Int) throws -> Bool {
        // If a later schema does not have the entity, its values are deleted with its table.
        guard let entity = store.tables.entity(number: value.entityNumber) else { return true }
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
