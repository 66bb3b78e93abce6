import Foundation
import LMDB
import PageCodec
import StoreInterface
import StoreModel
import Synchronization
import Testing

@testable import LMDBStore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// Values that are stored out of line: how they are written and read, and damage.
@Suite struct LargeValueTests {
    /// Creates a page of tracks. The title of the first has so many bytes, which do not compress.
    private func store(_ scratch: Scratch, titleByteCount: Int = 200_000) throws -> LMDBStore {
        let store = try scratch.store()
        try store.insertTracks(64)
        try update(store, 64, [1: .string(Self.title(titleByteCount))])
        return store
    }

    private static func title(_ count: Int) -> String {
        var state: UInt64 = 7
        let bytes = (0..<count).map { _ -> UInt8 in
            state = state &* 6_364_136_223_846_793_005 &+ 1
            return UInt8(truncatingIfNeeded: state >> 57) | 32
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private func update(_ store: LMDBStore, _ key: ObjectKey, _ values: [ColumnIndex: Value]) throws {
        try store.save { layer, _ in
            let row = Row.make(kind: .update, layer: layer.id, columnCount: 6)
            for (column, value) in values { row[column] = value }
            layer.put(row, entity: Samples.track, key: key)
        }
    }

    /// Returns key, address in the map and byte count of each chunk.
    private func chunks(_ store: LMDBStore) throws -> [(key: UInt64, address: UInt, count: Int)] {
        let snapshot = try store.newestSnapshot()
        return try snapshot.transaction.withCursor(store.tables.large[Samples.track]) { cursor in
            var found: [(key: UInt64, address: UInt, count: Int)] = []
            while let entry = try cursor.move(.next) {
                found.append((entry.number, UInt(bitPattern: entry.value.baseAddress), entry.value.count))
            }
            return found
        }
    }

    @Test func aChangeOfASmallNeighbourWritesNoChunk() throws {
        let scratch = try Scratch()
        let store = try store(scratch)
        let before = try chunks(store)
        #expect(before.count == 4)
        let snapshot = try store.newestSnapshot()
        let pages = try snapshot.transaction.statistics(store.tables.pages[Samples.track])
        #expect(pages.leafPages + pages.overflowPages <= 3, "the page itself is small")
        let reads = store.counters.chunkReads.load(ordering: .relaxed)
        for plays in 0..<5 { try update(store, 64, [2: .int(Int64(plays))]) }
        for plays in 0..<5 { try update(store, 65, [1: .string("other \(plays)")]) }
        let after = try chunks(store)
        #expect(before.map(\.key) == after.map(\.key))
        #expect(before.map(\.address) == after.map(\.address), "LMDB moves what is written")
        #expect(store.counters.chunkReads.load(ordering: .relaxed) == reads)
        #expect(try store.snapshot().value(Samples.track, key: 64, column: 1) == .string(Self.title(200_000)))
        #expect(try store.verify() == [])
    }

    @Test func readingANeighbourAndConditionsOnItReadNoChunk() throws {
        let scratch = try Scratch()
        let store = try store(scratch)
        let snapshot = try store.snapshot()
        let reads = store.counters.chunkReads.load(ordering: .relaxed)
        #expect(try snapshot.value(Samples.track, key: 64, column: 0) == .string("isrc-0"))
        #expect(try snapshot.value(Samples.track, key: 65, column: 1) == .string("title 1"))
        func count(_ predicate: StorePredicate) throws -> Int {
            try snapshot.count(StoreQuery(entity: Samples.track, predicate: predicate))
        }
        #expect(try count(.compare(5, .equal, to: .bool(true))) == 32)
        #expect(try count(.compare(1, .notEqual, to: .null)) == 64)
        #expect(try count(.compare(1, .equal, to: .string("title 1"))) == 9)
        #expect(try count(.compare(1, .equal, to: .string(String(repeating: "x", count: 200_000)))) == 0)
        let totals = try snapshot.groups(StoreAggregation(entity: Samples.track, aggregates: [.countValues(1), .sum(2)]))
        _ = totals
        #expect(store.counters.chunkReads.load(ordering: .relaxed) == reads)
        #expect(try count(.compare(1, .equal, to: .string(Self.title(200_000)))) == 1)
        #expect(store.counters.chunkReads.load(ordering: .relaxed) == reads + 4)
    }

    @Test func chunksGoWithTheirValueAndCompressWhenItPays() throws {
        let scratch = try Scratch()
        let store = try store(scratch)
        try update(store, 64, [1: .string("short")])
        #expect(try chunks(store).isEmpty)
        try update(store, 64, [1: .string(String(repeating: "soon said ", count: 30_000))])
        #expect(try chunks(store).reduce(0) { $0 + $1.count } < 4096)
        try store.save { layer, _ in
            layer.put(Row.make(kind: .delete, layer: layer.id, columnCount: 6), entity: Samples.track, key: 64)
        }
        #expect(try chunks(store).isEmpty)
        #expect(try store.verify() == [])
    }

    @Test func severalSavesOfOneTransactionKeepEachOthersValues() throws {
        let scratch = try Scratch()
        let store = try scratch.store()
        try store.write(.durable) { transaction in
            for save in 1...6 {
                let layer = Layer(schema: store.schema)
                let values = Samples.trackValues(save)
                layer.put(Samples.row(values, in: layer), entity: Samples.track, key: ObjectKey(64 + save))
                if save > 1 {
                    let row = Row.make(kind: .update, layer: layer.id, columnCount: 6)
                    row[1] = .string(Self.title(10_000 * save))
                    layer.put(row, entity: Samples.track, key: ObjectKey(63 + save))
                }
                layer.stamp(transaction.generation.next)
                layer.seal()
                try transaction.apply(layer, changes: layer.changeSet())
            }
        }
        for save in 2...6 {
            #expect(
                try store.snapshot().value(Samples.track, key: ObjectKey(63 + save), column: 1)
                    == .string(Self.title(10_000 * save)))
        }
        #expect(try store.verify() == [])
    }

    enum Damage: CaseIterable { case flippedBit, otherCount, missing, swapped, orphan }

    @Test(arguments: Damage.allCases) func damageOfAChunkIsAnErrorThatNamesIt(_ damage: Damage) throws {
        let scratch = try Scratch()
        let store = try store(scratch)
        let table = store.tables.large[Samples.track]
        try store.tamper { transaction in
            func bytes(_ index: Int) throws -> [UInt8] {
                Array(try #require(try transaction.get(table, LargeChunk.key(1, index))))
            }
            func put(_ bytes: [UInt8], _ key: UInt64) throws {
                try bytes.withUnsafeBytes { try transaction.put(table, key: key, value: $0) }
            }
            var second = try bytes(1)
            switch damage {
            case .flippedBit: second[5000] ^= 1
            case .otherCount: second[1] ^= 1
            case .missing: try transaction.delete(table, LargeChunk.key(1, 1))
            case .swapped: second = try bytes(2)
            case .orphan: try put(second, LargeChunk.key(9, 0))
            }
            if damage != .missing { try put(second, LargeChunk.key(1, 1)) }
        }
        let findings = try store.verify()
        #expect(findings.count == 1, "\(findings)")
        #expect(try store.snapshot().value(Samples.track, key: 64, column: 2) == .int(0))
        guard damage != .orphan else { return }
        let error = #expect(throws: StoreError.self) { try store.snapshot().value(Samples.track, key: 64, column: 1) }
        #expect(error?.code == .damaged)
        #expect(error?.message.contains("large value 1") ?? false, "\(String(describing: error))")
    }

    @Test func aFullMapRefusesALargeValueAndKeepsTheStoreWhole() throws {
        let scratch = try Scratch()
        var options = LMDBStore.Options()
        options.mapSize = 8 << 20
        options.maximumMapSize = 8 << 20
        let store = try scratch.store(options)
        try store.insertTracks(64)
        let error = #expect(throws: StoreError.self) { try update(store, 64, [1: .string(Self.title(9 << 20))]) }
        #expect(error?.code == .full)
        try update(store, 64, [1: .string(Self.title(1 << 20))])
        #expect(try store.verify() == [])
    }

    /// The disk is full at the first call, the second, and so on.
    @Test func aDiskThatIsFullAtAnyCallLeavesTheValueThatWas() throws {
        let scratch = try Scratch()
        let store = try store(scratch, titleByteCount: 70_000)
        for place in 0..<1000 {
            let calls = Counter()
            let isFull = LMDBFaults.withInjector(at: scratch.folder.path, { _ in calls.next() == place ? ENOSPC : nil }) {
                do {
                    try update(store, 64, [1: .string(Self.title(140_000)), 2: .int(9)])
                    return false
                } catch let error as StoreError { return error.code == .full } catch { return false }
            }
            if calls.count <= place {
                #expect(!isFull && place > 10)
                break
            }
            #expect(isFull, "call \(place)")
            #expect(try store.snapshot().value(Samples.track, key: 64, column: 1) == .string(Self.title(70_000)), "call \(place)")
        }
        #expect(try store.snapshot().value(Samples.track, key: 64, column: 1) == .string(Self.title(140_000)))
        #expect(try store.verify() == [])
    }

    private final class Counter: Sendable {
        private let calls = Mutex(0)
        var count: Int { calls.withLock { $0 } }
        func next() -> Int {
            calls.withLock { calls in
                defer { calls += 1 }
                return calls
            }
        }
    }

    @Test func compactionAndItsCopyKeepLargeValues() async throws {
        let scratch = try Scratch()
        let store = try store(scratch)
        try store.insertTracks(6400)
        _ = try await store.compact(CompactionOptions(age: .any)) { _ in }
        try update(store, 66, [1: .string(Self.title(3000))])
        let copy = scratch.folder.appendingPathComponent("copy.lmdb")
        try await store.compactCopy(to: copy)
        let other = try LMDBStore.open(copy, schema: Samples.schema)
        for store in [store, other] {
            #expect(try store.snapshot().value(Samples.track, key: 64, column: 1) == .string(Self.title(200_000)))
            #expect(try store.snapshot().value(Samples.track, key: 66, column: 1) == .string(Self.title(3000)))
            #expect(try store.verify() == [])
        }
    }

    /// If a new schema drops a column, the page keeps its records until it is written. Then the values are deleted too.
    @Test func valuesOfADroppedColumnGoWithTheNextWriteOfTheirPage() throws {
        let scratch = try Scratch()
        var schema = Samples.schema
        do {
            let store = try store(scratch)
            #expect(try chunks(store).count == 4)
        }
        schema.entities[Samples.track].columns.remove(at: 1)
        schema.migration.allowedLoss = .everything
        let store = try LMDBStore.open(scratch.url, schema: schema)
        while try store.continueMigration() != nil {}
        #expect(try store.verify() == [])
        #expect(try chunks(store).count == 4)
        try store.save { layer, _ in
            let row = Row.make(kind: .update, layer: layer.id, columnCount: 5)
            row[1] = .int(77)
            layer.put(row, entity: Samples.track, key: 70)
        }
        #expect(try chunks(store).isEmpty)
        #expect(try store.verify() == [])
    }
}
