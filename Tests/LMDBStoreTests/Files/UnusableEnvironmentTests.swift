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
#endif

/// LMDB refuses every transaction of an environment in which a meta page could not be written, until the file is opened again.
@Suite struct UnusableEnvironmentTests {
    private let scratch: Scratch
    private let store: LMDBStore

    init() throws {
        scratch = try Scratch()
        store = try scratch.store()
        try store.insertTracks(10)
    }

    /// Makes all transactions fail with MDB_PANIC until the file is opened again.
    private func refuse() -> LMDBFaults.Hook {
        let isOpenedAgain = Atomic(false)
        return LMDBFaults.inject(at: scratch.folder.path) { call in
            if call == .environmentOpen { isOpenedAgain.store(true, ordering: .relaxed) }
            let isTransaction = call == .begin || call == .renew
            return isTransaction && !isOpenedAgain.load(ordering: .relaxed) ? -30795 : nil
        }
    }

    private func count(_ snapshot: any StoreSnapshot) throws -> Int { try snapshot.count(StoreQuery(entity: Samples.track)) }

    /// Catches: a store that takes no write any more, with the advice to restore a backup.
    @Test func `a write opens the file again when nothing reads it`() throws {
        var snapshot: (any StoreSnapshot)? = try store.snapshot()
        let hook = refuse()
        defer { hook.end() }
        let error = #expect(throws: StoreError.self) { try store.insertTracks(10) }
        #expect(error?.code == .mustReopen && error?.message.hasSuffix("open it again.") == true)
        #expect(try snapshot.map { try count($0) } == 10)
        snapshot = nil
        try store.insertTracks(10)
        #expect(try count(store.snapshot()) == 20)
        #expect(try store.verify() == [])
    }

    @Test func `a read opens the file again when nothing else reads it`() throws {
        let hook = refuse()
        defer { hook.end() }
        #expect(try count(store.snapshot()) == 10)
        try store.insertTracks(10)
        #expect(try count(store.snapshot()) == 20)
    }

    #if os(Linux)
        /// Replaces the descriptor with which LMDB writes meta pages by that of a full disk. LMDB opens it so that each write is synced.
        private func breakMetaPages() throws {
            let path = scratch.url.resolvingSymlinksInPath().path
            let folder = "/proc/self/fd"
            for name in try FileManager.default.contentsOfDirectory(atPath: folder) {
                guard let descriptor = Int32(name), (fcntl(descriptor, F_GETFL) & 0o10000) != 0,
                    (try? FileManager.default.destinationOfSymbolicLink(atPath: "\(folder)/\(name)")) == path
                else { continue }
                let full = open("/dev/full", O_RDWR)
                try #require(full >= 0)
                try #require(dup2(full, descriptor) == descriptor)
                close(full)
                return
            }
            Issue.record("LMDB has no descriptor for meta pages")
        }

        /// Catches: a file that this process calls damaged because of the meta page that LMDB leaves after a failed write.
        @Test func `a store goes on after a meta page could not be written`() throws {
            var snapshot: (any StoreSnapshot)? = try store.snapshot()
            try breakMetaPages()
            let first = #expect(throws: StoreError.self) { try store.insertTracks(1000) }
            #expect(first?.code == .full, "\(String(describing: first))")
            let second = #expect(throws: StoreError.self) { try store.insertTracks(10) }
            #expect(second?.code == .mustReopen, "\(String(describing: second))")
            #expect(try snapshot.map { try count($0) } == 10)
            snapshot = nil
            #expect(try count(store.snapshot()) == 10)
            try store.insertTracks(1000)
            #expect(try count(store.snapshot()) == 1010)
            #expect(try store.verify() == [])
        }

        /// Catches: a file that cannot be opened any more, although closing and opening it is the remedy.
        @Test(arguments: [false, true])
        func `the file can be opened after a meta page could not be written`(_ suspends: Bool) throws {
            try breakMetaPages()
            #expect(throws: StoreError.self) { try store.insertTracks(1000) }
            if suspends {
                try store.suspend()
                #expect(try count(store.snapshot()) == 10)
            }
            try store.shutDown()
            let again = try scratch.store()
            #expect(again !== store)
            #expect(try count(again.snapshot()) == 10)
            #expect(try again.verify() == [])
        }

        /// Catches: a second closing, after one that found a reader, which leaves the meta page as it is.
        @Test func `the file can be opened after a reader has delayed the closing`() throws {
            var snapshot: (any StoreSnapshot)? = try store.snapshot()
            try breakMetaPages()
            #expect(throws: StoreError.self) { try store.insertTracks(1000) }
            let error = #expect(throws: StoreError.self) { try store.shutDown() }
            #expect(error?.code == .inUseElsewhere)
            withExtendedLifetime(snapshot) {}
            snapshot = nil
            try store.shutDown()
            let again = try scratch.store()
            #expect(try count(again.snapshot()) == 10)
            #expect(try again.verify() == [])
        }
    #endif
}
