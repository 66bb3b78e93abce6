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

/// Large values beyond one transaction are written ahead of their save. The tests check the memory that this takes, and the
/// remains of a save that fails, is killed, or meets another process.
@Suite struct PrewrittenValuesTests {
    static let byteCount = 700_000
    /// The size of four chunks.
    static let limit = 1 << 18

    static var options: LMDBStore.Options {
        var options = LMDBStore.Options()
        options.mapSize = 1 << 28
        options.valueBytesOfTransaction = limit
        return options
    }

    /// 300,000 characters that do not compress.
    private static let noise: String = {
        var state: UInt64 = 7
        let bytes = (0..<300_000).map { _ -> UInt8 in
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return UInt8(truncatingIfNeeded: state >> 57) | 32
        }
        return String(decoding: bytes, as: UTF8.self)
    }()

    /// Returns a text whose chunks do not compress, and differ for each number.
    static func title(_ number: Int, _ count: Int = byteCount) -> String {
        var text = "\(number): "
        while text.utf8.count < count { text += noise }
        return String(Substring(text.utf8.prefix(count)))
    }

    /// Saves tracks with these titles in one save.
    @discardableResult
    static func save(_ titles: [String], in store: LMDBStore, then: () throws -> Void = {}) throws -> [ObjectKey] {
        var keys: [ObjectKey] = []
        try store.write(.durable) { transaction in
            let layer = Layer(schema: store.schema)
            keys = Array(try transaction.allocateKeys(Samples.track, pages: titles.count / 64 + 1).prefix(titles.count))
            for (key, title) in zip(keys, titles) {
                var values = Samples.trackValues(Int(key.rawValue), key: key)
                values[1] = .string(title)
                layer.put(Samples.row(values, in: layer), entity: Samples.track, key: key)
            }
            layer.stamp(transaction.generation.next)
            layer.seal()
            try transaction.apply(layer, changes: layer.changeSet(metadata: SaveMetadata(author: "")))
            try then()
        }
        return keys
    }

    static func unreferenced(_ store: LMDBStore) throws -> Int {
        let snapshot = try store.newestSnapshot()
        return try snapshot.transaction.withCursor(store.tables.meta) { try UnreferencedValue.all(at: $0).count }
    }

    static func chunks(_ store: LMDBStore) throws -> Int {
        let snapshot = try store.newestSnapshot()
        return try snapshot.transaction.statistics(store.tables.large[Samples.track]).entries
    }

    /// Checks that a failed save has left nothing, and that further saves work.
    static func checkNothingIsLeft(_ store: LMDBStore, tracks: Int = 0, chunks: Int = 0) throws {
        #expect(try Self.unreferenced(store) == 0)
        #expect(try Self.chunks(store) == chunks)
        #expect(try store.snapshot().count(StoreQuery(entity: Samples.track)) == tracks)
        let findings = try store.verify()
        #expect(findings == [])
    }

    /// Counts the values that each transaction puts.
    private final class Puts: Sendable {
        private let counts = Mutex([0])

        func note(_ call: LMDBCall) {
            counts.withLock { counts in
                if call == .cursorPut { counts[counts.count - 1] += 1 }
                if call == .begin { counts.append(0) }
            }
        }

        var all: [Int] { counts.withLock { $0 } }
    }

    // MARK: Memory

    @Test func noTransactionOfASaveWritesMoreThanItMay() throws {
        let scratch = try Scratch()
        let store = try scratch.store(Self.options)
        let large = Self.title(0, 3_000_000)
        let titles = [large] + (1...4).map { Self.title($0) } + (5...20).map { Self.title($0, 40_000) }
        let puts = Puts()
        let keys = try LMDBFaults.withInjector(
            at: scratch.folder.path,
            {
                puts.note($0)
                return nil
            }
        ) { try Self.save(titles, in: store) }
        // At most four chunks. The save's own transaction also has the page and its indexes.
        let most = try #require(puts.all.max())
        #expect(most <= 4 + 3 * titles.count)
        let chunkCounts = titles.map { LargeChunk.count(byteCount: $0.utf8.count) }.reduce(0, +)
        #expect(puts.all.count { $0 > 0 } >= chunkCounts / 5)
        let snapshot = try store.snapshot()
        for (key, title) in zip(keys, titles) {
            #expect(try snapshot.value(Samples.track, key: key, column: 1) == .string(title))
        }
        try Self.checkNothingIsLeft(store, tracks: titles.count, chunks: chunkCounts)
        #expect(snapshot.generation == 1, "it is one save")
    }

    @Test func aValueOfSeveralObjectsAndLayersIsThereForEach() throws {
        let scratch = try Scratch()
        let store = try scratch.store(Self.options)
        let title = Self.title(1)
        let keys = try store.insertTracks(4)
        let saved = try store.save { layer, _ in }
        try store.write(.durable) { transaction in
            for (place, key) in (keys + keys.prefix(2)).enumerated() {
                let layer = Layer(schema: store.schema)
                let row = Row.make(kind: .update, layer: layer.id, columnCount: 6)
                row[1] = .string(title)
                row[2] = .int(Int64(place))
                layer.put(row, entity: Samples.track, key: key)
                layer.stamp(transaction.generation.next)
                layer.seal()
                try transaction.apply(layer, changes: layer.changeSet())
            }
        }
        #expect(try store.snapshot().generation == saved.advanced(by: 6))
        for key in keys { #expect(try store.snapshot().value(Samples.track, key: key, column: 1) == .string(title)) }
        try Self.checkNothingIsLeft(store, tracks: 4, chunks: 4 * LargeChunk.count(byteCount: Self.byteCount))
    }

    @Test func aBodyThatMakesItsValuesAnewEachTimeIsSavedOnce() throws {
        let scratch = try Scratch()
        let store = try scratch.store(Self.options)
        var runs = 0
        let key = try store.write(.durable) { transaction in
            runs += 1
            let layer = Layer(schema: store.schema)
            let key = try transaction.allocateKeys(Samples.track, pages: 1).lowerBound
            var values = Samples.trackValues(1)
            values[1] = .string(Self.title(runs))
            layer.put(Samples.row(values, in: layer), entity: Samples.track, key: key)
            layer.stamp(transaction.generation.next)
            layer.seal()
            try transaction.apply(layer, changes: layer.changeSet())
            return key
        }
        #expect(try store.snapshot().value(Samples.track, key: key, column: 1) == .string(Self.title(runs)))
        try Self.checkNothingIsLeft(store, tracks: 1, chunks: LargeChunk.count(byteCount: Self.byteCount))
    }

    @Test func aMapThatIsFullGrowsWhileValuesAreWrittenAhead() throws {
        let scratch = try Scratch()
        var options = Self.options
        options.mapSize = 1 << 20
        let store = try scratch.store(options)
        try Self.save((0..<6).map { Self.title($0) }, in: store)
        try Self.checkNothingIsLeft(store, tracks: 6, chunks: 6 * LargeChunk.count(byteCount: Self.byteCount))
    }

    // MARK: Failures

    private struct Refused: Error {}

    @Test func S062_aSaveThatFailsAfterItsValuesWereWrittenLeavesNone() throws {
        let scratch = try Scratch()
        let store = try scratch.store(Self.options)
        #expect(throws: Refused.self) { try Self.save([Self.title(1), Self.title(2)], in: store) { throw Refused() } }
        try Self.checkNothingIsLeft(store)
        try Self.save([Self.title(3)], in: store)
        try Self.checkNothingIsLeft(store, tracks: 1, chunks: LargeChunk.count(byteCount: Self.byteCount))
    }

    enum Disk: CaseIterable {
        /// One call finds the disk full.
        case once
        /// From that call on every call finds it full, so that the values cannot be deleted either.
        case stays
    }

    @Test(arguments: Disk.allCases) func S062_aDiskThatIsFullAtAnyCallRefusesTheSaveAndTheNextOneClearsAway(_ disk: Disk) throws {
        let title = Self.title(1)
        var hadUnclaimed = false
        for place in 0..<1000 {
            let scratch = try Scratch()
            let store = try scratch.store(Self.options)
            let calls = Atomic(0)
            let error = try LMDBFaults.withInjector(
                at: scratch.folder.path,
                { call -> Int32? in
                    guard [.put, .cursorPut, .delete, .cursorDelete, .reserve, .commit].contains(call) else { return nil }
                    let number = calls.add(1, ordering: .relaxed).oldValue
                    return (disk == .once ? number == place : number >= place) ? ENOSPC : nil
                }
            ) { try Self.refusal { try Self.save([title], in: store) } }
            if calls.load(ordering: .relaxed) <= place {
                #expect(error == nil && place > 20)
                try Self.checkNothingIsLeft(store, tracks: 1, chunks: LargeChunk.count(byteCount: Self.byteCount))
                break
            }
            // A call that failed in a transaction that is repeated anyway does no harm.
            guard let error else {
                #expect(disk == .once)
                try Self.checkNothingIsLeft(store, tracks: 1, chunks: LargeChunk.count(byteCount: Self.byteCount))
                continue
            }
            #expect(error.code == .full, "call \(place)")
            let left = try Self.unreferenced(store)
            hadUnclaimed = hadUnclaimed || left > 0
            #expect(disk == .stays || left == 0, "call \(place)")
            let findings = try store.verify()
            #expect(findings == [], "call \(place)")
            try store.insertTracks(1)
            try Self.checkNothingIsLeft(store, tracks: 1)
        }
        #expect(hadUnclaimed == (disk == .stays))
    }

    private static func refusal(_ body: () throws -> Void) throws -> StoreError? {
        do {
            try body()
            return nil
        } catch let error as StoreError { return error }
    }

    /// The system's limit of a file's size stands for a full disk, in a process of its own.
    @Test func aDiskTooSmallForAValueRefusesItAtOnceAndTakesWhatFits() async throws {
        let scratch = try Scratch()
        await #expect(processExitsWith: .success) { [path = scratch.url.path as String] in
            signal(SIGXFSZ, SIG_IGN)
            var limit = rlimit(rlim_cur: 4 << 20, rlim_max: 4 << 20)
            try #require(setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0)
            let store = try LMDBStore.open(
                URL(fileURLWithPath: path), schema: Samples.schema, options: PrewrittenValuesTests.options)
            let keys = try PrewrittenValuesTests.save([PrewrittenValuesTests.title(1)], in: store)
            let before = try store.fileBytes()
            let error = try PrewrittenValuesTests.refusal {
                try PrewrittenValuesTests.save([PrewrittenValuesTests.title(2, 5_000_000)], in: store)
            }
            try #require(error?.code == .full, "\(String(describing: error))")
            try #require(try store.fileBytes() < before + 1 << 18, "nothing is written of what does not fit")
            try #require(try store.verify() == [])
            try PrewrittenValuesTests.save([PrewrittenValuesTests.title(3, 2_200_000)], in: store)
            try store.save { layer, _ in
                layer.put(Row.make(kind: .delete, layer: layer.id, columnCount: 0), entity: Samples.track, key: keys[0])
            }
            try #require(try store.verify() == [])
            try #require(try PrewrittenValuesTests.unreferenced(store) == 0)
        }
    }

    /// Leaves unclaimed values in the file: the disk stayed full for their save.
    private static func leaveUnclaimed(in store: LMDBStore) throws {
        let commits = Atomic(0)
        LMDBFaults.withInjector(
            at: store.url.path,
            { call in
                guard call == .commit else { return nil }
                return commits.add(1, ordering: .relaxed).oldValue >= 2 ? ENOSPC : nil
            }
        ) { try? Self.save([Self.title(1)], in: store) }
        #expect(try Self.unreferenced(store) == 1)
        #expect(try Self.chunks(store) == 8)
    }

    @Test func valuesThatAnotherProcessIsAboutToClaimStay() throws {
        let scratch = try Scratch()
        let store = try scratch.store(Self.options)
        try Self.leaveUnclaimed(in: store)
        // The lock, as another process holds it.
        let lock = try #require(FileLock(store, .shared))
        try Self.save([Self.title(2)], in: store)
        #expect(try Self.unreferenced(store) == 1)
        #expect(try store.verify() == [])
        lock.unlock()
        try store.insertTracks(1)
        try Self.checkNothingIsLeft(store, tracks: 2, chunks: LargeChunk.count(byteCount: Self.byteCount))
    }

    @Test func aProcessThatIsBeingSpawnedDoesNotKeepTheLockOfItsParent() throws {
        let scratch = try Scratch()
        let store = try scratch.store(Self.options)
        let lock = try #require(FileLock(store, .shared))
        #expect(FileLock(store, .exclusive) == nil)
        // A copy of the descriptor, as a child has it between fork and exec.
        let copy = dup(lock.descriptor)
        defer { close(copy) }
        lock.unlock()
        #expect(FileLock(store, .exclusive) != nil)
    }

    @Test func copiesOfAFileWithUnclaimedValuesAreSoundAndLoseThem() async throws {
        let scratch = try Scratch()
        let store = try scratch.store(Self.options)
        try Self.leaveUnclaimed(in: store)
        let targets = ["compact", "backup"].map { scratch.folder.appendingPathComponent($0) }
        try await store.compactCopy(to: targets[0])
        _ = try store.backup(to: targets[1], existing: .refuse)
        for target in targets {
            let copy = try LMDBStore.open(target, schema: Samples.schema)
            #expect(try copy.verify() == [])
            try copy.insertTracks(1)
            try Self.checkNothingIsLeft(copy, tracks: 1)
        }
    }

    @Test func unclaimedValuesOfAnEntityThatTheModelLosesGoWithIt() throws {
        let scratch = try Scratch()
        do { try Self.leaveUnclaimed(in: try scratch.store(Self.options)) }
        var schema = Samples.schema
        schema.entities.remove(at: Samples.track.rawValue)
        schema.links = []
        let store = try LMDBStore.open(scratch.url, schema: schema)
        while try store.continueMigration() != nil {}
        try store.save { _, _ in }
        #expect(try Self.unreferenced(store) == 0)
        #expect(try store.verify() == [])
    }

    // MARK: Processes

    /// The process is killed before its first commit, its second, and so on: while values are written, between them and the
    /// save, and in the save.
    @Test(arguments: 0..<7) func S066_aSaveKilledBeforeAnyOfItsCommitsIsThereWholeOrNotAtAll(_ commit: Int) async throws {
        let scratch = try Scratch()
        do { try scratch.store().insertTracks(1) }
        await #expect(processExitsWith: .signal(SIGKILL)) { [path = scratch.url.path as String, commit = commit as Int] in
            let store = try LMDBStore.open(
                URL(fileURLWithPath: path), schema: Samples.schema, options: PrewrittenValuesTests.options)
            let commits = Atomic(0)
            try LMDBFaults.withInjector(
                at: path,
                { call in
                    if call == .commit, commits.add(1, ordering: .relaxed).oldValue == commit { kill(getpid(), SIGKILL) }
                    return nil
                }
            ) {
                try PrewrittenValuesTests.save(
                    [PrewrittenValuesTests.title(1), PrewrittenValuesTests.title(2, 400_000)], in: store)
            }
            // After the commit of the save itself.
            kill(getpid(), SIGKILL)
        }
        let store = try scratch.store(Self.options)
        let findings = try store.verify()
        #expect(findings == [])
        let isSaved = try store.snapshot().generation == 2
        #expect(isSaved == (commit == 6), "six commits: five with values, 18 chunks of them, and the save's own")
        #expect(try Self.unreferenced(store) == [0, 1, 1, 2, 2, 2, 0][commit])
        try store.insertTracks(1)
        try Self.checkNothingIsLeft(store, tracks: isSaved ? 4 : 2, chunks: isSaved ? 18 : 0)
    }

    @Test func twoProcessesThatWriteValuesAheadKeepEachOthers() async throws {
        let scratch = try Scratch()
        let store = try scratch.store(Self.options)
        let saves = 8
        async let other: Void = Self.saveElsewhere(scratch.url.path, saves)
        for number in 0..<saves {
            if number % 4 == 3 {
                #expect(throws: Refused.self) { try Self.save([Self.title(number)], in: store) { throw Refused() } }
            } else {
                try Self.save([Self.title(number), Self.title(100 + number, 300_000)], in: store)
            }
        }
        _ = await other
        let kept = saves - saves / 4
        try store.insertTracks(1)
        try Self.checkNothingIsLeft(
            store, tracks: 2 * kept + saves + 1,
            chunks: kept * (11 + 5) + saves * LargeChunk.count(byteCount: Self.byteCount))
        let snapshot = try store.snapshot()
        let found = try snapshot.keys(StoreQuery(entity: Samples.track)).map {
            try snapshot.value(Samples.track, key: $0, column: 1)
        }
        let own = (0..<saves).filter { $0 % 4 != 3 }.flatMap { [Self.title($0), Self.title(100 + $0, 300_000)] }
        let all = own + (0..<saves).map { Self.title(1000 + $0) }
        #expect(Set(found).isSuperset(of: all.map { Value.string($0) }))
    }

    private static func saveElsewhere(_ path: String, _ saves: Int) async {
        await #expect(processExitsWith: .success) { [path = path as String, saves = saves as Int] in
            let store = try LMDBStore.open(
                URL(fileURLWithPath: path), schema: Samples.schema, options: PrewrittenValuesTests.options)
            for number in 0..<saves { try PrewrittenValuesTests.save([PrewrittenValuesTests.title(1000 + number)], in: store) }
            try #require(try store.verify() == [])
        }
    }
}
