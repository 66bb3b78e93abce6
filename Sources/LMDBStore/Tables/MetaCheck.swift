import LMDB
import PageCodec
import StoreInterface
import StoreModel

/// The row `check` of `meta`, written with every commit: the number of the commit, and a checksum of all other rows. It
/// detects damage to identity, format, schemas and generation, and a commit that is read as another commit. Files of format 1
/// do not have it.
enum MetaCheck {
    /// Eight bytes for the number and eight for the checksum.
    private static let byteCount = 16

    /// Writes the row, as the last step before a commit.
    static func write(_ meta: Database, in transaction: WriteTransaction) throws {
        let number = transaction.transactionNumber
        let hash = try transaction.withCursor(meta) { try Self.hash(at: $0, number) }
        try withUnsafeBytes(of: (number.littleEndian, hash.littleEndian)) {
            try MetaTable.put($0, key: MetaTable.Key.check, meta: meta, in: transaction)
        }
    }

    /// Returns the fault of a state, or nil.
    /// - Parameters:
    ///   - row: The row `check`.
    ///   - number: LMDB's number of the commit.
    static func problem(_ row: UnsafeRawBufferPointer?, at cursor: Cursor, number: UInt64) throws -> String? {
        guard let row, let written = commit(of: row) else { return "its meta table has no checksum" }
        guard try hash(at: cursor, written) == UInt64(littleEndian: row.loadUnaligned(fromByteOffset: 8, as: UInt64.self)) else {
            return "its meta table does not fit its checksum"
        }
        // A copy begins again with commit 1.
        guard written == number || number == 1 else {
            return "its meta page says that it has commit \(number), but what it leads to is commit \(written)"
        }
        return nil
    }

    /// Returns the number of the commit that has written a row `check`; nil if it is none.
    static func commit(of row: UnsafeRawBufferPointer) -> UInt64? {
        row.count == byteCount ? UInt64(littleEndian: row.loadUnaligned(as: UInt64.self)) : nil
    }

    /// Returns the hash of the rows, without the rows of unreferenced values, which may be many and do not describe the store.
    private static func hash(at cursor: Cursor, _ number: UInt64) throws -> UInt64 {
        let own = Array(MetaTable.Key.check.utf8)
        let unreferenced = Array(MetaTable.Key.unreferenced.utf8)
        // The first name after all of them: an exclamation mark follows the space.
        let behind = unreferenced.dropLast() + [unreferenced.last.map { $0 + 1 } ?? 0]
        var hash = MetaHash(transaction: number)
        var entry = try cursor.move(.first)
        while let found = entry {
            if found.key.starts(with: unreferenced) {
                entry = try Array(behind).withUnsafeBytes { try cursor.seek($0) }
                continue
            }
            if !found.key.elementsEqual(own) { hash.add(found.key, found.value) }
            entry = try cursor.move(.next)
        }
        return hash.value
    }
}
