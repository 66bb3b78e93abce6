import Foundation
import Platform
import StoreContract
import StoreInterface
import StoreModel
import Testing

@testable import SQLiteStore

/// The length of SQLite's write-ahead log (S154).
@Suite struct SQLiteLogTests {
    /// The most bytes that the log ever has: its limit, a step, and a save.
    private static let bound = 10 << 20

    private func logSize(_ contract: ContractStore) -> Int {
        let files = (try? FileManager.default.contentsOfDirectory(atPath: contract.folder.url.path)) ?? []
        return files.filter { $0.hasSuffix("-wal") }.reduce(0) { sum, name in
            let path = contract.folder.url.appendingPathComponent(name).path
            return sum + ((try? FileManager.default.attributesOfItem(atPath: path)[.size] as? Int) ?? 0)
        }
    }

    /// Saves one item of some kilobytes.
    private func save(_ contract: ContractStore, _ number: Int) throws {
        let key = ObjectKey(64 + number % 100)
        let name = Value.string(String(decoding: [UInt8](repeating: 120, count: 20_000), as: UTF8.self))
        try contract.save { layer in
            if number < 100 {
                layer.insertItem(key, changing: [0: name, 1: .int(Int64(number))])
            } else {
                layer.updateItem(key, [0: name, 1: .int(Int64(number))])
            }
        }
    }

    /// The writer keeps the newest state until the next save is over, so that the log has a reader at each moment.
    @Test func `S154: saves that are each followed by a new snapshot keep the log short`() throws {
        let contract = try ContractStore(.sqlite)
        let idle = try contract.openAgain()
        var newest = try contract.snapshot()
        var longest = 0
        for number in 0..<2000 {
            try save(contract, number)
            newest = try contract.snapshot()
            #expect(newest.generation == Generation(rawValue: UInt64(number + 1)))
            longest = max(longest, logSize(contract))
        }
        #expect(longest < Self.bound, "\(longest) bytes")
        withExtendedLifetime(idle) {}
        #expect(try newest.count(StoreQuery(entity: Sample.item)) == 100)
    }

    @Test func `S154: the log is begun anew when the last snapshot of an older state is gone`() throws {
        let contract = try ContractStore(.sqlite)
        try save(contract, 0)
        var old: (any StoreSnapshot)? = try contract.snapshot()
        var newest = try contract.snapshot()
        for number in 1..<800 {
            try save(contract, number)
            newest = try contract.snapshot()
        }
        #expect(try old?.count(StoreQuery(entity: Sample.item)) == 1, "the old snapshot shows its state")
        #expect(logSize(contract) > Self.bound, "which takes the log")
        let kept = try contract.store.retention(of: [try #require(old), newest]).bytes
        #expect(kept[0] ?? 0 > Self.bound && kept[1] == 0)
        old = nil
        var longest = 0
        for number in 800..<2000 {
            let before = newest
            try save(contract, number)
            newest = try contract.snapshot()
            #expect(
                try before.value(Sample.item, key: ObjectKey(64 + (number - 1) % 100), column: Sample.number)
                    == .int(Int64(number - 1)))
            if number > 810 { longest = max(longest, logSize(contract)) }
        }
        #expect(longest < Self.bound, "\(longest) bytes")
        #expect(try contract.store.verify() == [])
    }

    /// The other store may be of another process. Each time it moves, its read begins in the log again.
    @Test(arguments: [false, true])
    func `S154: another store that reads after each save keeps the log short`(_ writerReads: Bool) throws {
        let contract = try ContractStore(.sqlite)
        let other = try contract.openAgain()
        var longest = 0
        var own = writerReads ? try contract.snapshot() : nil
        var seen = try other.snapshot()
        for number in 0..<2000 {
            try save(contract, number)
            if writerReads { own = try contract.snapshot() }
            seen = try other.snapshot()
            for store in [contract.store, other] { (store as? SQLiteStore)?.finishLogWork() }
            #expect(seen.generation == Generation(rawValue: UInt64(number + 1)))
            longest = max(longest, logSize(contract))
        }
        #expect(longest < Self.bound, "\(longest) bytes")
        #expect(try seen.count(StoreQuery(entity: Sample.item)) == 100)
        withExtendedLifetime(own) {}
    }

    /// Catches: a store that gives up while another one writes, and so keeps each save in the log if it always comes second.
    @Test(.timeLimit(.minutes(10)))
    func `S154: a store that cannot leave the log during a write of another leaves it afterwards`() async throws {
        let contract = try ContractStore(.sqlite)
        let other = try #require(try contract.openAgain() as? SQLiteStore)
        var seen = try other.snapshot()
        // The snapshot of the state before keeps the saves in the log.
        for number in 0..<400 { try save(contract, number) }
        #expect(logSize(contract) > 6 << 20)
        let newest = try other.snapshot()
        let path = contract.folder.url.appendingPathComponent("store.sqlite").path
        let connection = try SQLiteConnection(path: path, role: .writer)
        try connection.withLock { try connection.runScript("BEGIN IMMEDIATE") }
        let attempts = Atomic(0)
        let count: (String) -> Void = { sql in
            if sql == "BEGIN IMMEDIATE" { attempts.add(1, ordering: .relaxed) }
        }
        other.writer.withLock { other.writer.beforeRunning = count }
        // Its release begins the attempts, one after another. When the second one begins, the first has met the lock. However late the
        // other write ends, an attempt follows it.
        seen = newest
        while attempts.load(ordering: .relaxed) < 2 { try await Task.sleep(for: .milliseconds(2)) }
        try connection.withLock { try connection.runScript("COMMIT") }
        connection.close()
        other.finishLogWork()
        try save(contract, 400)
        #expect(logSize(contract) < 6 << 20, "a save begins the log anew")
        #expect(try seen.count(StoreQuery(entity: Sample.item)) == 100)
    }

    /// Takes the log of a file away, as before the file is replaced, and ends the process.
    static func endWithoutLog(_ path: String) throws {
        try SQLiteConnection(path: path, role: .writer).withoutLog { _ in _ = kill(getpid(), SIGKILL) }
    }

    private static func journalMode(_ url: URL) throws -> [String] {
        let connection = try SQLiteConnection(path: url.path, role: .observer)
        return try connection.withLock { try connection.texts("PRAGMA journal_mode") }
    }

    /// Catches: a snapshot that keeps each save from being committed, because the file has no log.
    @Test(arguments: SnapshotConnections.allCases)
    func `S167: a suspended store whose log a killed process has taken away gets it again`(
        _ connections: SnapshotConnections
    ) async throws {
        let folder = try TemporaryFolder()
        let url = folder.url.appendingPathComponent("store.sqlite")
        let store = try SQLiteStore(url: url, schema: Sample.schema, connections: connections)
        try ContractStore.save(store, durability: .durable) { $0.insertOwner(64, "before") }
        for key in [65, 66] as [ObjectKey] {
            try store.suspend()
            await #expect(processExitsWith: .signal(SIGKILL)) { [path = url.path as String] in
                try SQLiteLogTests.endWithoutLog(path)
            }
            #expect(try Self.journalMode(url) == ["delete"])
            // The first use is a read, or a save.
            let snapshot = key == 65 ? try store.snapshot() : nil
            try ContractStore.save(store, durability: .durable) { $0.insertOwner(key, "after \(key)") }
            #expect(try Self.journalMode(url) == ["wal"])
            if connections == .onePerSnapshot, let snapshot { #expect(try snapshot.all(Sample.owner) == [64]) }
        }
        #expect(try store.snapshot().all(Sample.owner) == [64, 65, 66])
        #expect(try store.verify() == [])
        try store.shutDown()
    }

    @Test func `a file that is not replaced after all has its log again`() throws {
        struct Refused: Error {}
        let folder = try TemporaryFolder()
        let url = folder.url.appendingPathComponent("store.sqlite")
        let store = try SQLiteStore(url: url, schema: Sample.schema)
        try ContractStore.save(store, durability: .durable) { $0.insertOwner(64, "kept") }
        try store.suspend()
        let connection = try SQLiteConnection(path: url.path, role: .writer)
        #expect(throws: Refused.self) { try connection.withoutLog { _ in throw Refused() } }
        connection.close()
        #expect(try Self.journalMode(url) == ["wal"])
        #expect(try store.snapshot().all(Sample.owner) == [64])
        try store.shutDown()
    }

    /// A store that reads what it reads keeps its state while another store moves and restarts the log.
    @Test func `S154: an old snapshot of another store keeps its state while the log is shortened`() throws {
        let contract = try ContractStore(.sqlite)
        let other = try contract.openAgain()
        try save(contract, 0)
        var kept = try other.snapshot()
        var value = Int64(0)
        for number in 1..<1200 {
            try save(contract, number)
            _ = try other.snapshot()
            if number % 50 == 0 {
                // The state before this move is read once more.
                #expect(try kept.value(Sample.item, key: 64, column: Sample.number) == .int(value))
                kept = try other.snapshot()
                value = Int64(number - number % 100)
            }
        }
        #expect(try contract.store.verify() == [])
    }
}
