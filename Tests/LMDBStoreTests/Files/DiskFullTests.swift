import Foundation
import LMDB
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

/// A full disk: a clear error, no loss of data, and deleting still works.
@Suite struct DiskFullTests {
    /// Runs in a process of its own, whose files may not be larger than two megabytes.
    @Test func aFullDiskRefusesInsertsTakesDeletesAndThenInsertsAgain() async throws {
        let scratch = try Scratch()
        let path = scratch.url.path
        await #expect(processExitsWith: .success) { [path = path as String] in
            signal(SIGXFSZ, SIG_IGN)
            var limit = rlimit(rlim_cur: 2 << 20, rlim_max: 2 << 20)
            try #require(setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0)
            let store = try LMDBStore.open(URL(fileURLWithPath: path), schema: Samples.schema)
            let keys = try DiskFullTests.fillUntilFull(store)
            try DiskFullTests.delete(keys, in: store)
            try #require(try store.snapshot().count(StoreQuery(entity: Samples.track)) == 0)
            try #require(try store.insertTracks(640).count == 640)
            try #require(try store.verify() == [])
        }
        let store = try scratch.store()
        #expect(try store.verify() == [])
        #expect(try store.snapshot().count(StoreQuery(entity: Samples.track)) == 640)
    }

    static func fillUntilFull(_ store: LMDBStore) throws -> [ObjectKey] {
        var keys: [ObjectKey] = []
        while true {
            do {
                keys += try store.insertTracks(320)
            } catch let error as StoreError {
                try #require(error.code == .full, "\(error)")
                try #require(
                    try store.snapshot().count(StoreQuery(entity: Samples.track)) == keys.count, "earlier saves stay whole")
                try #require(keys.count > 1_000)
                return keys
            }
        }
    }

    static func delete(_ keys: [ObjectKey], in store: LMDBStore) throws {
        for start in stride(from: 0, to: keys.count, by: 64) {
            try store.save { layer, _ in
                for key in keys[start..<min(start + 64, keys.count)] {
                    layer.put(Row.make(kind: .delete, layer: layer.id, columnCount: 6), entity: Samples.track, key: key)
                }
            }
        }
    }

    /// The disk is full at the first call of a save, at the second, and so on. Each time the whole save fails with a clear
    /// error, and it succeeds when there is room again.
    @Test func aSaveThatMeetsAFullDiskAtAnyCallLeavesWhatWas() throws {
        let scratch = try Scratch()
        let store = try scratch.store()
        let artist = try store.insertTracks(64)[0]
        let before = try store.snapshot()
        for place in 0..<10_000 {
            let calls = Calls(failing: place)
            let failure = LMDBFaults.withInjector(at: scratch.folder.path, { calls.answer($0) }) { () -> StoreError? in
                do {
                    try store.insertTracks(200, artist: nil)
                    return nil
                } catch { return error as? StoreError }
            }
            guard calls.hasFailed else {
                #expect(failure == nil)
                #expect(place > 100, "only \(place) calls were looked at")
                break
            }
            #expect(failure?.code == .full, "call \(place): \(String(describing: failure))")
            let now = try store.snapshot()
            try #require(now.generation == before.generation, "call \(place)")
            if place % 50 == 0 { #expect(try store.verify() == [], "call \(place)") }
        }
        #expect(try store.snapshot().exists(Samples.track, artist))
        #expect(try store.snapshot().count(StoreQuery(entity: Samples.track)) == 264)
        #expect(try store.verify() == [])
    }

    /// Fails the call of a given number with ENOSPC.
    private final class Calls: Sendable {
        private let state: Mutex<(left: Int, hasFailed: Bool)>

        init(failing place: Int) { state = Mutex((place, false)) }

        var hasFailed: Bool { state.withLock { $0.hasFailed } }

        func answer(_ call: LMDBCall) -> Int32? {
            state.withLock { state in
                defer { state.left -= 1 }
                guard state.left == 0 else { return nil }
                state.hasFailed = true
                return ENOSPC
            }
        }
    }
}
