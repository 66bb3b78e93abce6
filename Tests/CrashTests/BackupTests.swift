import Dispatch
import Foundation
import LMDBStore
import ObjectGraph
import SQLiteStore
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Copies of a store that is being written.
@Suite struct BackupTests {
    static let kinds: [StoreKind] = [.lmdb, .sqlite]

    private static func description(_ kind: StoreKind, _ url: URL) -> StoreDescription {
        kind == .lmdb ? .lmdb(url) : .sqlite(url)
    }

    /// Makes save number n, which inserts a track that has n and sets the counter to n.
    static func save(_ number: Int, _ worker: BackgroundContext) async throws {
        try await worker.perform { context in
            context.makeTrack("t\(number)", plays: number)
            let counter = try context.objects("Artist").first ?? context.makeArtist("counter")
            counter["born"] = .int(Int64(number))
        }
        try await worker.save(number % 8 == 0 ? .durable : .deferred(within: .milliseconds(2)))
    }

    /// Opens a copy, verifies it, checks that it has the saves of one generation, and closes it.
    static func check(_ url: URL, _ kind: StoreKind, generation: Generation? = nil, atLeast least: Int) async throws {
        let container = try await PersistentContainer(model: Music.model, store: description(kind, url))
        do {
            try await check(container, generation: generation, atLeast: least)
        } catch {
            try await container.close()
            throw error
        }
        try await container.close()
        #expect(!FileManager.default.fileExists(atPath: url.path + "-wal"), "the last connection removes the log")
    }

    private static func check(_ container: PersistentContainer, generation: Generation?, atLeast least: Int) async throws {
        let findings = try container.coordinator.store.verify()
        #expect(findings == [])
        let token = container.coordinator.currentHistoryToken
        #expect(generation == nil || token.generation == generation)
        let (numbers, counter) = try await container.newBatchOperationContext().perform { context in
            let numbers = try context.objects("Track").compactMap {
                if case .int(let plays) = $0["plays"] { Int(plays) } else { nil }
            }
            return (numbers.sorted(), try context.objects("Artist").first?["born"])
        }
        #expect(numbers == Array(0..<numbers.count), "the saves of one state, whole")
        #expect(numbers.count >= least, "all that was saved before the backup began")
        #expect(numbers.isEmpty || counter == .int(Int64(numbers.count - 1)))
        #expect(try await container.coordinator.history().count == numbers.count)
    }

    /// Runs `body` while a context saves repeatedly. `body` can read the number of saves that have returned.
    private static func whileSaving(
        _ container: PersistentContainer, _ body: (_ saved: Counter) async throws -> Void
    ) async throws {
        let saved = Counter()
        let worker = container.coordinator.newBackgroundContext(name: "worker")
        let writing = Task {
            var number = 0
            while !Task.isCancelled {
                try await save(number, worker)
                number += 1
                saved.set(number)
            }
        }
        try await until("20 saves") { saved.value >= 20 }
        try await body(saved)
        writing.cancel()
        try await writing.value
    }

    /// A number that one task increases and other tasks read.
    final class Counter: Sendable {
        private let queue = DispatchQueue(label: "counter")
        // Safe because it is used on the queue only.
        nonisolated(unsafe) private var number = 0
        var value: Int { queue.sync { number } }
        func set(_ new: Int) { queue.sync { number = new } }
    }

    @Test(arguments: kinds) func aBackupToAFileIsOneStateOfAStoreInUse(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        try await Self.whileSaving(container) { saved in
            for round in 0..<4 {
                let copy = bed.folder.appendingPathComponent("copy-\(round)")
                let before = saved.value
                let token = try await container.coordinator.backup(to: copy)
                try await Self.check(copy, kind, generation: token.generation, atLeast: before)
                #expect(token.store == container.coordinator.store.identity.uuid)
            }
        }
        let left = try FileManager.default.contentsOfDirectory(atPath: bed.folder.path).filter { $0.contains("partial") }
        #expect(left == [])
    }

    @Test(arguments: kinds) func aBackupToAStreamIsTheSame(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        try await Self.whileSaving(container) { saved in
            let direct = bed.folder.appendingPathComponent("direct")
            _ = FileManager.default.createFile(atPath: direct.path, contents: nil)
            let handle = try FileHandle(forWritingTo: direct)
            var before = saved.value
            try await container.coordinator.backup(to: handle.fileDescriptor)
            try handle.close()
            try await Self.check(direct, kind, atLeast: before)

            let streamed = bed.folder.appendingPathComponent("streamed")
            _ = FileManager.default.createFile(atPath: streamed.path, contents: nil)
            let target = try FileHandle(forWritingTo: streamed)
            before = saved.value
            for try await part in try await container.coordinator.backupBytes() { try target.write(contentsOf: part) }
            try target.close()
            try await Self.check(streamed, kind, atLeast: before)
        }
    }

    @Test(arguments: kinds) func aStreamThatIsDroppedHarmsNothing(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let worker = container.coordinator.newBackgroundContext()
        await worker.perform { context in for number in 0..<20_000 { context.makeTrack("a track of some length \(number)") } }
        try await worker.save()
        for _ in 0..<3 {
            for try await part in try await container.coordinator.backupBytes() where !part.isEmpty { break }
        }
        // The copies end at the closed pipe and release their state.
        try await until("no backup holds a state") {
            try container.coordinator.snapshots().allSatisfy { !$0.owners.contains("a backup") }
        }
        #expect(try container.coordinator.store.verify() == [])
    }

    /// Catches: a copy that continues after its reader was cancelled.
    @Test(arguments: kinds) func `S150: a cancelled task gets no more parts of a backup, and its copy ends`(_ kind: StoreKind)
        async throws
    {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let worker = container.coordinator.newBackgroundContext()
        await worker.perform { context in for number in 0..<20_000 { context.makeTrack("a track of some length \(number)") } }
        try await worker.save()
        let stream = try await container.coordinator.backupBytes()
        let task = Task {
            for try await part in stream where !part.isEmpty { withUnsafeCurrentTask { $0?.cancel() } }
        }
        await #expect(throws: CancellationError.self) { try await task.value }
        try await until("no backup holds a state") {
            try container.coordinator.snapshots().allSatisfy { !$0.owners.contains("a backup") }
        }
        #expect(try container.coordinator.store.verify() == [])
    }

    @Test(arguments: kinds) func aNameThatIsTakenIsRefusedOrReplacedWhole(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let worker = container.coordinator.newBackgroundContext()
        try await Self.save(0, worker)
        let copy = bed.folder.appendingPathComponent("copy")
        let first = try await container.coordinator.backup(to: copy)
        try await Self.save(1, worker)
        await #expect(throws: StoreError.self) { try await container.coordinator.backup(to: copy) }
        try await Self.check(copy, kind, generation: first.generation, atLeast: 1)
        let second = try await container.coordinator.backup(to: copy, existing: .replace)
        #expect(second > first)
        if kind == .sqlite {
            let log = URL(fileURLWithPath: copy.path + "-wal")
            try Data("frames of another file".utf8).write(to: log)
            await #expect(throws: StoreError.self) { try await container.coordinator.backup(to: copy, existing: .replace) }
            try FileManager.default.removeItem(at: log)
            // A kill while a copy was replaced has left such a journal. SQLite ignores one that begins with zero.
            let journal = URL(fileURLWithPath: copy.path + "-journal")
            try (Data("\u{d9}\u{d5}".utf8) + Data(count: 512)).write(to: journal)
            await #expect(throws: StoreError.self) { try await container.coordinator.backup(to: copy, existing: .replace) }
            try Data(count: 512).write(to: journal)
            try await container.coordinator.backup(to: copy, existing: .replace)
            #expect(!FileManager.default.fileExists(atPath: journal.path))
        }
        try await Self.check(copy, kind, generation: second.generation, atLeast: 2)
        let own = await #expect(throws: StoreError.self) {
            try await container.coordinator.backup(to: bed.file, existing: .replace)
        }
        #expect(own?.code == .cannotOpen)
        let nowhere = bed.folder.appendingPathComponent("missing/copy")
        await #expect(throws: StoreError.self) { try await container.coordinator.backup(to: nowhere) }
        #expect(try container.coordinator.store.verify() == [])
    }

    @Test func aStoreInMemorySaysThatItHasNoBackup() async throws {
        let bed = try TestBed(.memory)
        let container = try await bed.container()
        let error = await #expect(throws: StoreError.self) { try await container.coordinator.backup(to: bed.file) }
        #expect(error?.code == .unsupported)
    }

    @Test(arguments: kinds, [200, 3_000, 12_000])
    func aKillDuringABackupLeavesTheStoreSoundAndNoHalfCopy(_ kind: StoreKind, after delay: Int) async throws {
        let bed = try TestBed(kind)
        let copy = bed.folder.appendingPathComponent("copy")
        await #expect(processExitsWith: .signal(SIGKILL)) {
            [path = bed.file.path as String, copy = copy.path as String, kind = kind.rawValue as String, delay = delay as Int] in
            let kind = StoreKind(rawValue: kind) ?? .lmdb
            let container = try await PersistentContainer(
                model: Music.model, store: BackupTests.description(kind, URL(fileURLWithPath: path)))
            let worker = container.coordinator.newBackgroundContext()
            for number in 0..<100 { try await BackupTests.save(number, worker) }
            try await container.flush()
            DispatchQueue.global().asyncAfter(deadline: .now() + .microseconds(delay)) { kill(getpid(), SIGKILL) }
            while true {
                try await container.coordinator.backup(to: URL(fileURLWithPath: copy), existing: .replace)
            }
        }
        if FileManager.default.fileExists(atPath: copy.path) { try await Self.check(copy, kind, atLeast: 100) }
        let container = try await bed.container()
        #expect(try container.coordinator.store.verify() == [])
        let token = try await container.coordinator.backup(to: copy, existing: .replace)
        #expect(token.generation == 100)
        try await Self.check(copy, kind, generation: 100, atLeast: 100)
        let left = try FileManager.default.contentsOfDirectory(atPath: bed.folder.path).filter { $0.contains("partial") }
        #expect(left == [], "what the dead process left under its temporary name is removed")
    }
}
