import Foundation
import Platform
import StoreContract
import StoreInterface
import StoreModel
import Testing

@testable import SQLiteStore

/// The sync of the log beside the writer of an SQLite store.
@Suite struct SQLiteSyncTests {
    private let folder: TemporaryFolder
    private let store: SQLiteStore

    init() throws {
        folder = try TemporaryFolder()
        store = try SQLiteStore(url: folder.url.appendingPathComponent("store.sqlite"), schema: Sample.schema)
    }

    private var log: String { store.name + "-wal" }

    private var owesSync: Bool { store.syncing.withLock { $0.owes } }

    private func save(_ key: ObjectKey) throws {
        try ContractStore.save(store, durability: .deferred) { $0.insertOwner(key, "owner") }
    }

    @Test func `S066: a separate sync takes the commits before it to disk`() throws {
        let sync = try #require(store.separateSync())
        try save(64)
        #expect(owesSync)
        try sync.sync()
        #expect(!owesSync)
        try save(65)
        #expect(owesSync)
        #expect(try store.snapshot().all(Sample.owner) == [64, 65])
    }

    /// Catches: a writer that trusts a sync of a file which is not the log any more.
    @Test func `S066: a separate sync fails if the log was replaced`() throws {
        let sync = try #require(store.separateSync())
        try save(64)
        try FileManager.default.moveItem(atPath: log, toPath: log + "-kept")
        try Data().write(to: URL(fileURLWithPath: log))
        #expect(throws: StoreError.self) { try sync.sync() }
        #expect(owesSync)
        try FileManager.default.removeItem(atPath: log)
        try FileManager.default.moveItem(atPath: log + "-kept", toPath: log)
        try sync.sync()
        #expect(!owesSync)
    }

    @Test func `S167: a suspended store has no separate sync`() throws {
        try save(64)
        try store.suspend()
        #expect(store.separateSync() == nil)
    }

    #if DEBUG
        /// Catches: a commit that counts as synced because it came while the sync was running.
        @Test func `S066: a separate sync does not count for a commit that comes meanwhile`() throws {
            let sync = try #require(store.separateSync())
            try save(64)
            try SystemFaults.withInjector({ [log, store] call, path in
                guard call == .sync, path == log else { return nil }
                _ = try? ContractStore.save(store, durability: .deferred) { $0.insertOwner(65, "meanwhile") }
                return nil
            }) {
                try sync.sync()
            }
            #expect(owesSync)
            #expect(try store.snapshot().all(Sample.owner) == [64, 65])
        }

        @Test func `S066: a separate sync that fails leaves the commits unsynced`() throws {
            let sync = try #require(store.separateSync())
            try save(64)
            // EIO
            let error = SystemFaults.withInjector({ [log] call, path in call == .sync && path == log ? 5 : nil }) {
                #expect(throws: StoreError.self) { try sync.sync() }
            }
            #expect(error?.code == .inputOutput)
            #expect(owesSync)
            try store.write(.durable) { _ in }
            #expect(!owesSync)
        }

        /// Catches: a sync that succeeds because the system has forgotten the pages which it could not write.
        @Test func `S066: after a failed sync, the whole log is written again before another one counts`() throws {
            let other = try SQLiteStore(url: URL(fileURLWithPath: store.name), schema: Sample.schema)
            let (sync, next) = (try #require(store.separateSync()), try #require(other.separateSync()))
            try save(64)
            // EIO
            _ = SystemFaults.withInjector({ [log] call, path in call == .sync && path == log ? 5 : nil }) {
                #expect(throws: StoreError.self) { try sync.sync() }
            }
            #expect(throws: StoreError.self, "a store on the same file") { try next.sync() }
            #expect(throws: StoreError.self) {
                try SystemFaults.withInjector({ [log] call, path in call == .write && path == log ? 28 : nil }) {
                    try store.write(.durable) { _ in }
                }
            }
            #expect(throws: StoreError.self, "nothing was written again") { try next.sync() }
            let before = try Data(contentsOf: URL(fileURLWithPath: log))
            try other.write(.durable) { _ in }
            #expect(try Data(contentsOf: URL(fileURLWithPath: log)).starts(with: before))
            try next.sync()
            try sync.sync()
            #expect(!owesSync)
            #expect(try store.snapshot().all(Sample.owner) == [64])
            try other.shutDown()
        }
    #endif
}
