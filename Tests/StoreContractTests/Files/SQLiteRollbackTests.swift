import Foundation
import StoreContract
import StoreInterface
import StoreModel
import Testing

@testable import SQLiteStore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// Transactions that SQLite cannot roll back, as after some errors of the disk.
@Suite struct SQLiteRollbackTests {
    private struct Injected: Error {}

    private static func insert(_ store: any ObjectStore, _ key: ObjectKey) throws {
        try ContractStore.save(store, durability: .durable) { $0.insertItem(key, name: "item \(key)") }
    }

    /// Saves, and fails after the changes were made. The rollback then fails, too.
    private static func failToRollBack(_ store: SQLiteStore, atCommit: @escaping () -> Void = {}) {
        store.writer.beforeRunning = { sql in
            if sql == "COMMIT" { atCommit() }
            if ["ROLLBACK", "COMMIT"].contains(sql) { throw Injected() }
        }
        #expect(throws: Injected.self) { try insert(store, 65) }
        store.writer.beforeRunning = nil
    }

    @Test(arguments: SnapshotConnections.allCases)
    func `a transaction that cannot be rolled back leaves no lock and no change`(_ connections: SnapshotConnections) throws {
        let folder = try TemporaryFolder()
        let url = folder.url.appendingPathComponent("store")
        let store = try SQLiteStore(url: url, schema: Sample.schema, connections: connections)
        let other = try SQLiteStore(url: url, schema: Sample.schema)
        try Self.insert(store, 64)
        Self.failToRollBack(store)
        #expect(try store.snapshot().all(Sample.item) == [64])
        // Waits for 30 seconds and fails if the lock of the first store is held.
        try Self.insert(other, 66)
        try Self.insert(store, 67)
        #expect(try store.snapshot().all(Sample.item) == [64, 66, 67])
        #expect(try store.verify() == [] && other.verify() == [])
        try store.shutDown()
        try other.shutDown()
    }

    @Test func `a file that was replaced is not opened in place of the file whose transaction failed`() throws {
        let folder = try TemporaryFolder()
        let url = folder.url.appendingPathComponent("store")
        let copy = folder.url.appendingPathComponent("copy")
        let store = try SQLiteStore(url: url, schema: Sample.schema)
        try Self.insert(store, 64)
        _ = try store.backup(to: copy, existing: .refuse)
        Self.failToRollBack(store) { #expect(rename(copy.path, url.path) == 0) }
        let error = #expect(throws: StoreError.self) { try Self.insert(store, 66) }
        #expect(error?.code == .fileReplaced)
    }

    @Test(.enabled(if: FileManager.default.fileExists(atPath: "/proc/self/fd"), "the test looks at open files there"))
    func `a restore to a new name waits while another process creates a store of that name`() async throws {
        let folder = try TemporaryFolder()
        let (backup, target) = (folder.url.appendingPathComponent("backup"), folder.url.appendingPathComponent("store"))
        let other = folder.url.appendingPathComponent("other")
        for (url, key) in [(backup, 64), (other, 65)] as [(URL, ObjectKey)] {
            let store = try SQLiteStore(url: url, schema: Sample.schema)
            try Self.insert(store, key)
            try store.shutDown()
        }
        // Another process creates the store: it holds the lock, and has not given the file its name yet.
        let lock = open(folder.url.appendingPathComponent(".store.making").path, O_RDWR | O_CREAT, 0o644)
        #expect(lock >= 0 && flock(lock, LOCK_EX) == 0)
        let restoring = Task.detached {
            try MigratableSQLiteFile(target).restore(from: backup, cancellation: Cancellation())
        }
        // The restore has found no file, and waits for the lock: it has opened the file of the lock too.
        let lockName = "\(folder.url.lastPathComponent)/.store.making"
        func lockIsOpenTwice() throws -> Bool {
            let open = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")
            let paths = open.compactMap { try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)") }
            return paths.count { $0.hasSuffix(lockName) } > 1
        }
        while try !lockIsOpenTwice() { try await Task.sleep(for: .milliseconds(2)) }
        try FileManager.default.copyItem(at: other, to: target)
        // A reader of that process. It needs no lock to open the file.
        let reader = try SQLiteStore(url: target, schema: Sample.schema, readOnly: true)
        let snapshot = try reader.snapshot()
        #expect(flock(lock, LOCK_UN) == 0)
        close(lock)
        let error = await #expect(throws: StoreError.self) { try await restoring.value }
        #expect(error?.code == .inUseElsewhere)
        #expect(try snapshot.all(Sample.item) == [65])
        withExtendedLifetime(snapshot) {}
    }

    @Test func `a restore to a new name leaves only the store`() throws {
        let folder = try TemporaryFolder()
        let (backup, target) = (folder.url.appendingPathComponent("backup"), folder.url.appendingPathComponent("store"))
        let store = try SQLiteStore(url: backup, schema: Sample.schema)
        try Self.insert(store, 64)
        try store.shutDown()
        try MigratableSQLiteFile(target).restore(from: backup, cancellation: Cancellation())
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.url.path).filter { $0.contains("store") }
        #expect(names == ["store"])
        let restored = try SQLiteStore(url: target, schema: Sample.schema)
        #expect(try restored.snapshot().all(Sample.item) == [64])
    }
}
