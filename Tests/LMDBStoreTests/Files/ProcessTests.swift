import Foundation
import StoreInterface
import StoreModel
import Testing

@testable import LMDBStore

/// Catches: files that a killed process or a second process leaves in a bad state.
@Suite struct ProcessTests {
    @Test func aSecondProcessSavesAndIsSeen() async throws {
        let scratch = try Scratch()
        let store = try scratch.store()
        let keys = try store.insertTracks(10)
        let before = try store.snapshot()
        let path = scratch.url.path
        await #expect(processExitsWith: .success) { [path = path as String] in
            let other = try LMDBStore.open(URL(fileURLWithPath: path), schema: Samples.schema)
            guard try other.snapshot().generation == 1, try other.insertTracks(5)[0] > 73 else { exit(3) }
        }
        let after = try store.snapshot()
        #expect(before.generation == 1)
        #expect(after.generation == 2)
        #expect(try after.count(StoreQuery(entity: Samples.track)) == 15)
        #expect(try before.count(StoreQuery(entity: Samples.track)) == 10)
        #expect(try store.insertTracks(1)[0] > keys[9].advanced(by: 64))
        #expect(try store.changes(after: 1)?.map(\.generation) == [2, 3])
    }

    @Test(arguments: [3, 10, 25]) func S066_aKilledWriterLeavesWholeSaves(saves: Int) async throws {
        let scratch = try Scratch()
        let path = scratch.url.path
        await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String, saves = saves as Int] in
            let store = try LMDBStore.open(URL(fileURLWithPath: path), schema: Samples.schema)
            for _ in 0..<saves { try store.insertTracks(100) }
            // The process dies at some moment of a save.
            let thread = Thread { while true { _ = try? store.insertTracks(100) } }
            thread.start()
            usleep(UInt32(saves) * 300)
            kill(getpid(), SIGKILL)
            sleep(10)
        }
        let store = try scratch.store()
        let snapshot = try store.snapshot()
        #expect(snapshot.generation.rawValue >= saves)
        #expect(try snapshot.count(StoreQuery(entity: Samples.track)) == Int(snapshot.generation.rawValue) * 100)
        #expect(try store.verify() == [])
        try store.insertTracks(1)
        #expect(try store.verify() == [])
    }

    /// Catches: a child of a fork that lets other processes commit before the deferred saves of its parent.
    @Test func `S067: a claim stays with the process that made it when a child of a fork lets go of it`() async throws {
        let scratch = try Scratch()
        await #expect(processExitsWith: .success) { [path = scratch.url.path as String] in
            var options = LMDBStore.Options()
            options.busyTimeout = .milliseconds(1)
            let store = try LMDBStore.open(URL(fileURLWithPath: path), schema: Samples.schema, options: options)
            guard let claim = try store.claimSaves(.holdingBack) else { exit(2) }
            typealias Fork = @convention(c) () -> pid_t
            // Swift hides fork. The child below only releases the claim and exits.
            guard let symbol = dlsym(nil, "fork") else { exit(2) }
            let child = unsafeBitCast(symbol, to: Fork.self)()
            if child == 0 {
                claim.release()
                _exit(0)
            }
            var status: Int32 = 0
            waitpid(child, &status, 0)
            guard status == 0 else { exit(3) }
            // Requests the claim as another process does.
            let other = SaveClaims(signalPath: path + "-signal", storePath: path, timeout: .milliseconds(1))
            do {
                _ = try other.claim(.committing)
                exit(4)
            } catch let error as StoreError { guard error.code == .storeBusy else { exit(5) } }
            claim.release()
            _ = try other.claim(.committing)
        }
    }

    /// Catches: deferred saves accepted over a state that lacks the newest commit, and rejected when they are written.
    @Test func `S067: a claim for deferred saves shows the commit of a writer that was killed before it was counted`()
        async throws
    {
        let scratch = try Scratch()
        let store = try scratch.store()
        try store.insertTracks(1)
        await #expect(processExitsWith: .signal(SIGKILL)) { [path = scratch.url.path as String] in
            let other = try LMDBStore.open(URL(fileURLWithPath: path), schema: Samples.schema)
            let before = try CommitCount.words(path)
            let number = try other.environment.information().lastTransaction
            try other.insertTracks(1)
            let after = try CommitCount.words(path)
            // The one word of the lock file that counted this commit.
            let counts = before.indices.filter { before[$0] == number && after[$0] == number + 1 }
            guard counts.count == 1 else { exit(2) }
            try other.write(.durable) { _ in
                try CommitCount.set(number, at: counts[0], path)
                // The process dies with LMDB's lock, as in a commit.
                kill(getpid(), SIGKILL)
                sleep(10)
            }
        }
        #expect(try store.snapshot().generation == 1, "the kill left the commit uncounted")
        let claim = try store.claimSaves(.holdingBack)
        #expect(try store.snapshot().generation == 2)
        claim?.release()
        #expect(try store.verify() == [])
    }

    /// Catches: a message that names a process which has long finished.
    @Test func `S067: the signal file names the process that holds saves back, and nobody afterwards`() throws {
        let scratch = try Scratch()
        let store = try scratch.store()
        func holder() throws -> Int32 {
            let bytes = try Data(contentsOf: URL(fileURLWithPath: scratch.url.path + "-signal")).dropFirst(8).prefix(4)
            return bytes.reversed().reduce(0) { $0 << 8 | Int32($1) }
        }
        let claim = try #require(try store.claimSaves(.holdingBack))
        #expect(try holder() == getpid())
        claim.release()
        #expect(try holder() == 0)
    }

    @Test func useAfterAForkIsRefused() async throws {
        let scratch = try Scratch()
        let path = scratch.url.path
        await #expect(processExitsWith: .success) { [path = path as String] in
            let store = try LMDBStore.open(URL(fileURLWithPath: path), schema: Samples.schema)
            try store.insertTracks(1)
            typealias Fork = @convention(c) () -> pid_t
            // Swift hides fork. The child below only makes system calls and exits.
            guard let symbol = dlsym(nil, "fork") else { exit(2) }
            let child = unsafeBitCast(symbol, to: Fork.self)()
            if child == 0 {
                var isRefused = false
                do { _ = try store.snapshot() } catch let error as StoreError { isRefused = error.code == .usedAfterFork }
                _exit(isRefused ? 0 : 4)
            }
            var status: Int32 = 0
            waitpid(child, &status, 0)
            guard status == 0, try store.insertTracks(1).count == 1 else { exit(5) }
        }
    }

    /// Catches: a remedy that names a process which was killed.
    @Test func `S067: a store that is busy does not name a process that is gone`() throws {
        let scratch = try Scratch()
        let store = try scratch.store()
        let claim = try #require(try store.claimSaves(.holdingBack))
        let signal = try FileHandle(forUpdating: URL(fileURLWithPath: scratch.url.path + "-signal"))
        try signal.seek(toOffset: 8)
        // No system gives so large a number to a process.
        try signal.write(contentsOf: withUnsafeBytes(of: (Int32.max - 1).littleEndian) { Data($0) })
        try signal.close()
        let other = SaveClaims(signalPath: scratch.url.path + "-signal", storePath: scratch.url.path, timeout: .zero)
        let error = #expect(throws: StoreError.self) { _ = try other.claim(.committing) }
        #expect(error?.code == .storeBusy && error?.message.contains("another process") == true, "\(String(describing: error))")
        claim.release()
    }

    /// Catches: an error that blames a process which has written its saves, and not the one that does not go on.
    @Test func `S067: a store that is busy names the process that waits to save first`() throws {
        let scratch = try Scratch()
        let store = try scratch.store()
        // Stands for another process, because the locks belong to the open file.
        func claims(_ timeout: Duration) -> SaveClaims {
            SaveClaims(signalPath: scratch.url.path + "-signal", storePath: scratch.url.path, timeout: timeout)
        }
        let (first, second, third) = (claims(.zero), claims(.seconds(600)), claims(.zero))
        let held = try first.claim(.holdingBack)
        var looks = 0
        var error: StoreError?
        let claim = try second.claim(.committing) {
            looks += 1
            // The process is recorded after its first look.
            guard looks == 2 else { return }
            held.release()
            error = #expect(throws: StoreError.self) { _ = try third.claim(.committing) }
        }
        #expect(
            error?.code == .storeBusy && error?.message.contains("process \(getpid()) waits to save first") == true,
            "\(String(describing: error))")
        claim.release()
        try third.claim(.holdingBack).release()
        withExtendedLifetime(store) {}
    }
}

/// The start of LMDB's lock file, which has the number of the newest commit.
private enum CommitCount {
    static func words(_ path: String) throws -> [UInt64] {
        let bytes = try #require(try FileHandle(forReadingFrom: URL(fileURLWithPath: path + "-lock")).read(upToCount: 128))
        return bytes.withUnsafeBytes { Array($0.bindMemory(to: UInt64.self)) }
    }

    static func set(_ number: UInt64, at word: Int, _ path: String) throws {
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path + "-lock"))
        try file.seek(toOffset: UInt64(word * 8))
        try file.write(contentsOf: withUnsafeBytes(of: number) { Data($0) })
    }
}
