import LMDB
import StoreInterface

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif
#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

extension LMDBStore {
    /// Writes a copy without free pages, on a queue of its own; see `CompactableStore`. Takes about as long as writing and
    /// verifying a file of that size. Opening the copy beside this store gives a second store with the same identity.
    public func compactCopy(to url: URL) async throws {
        try await inBackground { store, cancellation in try CompactCopy(store, url, cancellation).run() }
    }
}

/// Makes the copy under a temporary name beside the wanted one; nothing has the wanted name before all is on disk and verified.
struct CompactCopy {
    /// So much is written and synced at a time: little enough for memory and for cancelling.
    private static let bytesOfTransaction = 1 << 25

    private let store: LMDBStore
    private let target: URL
    private let partial: URL
    private let cancellation: Cancellation

    init(_ store: LMDBStore, _ target: URL, _ cancellation: Cancellation) {
        self.store = store
        self.target = target
        self.cancellation = cancellation
        partial = target.deletingLastPathComponent().appendingPathComponent(".\(target.lastPathComponent).\(UUID().uuidString)")
    }

    func run() throws {
        try cancellation.check()
        guard try FileIdentity.of(path: target.path) == nil else {
            throw StoreError(.cannotOpen, "\(target.path) is there already. Give another name, or remove it")
        }
        defer { removePartial() }
        do {
            try copyTables()
        } catch let error as LMDBError {
            throw StoreError(error, path: target.path)
        }
        try cancellation.check()
        try verify()
        try sync(partial.path)
        guard rename(partial.path, target.path) == 0 else { throw failed("cannot get its name") }
        // The name is on disk only when its folder is.
        let folder = target.deletingLastPathComponent().path
        try sync(folder.isEmpty ? "." : folder)
    }

    /// Adds the entries of each table in their order to a new file, so that its pages are full. LMDB's own compacting copy would keep
    /// pages half full as random writes have left them.
    private func copyTables() throws {
        guard let tables = try store.environment.openDatabases({ try $0.tables() }) else {
            throw StoreError.damaged(store, "a table is of an unknown kind")
        }
        // A transaction of its own: other threads do not take turns with a walk this long.
        let source = try ReadTransaction(store.environment)
        defer { source.end() }
        let size = try FileIdentity.byteCount(path: store.url.path)
        let copy = try Environment(
            path: partial.path,
            options: Environment.Options(mapSize: 2 * size + 1 << 26, maximumDatabases: tables.count + 8))
        defer { copy.close() }
        for table in tables {
            try source.withCursor(table.database) { from in
                var next = try from.move(.next)
                var last: [UInt8]?
                repeat {
                    try cancellation.check()
                    try copy.write { transaction in
                        let database = try transaction.open(table.name, table.kind)
                        try transaction.withCursor(database) { next = try append(from, next, to: $0, &last) }
                    }
                } while next != nil
            }
        }
    }

    /// Copies entries from one that was found on, so many bytes of them at most.
    /// - Parameter last: the key of the entry before.
    /// - Returns: the first one that is left.
    private func append(
        _ from: Cursor, _ first: Cursor.Entry?, to target: Cursor, _ last: inout [UInt8]?
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
        return next
    }

    private func verify() throws {
        var options = store.options
        options.mapSize = 1 << 20
        let copy = try LMDBStore.open(partial, schema: store.schema, options: options)
        if let finding = try copy.verify().first {
            throw StoreError(.damaged, "\(target.path) was not made, because the copy is damaged: \(finding). Verify the store")
        }
    }

    private func sync(_ path: String) throws {
        let descriptor = open(path, O_RDONLY)
        guard descriptor >= 0 else { throw failed("cannot be opened to be synced") }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw failed("cannot be synced") }
    }

    private func removePartial() {
        unlink(partial.path)
        unlink(partial.path + "-lock")
    }

    private func failed(_ what: String) -> StoreError {
        StoreError(errorNumber: errno, "\(target.path) \(what)")
    }
}
