import LMDB
import PageCodec
internal import Platform
import StoreFiles
import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension LMDBStore {
    /// Writes a copy without free pages, on a background queue; see `ObjectStore.compactCopy`. Takes about as long as writing and
    /// verifying a file of that size. Opening the copy beside this store creates a second store with the same identity. The open
    /// file is copied, also if it has lost its name.
    public func compactCopy(to url: URL, progress: @escaping @Sendable (Double) -> Void) async throws {
        try await inBackground(progress: progress) { store, cancellation in
            try CompactCopy(store, target: url, cancellation: cancellation).run()
        }
    }
}

/// A copy that is written as a ``PartialFile``: it gets its name when all of it is on disk and verified.
struct CompactCopy {
    /// The number of bytes written and synced at a time, small enough for memory and for cancellation.
    private static let bytesOfTransaction = 1 << 25

    private let store: LMDBStore
    private let target: URL
    private let cancellation: Cancellation

    init(_ store: LMDBStore, target: URL, cancellation: Cancellation) {
        self.store = store
        self.target = target
        self.cancellation = cancellation
    }

    func run() throws {
        try cancellation.check()
        let partial = try PartialFile(for: target, existing: .refuse, access: store.fileAccess())
        defer { partial.discard() }
        try store.checkForeignName(partial.target)
        do {
            try copyTables(to: partial.path)
        } catch let error as LMDBError {
            throw StoreError(error, path: target.path)
        }
        try cancellation.check()
        try verify(partial.path)
        try cancellation.check()
        // The mark is written after the verification, because opening the copy would begin its incarnation.
        try CopyStamp().write(toFile: partial.path, for: target.path)
        try partial.finish()
        cancellation.report(1, of: 1)
    }

    /// Adds the entries of each table in their order to a new file, so that its pages are full. LMDB's own compacting copy
    /// would keep the half-full pages that random writes leave.
    private func copyTables(to path: String) throws {
        // Opens the file of a suspended store, and keeps it from being suspended or closed meanwhile.
        let state = try store.newestSnapshot()
        defer { withExtendedLifetime(state) {} }
        do {
            try copyNewestTables(to: path)
        } catch  where !(error is CancellationError) {
            // Pages of several states may look damaged.
            try store.checkUnchanged(since: state)
            throw error
        }
        try store.checkUnchanged(since: state)
    }

    private func copyNewestTables(to path: String) throws {
        guard let tables = try store.reading({ try store.environment.openDatabases { try $0.tables() } }) else {
            throw StoreError.damaged(store, "a table is of an unknown kind")
        }
        // Uses a separate transaction, so that other threads do not wait for this long walk.
        let source = try store.reading { try ReadTransaction(store.environment) }
        defer { source.end() }
        // Not the size of the file with the store's name, because the open file may have lost its name.
        let size = try (store.environment.information().lastPage + 1) * store.pageSize
        let copy = try Environment(
            path: path,
            options: Environment.Options(mapSize: 2 * size + 1 << 26, maximumDatabases: tables.count + 8))
        defer { copy.close() }
        var copied = 0
        for table in tables {
            try source.withCursor(table.database) { from in
                var next = try from.move(.next)
                var last: [UInt8]?
                repeat {
                    try cancellation.check()
                    try copy.write { transaction in
                        let database = try transaction.open(table.name, table.kind)
                        try transaction.withCursor(database) {
                            next = try append(from, first: next, to: $0, last: &last, &copied)
                        }
                        // The copied row has the number of a commit of the source. The last step writes another one.
                        if table.name == MetaTable.name { try MetaTable.remove(MetaTable.Key.check, database, in: transaction) }
                    }
                    // The verification of the copy takes about as long. The file also has free pages, so that the copy may be smaller.
                    cancellation.report(copied, of: 2 * size)
                } while next != nil
            }
        }
        try writeCheck(copy)
    }

    /// Writes a new checksum row, because the commits of the copy have their own numbers.
    private func writeCheck(_ copy: Environment) throws {
        guard store.format > 1 else { return }
        try copy.write { try MetaCheck.write(try $0.open(MetaTable.name, .bytes), in: $0) }
    }

    /// Copies entries, from a given entry on, up to a number of bytes.
    /// - Parameters:
    ///   - last: The key of the previous entry.
    ///   - copied: The number of bytes that were copied so far.
    /// - Returns: The first entry that is left.
    private func append(
        _ from: Cursor, first: Cursor.Entry?, to target: Cursor, last: inout [UInt8]?, _ copied: inout Int
    ) throws -> Cursor.Entry? {
        var next = first
        var byteCount = 0
        while let entry = next, byteCount < Self.bytesOfTransaction {
            if let known = last, entry.key.elementsEqual(known) {
                try target.append(entry, .sameKey)
            } else {
                try target.append(entry, .newKey)
                last = Array(entry.key)
            }
            byteCount += entry.key.count + entry.value.count
            next = try from.move(.next)
        }
        copied += byteCount
        return next
    }

    private func verify(_ path: String) throws {
        var options = store.options
        options.mapSize = 1 << 20
        let copy = try LMDBStore.open(URL(fileURLWithPath: path), schema: store.schema, options: options)
        if let finding = try copy.verify().first {
            throw StoreError(.damaged, "\(target.path) was not made, because the copy is damaged: \(finding). Verify the store")
        }
    }
}
