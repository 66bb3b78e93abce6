import Dispatch
import Foundation
import LMDB
import PageCodec
import StoreInterface
import StoreModel
import Synchronization
import TestSupport
import Testing

@testable import LMDBStore

/// Catches: compactions that change data, pack pages in use, block the writer, or cannot be stopped.
@Suite struct CompactionTests {
    private let all = CompactionOptions(age: .any, effort: .fast)

    /// Returns the numbers of the packed pages of tracks, ascending.
    private func packedPages(_ store: LMDBStore) throws -> [PageNumber] {
        var numbers: [PageNumber] = []
        try store.newestSnapshot().forEachPage(Samples.track) { number, bytes in
            if PackedPage.isPacked(bytes) { numbers.append(number) }
            return .next
        }
        return numbers
    }

    private func expectSamples(_ snapshot: any StoreSnapshot, _ keys: [ObjectKey]) throws {
        var wrong = 0
        for (number, key) in keys.enumerated() {
            for (column, value) in Samples.trackValues(number, key: key).enumerated(as: ColumnIndex.self)
            where try snapshot.value(Samples.track, key: key, column: column) != value {
                wrong += 1
            }
        }
        #expect(wrong == 0)
    }

    @Test func packedPagesReadAsBefore() async throws {
        let scratch = try Scratch()
        var store = try scratch.store()
        let keys = try store.insertTracks(64 * 100)
        let result = try await store.compact(all)
        #expect(result.pagesPacked == 100)
        #expect(result.pagesSeen == result.pages)
        #expect(result.fraction == 1)
        #expect(result.bytesAfter < result.bytesBefore / 2)
        #expect(try packedPages(store).count == 100)
        #expect(try store.verify() == [])
        // A new store object has none of these pages in memory.
        store = try scratch.store()
        let snapshot = try store.snapshot()
        try expectSamples(snapshot, keys)
        let page = try #require(try snapshot.page(Samples.track, keys[0].page))
        #expect(page.presence == .max)
        #expect(try page.value(5, 2) == .int(5))
        #expect(try snapshot.version(Samples.track, keys[70]) == 1)
        #expect(try snapshot.count(StoreQuery(entity: Samples.track)) == 6400)
        let live = StoreQuery(entity: Samples.track, predicate: .compare(5, .equal, to: .bool(true)))
        #expect(try snapshot.count(live) == 3200)
        #expect(try await store.compact(all).pagesPacked == 0, "what is packed is not packed again")
    }

    @Test func damageOfAPackedPageThatIsInMemoryIsFound() async throws {
        let scratch = try Scratch()
        let store = try scratch.store()
        let keys = try store.insertTracks(64 * 100)
        _ = try await store.compact(all)
        try expectSamples(try store.snapshot(), keys)
        #expect(try store.verify() == [])
        try store.tamper { transaction in
            let table = store.tables.pages[Samples.track]
            var bytes = Array(try #require(try transaction.get(table, 3)))
            bytes[bytes.count - 9] ^= 0x10
            try bytes.withUnsafeBytes { try transaction.put(table, key: 3, value: $0) }
        }
        #expect(try store.verify().contains { $0.description.contains("page 3") })
    }

    @Test func whatMoreSavesThanThereAreHaveWrittenIsNotPacked() async throws {
        let scratch = try Scratch()
        let store = try scratch.store()
        try store.insertTracks(64 * 3)
        for count in [UInt64.max, UInt64.max - 1, 1 << 63] as [UInt64] {
            #expect(try await store.compact(CompactionOptions(age: .saves(count))).pagesPacked == 0)
        }
    }

    @Test func snapshotsTakenBeforeReadTheSameAfter() async throws {
        let scratch = try Scratch()
        let store = try scratch.store()
        let keys = try store.insertTracks(640)
        let before = try store.snapshot()
        let page = try #require(try before.page(Samples.track, keys[0].page))
        _ = try await store.compact(all)
        try expectSamples(before, keys)
        #expect(try page.value(1, 0) == .string("isrc-1"))
        let packed = try store.snapshot()
        #expect(packed.generation == before.generation, "a compaction is not a save")
        try store.save { layer, _ in
            for key in keys {
                layer.put(Row.make(kind: .delete, layer: layer.id, columnCount: 6), entity: Samples.track, key: key)
            }
        }
        try expectSamples(packed, keys)
        #expect(try store.snapshot().count(StoreQuery(entity: Samples.track)) == 0)
    }

    /// Catches: a compaction that holds a snapshot while it writes, so that LMDB reuses no freed page and cannot grow the map.
    @Test func `S154: a compaction has no snapshot while it writes a dictionary or pages`() async throws {
        let scratch = try Scratch()
        let store = try scratch.store()
        try store.insertTracks(64 * 150)
        let commits = Mutex<[Int]>([])
        let reports = Mutex<[Int]>([])
        let hook = LMDBFaults.inject(at: scratch.folder.path) { call in
            if call == .commit { commits.withLock { $0.append(store.environment.liveReaders) } }
            return nil
        }
        defer { hook.end() }
        let result = try await store.compact(all) { _ in reports.withLock { $0.append(store.environment.liveReaders) } }
        #expect(result.pagesPacked == 150)
        let (atCommits, atReports) = (commits.withLock { $0 }, reports.withLock { $0 })
        #expect(atCommits.count > 2 && atCommits.allSatisfy { $0 == 0 }, "\(atCommits)")
        #expect(atReports.count > 2 && atReports.allSatisfy { $0 == 0 }, "\(atReports)")
    }

    @Test func aWriteMakesAPackedPageRawAgain() async throws {
        let scratch = try Scratch()
        let store = try scratch.store()
        let keys = try store.insertTracks(256)
        _ = try await store.compact(all)
        try store.save { layer, _ in
            let row = Row.make(kind: .update, layer: layer.id, columnCount: 6)
            row[2] = .int(77)
            layer.put(row, entity: Samples.track, key: keys[100])
        }
        let written = keys[100].page
        #expect(try !packedPages(store).contains(written))
        #expect(try packedPages(store).count == 3)
        let snapshot = try store.snapshot()
        #expect(try snapshot.value(Samples.track, key: keys[100], column: 2) == .int(77))
        #expect(try snapshot.value(Samples.track, key: keys[100], column: 0) == .string("isrc-100"))
        #expect(try snapshot.value(Samples.track, key: keys[101], column: 2) == .int(1))
        #expect(try store.verify() == [])
    }

    @Test func onlyPagesNotWrittenForAWhileArePacked() async throws {
        let scratch = try Scratch()
        let store = try scratch.store()
        let keys = try store.insertTracks(256)
        for _ in 0..<4 {
            try store.save { layer, _ in
                let row = Row.make(kind: .update, layer: layer.id, columnCount: 6)
                row[2] = .int(1)
                layer.put(row, entity: Samples.track, key: keys[0])
            }
        }
        #expect(try await store.compact(CompactionOptions(age: .saves(5))).pagesPacked == 0)
        #expect(try await store.compact(CompactionOptions(age: .saves(4))).pagesPacked == 3)
        #expect(try !packedPages(store).contains(keys[0].page))
    }

    @Test func savesGoOnWhilePagesArePacked() async throws {
        let scratch = try Scratch()
        let store = try scratch.store()
        let keys = try store.insertTracks(64 * 150)
        async let result = store.compact(all)
        for number in 0..<40 {
            try store.save { layer, _ in
                for index in stride(from: number, to: keys.count, by: 997) {
                    let row = Row.make(kind: .update, layer: layer.id, columnCount: 6)
                    row[2] = .int(Int64(1000 + number))
                    layer.put(row, entity: Samples.track, key: keys[index])
                }
            }
        }
        _ = try await result
        let snapshot = try store.snapshot()
        for number in 0..<40 {
            for index in stride(from: number, to: keys.count, by: 997) {
                #expect(try snapshot.value(Samples.track, key: keys[index], column: 2) == .int(Int64(1000 + number)))
            }
        }
        #expect(try store.verify() == [])
    }

    @Test func aCancelledCompactionKeepsWhatItHasPacked() async throws {
        let scratch = try Scratch()
        let store = try scratch.store()
        let keys = try store.insertTracks(64 * 150)
        let (steps, step) = AsyncStream<Void>.makeStream()
        let isCancelled = DispatchSemaphore(value: 0)
        let running = Task {
            try await store.compact(all) { _ in
                step.yield()
                isCancelled.wait()
            }
        }
        for await _ in steps { break }
        running.cancel()
        for _ in 0..<1000 { isCancelled.signal() }
        await #expect(throws: CancellationError.self) { try await running.value }
        let packed = try packedPages(store).count
        #expect(packed > 0 && packed < 150)
        try expectSamples(store.snapshot(), keys)
        #expect(try store.verify() == [])
        #expect(try await store.compact(all).pagesPacked == 150 - packed)
    }

    @Test func olderPagesKeepTheirDictionary() async throws {
        let scratch = try Scratch()
        var store = try scratch.store()
        let first = try store.insertTracks(64 * 70)
        _ = try await store.compact(all)
        let second = try store.insertTracks(64 * 600)
        _ = try await store.compact(all)
        store = try scratch.store()
        var numbers: Set<UInt32> = []
        try store.newestSnapshot().forEachPage(Samples.track) { number, bytes in
            numbers.insert(try PackedPage(bytes, place: store.layouts[Samples.track].place(number)).dictionaryNumber)
            return .next
        }
        #expect(numbers == [1, 2])
        try expectSamples(store.snapshot(), first)
        try expectSamples(store.snapshot(), second)
        #expect(try store.verify() == [])
    }

    @Test(arguments: [0, 6, 8, 17, 25, 41, 45, 60, 300]) func aDamagedPackedPageIsAnErrorThatNamesIt(offset: Int) async throws {
        let scratch = try Scratch()
        let store = try scratch.store()
        let keys = try store.insertTracks(64)
        _ = try await store.compact(all)
        try store.tamper { transaction in
            let table = store.tables.pages[Samples.track]
            var bytes = Array(try #require(try transaction.get(table, 1)))
            bytes[min(offset, bytes.count - 1)] ^= 0x41
            try bytes.withUnsafeBytes { try transaction.put(table, key: 1, value: $0) }
        }
        #expect(try store.verify().contains { $0.description.contains("page 1") && $0.description.contains("Track") })
        let error = #expect(throws: StoreError.self) { try store.snapshot().value(Samples.track, key: keys[0], column: 0) }
        #expect(error?.code == .damaged)
        #expect(throws: StoreError.self) {
            try store.save { layer, _ in
                let row = Row.make(kind: .update, layer: layer.id, columnCount: 6)
                row[2] = .int(1)
                layer.put(row, entity: Samples.track, key: keys[0])
            }
        }
    }

    @Test func aDamagedDictionaryIsAnErrorOfThePagesThatNeedIt() async throws {
        let scratch = try Scratch()
        let keys = try await {
            let store = try scratch.store()
            let keys = try store.insertTracks(64 * 100)
            _ = try await store.compact(all)
            try store.tamper { transaction in
                let key = store.dictionaries.key(Samples.track, 1)
                var bytes = Array(try #require(try transaction.get(store.tables.dictionaries, key)))
                bytes[bytes.count / 2] ^= 1
                try bytes.withUnsafeBytes { try transaction.put(store.tables.dictionaries, key: key, value: $0) }
            }
            return keys
        }()
        let store = try scratch.store()
        let error = #expect(throws: StoreError.self) { try store.snapshot().value(Samples.track, key: keys[0], column: 0) }
        #expect(error?.message.contains("dictionary") == true)
        #expect(try !store.verify().isEmpty)
    }

    /// The texts compress little, so that packed pages have more than half a leaf of LMDB.
    @Test func longPackedPagesAreSplitAndComeBack() async throws {
        let scratch = try Scratch()
        var random = SeededGenerator()
        func word(_ count: Int) -> String {
            String((0..<count).map { _ in "abcdefghijklmnopqrstuvwxyz".randomElement(using: &random)! })  // Never empty.
        }
        let names = (0..<64 * 40).map { _ in word(Int.random(in: 45...60, using: &random)) }
        var store = try scratch.store()
        try store.save { layer, transaction in
            let keys = try transaction.allocateKeys(Samples.artist, pages: 40)
            for (name, key) in zip(names, keys) {
                layer.put(Samples.row([.string(name), .int(1)], in: layer), entity: Samples.artist, key: key)
            }
        }
        #expect(try await store.compact(CompactionOptions(age: .any)).pagesPacked == 40)
        func tails() throws -> Int {
            let snapshot = try store.newestSnapshot()
            return try withExtendedLifetime(snapshot) { try store.pageOverflow.count(in: snapshot.transaction) }
        }
        #expect(try tails() == 40)
        let before = try store.snapshot()
        store = try scratch.store()
        func expectNames(_ snapshot: any StoreSnapshot) throws {
            let keys = try snapshot.keys(StoreQuery(entity: Samples.artist, predicate: .compare(1, .equal, to: .int(1))))
            #expect(try keys.map { try snapshot.value(Samples.artist, key: $0, column: 0) } == names.map { .string($0) })
        }
        try expectNames(before)
        #expect(try store.verify() == [])
        let key = PageAddress.key(page: 5, slot: 3)
        try store.save { layer, _ in
            let row = Row.make(kind: .update, layer: layer.id, columnCount: 2)
            row[1] = .int(1)
            layer.put(row, entity: Samples.artist, key: key)
            for slot in 0..<64 {
                layer.put(
                    Row.make(kind: .delete, layer: layer.id, columnCount: 2), entity: Samples.artist,
                    key: PageAddress.key(page: 7, slot: slot))
            }
        }
        #expect(try tails() == 38)
        #expect(try store.verify() == [])
        try expectNames(before)
        try store.tamper { try store.pageOverflow.delete(Samples.artist, 9, in: $0) }
        #expect(try !store.verify().isEmpty)
        #expect(throws: StoreError.self) {
            try store.snapshot().value(Samples.artist, key: PageAddress.key(page: 9, slot: 0), column: 0)
        }
    }

    /// Catches: rests and dictionaries of a dropped entity's pages that stay, so that verification finds them and no compact copy is made.
    @Test func `S165: what belongs to the packed pages of a dropped entity goes with it`() async throws {
        let scratch = try Scratch()
        var random = SeededGenerator()
        var store: LMDBStore? = try scratch.store()
        try store?.save { layer, transaction in
            for key in try transaction.allocateKeys(Samples.artist, pages: 40) {
                let name = String((0..<50).map { _ in "abcdefghijklmnopqrstuvwxyz".randomElement(using: &random) ?? "a" })
                layer.put(Samples.row([.string(name), .int(1)], in: layer), entity: Samples.artist, key: key)
            }
        }
        _ = try await store?.compact(CompactionOptions(age: .any))
        var schema = StoreSchema(entities: [Samples.schema.entities[1]])
        schema.entities[0].columns.removeAll { $0.type == .reference }
        schema.entities[0].indexes = []
        schema.migration.allowedLoss = .everything
        // The background queue keeps the store for a moment after the compaction.
        try store?.shutDown()
        store = nil
        let opened = try LMDBStore.open(scratch.url, schema: schema)
        #expect(try opened.verify() == [], "while they wait to be removed")
        while try opened.continueMigration() != nil {}
        #expect(try opened.verify() == [])
        let snapshot = try opened.newestSnapshot()
        for table in [opened.tables.pageOverflow, opened.tables.dictionaries] {
            #expect(try snapshot.transaction.statistics(table).entries == 0)
        }
        try await opened.compactCopy(to: scratch.url.appendingPathExtension("copy")) { _ in }
    }

    @Test func theCacheOfUnpackedPagesStaysWithinItsBytes() async throws {
        let scratch = try Scratch()
        var options = LMDBStore.Options()
        options.pageCacheBytes = 100_000
        let store = try scratch.store(options)
        let keys = try store.insertTracks(64 * 200)
        _ = try await store.compact(all)
        let snapshot = try store.snapshot()
        for index in stride(from: 0, to: keys.count, by: 64) {
            #expect(try snapshot.value(Samples.track, key: keys[index], column: 0) == .string("isrc-\(index)"))
            #expect(store.unpackedPages.byteCount <= 100_000)
        }
        #expect(store.unpackedPages.byteCount > 50_000)
        // A page that a reader holds stays valid after it leaves the cache.
        let page = try #require(try snapshot.page(Samples.track, keys[0].page))
        for index in stride(from: 64, to: keys.count, by: 64) {
            _ = try snapshot.value(Samples.track, key: keys[index], column: 0)
        }
        #expect(try page.value(0, 0) == .string("isrc-0"))
    }

    @Test func snapshotsInWhichAPageIsTheSameShareIt() async throws {
        let scratch = try Scratch()
        let store = try scratch.store()
        let keys = try store.insertTracks(128)
        _ = try await store.compact(all)
        let first = try store.snapshot()
        _ = try first.value(Samples.track, key: keys[0], column: 0)
        let used = store.unpackedPages.byteCount
        #expect(used > 0)
        try store.insertTracks(1)
        let second = try store.snapshot()
        #expect(try second.value(Samples.track, key: keys[0], column: 0) == .string("isrc-0"))
        #expect(store.unpackedPages.byteCount == used)
    }

    @Test func aCompactCopyHoldsTheSameInLessRoom() async throws {
        let scratch = try Scratch()
        let store = try scratch.store()
        let keys = try store.insertTracks(64 * 150)
        _ = try await store.compact(all)
        let url = scratch.folder.appendingPathComponent("copy.lmdb")
        try await store.compactCopy(to: url)
        let copy = try LMDBStore.open(url, schema: Samples.schema)
        #expect(try copy.fileBytes() < store.fileBytes() * 3 / 4)
        try expectSamples(copy.snapshot(), keys)
        #expect(try copy.snapshot().generation == store.snapshot().generation)
        #expect(try copy.verify() == [])
        try copy.insertTracks(10)
        #expect(try copy.verify() == [])
        let files = try FileManager.default.contentsOfDirectory(atPath: scratch.folder.path)
        #expect(!files.contains { $0.hasPrefix(".copy") }, "nothing of a temporary name stays")
        let error = await #expect(throws: StoreError.self) { try await store.compactCopy(to: url) }
        #expect(error?.code == .cannotOpen)
    }
}
