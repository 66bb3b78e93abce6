import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import Synchronization
import TestSupport
import Testing

/// Catches: compactions that change what contexts read, and stores that do not report that nothing is left to pack.
@Suite struct CompactionTests {
    @Test func contextsReadAndSaveOnAfterACompaction() async throws {
        let bed = try TestBed(.lmdb)
        let container = try await bed.container()
        let worker = await container.newBackgroundContext()
        let id = await worker.perform { context in
            for number in 0..<1000 { context.makeTrack("track \(number)", plays: number) }
            return context.makeTrack("last", plays: 1).objectID
        }
        try await worker.save()
        let result = try await container.compact(CompactionOptions(age: .any))
        #expect(result.pagesPacked > 0)
        await worker.perform { context in
            #expect(context.object(with: id)["title"] == .string("last"))
            context.object(with: id)["plays"] = .int(2)
        }
        try await worker.save()
        let other = container.coordinator.newBackgroundContext()
        #expect(await other.perform { $0.object(with: id)["plays"] } == .int(2))
        #expect(try container.coordinator.store.verify().isEmpty)
    }

    /// An idle main context must not keep every page from before a compaction.
    @Test func compactionsGiveRoomBackWhileAMainContextIsOpen() async throws {
        let bed = try TestBed(.lmdb)
        let container = try await bed.container()
        let worker = await container.newBackgroundContext()
        await worker.perform { context in
            for number in 0..<6400 { context.makeTrack("track \(number)", plays: number) }
        }
        try await worker.save()
        let ids = try await worker.perform { try $0.objects("Track").map(\.objectID) }
        var sizes: [Int] = []
        for round in 0..<8 {
            await worker.perform { context in
                for id in ids { context.object(with: id)["rating"] = .double(Double(round)) }
            }
            try await worker.save()
            try await container.compact(CompactionOptions(age: .any, effort: .fast))
            try await until("main is told") {
                await MainActor.run { container.mainContext.object(with: ids[round])["rating"] } == .double(Double(round))
            }
            sizes.append(try container.coordinator.store.fileBytes())
        }
        #expect(sizes[7] < sizes[2] * 3 / 2, "\(sizes)")
    }

    private static func filled(_ kind: StoreKind) async throws -> (bed: TestBed, container: PersistentContainer) {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let worker = await container.newBackgroundContext()
        await worker.perform { context in
            // Texts that compression does not make small.
            for number in 0..<300 { context.makeTrack((0..<600).map { _ in UUID().uuidString }.joined(), plays: number) }
        }
        try await worker.save()
        return (bed, container)
    }

    /// Catches: a bar that goes back, stays empty until the end, or ends before its end.
    @Test(arguments: [StoreKind.lmdb, .sqlite])
    func `backups and copies report the part that is done, up to all of it`(_ kind: StoreKind) async throws {
        let (bed, container) = try await Self.filled(kind)
        for isCompact in [false, true] where kind == .lmdb || !isCompact {
            let parts = Mutex<[Double]>([])
            let url = bed.folder.appending(path: "copy \(isCompact)")
            let report: @Sendable (Double) -> Void = { part in parts.withLock { $0.append(part) } }
            if isCompact {
                try await container.compactCopy(to: url, progress: report)
            } else {
                try await container.coordinator.backup(to: url, progress: report)
            }
            let found = parts.withLock { $0 }
            #expect(found.count > 1 && found.last == 1 && found == found.sorted(), "\(found)")
        }
        try await container.close()
    }

    @Test(arguments: StoreKind.allCases)
    func `verify reports the part that is done, and ends when its task is cancelled`(_ kind: StoreKind) async throws {
        let (bed, container) = try await Self.filled(kind)
        let parts = Mutex<[Double]>([])
        let findings = try await container.coordinator.verify { part in parts.withLock { $0.append(part) } }
        let found = parts.withLock { $0 }
        #expect(findings.isEmpty && found.count > 2 && found.last == 1 && found == found.sorted(), "\(found)")
        try await Self.cancelled { report in _ = try await container.coordinator.verify(progress: report) }
        // An ended check leaves its snapshot's connection usable.
        #expect(try await container.coordinator.verify().isEmpty)
        try await container.close()
        withExtendedLifetime(bed) {}
    }

    /// Catches: a state that is kept for minutes and is in no list, so that no budget warns.
    @Test(arguments: StoreKind.allCases)
    func `S152: the states of compact copies and verifications are listed`(_ kind: StoreKind) async throws {
        let (bed, container) = try await Self.filled(kind)
        let coordinator = container.coordinator
        let owners = Mutex<[[String]]>([])
        let report: @Sendable (Double) -> Void = { _ in
            let listed = (try? coordinator.snapshots().flatMap(\.owners)) ?? []
            owners.withLock { $0.append(listed) }
        }
        #expect(try await coordinator.verify(progress: report).isEmpty)
        let verified = owners.withLock { $0 }
        #expect(!verified.isEmpty && verified.allSatisfy { $0.contains("a verification") }, "\(verified)")
        if kind == .lmdb {
            owners.withLock { $0 = [] }
            try await container.compactCopy(to: bed.folder.appending(path: "copy"), progress: report)
            let copied = owners.withLock { $0 }
            #expect(!copied.isEmpty && copied.allSatisfy { $0.contains("a compact copy") }, "\(copied)")
        }
        let left = try coordinator.snapshots().flatMap(\.owners)
        #expect(!left.contains("a verification") && !left.contains("a compact copy"))
        try await container.close()
        withExtendedLifetime(bed) {}
    }

    @Test(arguments: [StoreKind.lmdb, .sqlite])
    func `a copy whose task is cancelled while it reports leaves no file`(_ kind: StoreKind) async throws {
        let (bed, container) = try await Self.filled(kind)
        let url = bed.folder.appending(path: "copy")
        try await Self.cancelled { report in try await container.coordinator.backup(to: url, progress: report) }
        #expect(!FileManager.default.fileExists(atPath: url.path))
        try await container.close()
    }

    /// Expects that work ends with an error if its task is cancelled when it first reports its progress.
    private static func cancelled(
        _ work: @escaping @Sendable (_ report: @escaping @Sendable (Double) -> Void) async throws -> Void
    ) async throws {
        let task = Mutex<Task<Void, any Error>?>(nil)
        let begun = AsyncStream<Void>.makeStream()
        let running = Task {
            // The task is known before the work begins.
            for await _ in begun.stream { break }
            try await work { _ in task.withLock { $0 }?.cancel() }
        }
        task.withLock { $0 = running }
        begun.continuation.yield()
        await #expect(throws: CancellationError.self) { try await running.value }
    }

    /// Catches: an error for a store in a file that says to use a store in a file.
    @Test func `a store on SQLite refuses a compact copy and names the backup`() async throws {
        let bed = try TestBed(.sqlite)
        let container = try await bed.container()
        #expect(try await container.compact() == CompactionProgress())
        let error = await #expect(throws: StoreError.self) {
            try await container.compactCopy(to: bed.folder.appending(path: "never"))
        }
        #expect(error?.code == .unsupported)
        #expect(error?.message.hasSuffix("the store cannot be compacted. Use backup(to:)") == true)
    }

    @Test func aStoreInMemoryHasNothingToCompact() async throws {
        let container = try await TestBed(.memory).container()
        #expect(try await container.compact() == CompactionProgress())
        await #expect(throws: StoreError.self) {
            try await container.compactCopy(to: FileManager.default.temporaryDirectory.appendingPathComponent("never"))
        }
    }
}
