import LMDB
import PageCodec
internal import Platform
import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Another program may write another file over an open or suspended one, for example with `cp`. The file then keeps its name and its
/// identity, so that only its content shows the change.
extension LMDBStore {
    /// Checks, before anything else of a write transaction, that the file has the content that this process knows. A save would
    /// otherwise be built on another state. About 0.5 µs.
    /// - Throws: `StoreError` `.fileReplaced`.
    func checkContent(in transaction: WriteTransaction) throws {
        // LMDB counts the commits in the lock file, which the other content does not change. The commit number in the map comes
        // first, because the pages of other content must not be read through LMDB.
        guard try transaction.transactionNumber == environment.information().lastTransaction &+ 1,
            try Self.uuid(in: transaction, tables.meta) == opened.uuid,
            // Only opening a file for writing begins an incarnation, and this process has it open.
            try StoredLineage.read(opened.uuid, tables.meta, in: transaction, path: path) == opened.lineage
        else { throw overwritten }
    }

    /// Checks a new read transaction before its other pages are read: its commit number, then the store's uuid.
    /// - Parameter newest: The newest commit in the map before the transaction began.
    func checkContent(in transaction: ReadTransaction, newest: UInt64) throws {
        // Another process may have committed in between.
        guard
            try transaction.transactionNumber <= newest
                || transaction.transactionNumber <= environment.information().lastTransaction,
            try Self.uuid(in: transaction, tables.meta) == opened.uuid
        else { throw overwritten }
    }

    /// Checks the newest save of a transaction against the newest one that this process has seen before.
    func checkGeneration(_ found: Generation, since known: Generation) throws {
        if found < known { throw overwritten }
    }

    /// Checks that a file that was closed meanwhile is still the same store, and not an earlier state of it.
    /// - Parameter reopened: The environment of the file, in which nothing has been opened yet.
    func checkContent(of reopened: Environment) throws {
        let known = newestSeen
        let isSame = try reopened.openDatabases { transaction -> Bool in
            guard let meta = try transaction.open(MetaTable.name, .bytes),
                try Self.uuid(in: transaction, meta) == opened.uuid,
                let newest = try transaction.metaGeneration(meta), newest >= known
            else { return false }
            // Another process may open a read-only copy for writing and begin its incarnation.
            if isReadOnly { return true }
            return try StoredLineage.read(opened.uuid, meta, in: transaction, path: path) == opened.lineage
                && !StoredLineage.isNewCopy(meta, in: transaction, path: path)
        }
        if !isSame { throw overwritten }
    }

    /// The newest save that this process has seen in the file.
    var newestSeen: Generation { Generation(rawValue: counters.newestSeen.load(ordering: .acquiring)) }

    /// Remembers a save that the file has.
    func noteNewest(_ generation: Generation) { counters.newestSeen.max(generation.rawValue, ordering: .releasing) }

    private static func uuid(in transaction: some ByteReading, _ meta: Database) throws -> UUID? {
        guard let bytes = try transaction.metaBytes(MetaTable.Key.uuid, meta), bytes.count == 16 else { return nil }
        return UUID(uuid: bytes.loadUnaligned(as: uuid_t.self))
    }

    var overwritten: StoreError { StoreError.fileReplaced(path, isGone: false) }
}
