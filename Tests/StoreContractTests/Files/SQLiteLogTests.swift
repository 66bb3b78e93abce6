import Foundation
import SQLiteStore
import StoreContract
import StoreInterface
import StoreModel
import Testing

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
        let (key, name) = (ObjectKey(64 + number % 100), Value.string(String(repeating: "x", count: 20_000)))
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
            #expect(newest.generation == Generation(number + 1))
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
}
