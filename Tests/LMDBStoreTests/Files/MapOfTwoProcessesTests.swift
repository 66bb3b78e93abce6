import Foundation
import LMDB
import StoreInterface
import StoreModel
import Testing

@testable import LMDBStore

/// The map's limit is reached while two processes write. A process that finds the file larger than its map adopts the new size.
@Suite struct MapOfTwoProcessesTests {
    private static var options: LMDBStore.Options {
        var options = LMDBStore.Options()
        options.mapSize = 1 << 20
        return options
    }

    private static func open(_ path: String) throws -> LMDBStore {
        try LMDBStore.open(URL(fileURLWithPath: path), schema: Samples.schema, options: options)
    }

    private static func tracks(_ store: LMDBStore) throws -> Int {
        try store.snapshot().count(StoreQuery(entity: Samples.track))
    }

    @Test func aProcessTakesTheSizeThatAnotherHasGivenTheFile() async throws {
        let scratch = try Scratch()
        let store = try Self.open(scratch.url.path)
        try store.insertTracks(64)
        let small = try store.environment.information().mapSize
        // Reading, writing and backing up: each may be the first to notice.
        for round in 0..<3 {
            let before = try Self.tracks(store)
            let size = try store.environment.information().mapSize
            await #expect(processExitsWith: .success) { [path = scratch.url.path as String, size = size as Int] in
                let other = try MapOfTwoProcessesTests.open(path)
                while try other.fileBytes() < size + 1 << 20 { try other.insertTracks(3200) }
            }
            #expect(try store.fileBytes() > store.environment.information().mapSize)
            switch round {
            case 0: #expect(try Self.tracks(store) > before)
            case 1: #expect(try store.insertTracks(64).count == 64)
            default: _ = try store.backup(to: scratch.folder.appendingPathComponent("copy"), existing: .refuse)
            }
            #expect(try store.environment.information().mapSize > small)
            try store.insertTracks(64)
            #expect(try Self.tracks(store) > before + 64)
            #expect(try store.verify() == [])
        }
    }

    @Test func aHeldSnapshotStaysRightAndTheErrorSaysWhatToDrop() async throws {
        let scratch = try Scratch()
        let store = try Self.open(scratch.url.path)
        let keys = try store.insertTracks(64)
        var held: (any StoreSnapshot)? = try store.snapshot()
        await #expect(processExitsWith: .success) { [path = scratch.url.path as String] in
            let other = try MapOfTwoProcessesTests.open(path)
            while try other.fileBytes() < 4 << 20 { try other.insertTracks(3200) }
        }
        let refusals = [
            #expect(throws: StoreError.self) { _ = try store.snapshot() },
            #expect(throws: StoreError.self) { try store.insertTracks(1) },
        ]
        for refusal in refusals {
            #expect(refusal?.code == .full, "\(String(describing: refusal))")
            #expect(refusal?.message.contains("Drop snapshots") == true, "\(String(describing: refusal))")
        }
        #expect(try held?.keys(StoreQuery(entity: Samples.track)) == keys)
        #expect(try held?.value(Samples.track, key: keys[63], column: 0) == .string("isrc-63"))
        held = nil
        try store.insertTracks(1)
        #expect(try Self.tracks(store) > 3264)
        #expect(try store.verify() == [])
    }

    @Test func aProcessThatOpensTheFileWhileAnotherEnlargesItTakesTheNewSize() async throws {
        let scratch = try Scratch()
        _ = try Self.open(scratch.url.path)
        let environment = try OpenedEnvironment.open(scratch.url.path, maximumDatabases: 8, Self.options)
        defer { environment.close() }
        await #expect(processExitsWith: .success) { [path = scratch.url.path as String] in
            let other = try MapOfTwoProcessesTests.open(path)
            while try other.fileBytes() < 4 << 20 { try other.insertTracks(3200) }
        }
        #expect(throws: LMDBError.self) { try environment.write { _ in } }
        var runs = 0
        try environment.adoptingSizes {
            runs += 1
            try environment.write { _ in }
        }
        #expect(runs == 2)
        #expect(try environment.information().mapSize >= 4 << 20)
    }

    @Test func twoProcessesThatBothGrowTheFileLoseNoSave() async throws {
        let scratch = try Scratch()
        _ = try Self.open(scratch.url.path)
        async let first: Void = Self.writer(scratch.url.path)
        async let second: Void = Self.writer(scratch.url.path)
        _ = await (first, second)
        let store = try Self.open(scratch.url.path)
        #expect(try Self.tracks(store) == 2 * 40 * 640)
        #expect(try store.snapshot().generation == 80)
        #expect(try store.environment.information().mapSize > 1 << 20)
        #expect(try store.verify() == [])
    }

    /// Makes 40 saves in a process of its own, with a read after each.
    private static func writer(_ path: String) async {
        await #expect(processExitsWith: .success) { [path = path as String] in
            let store = try MapOfTwoProcessesTests.open(path)
            for _ in 0..<40 {
                let keys = try store.insertTracks(640)
                try #require(try store.snapshot().exists(Samples.track, keys[639]))
            }
            try #require(try store.environment.information().mapSize > 1 << 20)
        }
    }
}
