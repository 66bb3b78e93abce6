import Foundation
import StoreInterface
import StoreModel
import Testing

@testable import LMDBStore

/// Catches: snapshots that change, writers that wait for readers, and snapshots that cost more than they must.
@Suite struct SnapshotTests {
    @Test func S150_aHeldSnapshotKeepsItsState() throws {
        let scratch = try Scratch()
        let store = try scratch.store()
        let keys = try store.insertTracks(100)
        let held = try store.snapshot()
        let page = try #require(try held.page(Samples.track, keys[0].page))
        for round in 0..<50 {
            try store.save { layer, _ in
                for key in keys {
                    let row = Row.make(kind: round == 49 ? .delete : .update, layer: layer.id, columnCount: 6)
                    if round < 49 { row[2] = .int(Int64(1000 + round)) }
                    layer.put(row, entity: Samples.track, key: key)
                }
            }
        }
        #expect(try store.snapshot().count(StoreQuery(entity: Samples.track)) == 0)
        for (number, key) in keys.enumerated() {
            #expect(try held.value(Samples.track, key: key, column: 2) == .int(Int64(number % 10)))
        }
        #expect(try page.value(keys[3].slot, 2) == .int(3))
        #expect(try held.lookup(Samples.track, column: 0, value: .string("isrc-7")) == [keys[7]])
        #expect(held.generation == 1)
    }

    @Test func S153_readersAndTheWriterDoNotWaitForEachOther() throws {
        let scratch = try Scratch()
        let store = try scratch.store()
        let keys = try store.insertTracks(64)
        // Runs inside a write transaction, so a wait would never end.
        try store.write(.durable) { transaction in
            let snapshot = try store.snapshot()
            #expect(try snapshot.value(Samples.track, key: keys[0], column: 2) == .int(0))
            #expect(transaction.generation == 1)
        }
    }

    @Test func snapshotsOfOneStateAreOne() throws {
        let scratch = try Scratch()
        let store = try scratch.store()
        let first = try store.snapshot()
        #expect(try store.snapshot() === first)
        try store.insertTracks(1)
        #expect(try store.snapshot() !== first)
        #expect(store.environment.liveReaders == 1)
    }

    @Test func manyThreadsReadOneSnapshotWhileSavesGoOn() throws {
        let scratch = try Scratch()
        let store = try scratch.store()
        let keys = try store.insertTracks(1000)
        let snapshot = try store.snapshot()
        DispatchQueue.concurrentPerform(iterations: 8) { thread in
            for round in 0..<30 {
                if thread == 0 {
                    _ = try? store.save { layer, _ in
                        let row = Row.make(kind: .update, layer: layer.id, columnCount: 6)
                        row[2] = .int(Int64(5000 + round))
                        layer.put(row, entity: Samples.track, key: keys[round])
                    }
                } else {
                    let query = StoreQuery(entity: Samples.track, predicate: .compare(2, .equal, to: .int(Int64(round % 10))))
                    let found = try? snapshot.keys(query).count
                    if found != 100 { Issue.record("\(String(describing: found))") }
                    let value = try? snapshot.value(Samples.track, key: keys[round], column: 2)
                    if value != .int(Int64(round % 10)) { Issue.record("\(String(describing: value))") }
                }
            }
        }
        #expect(try store.snapshot().generation == 31)
    }

    @Test func explainsWhichWayAQueryGoes() throws {
        let scratch = try Scratch()
        let store = try scratch.store()
        try store.insertTracks(200)
        let snapshot = try store.snapshot()
        func explain(_ predicate: StorePredicate) throws -> String {
            try snapshot.explain(StoreQuery(entity: Samples.track, predicate: predicate))
        }
        #expect(try explain(.compare(0, .equal, to: .string("isrc-1"))) == "index on isrc, equality")
        #expect(
            try explain(.and([.compare(2, .less, to: .int(3)), .compare(5, .equal, to: .bool(true))])) == "index on plays, range")
        #expect(try explain(.string(0, .hasPrefix, pattern: "isrc", sensitivity: .sensitive)) == "index on isrc, prefix")
        #expect(try explain(.compare(1, .equal, to: .string("title 1"))) == "scan of 4 pages")
        #expect(try explain(.compare(4, .equal, to: .reference(5))) == "index on artist, equality")
    }
}
