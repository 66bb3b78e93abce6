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

/// The incarnations of a file, and the mark that makes the first opening of a copy begin a new incarnation.
enum StoredLineage {
    /// Returns the incarnations that the file has begun.
    static func read(_ store: UUID, _ meta: Database, in reader: some ByteReading, path: String) throws -> StoreLineage {
        guard let bytes = try reader.metaBytes(MetaTable.Key.incarnations, meta) else { return StoreLineage(store: store) }
        do {
            return StoreLineage(store: store, copies: try LineageCodec.decode(bytes))
        } catch {
            throw StoreError(.damaged, "\(path): its incarnations cannot be read (\(error)). Restore a copy", cause: error)
        }
    }

    /// Returns the lineage of a file that is open read-only.
    ///
    /// A copy becomes an incarnation when it is first opened for writing. Before that, this treats it as one already. Otherwise later saves
    /// of the original would seem to be saves of the copy.
    static func readOnly(
        _ store: UUID, _ meta: Database, in reader: some ByteReading, path: String
    ) throws -> StoreLineage {
        var lineage = try read(store, meta, in: reader, path: path)
        if try newStamp(meta, in: reader, path: path) != nil {
            lineage.begin(after: try reader.metaGeneration(meta) ?? 0)
        }
        return lineage
    }

    /// Returns the mark of a copy that was not opened for writing yet; nil for other files.
    private static func newStamp(_ meta: Database, in reader: some ByteReading, path: String) throws -> CopyStamp? {
        guard let stamp = try CopyStamp.read(path: path) else { return nil }
        let known = try reader.metaBytes(MetaTable.Key.copyStamp, meta).map { Array($0) }
        return known == stamp.bytes ? nil : stamp
    }

    /// Returns whether the file is a copy that was not opened for writing yet.
    static func isNewCopy(_ meta: Database, in reader: some ByteReading, path: String) throws -> Bool {
        try newStamp(meta, in: reader, path: path) != nil
    }

    /// Returns the incarnations, after beginning a new one if the file is a copy that was not opened for writing before.
    static func adopt(
        _ store: UUID, _ meta: Database, in transaction: WriteTransaction, path: String
    ) throws -> StoreLineage {
        var lineage = try read(store, meta, in: transaction, path: path)
        guard let stamp = try newStamp(meta, in: transaction, path: path) else { return lineage }
        guard let generation = try transaction.metaGeneration(meta), generation.isPlausible else {
            throw StoreError(.damaged, "\(path): the meta table has no generation that can be right. Restore another copy")
        }
        lineage.begin(after: generation)
        try LineageCodec.encode(lineage.copies).withUnsafeBytes {
            try MetaTable.put($0, key: MetaTable.Key.incarnations, meta: meta, in: transaction)
        }
        try moveKeys(meta, in: transaction)
        try stamp.bytes.withUnsafeBytes { try MetaTable.put($0, key: MetaTable.Key.copyStamp, meta: meta, in: transaction) }
        return lineage
    }

    /// Moves the first key for new objects of the copy. The original continues to assign the keys after its newest lease and
    /// the keys that it had leased. New objects of the copy use none of them.
    private static func moveKeys(_ meta: Database, in transaction: WriteTransaction) throws {
        var last = try transaction.metaNumber(MetaTable.Key.firstPage, meta) ?? 1
        for row in try MetaTable.entries(MetaTable.Key.nextPage, meta, in: transaction) where row.value.count == 8 {
            last = max(last, row.value.withUnsafeBytes { UInt64(littleEndian: $0.loadUnaligned(as: UInt64.self)) })
        }
        let first = PageAddress.firstPageOfCopy(after: PageNumber(rawValue: last))
        try MetaTable.put(first.rawValue, key: MetaTable.Key.firstPage, meta: meta, in: transaction)
        for row in try MetaTable.entries(MetaTable.Key.freeKeys, meta, in: transaction) {
            try MetaTable.remove(MetaTable.Key.freeKeys + row.name, meta, in: transaction)
        }
    }
}

extension CopyStamp {
    /// Returns the mark of a file, or nil if it has none, or if there is no file.
    /// - Throws: `StoreError` if the file cannot be read: without its mark, a copy would go on as its original.
    static func read(path: String) throws -> CopyStamp? {
        do {
            let file = try OpenFile(path, access: .read)
            defer { file.close() }
            return try withUnsafeTemporaryAllocation(byteCount: byteCount, alignment: 8) { buffer in
                try file.read(into: buffer, at: offset) == byteCount ? CopyStamp(UnsafeRawBufferPointer(buffer)) : nil
            }
        } catch let error as SystemError {
            if error == .notFound { return nil }
            throw StoreError(error, "\(path) cannot be read")
        }
    }

    /// Marks a file that no process has open. The caller syncs it.
    func write(toFile path: String, for target: String) throws {
        do {
            let file = try OpenFile(path, access: .write)
            defer { file.close() }
            try bytes.withUnsafeBytes { try file.write($0, at: Self.offset) }
        } catch let error as SystemError {
            throw StoreError(error, "\(target) cannot be marked as a copy")
        }
    }
}
